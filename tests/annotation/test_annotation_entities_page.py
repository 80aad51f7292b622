"""The entities page in a browser: by keyboard alone, by mouse, by finger, after a reload, on a
phone.
"""

from __future__ import annotations

import json
import os
import re
from pathlib import Path
from typing import Any

import pytest
from browsing import IN_CHROMIUM, open_page, stop_clock
from documents_world import order
from playwright.sync_api import Browser, Page, expect

from annotation.models import Assignment, Question, Title
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


def assert_not_sent(page: Page) -> None:
    """Whatever is sent switches its button off at once."""
    assert page.locator("#primary").is_enabled()
    assert Assignment.objects.get().status == "leased"


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


def test_a_document_is_finished_by_mouse(
    browser: Browser, live_server: Any, ordered: Question
) -> None:
    page = start(browser, live_server)

    def choose(kind: str) -> None:
        page.locator("#inspector .type", has_text=kind).click()

    word(page, "Mara").hover()
    page.mouse.down()
    last = word(page, "Lindt").bounding_box()
    assert last is not None
    page.mouse.move(last["x"] + last["width"] / 2, last["y"] + last["height"] / 2)
    page.mouse.move(last["x"] + last["width"] + 2, last["y"] + last["height"] / 2)
    page.mouse.up()
    assert page.locator("#inspector .head b").inner_text() == "“Mara Lindt”", "not the next word"
    choose("Person")
    page.get_by_label("Its Wikipedia title, if you know it").fill("Mara Lindt")
    for words, which, kind in [
        ("Nordwerk", 0, "Organisation"),
        ("1990", 0, ""),
        ("Lindt", 1, "Person"),
        ("Halden", 0, "State"),
        ("Nordwerk", 1, ""),
        ("Bergen", 0, "State"),
    ]:
        word(page, words, which).dblclick()
        if kind:
            choose(kind)
    page.locator("#primary").click()
    with page.expect_navigation():
        page.locator("#primary").click()
    assert sent() == EXPECTED


def test_what_is_open_stands_first_and_must_be_settled_before_sending(
    browser: Browser, live_server: Any, ordered: Question
) -> None:
    page = start(browser, live_server)
    word(page, "Halden").dblclick()
    assert "What is “Halden”? Choose a type." in page.locator("#entities .notice").inner_text()
    press(page, "c")
    assert "1 question is open" in page.locator("#missing").inner_text()
    press(page, "g")
    assert page.locator("#entities .notice").count() == 0
    word(page, "Lindt", 1).dblclick()
    press(page, "p")
    word(page, "Lindt", 0).dblclick()
    assert page.locator("#inspector .type[aria-pressed=true]").inner_text().startswith("Person")
    press(page, "1", "o")  # one of two marks that were said to be one is something else
    assert "but the same as" in page.locator("#entities .notice").inner_text()
    press(page, "c", "c")
    assert_not_sent(page)
    page.locator("#inspector button", has_text="All 2 are").click()
    assert page.locator("#entities .notice").count() == 0
    word(page, "1990").dblclick()
    press(page, "p")
    page.locator("#inspector .type", has_text="Date").click()
    page.get_by_label("The date, as 2013-03 or 2013-03-25").fill("last March")
    press(page, "Enter", "n")
    assert "Which date is “1990”?" in page.locator("#entities .notice").inner_text()
    page.get_by_label("The text does not tell it").check()
    assert page.locator("#entities .notice").count() == 0
    word(page, "Halden").dblclick()
    press(page, "Shift+ArrowLeft")
    page.locator(
        "#inspector .type", has_text="State"
    ).click()  # over words of which some are marked
    assert "overlaps “" in page.locator("#entities .notice").inner_text()
    press(page, "c", "c")
    assert_not_sent(page)


def test_a_changed_type_lets_go_of_an_entity_that_was_guessed(
    browser: Browser, live_server: Any, ordered: Question
) -> None:
    page = start(browser, live_server)
    word(page, "Lindt", 1).dblclick()
    press(page, "p")
    word(page, "Lindt", 0).dblclick()  # guessed: a person, the same one
    assert page.locator("#entities .aside").all_inner_texts() == ["×2"]
    press(page, "o")
    assert page.locator("#entities .notice").count() == 0
    assert page.locator("#entities h3").all_text_contents() == ["Person", "Organisation"]
    press(page, "p")  # and is guessed anew
    assert page.locator("#entities .aside").all_inner_texts() == ["×2"]


def test_a_weekday_is_proposed_as_the_day_that_it_was(
    browser: Browser, live_server: Any, ordered: Question
) -> None:
    payload = ordered.payload
    payload["text"] = payload["text"].replace("Halden", "Friday").replace("Bergen", "Friday")
    payload["document"]["date"] = "2013-07-15"
    ordered.save()
    page = start(browser, live_server)
    assert "Written 2013-07-15, a Monday" in page.locator(".text-side").inner_text()
    word(page, "Friday").dblclick()
    page.locator("#inspector .type", has_text="Date").click()
    assert "Perhaps 2013-07-12." in page.locator("#entities .notice").inner_text()
    assert "written 2013-07-15, a Monday" in page.locator("#inspector").inner_text()
    press(page, "1")
    assert page.locator("#value").input_value() == "2013-07-12"
    assert page.locator("#weekday").inner_text() == "Friday"
    assert page.locator("#entities .notice").count() == 0
    page.locator("#value").fill("2013-07-11")
    assert page.locator("#weekday").inner_text() == "Thursday"
    word(page, "Friday", 1).dblclick()
    page.locator("#inspector .type", has_text="Date").click()
    assert page.locator("#value").input_value() == "2013-07-11", "as the same words before"
    assert page.faults == []  # type: ignore[attr-defined]


SEEN = [
    (
        "Today a former chief technology officer spoke.",
        ["officer", "chief"],
        "chief technology officer",
    ),
    ("A Lund paper — The Ada Company is new.", [], "Ada Company"),
    ("In May the mayor of Lund met a chief who sang.", ["mayor", "chief"], "mayor"),
]


@pytest.mark.parametrize(("text", "cues", "wanted"), SEEN)
def test_the_key_for_the_next_name_finds_it_whole(
    browser: Browser, live_server: Any, ordered: Question, text: str, cues: list[str], wanted: str
) -> None:
    page = start(browser, live_server)
    data = {
        "text": text,
        "begin": 0,
        "tokens": [list(one.span()) for one in re.finditer(r"\w+|[^\w\s]", text)],
        "sentences": [[0, len(text)]],
        "types": [
            {"name": "PER", "word": "Person", "key": "p", "value": None, "cues": []},
            {"name": "TITLE", "word": "Title", "key": "i", "value": "string", "cues": cues},
        ],
    }
    script = """async ([module, data]) => {
        const { Marks } = await import(module);
        const marks = new Marks(data), found = [];
        for (let at = marks.nextUnmarked(0); at; at = marks.nextUnmarked(at[1])) {
            found.push(marks.text(...at));
            marks.mark(...at, "PER");
        }
        return found;
    }"""
    module = "/static/interfaces/entities/marks.js"
    assert wanted in page.evaluate(script, [module, data])


PROPOSED = [
    ("Saturday", "2013-07-15", "2013-07-13"),
    ("on Monday", "2013-07-15", "2013-07-15"),
    ("last Monday", "2013-07-15", "2013-07-08"),
    ("next Monday", "2013-07-15", "2013-07-22"),
    ("Tues.", "2013-07-15", "2013-07-09"),
    ("yesterday", "2013-03-01", "2013-02-28"),
    ("tomorrow", "2012-02-28", "2012-02-29"),
    ("Tuesday evening", "2014-01-01", "2013-12-31"),
    ("December 24", "2014-01-03", "2013-12-24"),
    ("2 January", "2013-12-30", "2014-01-02"),
    ("last March", "2013-07-15", "2013-03"),
    ("last July", "2013-07-15", "2012-07"),
    ("September", "2013-07-15", "2012-09"),
    ("next year", "2013-07-15", "2014"),
    ("February 30", "2013-07-15", ""),
    ("Saturday", "2013-07", ""),
    ("Saturday", "", ""),
    ("long ago", "2013-07-15", ""),
    ("two weeks before Saturday", "2013-07-15", ""),
]


def test_what_is_proposed_follows_the_calendar(
    browser: Browser, live_server: Any, ordered: Question
) -> None:
    page = start(browser, live_server)
    module = "/static/interfaces/entities/dates.js"
    script = """async ([module, rows]) => {
        const { proposedDate } = await import(module);
        return rows.map(([words, written]) => proposedDate(words, written));
    }"""
    told = page.evaluate(script, [module, [list(one[:2]) for one in PROPOSED]])
    assert dict(zip(PROPOSED, told, strict=True)) == {one: one[2] for one in PROPOSED}


def test_what_blocks_sending_is_read_whole_on_a_phone(
    browser: Browser, live_server: Any, ordered: Question
) -> None:
    page = start(browser, live_server, viewport={"width": 390, "height": 700})
    word(page, "Halden").dblclick()
    page.evaluate("document.getElementById('primary').click()")
    message = page.locator("#missing")
    expect(message).to_be_visible()
    box = message.bounding_box()
    assert box is not None and box["y"] >= 0 and box["y"] + box["height"] <= 700
    seen = page.evaluate(
        """() => {
            const one = document.getElementById("missing");
            const box = one.getBoundingClientRect();
            const middle = box.top + box.height / 2;
            const top = document.elementFromPoint(box.left + box.width / 2, middle);
            return one.contains(top) && one.scrollHeight <= one.clientHeight + 1;
        }"""
    )
    assert seen, "nothing lies over it, and nothing of it is cut off"


def test_an_entity_without_a_page_is_sent_as_such(
    browser: Browser, live_server: Any, ordered: Question
) -> None:
    page = start(browser, live_server)
    word(page, "Halden").dblclick()
    press(page, "g")
    page.get_by_label("It has no page").check()
    press(page, "c", "c")
    with page.expect_navigation():
        press(page, "Control+Enter")
    assert sent() == [{"span": [55, 61], "type": "GPE", "canonical": [55, 61], "link": "none"}]


def test_two_people_of_one_name_are_asked_about(
    browser: Browser, live_server: Any, ordered: Question
) -> None:
    page = start(browser, live_server)
    press(page, "ArrowRight", "Shift+ArrowRight", "p")  # Mara Lindt
    word(page, "Nordwerk").click()
    press(page, "Shift+ArrowRight", "p", "Escape")  # "Nordwerk in", somebody else
    word(page, "Lindt", 1).dblclick()
    assert page.locator(".who-one[aria-pressed=true]").inner_text().startswith("1\nMara Lindt")
    press(page, "0")
    assert "Somebody new" in page.locator(".who-one[aria-pressed=true]").inner_text()
    press(page, "1")
    assert "Mara Lindt" in page.locator(".who-one[aria-pressed=true]").inner_text()


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


def test_whole_dates_and_longer_names_are_offered_and_a_shared_surname_makes_nobody_the_same(
    browser: Browser, live_server: Any, ordered: Question
) -> None:
    lines = (
        "then Ada Hale left .",
        "then Hale sold Hale Line on May 3 , 1990 .",
        "then Ben Hale left last March .",
    )
    rewritten(ordered, *lines)
    page = start(browser, live_server)
    chosen = page.locator(".t.sel")
    offered = []
    for kind in ("p", "p", "o", "t", "p", "t"):
        press(page, "j")
        offered.append(" ".join(chosen.all_inner_texts()))
        press(page, kind)
    assert offered == ["Ada Hale", "Hale", "Hale Line", "May 3 , 1990", "Ben Hale", "last March"]
    people = page.locator(".entity-list .words")
    expect(people.filter(has_text="Ben Hale")).to_have_count(1)
    expect(people.filter(has_text="Ada Hale")).to_have_count(1)
    assert page.faults == []  # type: ignore[attr-defined]


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


def test_somebody_far_away_is_found_by_mouse(
    browser: Browser, live_server: Any, ordered: Question
) -> None:
    crowded(ordered)
    page = start(browser, live_server)
    mark_all(page)
    page.get_by_role("button", name="Same as another").click()
    page.get_by_role("option", name="Clara").click()
    assert she(page) == "Clara"
    page.get_by_role("button", name="Same as another").click()
    page.locator("#entities .entity", has_text="Bruno").click()  # from the running list
    assert she(page) == "Bruno"
    page.locator(
        "#entities .entity", has_text="Karin"
    ).click()  # without the question it just goes there
    assert "Karin" in page.locator("#inspector .head").inner_text()
    assert page.faults == []  # type: ignore[attr-defined]


def test_somebody_far_away_is_found_by_finger(
    browser: Browser, live_server: Any, ordered: Question
) -> None:
    crowded(ordered)
    page = start(browser, live_server, viewport={"width": 390, "height": 800}, has_touch=True)
    mark_all(page)
    page.get_by_role("button", name="Same as another").tap()
    page.locator("#same-filter").fill("abe")
    option = page.get_by_role("option", name="Abel")
    box = option.bounding_box()
    assert box is not None and box["height"] >= 44 and box["y"] + box["height"] <= 800
    option.tap()
    assert she(page) == "Abel"
    assert page.evaluate("document.documentElement.scrollWidth") <= 390


def test_whoever_never_pauses_is_saved_all_the_same(
    browser: Browser, live_server: Any, ordered: Question
) -> None:
    page = start(browser, live_server)
    stop_clock(page)
    page.reload()
    page.wait_for_selector("html[data-ready]")
    saves: list[str] = []
    page.on(
        "request", lambda one: one.resource_type == "fetch" and saves.append(one.post_data or "")
    )
    press(page, "ArrowRight", "Shift+ArrowRight")
    for _ in range(2):
        with page.expect_response("**/draft/"):
            for turn in range(20):  # a change each 150 ms, for three seconds
                press(page, "po"[turn % 2])
                page.clock.run_for(150)
    assert len(saves) == 2, "it saves every few seconds of steady work, and no more often"
    assert "PER" in saves[0] or "ORG" in saves[0]


def test_the_text_can_be_made_larger_and_stays_so(
    browser: Browser, live_server: Any, ordered: Question
) -> None:
    page = start(browser, live_server)

    def size() -> float:
        return float(
            page.evaluate(
                "parseFloat(getComputedStyle(document.querySelector('.doc.words')).fontSize)"
            )
        )

    before = size()
    page.locator("#zoom").click()
    larger = size()
    press(page, "+")
    assert before < larger < size()
    page.reload()
    page.wait_for_selector("html[data-ready]")
    assert size() > larger, "this browser remembers it"
    press(page, "-")
    assert size() == larger
    assert page.evaluate("document.documentElement.scrollWidth") <= 1400


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


def test_titles_are_suggested_from_the_index(
    browser: Browser, live_server: Any, ordered: Question
) -> None:
    Title.objects.create(title="Mära Lindt (founder)", folded="mara lindt (founder)")
    page = start(browser, live_server)
    with page.expect_response("**/titles/**"):
        press(page, "ArrowRight", "Shift+ArrowRight", "p", "w")
    page.wait_for_selector("#titles option", state="attached")
    assert page.locator("#titles option").get_attribute("value") == "Mära Lindt (founder)"


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
