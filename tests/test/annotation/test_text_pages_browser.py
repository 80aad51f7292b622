"""The pages of texts and of answers in a browser: by mouse, by keyboard alone, after a reload."""

from __future__ import annotations

import itertools
import json
import os
import random
from collections.abc import Callable, Sequence
from decimal import Decimal
from typing import Any
from uuid import uuid4

import pytest
from browsing import IN_CHROMIUM, open_page
from django.utils import timezone
from playwright.sync_api import Browser, Locator, Page, expect

from annotation.hits import publish
from annotation.models import Assignment, Question
from kbpo.corpus.models import Corpus
from kbpo.instances.models import Target
from kbpo.money.models import Purpose
from kbpo.money.spend import reserve_money
from kbpo.sampling.open_track import Money, create_track, open_track
from kbpo.tracks.models import Track
from kbpo.tracks.registry import kind_of
from kbpo.tracks.texts.edits import count_changed_characters
from kbpo.tracks.texts.models import Input

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


FORM = """
name: asked
title: What do you think?
price: 0.10
second_share: 0
questions:
  - {name: helps, kind: rating, ask: "Does it help?", range: [1, 3]}
  - {name: why, kind: text, ask: "Why?", required: no}
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
    reserve_money(track, None, Purpose("documents", 1), Decimal(10), key="r")
    (draft,) = kind_of(track).draft_questions([target.pk], None)
    asking = kind_of(track).asking[0]
    Question.objects.create(
        status="waiting",
        track=track,
        target=target,
        interface=draft.interface,
        payload=draft.payload,
        payer=Purpose("documents", 1),
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
    assert counted == [
        {"changed": count_changed_characters(*pair), "exact": True} for pair in pairs
    ]


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
    expect(page.locator("#missing")).to_contain_text("read the marked words again")
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


def mended(page: Page, look: Look) -> None:
    """A text is rated and mended."""
    page.locator("[data-step=fluency] .choice").nth(1).click()
    for facet in ("redundancy", "overall"):
        page.locator(f"[data-step={facet}] .choice").nth(2).click()
    page.locator(".submit-bar .primary").click()
    expect(page.locator("#missing")).to_contain_text("correct the text")
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
    expect(page.locator("#missing")).to_contain_text("read the marked words again")
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


def submit_button(page: Page) -> Locator:
    return page.get_by_role("button", name="Submit")


def confirm_button(page: Page) -> Locator:
    return page.get_by_role("button", name="Yes, that is what I mean")


def chosen_by_finger(page: Page, begin: int, end: int) -> None:
    """What a long press and its handles leave: some characters of the paragraph at hand, chosen."""
    page.evaluate(
        """([begin, end]) => {
          const text = document.querySelector(".passage:not([hidden]) .passage-text").firstChild;
          getSelection().setBaseAndExtent(text, begin, text, end);
        }""",
        [begin, end],
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
