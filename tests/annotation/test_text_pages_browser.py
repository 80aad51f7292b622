"""The pages of texts and of answers in a browser: by mouse, by keyboard alone, after a reload."""

from __future__ import annotations

import itertools
import json
import os
import random
from collections.abc import Callable, Sequence
from decimal import Decimal
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from browsing import IN_CHROMIUM, open_page
from django.utils import timezone
from playwright.sync_api import Browser, Locator, Page, expect

from annotation.hits import publish
from annotation.labels import settle
from annotation.models import Assignment, Payment, Question, Response
from kbpo.corpus.models import Corpus
from kbpo.instances.models import Target
from kbpo.money.purpose import Purpose
from kbpo.money.spend import reserve
from kbpo.sampling.open_track import Money, create_track, open_track
from kbpo.tracks.generation.declared import declare
from kbpo.tracks.generation.edits import characters_changed
from kbpo.tracks.generation.models import Input
from kbpo.tracks.models import Track
from kbpo.tracks.registry import kind_of
from tests.web.test_axe import looked_at

pytestmark = [*IN_CHROMIUM, pytest.mark.django_db(transaction=True)]
TEXT = "The team have win three matches."
PICTURES = os.environ.get("SCREENSHOTS", "")
Look = Callable[[str], None]
PHONE = {"viewport": {"width": 390, "height": 844}, "has_touch": True, "is_mobile": True}
PASSAGES = [
    "Ida Marsk built it in 1884. It is tall.",
    "Nobody lives there.",
    "Tom Vinter built it.",
]


ENORMOUS = ("Ida Marsk built the tower. " * 8000)[:199_990] + " in 1884."
FORM = """
name: asked
title: What do you think?
price: 0.10
second_share: 0
questions:
  - {name: helps, kind: rating, ask: "Does it help?", range: [1, 3]}
  - {name: why, kind: text, ask: "Why?", required: no}
"""
HELPS = """
name: helps
title: Does it help?
price: 0.10
second_share: 0
questions: [{name: helps, kind: rating, ask: "Does it help?", range: [1, 3]}]
"""
BETTER = """
name: better
title: Which is better?
price: 0.10
second_share: 0
questions: [{name: preferred, kind: preference, ask: "Which text is better?"}]
"""


def asked(kind: str, passages: Sequence[str] = PASSAGES, **content: Any) -> Track:
    """An open question of a kind of track about one text, which can be paid for."""
    corpus = Corpus.objects.create(name="Texts", slug="texts", schema={})
    Input.objects.create(corpus=corpus, key="q", question="who built it", passages=list(passages))
    track = open_track(create_track(corpus, "Texts", kind=kind, money=Money(budget=Decimal(50))))
    target = Target.objects.create(
        corpus=corpus,
        kind=kind_of(track).target_kind,
        content=content,
        u=0.5,
        key=uuid4(),
    )
    reserve(track, None, Purpose("pilot", 1), Decimal(10), key="r")
    (draft,) = kind_of(track).again([target.pk])
    asking = kind_of(track).asking[0]
    Question.objects.create(
        status="waiting",
        track=track,
        target=target,
        interface=draft.interface,
        payload=draft.payload,
        payer=Purpose("pilot", 1),
        order=0.5,
        answers_wanted=1,
        price=asking.reward + asking.extra,
        reward=asking.reward,
        extra=asking.extra,
        extra_price=asking.extra,
        seconds=asking.seconds,
        asked_at=timezone.now(),
    )
    publish.tick()
    return track


def text_page(browser: Browser, live_server: Any) -> Page:
    asked("generation", input="q", text=TEXT)
    return open_page(browser, live_server)


def sent() -> dict[str, Any]:
    return Assignment.objects.get(status="submitted").raw or {}


@pytest.mark.soak
@pytest.mark.walk
def test_a_text_is_rated_and_mended_by_mouse(browser: Browser, live_server: Any) -> None:
    page = text_page(browser, live_server)
    mend = page.locator("[data-step=edit]")
    for facet in ("fluency", "redundancy", "overall"):
        page.locator(f"[data-step={facet}] .choice").nth(2).click()
    expect(mend).to_be_hidden()
    page.locator("[data-step=fluency] .choice").nth(1).click()
    expect(mend).to_be_visible()
    page.locator(".submit-bar .primary").click()
    expect(page.locator("#missing")).to_contain_text("mend the text")
    page.locator("#edit").fill("The team has won three matches.")
    expect(page.locator("#changed")).to_contain_text("3 characters changed")
    expect(page.locator("#changed")).to_contain_text("almost nothing")
    expect(page.locator("#change ins").first).to_have_text("has won")
    expect(page.locator("#change del + ins")).to_have_css("margin-left", "3px")  # two words
    page.locator("#again").click()
    expect(page.locator("#changed")).to_contain_text("0 characters changed")
    page.locator("#edit").fill("The team has won three matches in a row.")
    page.reload()
    expect(page.locator("#edit")).to_have_value("The team has won three matches in a row.")
    expect(page.locator("#change ins").first).to_be_visible()  # what moves the button stands
    with page.expect_navigation():
        page.locator(".submit-bar .primary").click()
    assert Assignment.objects.get(status="submitted").extra == Decimal("0.25")
    assert "$0.40" in page.content(), "what was sent counts at once"
    assert page.faults == []


@pytest.mark.walk
def test_the_page_counts_characters_as_the_server_does(browser: Browser, live_server: Any) -> None:
    page = text_page(browser, live_server)
    chance = random.Random(7)
    texts = ["".join(chance.choices("ab 🚢", k=chance.randrange(60))) for _ in range(400)]
    nearly = [text[:9] + "a" + text[10:30] + "b" + text[32:] for text in texts]
    pairs = [*zip(texts, nearly, strict=True), *itertools.pairwise(texts)]
    long = "".join(chance.choices("abcdefgh", k=4000))
    pairs += [(long, ""), (long, long[:500])]  # taken out in one piece
    counted = page.evaluate(
        """async (pairs) => {
          const { charactersChanged } = await import("/static/interfaces/shared/changes.js");
          return pairs.map(([before, after]) => charactersChanged(before, after));
        }""",
        pairs,
    )
    assert counted == [{"changed": characters_changed(*pair), "exact": True} for pair in pairs]


@pytest.mark.walk
def test_a_text_is_rated_and_mended_by_keyboard_alone(browser: Browser, live_server: Any) -> None:
    page = text_page(browser, live_server)
    for key in ("2", "3", "2"):
        page.keyboard.press(key)
    expect(page.locator("#edit")).to_be_focused()
    page.keyboard.press("Control+End")
    page.keyboard.type(" They are glad.")
    with page.expect_navigation():
        page.keyboard.press("Control+Enter")
    assert sent()["edit"] == [f"{TEXT} They are glad."]
    assert [sent()[name] for name in ("fluency", "redundancy", "overall")] == [["2"], ["3"], ["2"]]
    assert page.faults == []


@pytest.mark.walk
def test_an_answer_is_checked_by_mouse_and_by_keyboard(browser: Browser, live_server: Any) -> None:
    asked("answers", input="q", text="Ida Marsk")
    page = open_page(browser, live_server)
    at_hand = page.locator(".passage:visible")
    plausible = page.locator("[data-step=plausible]")
    plausible.locator(".choice").nth(0).click()
    expect(plausible.locator(".choice").first).to_be_hidden()  # done, it is one line
    plausible.get_by_role("button", name="Change").click()
    plausible.locator(".choice").nth(1).click()
    expect(at_hand).to_have_count(0)
    plausible.locator(".choice").nth(0).click()
    expect(plausible.locator(".settled")).to_contain_text("the answer is plausible")
    at_hand.locator(".choice").nth(0).click()
    submit_button(page).click()
    expect(page.locator("#missing")).to_contain_text("mark the words that show")
    drag(page, 4, 20)
    expect(at_hand.locator("mark")).to_contain_text("Marsk built it")
    expect(page.locator("#missing")).to_contain_text("read your own words back")
    expect(at_hand.locator(".readback")).to_contain_text("Ida Marsk is an answer to “who built it”")
    confirm_button(page).click()
    expect(at_hand).to_have_attribute("data-letter", "b")
    page.keyboard.press("3")
    expect(at_hand).to_have_attribute("data-letter", "c")
    page.keyboard.press("2")
    page.keyboard.down("Shift")  # from the choice, where a browser would choose the next one
    page.keyboard.press("ArrowRight")
    page.keyboard.press("ArrowRight")
    page.keyboard.up("Shift")
    expect(at_hand.locator("mark")).to_contain_text("Tom Vinter")
    expect(at_hand.locator(".readback")).to_contain_text("is not an answer")
    page.keyboard.press("Shift+ArrowRight")  # goes on from the word that was marked last
    expect(at_hand.locator("mark")).to_contain_text("Tom Vinter built")
    page.keyboard.press("Enter")
    page.keyboard.press("p")
    expect(at_hand).to_have_attribute("data-letter", "b")
    with page.expect_navigation():
        page.keyboard.press("Control+Enter")
    raw = sent()
    assert [raw[f"passage-{at}"] for at in range(3)] == [["correct"], ["neither"], ["incorrect"]]
    assert json.loads(raw["marks-2"][0]) == [[0, 16]]
    assert page.faults == []


@pytest.mark.walk
@pytest.mark.parametrize("screen", [{}, PHONE], ids=["desktop", "phone"])
def test_words_are_confirmed_or_changed_before_anything_is_sent(
    browser: Browser, live_server: Any, screen: dict[str, Any]
) -> None:
    asked("answers", input="q", text="Ida Marsk")
    page = open_page(browser, live_server, **screen)
    at_hand = page.locator(".passage:visible")
    page.locator("[data-step=plausible] .choice").nth(0).click()
    to_send = ["Submit", "Flag a problem"]
    to_confirm = ["Yes, that is what I mean", "Change", "Flag" if screen else "Flag a problem"]
    assert buttons_of_the_bar(page) == to_send
    at_hand.locator(".choice").nth(1).click()
    mark_by_keys(page)
    expect(at_hand.locator(".warn-words")).to_have_text(
        "Your mark contains the answer itself."
        " Keep it only if those words show that the answer is wrong."
    )
    assert buttons_of_the_bar(page) == to_confirm
    expect(page.get_by_label("Paragraph a: shows it incorrect, not confirmed")).to_have_text("a✗")
    assert_is_in_view(page, ".confirm")
    page.locator(".change-it").click()
    expect(at_hand.locator(".readback")).to_be_hidden()
    expect(at_hand.locator("input:checked")).to_be_focused()
    assert buttons_of_the_bar(page) == to_send
    page.keyboard.press("Enter")  # nothing was changed after all
    expect(page.locator("#missing")).to_contain_text("read your own words back")
    assert buttons_of_the_bar(page) == to_confirm
    at_hand.locator(".choice").nth(0).click()
    expect(at_hand.locator(".means")).to_contain_text("Ida Marsk is an answer to")
    page.keyboard.press("Enter")
    expect(at_hand).to_have_attribute("data-letter", "b")
    assert buttons_of_the_bar(page) == to_send
    page.keyboard.press("p")
    expect(at_hand.locator(".readback .n")).to_have_class("n done")
    assert buttons_of_the_bar(page) == to_send
    assert page.faults == []


@pytest.mark.walk
@pytest.mark.parametrize("screen", [{}, PHONE], ids=["desktop", "phone"])
def test_a_question_is_flagged_or_given_back_while_words_wait_to_be_confirmed(
    browser: Browser, live_server: Any, screen: dict[str, Any]
) -> None:
    asked("answers", input="q", text="Ida Marsk")
    page = open_page(browser, live_server, **screen)
    page.locator("[data-step=plausible] .choice").nth(0).click()
    page.locator(".passage:visible .choice").nth(1).click()
    mark_by_keys(page)
    bar, flag = page.locator(".submit-bar"), page.locator(".flag summary")
    assert "confirming" in str(bar.get_attribute("class"))
    boxes = [page.locator(name).bounding_box() for name in (".confirm", ".change-it", ".flag")]
    middles = [box["y"] + box["height"] / 2 for box in boxes if box]
    assert len(middles) == 3 and max(middles) - min(middles) < 8, "one line, as it is drawn"
    if screen:
        assert boxes[2] and min(boxes[2]["height"], boxes[2]["width"]) >= 44, "for a finger"
        flag.tap()
    else:
        page.keyboard.press("f")
    assert_is_in_view(page, ".flag .link-button")
    page.get_by_label("Something else").check()
    assert buttons_of_the_bar(page)[0] == "Submit", "the answer is then the flag alone"
    page.get_by_label("Nothing").check()
    assert buttons_of_the_bar(page)[0] == "Yes, that is what I mean"
    with page.expect_navigation():
        page.get_by_role("button", name="give this question back").click()
    given_back = Assignment.objects.get()
    assert (given_back.status, given_back.returned_by) == ("returned", "worker")
    assert page.faults == []


@pytest.mark.walk
def test_words_without_blanks_between_them_are_marked_one_by_one(
    browser: Browser, live_server: Any
) -> None:
    asked("answers", ["塔は1884年に建てられました。高いです。"], input="q", text="1884年")
    page = open_page(browser, live_server)
    page.locator("[data-step=plausible] .choice").nth(0).click()
    at_hand = page.locator(".passage:visible")
    at_hand.locator(".choice").nth(0).click()
    for _ in range(3):
        page.keyboard.press("Shift+ArrowRight")
    expect(at_hand.locator("mark")).to_contain_text("塔は1884")
    expect(at_hand.locator("mark")).not_to_contain_text("高い")
    confirm_button(page).click()
    with page.expect_navigation():
        page.keyboard.press("Control+Enter")
    (begin, end), *others = json.loads(sent()["marks-0"][0])
    assert (begin, others) == (0, []) and 6 <= end < 10
    assert page.faults == []


TEN = [f"Ida Marsk built tower {number}, and nobody lives there." for number in range(10)]
SAID = ["correct", "incorrect", "neither", "correct", "neither"] * 2


@pytest.mark.walk
def test_ten_paragraphs_are_checked_by_keyboard_to_the_end_that_is_paid(
    browser: Browser, live_server: Any
) -> None:
    asked("answers", TEN, input="q", text="Ida Marsk")
    page = open_page(browser, live_server)
    page.keyboard.press("1")
    for letter, said in zip("abcdefghij", SAID, strict=True):
        expect(page.locator(".passage:visible")).to_have_attribute("data-letter", letter)
        page.keyboard.press(str(1 + ["correct", "incorrect", "neither"].index(said)))
        if said != "neither":
            mark_by_keys(page)
            page.keyboard.press("Enter")
    with page.expect_navigation():
        page.keyboard.press("Enter")
    assert_all_ten_are_paid(page)


@pytest.mark.soak
@pytest.mark.walk
def test_ten_paragraphs_are_checked_by_finger_to_the_end_that_is_paid(
    browser: Browser, live_server: Any
) -> None:
    asked("answers", TEN, input="q", text="Ida Marsk")
    page = open_page(browser, live_server, **PHONE)
    at_hand = page.locator(".passage:visible")
    page.locator("[data-step=plausible] .choice").nth(0).tap()
    for letter, said in zip("abcdefghij", SAID, strict=True):
        expect(at_hand).to_have_attribute("data-letter", letter)
        at_hand.locator(".choice").nth(["correct", "incorrect", "neither"].index(said)).tap()
        if said != "neither":
            chosen_by_finger(page, 0, 9)
            at_hand.get_by_role("button", name="Mark the chosen words").tap()
            assert_is_in_view(page, ".confirm")
            assert_is_within_reach(page)
            confirm_button(page).tap()
    with page.expect_navigation():
        submit_button(page).tap()
    assert_all_ten_are_paid(page)


def assert_all_ten_are_paid(page: Page) -> None:
    """What was said of ten paragraphs arrived, and its pay is what was promised."""
    raw = sent()
    assert [raw[f"passage-{at}"] for at in range(10)] == [[said] for said in SAID]
    assert [json.loads(raw[f"marks-{at}"][0]) for at in range(10)] == [
        [] if said == "neither" else [[0, 9]] for said in SAID
    ]
    expect(page.locator("body")).to_contain_text("$0.40")
    settle.tick()
    judged = {one.criterion: one.value["value"] for one in Response.objects.all()}
    assert judged == {"any_correct": 1.0, "avg_correct": pytest.approx(4 / 6)}
    assert Payment.objects.get().amount == Decimal("0.40")
    assert page.faults == []


def mark_by_keys(page: Page) -> None:
    """Marks the first two words of the paragraph at hand, from wherever the focus is."""
    page.keyboard.down("Shift")
    page.keyboard.press("ArrowRight")
    page.keyboard.press("ArrowRight")
    page.keyboard.up("Shift")
    expect(page.locator(".passage:visible mark")).to_be_visible()


@pytest.mark.soak
@pytest.mark.walk
def test_an_answer_and_a_passage_of_200_000_characters_are_checked(
    browser: Browser, live_server: Any
) -> None:
    asked("answers", [ENORMOUS, "Nobody lives there."], input="q", text=ENORMOUS)
    page = open_page(browser, live_server)
    at_hand = page.locator(".passage:visible")
    page.locator("[data-step=plausible] .choice").nth(0).click()
    at_hand.locator(".choice").nth(0).click()
    at_hand.locator(".passage-text").focus()
    page.keyboard.press("ArrowRight")
    page.keyboard.down("Shift")
    page.keyboard.press("ArrowRight")
    page.keyboard.up("Shift")
    expect(at_hand.locator("mark")).to_contain_text("Ida Marsk")
    expect(at_hand.locator(".readback .means")).to_contain_text("[…]")
    assert_is_at_hand(page)
    confirm_button(page).click()
    page.keyboard.press("3")
    with page.expect_navigation():
        page.keyboard.press("Control+Enter")
    raw = sent()
    assert json.loads(raw["marks-0"][0]) == [[0, 9]] and raw["passage-1"] == ["neither"]
    assert page.faults == []


@pytest.mark.soak
@pytest.mark.walk
def test_a_text_of_200_000_characters_is_rated_and_mended(
    browser: Browser, live_server: Any
) -> None:
    """At both its ends: what lies between them has to be held against each other."""
    asked("generation", input="q", text=ENORMOUS)
    page = open_page(browser, live_server)
    for key in ("2", "3", "2"):
        page.keyboard.press(key)
    expect(page.locator("#edit")).to_be_focused()
    page.keyboard.press("Control+Home")
    page.keyboard.type("Here: ")
    expect(page.locator("#changed")).to_contain_text("6 characters changed, 0 % of the text.")
    page.keyboard.press("Control+End")
    with page.expect_response(lambda answer: answer.url.endswith("/draft/")):
        page.keyboard.type(" It stands.")
        expect(page.locator("#changed")).to_contain_text("17 characters changed, 0 % of the text.")
    assert_is_at_hand(page)
    page.reload()
    expect(page.locator("#changed")).to_contain_text("17 characters changed, 0 % of the text.")
    page.locator("#edit").fill(ENORMOUS.replace("tower", "house"))  # too much to be counted
    expect(page.locator("#changed")).to_contain_text("At most 199,9")
    page.locator("#edit").fill(f"Here: {ENORMOUS} It stands.")
    with page.expect_navigation():
        page.keyboard.press("Control+Enter")
    settle.tick()
    edit = Response.objects.get(criterion="edit").value
    assert edit["changed"] == 17 and edit["text"] == f"Here: {ENORMOUS} It stands."
    assert Payment.objects.get().amount == Decimal("0.40")
    assert page.faults == []


@pytest.mark.walk
@pytest.mark.parametrize(
    ("form", "content"),
    [(HELPS, {"text": ENORMOUS}), (BETTER, {"texts": [ENORMOUS, f"{ENORMOUS[:-9]} in 1885."]})],
)
@pytest.mark.soak
def test_a_declared_form_about_texts_of_200_000_characters_is_answered(
    browser: Browser, live_server: Any, form: str, content: dict[str, Any]
) -> None:
    name = declare(form).name
    asked(f"form-{name}", input="q", **content)
    page = open_page(browser, live_server)
    expect(page.locator("#text .doc").first).to_contain_text("in 1884.")
    assert_is_at_hand(page)
    with page.expect_response("**/annotate/**"):
        page.keyboard.press("2")
        page.keyboard.press("Control+Enter")
    expect(page.locator("#answer")).to_have_count(0)
    assert [answer for name, answer in sent().items() if name in ("helps", "preferred")] == [["2"]]
    assert page.faults == []


def mended(page: Page, look: Look) -> None:
    """A text is rated and mended."""
    page.locator("[data-step=fluency] .choice").nth(1).click()
    for facet in ("redundancy", "overall"):
        page.locator(f"[data-step={facet}] .choice").nth(2).click()
    page.locator(".submit-bar .primary").click()
    expect(page.locator("#missing")).to_contain_text("mend the text")
    look("what is missing")
    page.locator("#edit").fill("The team has won three matches in a row.")
    expect(page.locator("#change ins").first).to_be_visible()
    look("mended")


def checked(page: Page, look: Look) -> None:
    """An answer is checked: words are marked, read back and confirmed."""
    at_hand = page.locator(".passage:visible")
    page.locator("[data-step=plausible] .choice").nth(0).click()
    look("pager")
    at_hand.locator(".choice").nth(0).click()
    drag(page, 4, 20)
    expect(at_hand.locator(".readback .means")).to_be_visible()
    look("read back")
    page.keyboard.press("f")
    look("flag before words are confirmed")
    page.keyboard.press("f")
    page.keyboard.press("Control+Enter")
    expect(page.locator("#missing")).to_contain_text("read your own words back")
    look("not confirmed")
    confirm_button(page).click()
    expect(at_hand).to_have_attribute("data-letter", "b")
    page.locator(".pager button").nth(0).click()
    expect(at_hand.locator("mark")).to_be_visible()
    expect(page.locator("#missing")).to_be_hidden()  # what it asked for is done
    expect(at_hand.locator(".readback .n")).to_have_class("n done")
    look("confirmed")


def filled(page: Page, look: Look) -> None:
    """A declared form is filled in."""
    page.locator("[data-step=helps] .pill").nth(1).click()
    page.locator("textarea:visible").first.fill("It says who won.")
    look("filled in")


@pytest.mark.parametrize(
    ("kind", "text", "walk"),
    [
        ("generation", TEXT, mended),
        ("answers", "Ida Marsk", checked),
        ("form-asked", TEXT, filled),
    ],
)
def test_what_is_in_hand_is_for_everybody(
    browser: Browser, live_server: Any, kind: str, text: str, walk: Callable[[Page, Look], None]
) -> None:
    """After each step axe finds nothing, at 1400 and 390, light and dark,
    and nothing is too wide.
    """
    if kind == "form-asked":
        declare(FORM)
    asked(kind, input="q", text=text)
    page = open_page(browser, live_server, bypass_csp=True)
    found: list[str] = []

    def look(step: str) -> None:
        def keep(page: Page, width: int) -> None:
            for scheme in ("light", "dark") if PICTURES else ():
                page.emulate_media(color_scheme=scheme, reduced_motion="reduce")
                file = Path(PICTURES) / f"{kind}-{step}-{width}-{scheme}.png"
                page.screenshot(path=file, full_page=True)

        found.extend(looked_at(page, f"{kind}, {step}", keep))
        page.set_viewport_size({"width": 1400, "height": 900})

    walk(page, look)
    assert found == [] and page.faults == []


@pytest.mark.walk
def test_a_text_is_rated_and_mended_by_finger(browser: Browser, live_server: Any) -> None:
    asked("generation", input="q", text=TEXT)
    page = open_page(browser, live_server, **PHONE)
    for facet in ("fluency", "redundancy", "overall"):
        page.locator(f"[data-step={facet}] .choice").nth(1).tap()
    page.locator("#edit").fill("The team has won three matches in a row.")
    assert_is_within_reach(page)
    with page.expect_navigation():
        page.locator(".submit-bar .primary").tap()
    assert sent()["edit"] == ["The team has won three matches in a row."]
    assert page.faults == []


def test_an_answer_is_checked_by_finger(browser: Browser, live_server: Any) -> None:
    asked(
        "answers",
        [f"{PASSAGES[0]} {'It is far away. ' * 12}", PASSAGES[1]],
        input="q",
        text="Ida Marsk",
    )
    page = open_page(browser, live_server, **PHONE)
    at_hand = page.locator(".passage:visible")
    page.locator("[data-step=plausible] .choice").nth(0).tap()
    at_hand.locator(".choice").nth(0).tap()
    chosen_by_finger(page, 4, 20)
    assert_is_in_view(page, ".mark-it:not([hidden])")
    at_hand.get_by_role("button", name="Mark the chosen words").tap()
    expect(at_hand.locator("mark")).to_contain_text("Marsk built it")
    at_hand.locator("mark").tap()
    expect(at_hand.locator("mark")).to_have_count(0)
    chosen_by_finger(page, 4, 20)
    at_hand.get_by_role("button", name="Mark the chosen words").tap()
    assert_is_within_reach(page)
    assert_is_in_view(page, ".confirm")
    confirm_button(page).tap()
    expect(at_hand).to_have_attribute("data-letter", "b")
    at_hand.locator(".choice").nth(2).tap()
    with page.expect_navigation():
        submit_button(page).tap()
    assert json.loads(sent()["marks-0"][0]) == [[4, 21]] and sent()["passage-1"] == ["neither"]
    assert page.faults == []


def submit_button(page: Page) -> Locator:
    return page.get_by_role("button", name="Submit")


def confirm_button(page: Page) -> Locator:
    return page.get_by_role("button", name="Yes, that is what I mean")


def buttons_of_the_bar(page: Page) -> list[str]:
    """What the bar beneath a question offers, without the pager and the keys."""
    shown = page.locator(".submit-bar > .button:visible, .submit-bar > .flag > summary:visible")
    return [words.split("\n")[0].strip() for words in shown.all_inner_texts()]


def chosen_by_finger(page: Page, begin: int, end: int) -> None:
    """What a long press and its handles leave: some characters of the paragraph at hand, chosen."""
    page.evaluate(
        """([begin, end]) => {
          const text = document.querySelector(".passage:not([hidden]) .passage-text").firstChild;
          getSelection().setBaseAndExtent(text, begin, text, end);
        }""",
        [begin, end],
    )


def assert_is_in_view(page: Page, selector: str) -> None:
    """Something comes to stand on the screen, and nothing else above it, without any scrolling."""
    page.wait_for_function(  # what opens is brought into view a moment later
        """(selector) => {
          const one = document.querySelector(selector);
          const { x, y, width, height } = one.getBoundingClientRect();
          return document.elementFromPoint(x + width / 2, y + height / 2) === one;
        }""",
        arg=selector,
    )


def assert_is_within_reach(page: Page) -> None:
    """Nothing is wider than the screen, and what is tapped is as large as a finger."""
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    small = page.evaluate(
        """[...document.querySelectorAll(".button, .choice, .pager button")].filter((one) => {
          const box = one.getBoundingClientRect();
          return box.height && box.height < 43.5;
        }).map((one) => one.textContent.trim())"""
    )
    assert small == []


def assert_is_at_hand(page: Page) -> None:
    """However long a text is, it scrolls in a place of its own, by keys, too; the rest of the page
    is a few screens long, and not wider than the screen.
    """
    tall, wide = page.evaluate(
        "[document.body.scrollHeight / innerHeight, document.body.scrollWidth / innerWidth]"
    )
    assert tall < 4 and wide <= 1, (tall, wide)
    unreachable = page.evaluate(
        """[...document.querySelectorAll("main *")].filter((one) =>
          one.clientHeight && one.scrollHeight > one.clientHeight + 1 && one.tabIndex < 0 &&
          ["auto", "scroll"].includes(getComputedStyle(one).overflowY))
          .map((one) => one.className)"""
    )
    assert unreachable == []


def drag(page: Page, begin: int, end: int) -> None:
    """Drags over some characters of the paragraph at hand."""
    left, top, right = page.evaluate(
        """([begin, end]) => {
          const text = document.querySelector(".passage:not([hidden]) .passage-text").firstChild;
          const range = document.createRange();
          range.setStart(text, begin);
          range.setEnd(text, end);
          const box = range.getBoundingClientRect();
          return [box.left, box.top + box.height / 2, box.right];
        }""",
        [begin, end],
    )
    page.mouse.move(left + 1, top)
    page.mouse.down()
    page.mouse.move(right - 1, top, steps=5)
    page.mouse.up()
