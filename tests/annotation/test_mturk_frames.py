"""Whole documents and single relations in a marketplace's frame: another site around it, no storage
in the browser.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from browsing import CHROMIUM, FLAGS, IN_CHROMIUM, close_all, draft_with, note_faults
from django.test import Client
from documents_world import answer_to, order
from mturk_world import Turk, rounds
from playwright.sync_api import Browser, BrowserContext, Frame, FrameLocator, Page, Playwright
from processes import wait_for
from test_annotation_walk_by_keyboard import open_folded, walk

from annotation.models import HIT, Assignment, Question, Title, Worker
from annotation.platforms import proof
from annotation.workers.worker import handle_of
from kbpo.instances.models import Label
from kbpo.submissions.models import Submission
from kbpo.tracks.models import Track
from tests.conftest import Toy

NO_STORAGE = {"profile": {"default_content_setting_values": {"cookies": 2}}}
"""Chromium's own setting under which localStorage throws, as it does for those who forbid other
sites to store."""
pytestmark = pytest.mark.django_db(transaction=True)


def in_a_browser(test: Any) -> Any:
    """Marks a test that drives Chromium."""
    for mark in IN_CHROMIUM:
        test = mark(test)
    return test


@pytest.fixture
def closed_browser(playwright: Playwright, tmp_path: Path) -> Iterator[BrowserContext]:
    """A browser in which no page may store anything."""
    profile = tmp_path / "profile" / "Default"
    profile.mkdir(parents=True)
    (profile / "Preferences").write_text(json.dumps(NO_STORAGE))
    started = playwright.chromium.launch_persistent_context(
        str(profile.parent),
        executable_path=str(CHROMIUM),
        args=FLAGS,
        viewport={"width": 1400, "height": 1000},
    )
    yield started
    close_all(started)


@pytest.fixture
def whole(market: Turk, toy: Toy, live_server: Any, settings: Any) -> Question:
    """The first document of the toy corpus, up on the endpoint."""
    settings.SITE_URL = live_server.url
    Track.objects.filter(pk=toy.track.pk).update(platform="mturk")
    toy.track.refresh_from_db()
    order(toy.track, 4)
    return Question.objects.get(target__document=toy.documents["d1"])


def enter(context: BrowserContext, src: str) -> tuple[Page, FrameLocator]:
    """The marketplace's page with the work in its frame."""
    page = context.pages[0]
    page.faults = []  # type: ignore[attr-defined]
    page.on("pageerror", lambda error: page.faults.append(str(error)))  # type: ignore[attr-defined]
    page.goto(src)
    frame = page.frame_locator("#task")
    frame.locator("html[data-ready]").wait_for()
    return page, frame


def work_address(turk: Turk, worker: str, hit: HIT) -> str:
    assignment, _ = turk.accept(worker, hit.external_id)
    return f"{turk.url}/work?workerId={worker}&assignmentId={assignment}"


def mark(frame: FrameLocator, words: str, kind: str, which: int = 0) -> None:
    frame.locator(".t", has_text=words).nth(which).dblclick()
    frame.locator("#inspector .type", has_text=kind).click()


@in_a_browser
def test_a_whole_document_is_marked_left_and_sent_where_the_browser_stores_nothing(
    closed_browser: BrowserContext, market: Turk, whole: Question
) -> None:
    Title.objects.create(title="Nordwerk (company)", folded="nordwerk (company)")
    page, frame = enter(closed_browser, work_address(market, "WDOC", whole.hits.get()))
    stores = "() => { try { localStorage.length; return true; } catch { return false; } }"
    inside = next(one for one in page.frames if "/annotate/task/" in one.url)
    assert inside.evaluate(stores) is False, "the browser of this test must forbid storage"
    assert not inside.url.startswith(market.url)
    mark(frame, "Nordwerk", "Organisation")
    with page.expect_response("**/titles/**"):
        frame.get_by_label("Its Wikipedia title, if you know it").focus()
    frame.locator("#titles option[value='Nordwerk (company)']").wait_for(state="attached")
    with page.expect_response(draft_with("[55,61]")) as saved:
        mark(frame, "Halden", "State")
    assert saved.value.status == 200
    kept = Assignment.objects.get().draft
    assert kept is not None and "Halden" not in kept and kept["now"] == [str(whole.pk)]
    mark(frame, "Bergen", "State")  # left at once: the beacon keeps it
    where = page.url
    page.goto("about:blank")
    wait_for(lambda: "[84,90]" in str(Assignment.objects.get().draft), "the beacon")
    page.goto(where)
    frame.locator("html[data-ready]").wait_for()
    assert "3 with 3 mentions" in frame.locator("#entities .head").inner_text()
    for _ in range(2):  # check, send
        frame.locator("#primary").click()
    frame.get_by_text("Your answer has arrived.").wait_for()
    rounds()
    raw = Assignment.objects.get().raw
    assert raw is not None
    marks = json.loads(raw[f"q{whole.pk}.mentions"][0])
    assert sorted((one["span"], one["type"]) for one in marks) == [
        ([19, 27], "ORG"),
        ([55, 61], "GPE"),
        ([84, 90], "GPE"),
    ]
    assert page.faults == []  # type: ignore[attr-defined]


@pytest.mark.soak
def test_documents_go_through_both_steps_on_a_marketplace(
    market: Turk, whole: Question, toy: Toy
) -> None:
    """Three workers mark, three workers judge the pairs that come of it; nobody logs in."""
    for interface in ("entities", "relations_exhaustive"):
        rounds_of_documents()
        open_ones = Question.objects.filter(interface=interface, status="published")
        assert open_ones.exists(), interface
        for question in open_ones:
            for worker in ("W1", "W2", "W3"):
                market.do(worker, question.hits.get().external_id, answer_to(question))
    rounds_of_documents()
    assert set(Question.objects.values_list("status", flat=True)) == {"settled"}
    assert Label.objects.filter(target__kind="pair", source="document").exists()


def rounds_of_documents() -> None:
    from annotation.questions import read_documents

    for _ in range(3):
        rounds()
        read_documents.tick()


@in_a_browser
def test_pairs_are_judged_left_and_taken_up_again_in_the_frame(
    closed_browser: BrowserContext, market: Turk, whole: Question
) -> None:
    for worker in ("W1", "W2", "W3"):
        market.do(worker, whole.hits.get().external_id, answer_to(whole))
    rounds_of_documents()
    pairs = Question.objects.get(interface="relations_exhaustive", target=whole.target_id)
    page, frame = enter(closed_browser, work_address(market, "WPAIR", pairs.hits.get()))
    n = len(pairs.payload["pairs"])
    assert n > 1
    with page.expect_response("**/draft/"):
        frame.locator(".choice.none, [data-none]").first.click()
    page.reload()
    frame.locator("html[data-ready]").wait_for()
    assert frame.locator("#pair-number").inner_text() == "2"
    for _ in range(n - 1):
        frame.locator(".choice.none, [data-none]").first.click()
        frame.locator("#primary").click()
    frame.get_by_text("Your answer has arrived.").wait_for()
    assert page.faults == []  # type: ignore[attr-defined]


@pytest.mark.soak
@pytest.mark.walk
@in_a_browser
def test_half_a_relation_is_still_there_after_a_reload(
    closed_browser: BrowserContext, turk: Turk, two_in_a_hit: HIT
) -> None:
    page = closed_browser.pages[0]
    faults: list[str] = []
    page.on("pageerror", lambda error: faults.append(str(error)))
    page.goto(work_address(turk, "WREL", two_in_a_hit))
    frame = page.frame_locator("#task")
    for number in (1, 2):
        frame.get_by_text(f"Question {number} of 2").wait_for()
        frame.locator(".pill", has_text="Ann").first.click()
        frame.locator(".pill.b", has_text="Another name").click()
        frame.locator("html[data-ready]").wait_for()
        with page.expect_response(draft_with('name="holds"')):
            frame.locator(".choice", has_text="studied at").click()
        page.reload()
        frame.get_by_text(f"Question {number} of 2").wait_for()  # complete, and still not submitted
        assert frame.locator("input[name=holds]:checked").count() == 1
        frame.locator(".submit-bar .primary").click()
    frame.get_by_text("Your answer has arrived.").wait_for()
    assert faults == []


def inside(page: Page, form: str = "") -> Frame:
    """The frame with our page in it, once its scripts run."""
    page.frame_locator("#task").locator(f"html[data-ready] {form}".strip()).wait_for()
    return next(one for one in page.frames if "/annotate/task/" in one.url)


def focused(frame: Frame) -> str:
    return str(frame.evaluate("document.activeElement.textContent.trim()"))


@in_a_browser
@pytest.mark.usefixtures("untaught")
def test_a_newcomer_goes_by_keys_alone_from_the_preview_to_what_the_tutorial_explains(
    browser: Browser, turk: Turk, two_in_a_hit: HIT
) -> None:
    page = browser.new_page(viewport={"width": 1400, "height": 1100})
    faults = note_faults(page)
    page.goto(f"{turk.url}/preview?workerId=WNEW&hitId={two_in_a_hit.external_id}")
    frame = page.frame_locator("#task")
    frame.get_by_text("This is a preview. Accept the HIT to answer.").wait_for()
    page.locator("#accept button").focus()
    page.keyboard.press("Tab")
    shown = next(one for one in page.frames if "/annotate/task/" in one.url)
    assert "Skip" in focused(shown), "from the marketplace's own buttons Tab leads into the frame"
    walk(page, shown, least=2)
    page.locator("#accept button").focus()
    page.keyboard.press("Enter")
    frame.get_by_role("heading", name="What you agree to").wait_for()
    terms = next(one for one in page.frames if "/annotate/task/" in one.url)
    walk(page, terms, least=3)
    frame.locator("input[name=agree]").focus()
    page.keyboard.press("Space")
    page.keyboard.press("Enter")
    frame.get_by_role("heading", name="A tutorial first").wait_for()
    walk(page, next(one for one in page.frames if "/annotate/task/" in one.url), least=2)
    frame.get_by_role("button", name="Begin").focus()
    page.keyboard.press("Enter")
    lesson = inside(page, "#answer[data-tutorial]")
    walk(page, lesson)
    frame.locator(".skip").focus()
    for key in ("k", "k", "1", "1", "0", "Enter"):
        page.keyboard.press(key)
    frame.locator(".explained").first.wait_for()
    walk(page, next(one for one in page.frames if "/annotate/task/" in one.url), least=3)
    assert faults == []


@in_a_browser
def test_relations_in_the_frame_by_tab_by_keys_and_by_finger(
    browser: Browser, turk: Turk, two_in_a_hit: HIT
) -> None:
    page = browser.new_page(viewport={"width": 1400, "height": 1100})
    faults = note_faults(page)
    page.goto(work_address(turk, "WKEYS", two_in_a_hit))
    frame = page.frame_locator("#task")
    for number in (1, 2):
        frame.get_by_text(f"Question {number} of 2").wait_for()
        shown = inside(page, "#answer")
        walk(page, shown)
        open_folded(shown)
        walk(page, shown)
        frame.locator(".skip").focus()
        for key in ("k", "k", "1", "2", "1", "Enter"):
            page.keyboard.press(key)
    frame.get_by_text("Your answer has arrived.").wait_for()
    page.context.close()
    page = browser.new_context(
        viewport={"width": 390, "height": 844}, has_touch=True, is_mobile=True
    ).new_page()
    faults += note_faults(page)
    page.goto(work_address(turk, "WPHONE", two_in_a_hit))
    frame = page.frame_locator("#task")
    for number in (1, 2):
        frame.get_by_text(f"Question {number} of 2").wait_for()
        shown = inside(page, "#answer")
        assert shown.evaluate("document.documentElement.scrollWidth <= innerWidth")
        targets = frame.locator(".pill:visible, .choice:visible, .submit-bar .button:visible")
        boxes = [one.bounding_box() for one in targets.all()]
        assert min(box["height"] for box in boxes if box) >= 44
        frame.locator("[data-step=a] .pill").first.tap()
        frame.locator("[data-step=b] .pill").last.tap()
        frame.locator(".choices .choice").first.tap()
        frame.locator(".submit-bar .primary").tap()
    frame.get_by_text("Your answer has arrived.").wait_for()
    assert faults == []


@in_a_browser
def test_a_document_in_the_frame_by_keys_then_its_pairs_by_keys_and_by_finger(
    browser: Browser, market: Turk, whole: Question
) -> None:
    page = browser.new_page(viewport={"width": 1400, "height": 1100})
    faults = note_faults(page)
    page.goto(work_address(market, "WNAMES", whole.hits.get()))
    frame = page.frame_locator("#task")
    shown = inside(page, "#answer")
    walk(page, shown)
    frame.locator("#text").focus()
    keys = ("ArrowRight", "Shift+ArrowRight", "Enter", "p", *"jojpjgjojg", "c", "Control+Enter")
    for key in keys:  # Mara Lindt, then what looks like a name, one after the other
        page.keyboard.press(key)
    frame.get_by_text("Your answer has arrived.").wait_for()
    for worker in ("W1", "W2"):
        market.do(worker, whole.hits.get().external_id, answer_to(whole))
    rounds_of_documents()
    raw = Assignment.objects.get(worker__handle=handle_of("mturk", "WNAMES")).raw or {}
    marks = json.loads(raw[f"q{whole.pk}.mentions"][0])
    assert [one["type"] for one in marks] == ["PER", "ORG", "PER", "GPE", "ORG", "GPE"]
    pairs = Question.objects.get(interface="relations_exhaustive", target=whole.target_id)
    n = len(pairs.payload["pairs"])
    page.goto(work_address(market, "WPAIRS", pairs.hits.get()))
    shown = inside(page, "#answer")
    walk(page, shown)
    open_folded(shown)
    walk(page, shown)
    frame.locator("#pair-question").focus()
    for _ in range(n):
        for key in ("1", "Enter"):
            page.keyboard.press(key)
    page.keyboard.press("Enter")
    frame.get_by_text("Your answer has arrived.").wait_for()
    page.context.close()
    page = browser.new_context(
        viewport={"width": 390, "height": 844}, has_touch=True, is_mobile=True
    ).new_page()
    faults += note_faults(page)
    page.goto(work_address(market, "WTAPS", pairs.hits.get()))
    shown = inside(page, "#answer")
    frame = page.frame_locator("#task")
    assert shown.evaluate("document.documentElement.scrollWidth <= innerWidth")
    for _ in range(n):
        frame.locator("#choices .choice.none").tap()
        frame.locator("#primary").tap()
    frame.get_by_text("Your answer has arrived.").wait_for()
    assert faults == []


def draft_of(src: str) -> tuple[str, dict[str, str]]:
    """The address that drafts go to, and the proof of the page."""
    path = "/" + src.partition("//")[2].partition("/")[2]
    page = Client().get(path).content.decode()
    said = page.split('name="proof" value="')[1].split('"')[0]
    return path.partition("?")[0] + "draft/", {"proof": said, "answer": "{}"}


@pytest.mark.soak
def test_a_draft_is_kept_under_its_own_go_alone(up: Submission, turk: Turk) -> None:
    first, second = turk.hits()[:2]
    (_, src1), (_, src2) = turk.accept("W1", first), turk.accept("W2", second)
    (where, mine), (elsewhere, _) = draft_of(src1), draft_of(src2)
    client = Client(enforce_csrf_checks=True)
    assert client.post(where, mine | {"a": "0-3"}).status_code == 200
    assert client.post(elsewhere, mine | {"a": "0-3"}).status_code == 403
    assert client.post(where, {"proof": "forged", "a": "0-3"}).status_code == 403
    assert client.get(where).status_code == 405 and not client.cookies
    drafts = dict(Assignment.objects.values_list("hit__external_id", "draft"))
    assert ["0-3"] in drafts[first].values() and not drafts[second]


def test_nothing_is_kept_with_a_worker_of_a_marketplace_but_drafts(
    up: Submission, turk: Turk
) -> None:
    """Anybody may write their id into the address: how they have the keys their browser keeps."""
    _, src = turk.accept("W1", turk.hits()[0])
    where, mine = draft_of(src)
    client = Client(enforce_csrf_checks=True)
    wanted = json.dumps({"off": True, "keys": {"z": "u"}})
    assert (
        client.post(where.replace("/draft/", "/keys/"), mine | {"keys": wanted}).status_code == 404
    )
    assert not Worker.objects.get(handle=handle_of("mturk", "W1")).keys
    page = client.get("/" + src.partition("//")[2].partition("/")[2]).content.decode()
    assert "data-keys-url" not in page
    assert 'class="price"' in page and "return the HIT on the marketplace" in page


@pytest.mark.soak
def test_a_draft_after_the_answer_changes_nothing_and_says_so(up: Submission, turk: Turk) -> None:
    hit = turk.hits()[0]
    _, src = turk.accept("W1", hit)
    where, mine = draft_of(src)
    turk.send(turk.fill_in(src))
    rounds()
    raw = Assignment.objects.get().raw
    late = Client().post(where, mine | {"a": "other"})
    assert late.status_code == 409 and "sent this HIT in already" in late.json()["error"]
    assert Assignment.objects.get().raw == raw and Assignment.objects.get().draft is None


def test_titles_need_the_proof_of_a_hit_in_hand_and_no_login(market: Turk, whole: Question) -> None:
    Title.objects.create(title="Halden", folded="halden")
    hit = whole.hits.get()
    path = proof.task_path(hit) + "titles/"
    assert Client().get(path, {"q": "hal"}).status_code == 403
    said = Client().get(path, {"q": "hal", "proof": proof.prove(hit.pk, "3A", "0" * 32)})
    assert said.json() == {"titles": ["Halden"]}
    src = market.preview("W1", hit.external_id)
    assert (
        "data-titles"
        not in Client().get("/" + src.partition("//")[2].partition("/")[2]).content.decode()
    )
