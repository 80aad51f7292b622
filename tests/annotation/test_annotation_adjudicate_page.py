"""An expert marks a document's names anew in a browser: the draft is kept, the answer sent, both
sides shown.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest
from browsing import IN_CHROMIUM, draft_with, log_in, note_faults
from django.test import Client
from documents_world import partly, read_whole
from playwright.sync_api import Browser, Page, expect

from annotation.desk import adjudicate
from annotation.models import Question
from annotation.quality.judged import NAMES
from kbpo.sampling.models import ExpertCheck
from tests.conftest import Toy

pytestmark = [*IN_CHROMIUM, pytest.mark.django_db(transaction=True)]


@pytest.fixture
def asked(toy: Toy, settings: Any) -> ExpertCheck:
    """The names of the first document, about which an expert is asked."""
    settings.ROOT_URLCONF = "kbpo.urls"
    read_whole(toy, 4, partly)
    Question.objects.exclude(target__document=toy.documents["d1"]).filter(
        interface="entities"
    ).update(status="unanswered")
    assert adjudicate.queue_random(toy.track, 1, toy.users["Admin"], NAMES) == 1
    return ExpertCheck.objects.get()


def page_of(browser: Browser, live_server: Any, toy: Toy, **options: Any) -> Page:
    context = browser.new_context(**{"viewport": {"width": 1400, "height": 900}, **options})
    client = Client()
    client.force_login(toy.users["Admin"])
    log_in(context, live_server.url, client)
    page = context.new_page()
    page.faults = note_faults(page)  # type: ignore[attr-defined]
    return page


def press(page: Page, *keys: str) -> None:
    for key in keys:
        page.keyboard.press(key)


def kept_picture(page: Page, name: str) -> None:
    """Nothing; a picture of the page, where somebody wants to look at it."""
    if folder := os.environ.get("SHOTS"):
        page.screenshot(path=Path(folder) / f"{name}.png", full_page=True)


@pytest.mark.soak
@pytest.mark.walk
def test_an_expert_marks_names_anew_and_loses_nothing_by_a_reload(
    browser: Browser, live_server: Any, toy: Toy, asked: ExpertCheck
) -> None:
    page = page_of(browser, live_server, toy)
    page.goto(f"{live_server.url}/desk/tracks/toy/adjudication/")
    kept_picture(page, "adjudication")
    page.get_by_text("Answer the next of 1, blind").click()
    page.wait_for_selector("html[data-ready]")
    expect(page.get_by_text("You do not see what others said")).to_be_visible()
    with page.expect_response(draft_with("PER")):
        press(page, "ArrowRight", "Shift+ArrowRight", "Enter", "p")  # Mara Lindt
    page.reload()
    page.wait_for_selector("html[data-ready]")
    expect(page.locator("#entities")).to_contain_text("Mara Lindt")
    page.locator(".t", has_text="Nordwerk").first.dblclick()
    page.locator("#inspector .type", has_text="Organisation").click()
    page.locator("#primary").click()
    with page.expect_navigation():
        press(page, "Control+Enter")
    expect(page.get_by_role("heading", level=1)).to_contain_text("d1")
    assert page.locator("tr.late").count() >= 4, "what the expert did not mark stands there"
    expect(page.get_by_text("says otherwise").first).to_be_visible()
    kept_picture(page, "trail")
    asked.refresh_from_db()
    assert (asked.status, asked.agrees, asked.expert) == ("answered", False, toy.users["Admin"])
    answer = (asked.value or {})[str(asked.target_id)]
    assert [one["span"] for one in answer["mentions"]] == [[0, 10], [19, 27]] and answer[
        "missed"
    ] == 0
    assert page.faults == []  # type: ignore[attr-defined]
    page.context.close()  # what it may still ask for is no part of the next test


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_trail_and_the_queue_fit_a_phone(
    browser: Browser, live_server: Any, toy: Toy, asked: ExpertCheck, scheme: str
) -> None:
    adjudicate.answer(asked, {"problem": ["text"]}, toy.users["Admin"])
    page = page_of(
        browser, live_server, toy, viewport={"width": 390, "height": 844}, color_scheme=scheme
    )
    for at, address in enumerate(("", f"{asked.pk}/")):
        page.goto(f"{live_server.url}/desk/tracks/toy/adjudication/{address}")
        assert page.evaluate("document.documentElement.scrollWidth") <= 390
        kept_picture(page, f"phone-{scheme}-{at}")


def test_a_phone_has_no_empty_page_beneath_until_words_are_at_hand(
    browser: Browser, live_server: Any, toy: Toy, asked: ExpertCheck
) -> None:
    page = page_of(
        browser, live_server, toy, viewport={"width": 390, "height": 844}, has_touch=True
    )
    page.goto(f"{live_server.url}/annotate/adjudicate/toy/")
    page.wait_for_selector("html[data-ready]")
    beneath = """document.documentElement.scrollHeight - scrollY
      - document.querySelector(".panel").getBoundingClientRect().bottom"""
    assert page.evaluate(beneath) < 150
    page.locator(".t").first.tap()
    sheet = page.locator(".inspector.sheet")
    expect(sheet).to_be_visible()
    page.evaluate("scrollTo(0, document.documentElement.scrollHeight)")
    over, under = sheet.bounding_box(), page.locator(".panel .flag").bounding_box()
    assert over and under and under["y"] + under["height"] <= over["y"], "nothing stays covered"
    sheet.get_by_role("button", name="Close").tap()
    assert page.evaluate(beneath) < 150
