"""The page of a document's pairs in a browser: by mouse, by keyboard alone, after a reload, on a
phone.
"""

from __future__ import annotations

import json
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


SCREENS = [(1400, "light"), (1400, "dark"), (390, "light"), (390, "dark"), (360, "light")]
