"""The page of a document's pairs in a browser: by mouse, by keyboard alone, after a reload, on a
phone.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest
from browsing import IN_CHROMIUM, open_page
from django.test import Client
from documents_world import answer_to, order, pairs_answer
from playwright.sync_api import Browser, Page, expect

from annotation.hits import publish
from annotation.labels import settle
from annotation.models import Assignment, Question
from annotation.questions import read_documents
from tests.conftest import Toy

pytestmark = [
    *IN_CHROMIUM,
    pytest.mark.django_db(transaction=True),
]


@pytest.fixture
def paired(toy: Toy) -> Question:
    """The pairs of the second document, "Ola Berg works for Nordwerk. Berg is the son of Per Berg.
    He met Mara Lindt in Bergen.", open to annotators.
    """
    order(toy.track, 4)
    question = Question.objects.get(target__document=toy.documents["d2"])
    question.hits.update(order=-5)
    Question.objects.exclude(pk=question.pk).update(status="cancelled")
    for hit in question.hits.model.objects.exclude(questions=question):
        hit.move("closed")
    for name in ("Ada", "Bo", "Cy"):
        client = Client()
        client.force_login(toy.users[name])
        assert (
            client.post(client.get("/annotate/next/")["Location"], answer_to(question)).status_code
            == 302
        )
    settle.tick()
    read_documents.tick()
    publish.tick()
    return Question.objects.get(interface="relations_exhaustive")


def start(browser: Browser, live_server: Any, **options: Any) -> Page:
    page = open_page(browser, live_server, **options)
    page.wait_for_selector("html[data-ready]")
    return page


def said(page: Page) -> tuple[str, str]:
    return page.locator("#gloss-a").inner_text(), page.locator("#gloss-b").inner_text()


def sent() -> Any:
    row = Assignment.objects.filter(
        status="submitted", hit__questions__interface="relations_exhaustive"
    ).get()
    assert row.raw is not None
    return json.loads(row.raw["pairs"][0])


PAIRS = [("“Ola Berg”", "“Nordwerk”"), ("“Berg”", "“Per Berg”"), ("“Mara Lindt”", "“Bergen”")]


def true_answer(question: Question) -> Any:
    return json.loads(pairs_answer(question.payload)["pairs"])


@pytest.mark.walk
def test_the_pairs_of_a_document_by_keyboard_alone(
    browser: Browser, live_server: Any, paired: Question
) -> None:
    page = start(browser, live_server)
    seen = []
    for keys in (["1", "Enter"], ["1", "z", "0", "2", "z", "z", "1", "Enter"], ["0"]):
        seen.append(said(page))
        for key in keys:
            page.keyboard.press(key)
    assert seen == PAIRS
    assert page.locator("#judged").inner_text() == "3 of 3 pairs judged"
    page.keyboard.press("Enter")  # in the rhythm of the others: it shows what is sent
    expect(page.locator("#missing")).to_contain_text("Look through what you send")
    expect(page.locator("#summary li")).to_have_count(2)
    assert Assignment.objects.filter(status="leased").count() == 1
    with page.expect_navigation():
        page.keyboard.press("Enter")
    assert sent() == true_answer(paired)
    assert page.faults == []  # type: ignore[attr-defined]


def test_the_pairs_of_a_document_by_mouse(
    browser: Browser, live_server: Any, paired: Question
) -> None:
    page = start(browser, live_server)
    page.locator(".choice", has_text="works for").click()
    page.locator("#primary").click()
    page.locator("#choices .choice", has_text="is a child of").first.click()
    page.locator("#primary").click()
    page.locator("#primary").click()
    assert "Pick what the text says" in page.locator("#missing").inner_text()
    page.locator("#back").click()
    assert said(page) == PAIRS[1]
    page.locator("#primary").click()
    page.locator("#none-rest").click()
    with page.expect_navigation():
        page.locator("#primary").click()
    assert sent() == true_answer(paired)


SCREENS = [(1400, "light"), (1400, "dark"), (390, "light"), (390, "dark"), (360, "light")]


@pytest.mark.parametrize(("width", "scheme"), SCREENS)
def test_it_fits_the_screen_and_fingers(
    browser: Browser, live_server: Any, paired: Question, tmp_path: Path, width: int, scheme: str
) -> None:
    phone = width < 700
    viewport = {"width": width, "height": 800 if phone else 900}
    page = start(browser, live_server, viewport=viewport, color_scheme=scheme, has_touch=phone)
    page.locator("#choices .choice").first.click()
    page.locator("#primary").click()
    where = os.environ.get("SHOTS", str(tmp_path))
    page.screenshot(path=f"{where}/pairs-{width}-{scheme}.png", full_page=True)
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    if phone:
        targets = page.locator(".choice:visible, .submit-bar button:visible")
        assert (
            min(box["height"] for box in (one.bounding_box() for one in targets.all()) if box) >= 44
        )
