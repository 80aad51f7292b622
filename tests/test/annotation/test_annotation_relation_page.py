"""The relation page in a browser: by mouse, by keyboard alone, after a reload, on a phone."""

from __future__ import annotations

from typing import Any

import pytest
from annotation_world import PARTS
from browsing import IN_CHROMIUM, open_page
from playwright.sync_api import Browser, Route, expect

from annotation.models import Assignment, Question

pytestmark = [
    *IN_CHROMIUM,
    pytest.mark.django_db(transaction=True),
]


def stored() -> list[dict[str, Any]]:
    return list(
        Assignment.objects.filter(status="submitted")
        .order_by("submitted_at")
        .values_list("raw", flat=True)
    )


@pytest.mark.walk
def test_three_questions_by_keyboard_alone(
    browser: Browser, live_server: Any, published: Any
) -> None:
    page = open_page(browser, live_server)
    for keys in (["1", "3", "1"], ["3", "1", "0"], ["1", "j", "k", "2", "1", "2"]):
        for key in keys:
            page.keyboard.press(key)
        with page.expect_navigation():
            page.keyboard.press("Enter")
    assert [(one["b"], one.get("holds"), one.get("none")) for one in stored()] == [
        (["other"], [PARTS[0]], None),
        (["0-3"], None, ["1"]),
        (["21-34"], PARTS[:2], None),
    ]
    assert page.faults == []


def test_the_next_question_comes_with_the_answer(
    browser: Browser, live_server: Any, published: Any
) -> None:
    page = open_page(browser, live_server)
    page.wait_for_selector("html[data-ready]")
    page.evaluate("globalThis.same = true")
    asked: list[str] = []
    page.on("request", lambda one: asked.append(f"{one.method} {one.resource_type}"))
    for _ in range(3):
        address = page.url
        for key in ("1", "3", "1", "Enter"):
            page.keyboard.press(key)
        page.wait_for_url(lambda url, before=address: url != before)
        assert page.locator("input:checked").count() == 1  # "Nothing" is wrong, as always
    assert page.evaluate("globalThis.same") and "GET document" not in asked
    assert [one["holds"] for one in stored()] == [[PARTS[0]]] * 3
    assert Assignment.objects.filter(status="leased").count() == 1
    held = Assignment.objects.get(status="leased")
    assert f"/annotate/{held.token}/" in page.url
    page.keyboard.press("1")
    page.keyboard.press("z")
    assert page.locator(".parts input:checked").count() == 0  # once, and not once a question
    page.go_back()
    expect(page.locator(".progress-line")).to_contain_text("Question 4 today")
    assert page.faults == []  # type: ignore[attr-defined]


def test_enter_without_an_answer_says_what_is_missing_and_goes_there(
    browser: Browser, live_server: Any, published: Any
) -> None:
    page = open_page(browser, live_server)
    page.keyboard.press("1")
    page.keyboard.press("Enter")
    assert page.locator("#missing").inner_text() == "Step 2 is missing: choose what B is."
    page.keyboard.press("2")
    page.keyboard.press("1")
    with page.expect_navigation():
        page.keyboard.press("Enter")
    assert len(stored()) == 1


def test_undo_takes_back_one_choice_after_the_other(
    browser: Browser, live_server: Any, published: Any
) -> None:
    page = open_page(browser, live_server)
    for key in ("1", "2", "1", "0", "z"):
        page.keyboard.press(key)
    assert page.locator("input[name=holds]:checked").count() == 1
    assert page.locator("input[name=none]:checked").count() == 0
    page.keyboard.press("z")
    assert page.locator("input[name=holds]:checked").count() == 0


def test_a_reload_loses_nothing(browser: Browser, live_server: Any, published: Any) -> None:
    page = open_page(browser, live_server)
    with page.expect_response("**/draft/"):
        page.keyboard.press("1")
        page.keyboard.press("2")
    page.keyboard.press("1")
    with page.expect_response("**/draft/"):
        page.locator("details.link summary").first.click()
        page.locator("input[name=a_title]").fill("Ann Lee")
    page.reload()
    assert page.locator("input[name=a]:checked").count() == 1
    assert page.locator("input[name=holds]:checked").get_attribute("value") == PARTS[0]
    assert page.locator("input[name=a_title]").input_value() == "Ann Lee"
    assert Assignment.objects.count() == 1


@pytest.mark.walk
def test_an_answer_left_at_once_is_kept_by_the_beacon(
    browser: Browser, live_server: Any, published: Any
) -> None:
    page = open_page(browser, live_server)
    page.keyboard.press("1")
    page.reload()
    assert page.locator("input[name=a]:checked").count() == 1


def test_while_the_server_is_away_the_page_says_so_and_this_browser_keeps_the_answer(
    browser: Browser, live_server: Any, published: Any
) -> None:
    page = open_page(browser, live_server)
    page.context.route("**/draft/", lambda route: route.abort())
    page.keyboard.press("1")
    page.wait_for_selector("text=Not saved since")
    assert "your answers are kept in this browser" in page.locator("#kept").inner_text()
    page.context.unroute("**/draft/")
    page.reload()
    assert page.locator("input[name=a]:checked").count() == 1


@pytest.mark.walk
def test_it_works_as_a_plain_form_without_script(
    browser: Browser, live_server: Any, published: Any
) -> None:
    page = open_page(browser, live_server, java_script_enabled=False)
    page.locator("input[name=a]").first.check(force=True)
    with page.expect_navigation():
        page.locator(".submit-bar .primary").click()
    assert "Step 2 is missing" in page.locator("#error").inner_text()
    assert page.locator("input[name=a]").first.is_checked()
    page.locator("input[name=b]").last.check(force=True)
    page.locator("input[name=none]").check(force=True)
    with page.expect_navigation():
        page.locator(".submit-bar .primary").click()
    assert len(stored()) == 1


SCREENS = [(1400, "light"), (1400, "dark"), (390, "light"), (390, "dark"), (360, "light")]


def test_d_shows_the_whole_document_in_place_and_back(
    browser: Browser, live_server: Any, published: Any
) -> None:
    for question in Question.objects.all():
        end = question.payload["text"].index(". She")
        question.payload |= {"text": question.payload["text"][:end], "lit": [0, end]}
        question.save()
    page = open_page(browser, live_server)
    page.keyboard.press("1")
    page.keyboard.press("d")
    page.wait_for_selector("#text :text('She founded nothing')")
    assert page.locator("#whole").inner_text().startswith("Show less")
    assert page.locator("input[name=a]:checked").count() == 1
    page.keyboard.press("d")
    assert "She founded" not in page.locator("#text").inner_text()
    page.reload()
    held: list[Route] = []
    page.route("**/document/", lambda route: held.append(route))
    page.keyboard.press("d")
    page.keyboard.press("d")  # out of patience
    page.wait_for_timeout(300)
    [only] = held
    only.continue_()
    expect(page.locator("#text")).to_contain_text("She founded nothing")
    expect(page.locator("#whole")).to_contain_text("Show less")
