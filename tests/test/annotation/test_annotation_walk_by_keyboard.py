"""Every judging page by keyboard: Tab reaches everything, in the order of the page, and is nowhere
caught; single keys can be switched off and changed, and stay so.
"""

from __future__ import annotations

from typing import Any

import pytest
from browsing import IN_CHROMIUM, draft_with, log_in, note_faults, open_page
from django.test import Client
from documents_world import answer_to, order
from playwright.sync_api import Browser, Frame, Page, expect
from test_text_pages_browser import TEXT, asked

from annotation.hits import publish
from annotation.labels import settle
from annotation.models import Assignment, Question, Worker
from annotation.questions import read_documents
from kbpo.accounts.models import User
from kbpo.tracks.texts.declared import store_form
from kbpo.web.desk.forms import EXAMPLE
from tests.conftest import Toy

pytestmark = [*IN_CHROMIUM, pytest.mark.django_db(transaction=True)]

NUMBER = """() => {
  const all =
    'a[href], button, input:not([type=hidden]), summary, select, textarea, [tabindex="0"]';
  const seen = (one) =>
    one.checkVisibility({ visibilityProperty: true }) && !one.disabled && one.tabIndex >= 0
    && !one.closest("[inert]") && !one.matches(":disabled");
  const groups = new Map();
  let number = 0;
  for (const one of document.querySelectorAll(all)) {
    if (!seen(one)) continue;
    const group = one.type === "radio" ? `radio ${one.name}` : null; // a group is one stop
    one.dataset.stop = group && groups.has(group) ? groups.get(group) : number++;
    if (group) groups.set(group, one.dataset.stop);
  }
  return number;
}"""
AT = """() => { const at = document.activeElement;
  return at === document.body ? "out" : at?.dataset?.stop ?? "scrolls"; }"""
NAME = """(stop) => { const one = document.querySelector(`[data-stop="${stop}"]`);
  return one.outerHTML.slice(0, 90); }"""


def walk(page: Page, frame: Frame | None = None, least: int = 7) -> None:
    """Tab from the top of the page, or of a frame in it, comes to everything once, in its order,
    and out again.
    """
    inside = frame or page
    stops = inside.evaluate(NUMBER)
    assert stops >= least
    inside.evaluate("document.activeElement.blur(); scrollTo(0, 0)")
    inside.locator(".skip").focus()
    met = [int(inside.evaluate(AT))]
    for _ in range(stops + 3):
        page.keyboard.press("Tab")
        at = inside.evaluate(AT)
        if at == "scrolls":  # a browser lets keys scroll what is longer than its place
            continue
        if at == "out" or int(at) in met:
            break
        met.append(int(at))
    missed = [inside.evaluate(NAME, stop) for stop in range(stops) if stop not in met]
    assert missed == [] and met == sorted(met)


def open_folded(page: Page | Frame) -> None:
    page.evaluate("document.querySelectorAll('details').forEach((one) => { one.open = true; })")


def test_tab_reaches_everything_of_a_question(
    browser: Browser, live_server: Any, published: Any
) -> None:
    page = open_page(browser, live_server)
    page.wait_for_selector("html[data-ready]")
    walk(page)
    open_folded(page)
    walk(page)
    for key in ("1", "1", "1", "Enter"):
        page.keyboard.press(key)
    page.wait_for_url(lambda url: Assignment.objects.filter(status="leased").get().token in url)
    assert page.faults == []  # type: ignore[attr-defined]


def test_tab_reaches_everything_of_a_document(
    browser: Browser, live_server: Any, toy: Toy, taught: None
) -> None:
    order(toy.track, 4)
    document = Question.objects.get(target__document=toy.documents["d2"])
    document.hits.update(order=-5)
    page = open_page(browser, live_server)
    page.wait_for_selector("html[data-ready]")
    for key in ("ArrowRight", "Enter"):
        page.keyboard.press(key)
    open_folded(page)
    walk(page)
    chosen = page.locator("#inspector .type").first
    chosen.focus()
    page.keyboard.press("Enter")  # whoever goes through the buttons by Tab stays there
    expect(page.locator("#inspector .type").first).to_be_focused()
    assert page.faults == []  # type: ignore[attr-defined]
    page.context.close()
    for name in ("Ada", "Bo", "Cy"):
        client = Client()
        client.force_login(toy.users[name])
        client.get("/annotate/next/?kind=entities")
        held = Assignment.objects.filter(worker__user=toy.users[name], status="leased").get()
        client.post(f"/annotate/{held.token}/", answer_to(held.hit.questions.get()))
    settle.tick()
    read_documents.tick()
    publish.tick()
    page = open_page(browser, live_server)
    page.goto(live_server.url + "/annotate/next/?kind=relations_exhaustive")
    page.wait_for_selector("html[data-ready]")
    assert page.locator("#answer").get_attribute("data-interface") == "relations_exhaustive"
    open_folded(page)
    walk(page)
    page.locator("#choices input").first.focus()
    for key in ("Space", "Enter"):
        page.keyboard.press(key)
    expect(page.locator("#pair-question")).to_be_focused()
    assert page.faults == []  # type: ignore[attr-defined]


def test_a_declared_form_is_answered_by_keys_and_says_only_keys_that_it_has(
    browser: Browser, live_server: Any
) -> None:
    store_form(EXAMPLE.read_text())
    asked("form-helpfulness", input="q", text=TEXT)
    page = open_page(browser, live_server)
    page.wait_for_selector("html[data-ready]")
    open_folded(page)
    walk(page)
    hints = page.locator("[data-key-hints]")
    expect(hints).to_contain_text("choose")
    expect(hints).not_to_contain_text("undo")
    expect(page.locator(".step .done")).to_have_count(0)  # words that may be left out are not there
    page.locator(".skip").focus()  # out of the words again: a digit chooses
    page.keyboard.press("4")
    page.keyboard.press("1")
    expect(page.locator("textarea")).to_be_focused()
    with page.expect_response(draft_with("1884")):
        page.keyboard.type("Built in 1884.")
    page.reload()
    page.wait_for_selector("html[data-ready]")
    expect(page.locator("textarea")).to_have_value("Built in 1884.")
    expect(page.locator(".step .done")).to_have_count(3)
    page.locator("textarea").focus()
    with page.expect_navigation():
        page.keyboard.press("Control+Enter")
    raw = Assignment.objects.get(status="submitted").raw or {}
    assert [raw[name] for name in ("helpful", "harmless", "why")] == [
        ["4"],
        ["1"],
        ["Built in 1884."],
    ]
    assert page.faults == []  # type: ignore[attr-defined]


def arrive(page: Page, address: str) -> None:
    page.goto(address)
    page.wait_for_selector("html[data-ready]")


def page_of(browser: Browser, live_server: Any, user: User, **options: Any) -> Page:
    context = browser.new_context(**{"viewport": {"width": 1400, "height": 900}, **options})
    client = Client()
    client.force_login(user)
    log_in(context, live_server.url, client)
    page = context.new_page()
    page.faults = note_faults(page)  # type: ignore[attr-defined]
    return page


def test_single_keys_are_switched_off_and_changed_and_stay_so(
    browser: Browser, live_server: Any, published: Any
) -> None:
    page = open_page(browser, live_server)
    page.wait_for_selector("html[data-ready]")

    def chosen() -> int:
        return page.locator(".parts input:checked").count()

    page.get_by_role("button", name="Keys").click()
    page.get_by_label("Key for: undo").fill("u")
    page.get_by_label("Key for: flag").fill("u")
    page.get_by_role("button", name="Keep").click()
    expect(page.locator("#key-sheet [role=status]")).to_contain_text("U would be two things")
    page.get_by_label("Key for: flag").fill("f")
    page.get_by_role("button", name="Keep").click()
    expect(page.locator("#key-sheet [role=status]")).to_have_text("Kept.")
    page.locator("#key-sheet").get_by_role("button", name="Close").click()
    page.keyboard.press("1")
    page.keyboard.press("z")
    assert chosen() == 1  # it is nobody's key now
    page.keyboard.press("u")
    assert chosen() == 0
    assert Worker.objects.get().keys == {"off": False, "keys": {"z": "u"}}
    other = open_page(browser, live_server)  # another browser of the same person
    other.wait_for_selector("html[data-ready]")
    other.keyboard.press("1")
    other.keyboard.press("u")
    assert other.locator(".parts input:checked").count() == 0
    other.get_by_role("button", name="Keys").click()
    other.get_by_label("Keys of a single letter, digit or sign work").uncheck()
    other.get_by_role("button", name="Keep").click()
    expect(other.locator("#key-sheet [role=status]")).to_have_text("Kept.")
    other.locator("#key-sheet").get_by_role("button", name="Close").click()
    for key in ("1", "u", "f", "?", "0"):
        other.keyboard.press(key)
    assert other.locator(".parts input:checked, details[open], dialog[open]").count() == 0
    assert "choose in this step" not in other.locator("[data-key-hints]").inner_text()
    other.locator("details.link summary").first.click()
    other.locator("input[name=a_title]").type("u1z")
    assert other.locator("input[name=a_title]").input_value() == "u1z"
    page.reload()
    page.wait_for_selector("html[data-ready]")
    page.keyboard.press("1")
    assert chosen() == 0
    assert page.faults == other.faults == []  # type: ignore[attr-defined]
