"""The tutorials of texts and of answers in a browser, to the end that is paid: by keyboard, and by
finger.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from decimal import Decimal
from typing import Any

import pytest
from browsing import IN_CHROMIUM, open_page
from playwright.sync_api import Browser, Page, expect

from annotation.models import Payment
from annotation.workers import teach
from annotation.workers.models import Intake
from tests.test.annotation.test_text_pages_browser import (
    PHONE,
    asked,
    assert_is_within_reach,
    chosen_by_finger,
)

pytestmark = [
    *IN_CHROMIUM,
    pytest.mark.django_db(transaction=True),
    pytest.mark.usefixtures("untaught"),
]
SAYS = ("correct", "incorrect", "neither")
Right = dict[str, list[str]]


def rate_by_keyboard(page: Page, right: Right) -> None:
    for facet in ("fluency", "redundancy", "overall"):
        page.keyboard.press(right[facet][0])
    if "edit" in right:
        expect(page.locator("#edit")).to_be_focused()
        page.keyboard.press("Control+a")
        page.keyboard.insert_text(right["edit"][0])
    page.keyboard.press("Control+Enter")


def check_by_finger(page: Page, right: Right) -> None:
    page.locator("[data-step=plausible] .choice").nth(int(right["plausible"] == ["no"])).tap()
    for at, says in passages(right):
        page.locator(".passage:visible .choice").nth(SAYS.index(says)).tap()
        for begin, end in json.loads(right.get(f"marks-{at}", ["[]"])[0]):
            chosen_by_finger(page, begin, end)
            page.get_by_role("button", name="Mark the selected words").tap()
        if says != "neither":
            page.get_by_role("button", name="Yes, that is what I mean").tap()
    page.get_by_role("button", name="Submit").tap()


def passages(right: Right) -> list[tuple[int, str]]:
    """What is right of each passage, in order."""
    return [(at, right[f"passage-{at}"][0]) for at in range(10) if f"passage-{at}" in right]


@pytest.mark.parametrize(
    ("kind", "interface", "screen", "answer"),
    [
        ("generation", "language_quality", {}, rate_by_keyboard),
        ("answers", "answer_correctness", PHONE, check_by_finger),
    ],
)
def test_a_tutorial_is_passed_explained_and_paid(
    browser: Browser,
    live_server: Any,
    kind: str,
    interface: str,
    screen: dict[str, Any],
    answer: Callable[[Page, Right], None],
) -> None:
    track = asked(kind, input="q", text="Ida Marsk")
    Intake.objects.create(track=track, tutorial_reward=Decimal("0.75"))
    page = open_page(browser, live_server, **screen)
    page.get_by_label("I have read this, and I agree.").check()
    page.get_by_role("button", name="Agree and continue").click()
    page.wait_for_url(f"**/annotate/tutorial/{interface}/")
    expect(page.locator("main")).to_contain_text("$0.75")
    page.get_by_role("button", name="Begin").click()
    for question in teach.builtin_tutorials()[interface].questions:
        page.wait_for_selector("html[data-ready]")
        answer(page, question["right"])
        expect(page.locator(".explained")).to_contain_text("That is right")
        expect(page.locator(".explained")).to_contain_text(question["why"])
        if screen:
            assert_is_within_reach(page)
            page.locator("#onward").tap()
        else:
            page.keyboard.press("Enter")
        expect(page.locator(".explained")).to_have_count(0)
    expect(page.get_by_role("heading", name="You passed")).to_be_visible()
    assert Payment.objects.get().amount == Decimal("0.75")
    page.locator("#onward").click()
    expect(page.locator("#answer")).to_have_attribute("data-interface", interface)
    assert page.faults == []
