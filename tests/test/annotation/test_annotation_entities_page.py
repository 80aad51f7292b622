"""The entities page in a browser: by keyboard alone, by mouse, by finger, after a reload, on a
phone.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest
from browsing import IN_CHROMIUM, open_page
from documents_world import order
from playwright.sync_api import Browser, Page, expect

from annotation.models import Assignment, Question
from tests.conftest import Toy

pytestmark = [
    *IN_CHROMIUM,
    pytest.mark.django_db(transaction=True),
]


@pytest.fixture
def ordered(toy: Toy) -> Question:
    """The first document of the toy corpus, open to annotators, with a type for dates."""
    dates = {"name": "DATE", "description": "date", "value": "date"}
    founded = {"name": "org:date_founded", "types": [["ORG", "DATE"]]}
    toy.corpus.schema = {
        **toy.corpus.schema,
        "entity_types": [*toy.corpus.schema["entity_types"], dates],
        "predicates": [*toy.corpus.schema["predicates"], founded],
    }
    toy.corpus.save()
    order(toy.track, 4)
    Question.objects.exclude(target__document=toy.documents["d1"]).update(order=9)
    question = Question.objects.get(target__document=toy.documents["d1"])
    question.hits.update(order=-1)
    return question


def start(browser: Browser, live_server: Any, **options: Any) -> Page:
    page = open_page(browser, live_server, **options)
    page.wait_for_selector("html[data-ready]")
    return page


def press(page: Page, *keys: str) -> None:
    for key in keys:
        page.keyboard.press(key)


def word(page: Page, words: str, which: int = 0) -> Any:
    return page.locator(".t", has_text=words).nth(which)


def sent() -> list[dict[str, Any]]:
    raw = Assignment.objects.get(status="submitted").raw
    assert raw is not None
    found: list[dict[str, Any]] = json.loads(raw["mentions"][0])
    return [
        {k: v for k, v in one.items() if k not in ("entity", "named", "guessed")} for one in found
    ]


# Mara Lindt founded Nordwerk in 1990. Lindt was born in Halden. Nordwerk is based in Bergen.
EXPECTED = [
    {"span": [0, 10], "type": "PER", "canonical": [0, 10], "link": "Mara Lindt"},
    {"span": [19, 27], "type": "ORG", "canonical": [19, 27]},
    {"span": [31, 35], "type": "DATE", "canonical": [31, 35], "value": "1990"},
    {"span": [37, 42], "type": "PER", "canonical": [0, 10]},
    {"span": [55, 61], "type": "GPE", "canonical": [55, 61]},
    {"span": [63, 71], "type": "ORG", "canonical": [19, 27]},
    {"span": [84, 90], "type": "GPE", "canonical": [84, 90]},
]


@pytest.mark.walk
def test_a_document_is_finished_by_keyboard_alone(
    browser: Browser, live_server: Any, ordered: Question
) -> None:
    page = start(browser, live_server)
    press(page, "ArrowRight", "Shift+ArrowRight", "Enter", "p", "w")
    page.keyboard.type("Mara Lindt")
    press(page, "Enter", "j", "o", "j", "Enter")  # Nordwerk; 1990 is a date by itself
    press(page, "ArrowRight", "p")  # over the full stop; Lindt is Mara Lindt
    press(page, "j", "g", "j", "Enter")  # Halden; Nordwerk again
    press(page, "j", "g", "z", "y", "c")  # undone and done again; then the check
    assert page.locator(".phases [aria-current]").inner_text() == "3 Send"
    with page.expect_navigation():
        press(page, "Control+Enter")
    assert sent() == EXPECTED
    assert page.faults == []  # type: ignore[attr-defined]


PEOPLE = [
    "Abel",
    "Bruno",
    "Clara",
    "David",
    "Edgar",
    "Fiona",
    "Gustav",
    "Hanna",
    "Ivar",
    "Jonas",
    "Karin",
    "Lena",
]


def crowded(question: Question) -> None:
    """A document about twelve people, one a sentence; the first is named last as "She"."""
    rewritten(question, *(f"then {name} left ." for name in PEOPLE), "She stayed .")


def rewritten(question: Question, *lines: str) -> None:
    """A document of these sentences, a word between every two spaces."""
    words, ends, at = [], [], 0
    for line in lines:
        ends.append([at, at + len(line)])
        for one in line.split():
            words.append([at, at + len(one)])
            at += len(one) + 1
    text = " ".join(lines)
    question.payload |= {"text": text, "tokens": words, "sentences": ends}
    question.save()


def mark_all(page: Page) -> None:
    """Everybody is marked as a person, and "She" is chosen; the page lists nine whom she may be."""
    for _ in PEOPLE:
        press(page, "j", "p")
    word(page, "She").dblclick()
    press(page, "p")
    assert page.locator("#inspector .who > [data-digit]").count() == 10, "nine and somebody new"
    assert "Abel" not in page.locator("#inspector .who").first.inner_text(), (
        "the nearest stand first"
    )


def she(page: Page) -> str:
    """Whom the page says that the last mention is."""
    page.wait_for_function("document.querySelector('#same-as')?.hidden !== false")
    return page.locator(".entity-list .current .words").inner_text()


def test_somebody_far_away_is_found_by_keyboard(
    browser: Browser, live_server: Any, ordered: Question
) -> None:
    crowded(ordered)
    page = start(browser, live_server)
    mark_all(page)
    press(page, "9")
    assert she(page) == "David", "nine digits reach nine people"
    press(page, "e")
    page.keyboard.type("áb")  # neither the case nor accents matter
    assert page.locator("#same-options .who-one").all_inner_texts() == ["Abel 1, person"]
    press(page, "Enter")
    assert she(page) == "Abel"
    press(page, "e")
    page.keyboard.type("zz")
    assert "No entity is called that" in page.locator("#same-as").inner_text()
    press(page, "Enter", "Escape")
    assert she(page) == "Abel"
    press(page, "e", "ArrowDown", "ArrowDown", "ArrowUp", "Enter")  # the second of the document
    assert she(page) == "Bruno"
    press(page, "z", "c", "c")
    with page.expect_navigation():
        press(page, "Control+Enter")
    assert sent()[-1]["canonical"] == [5, 9]


@pytest.mark.walk
def test_it_saves_by_itself_and_a_reload_loses_nothing(
    browser: Browser, live_server: Any, ordered: Question
) -> None:
    page = start(browser, live_server)
    with page.expect_response("**/draft/"):
        press(page, "ArrowRight", "Shift+ArrowRight", "p", "j", "o")
    page.wait_for_selector("#saved.saved")
    press(page, "j", "Enter")  # left at once: the beacon keeps it
    page.reload()
    page.wait_for_selector("html[data-ready]")
    assert "3 with 3 mentions" in page.locator("#entities .head").inner_text()
    assert "1990" in page.locator("#entities").inner_text()
    assert Assignment.objects.count() == 1


def test_offline_it_says_so_and_this_browser_keeps_the_marks(
    browser: Browser, live_server: Any, ordered: Question
) -> None:
    page = start(browser, live_server)
    page.context.route("**/draft/", lambda route: route.abort())
    press(page, "ArrowRight", "Shift+ArrowRight", "p")
    page.wait_for_selector("text=Not saved since")
    page.context.unroute("**/draft/")
    page.reload()
    page.wait_for_selector("html[data-ready]")
    assert "1 with 1 mention" in page.locator("#entities .head").inner_text()


def test_offsets_count_characters_where_the_text_has_some_beyond_the_first_plane(
    browser: Browser, live_server: Any, ordered: Question
) -> None:
    ordered.payload |= {
        "text": "𝔐ara 😀 Lindt",
        "tokens": [[0, 4], [5, 6], [7, 12]],
        "sentences": [[0, 12]],
    }
    ordered.save()
    page = start(browser, live_server)
    assert page.locator(".doc.words").inner_text() == "𝔐ara 😀 Lindt"
    word(page, "Lindt").dblclick()
    press(page, "p", "c", "c")  # nothing is sent by one key too many
    assert page.locator("#missing").inner_text() == "All is ready. Ctrl and Enter send it."
    with page.expect_navigation():
        press(page, "Control+Enter")
    assert sent() == [{"span": [7, 12], "type": "PER", "canonical": [7, 12]}]


SCREENS = [(1400, "light"), (1400, "dark"), (390, "light"), (390, "dark"), (360, "light")]


@pytest.mark.parametrize(("width", "scheme"), SCREENS)
def test_it_fits_the_screen_and_fingers(
    browser: Browser, live_server: Any, ordered: Question, tmp_path: Path, width: int, scheme: str
) -> None:
    phone = width < 700
    viewport = {"width": width, "height": 800 if phone else 900}
    page = start(browser, live_server, viewport=viewport, color_scheme=scheme, has_touch=phone)
    where = os.environ.get("SHOTS", str(tmp_path))
    page.screenshot(path=f"{where}/entities-{width}-{scheme}-first.png")
    poke = (lambda one: one.tap()) if phone else (lambda one: one.click())
    for words, which, kind in [
        ("Mara", 0, "Person"),
        ("Nordwerk", 0, "Organisation"),
        ("1990", 0, "Date"),
        ("Lindt", 1, "Person"),
        ("Halden", 0, "State"),
    ]:
        poke(word(page, words, which))
        expect(page.locator("#inspector .head b")).to_have_text(f"“{words}”")
        if words == "Mara":
            poke(page.get_by_label("One word more at the end"))
            expect(page.locator("#inspector .head b")).to_have_text("“Mara Lindt”")
        poke(page.locator("#inspector .type", has_text=kind))
        expect(page.locator("#inspector .type[aria-pressed=true]")).to_contain_text(kind)
    page.screenshot(path=f"{where}/entities-{width}-{scheme}.png")
    page.screenshot(path=f"{where}/entities-{width}-{scheme}-full.png", full_page=True)
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    expect(page.locator("#entities .head")).to_contain_text("4 with 5 mentions")
    if phone:
        targets = page.locator(
            "#inspector button:visible, #inspector .check:visible, .submit-bar .button:visible"
        )
        heights = [box["height"] for box in (one.bounding_box() for one in targets.all()) if box]
        assert min(heights) >= 44
        box = page.locator("#inspector").bounding_box()
        assert box is not None and box["y"] + box["height"] <= 801 and box["height"] <= 0.55 * 800
    assert page.faults == []  # type: ignore[attr-defined]
