"""The journey as people make it, in a browser: a researcher submits, an annotator judges, the
leaderboard has a row.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from urllib.parse import quote

import pytest
from browsing import IN_CHROMIUM, note_faults
from playwright.sync_api import Browser, Page, expect
from processes import Service, wait_for
from travel import PASSWORD, Travel, make_travel, newcomer, researcher_of

from annotation.workers import teach

PATIENCE = 60_000
RUN = "Harbor_1"
pytestmark = IN_CHROMIUM
RAW = """
    SELECT a.raw FROM annotation_assignment a JOIN annotation_hit h ON h.id = a.hit_id
    JOIN annotation_worker w ON w.id = a.worker_id JOIN accounts_user u ON u.id = w.user_id
    WHERE h.track_id = (SELECT id FROM tracks_track WHERE slug = %s) AND u.username = 'newcomer'
      AND a.raw IS NOT NULL ORDER BY a.submitted_at
"""


@pytest.fixture
def walk(service: Service, tmp_path: Path) -> tuple[Travel, str, str]:
    """A track, who submits to it, and who judges."""
    travel = make_travel(
        service, tmp_path, "Walk", seed=11, documents=6, read_in_full=2, half_width="0.200"
    )
    return travel, researcher_of(travel, RUN), newcomer(travel, "newcomer")


@pytest.mark.soak  # over HTTP, without a browser, test_journey.py goes the same way by day
@pytest.mark.walk
def test_from_a_file_to_a_row_on_the_board(walk: tuple[Travel, str, str], browser: Browser) -> None:
    travel, name, judge = walk
    faults: list[list[str]] = []
    researcher = log_in(browser, travel, name, f"/submit/?track={travel.track}", faults)
    submission = submit(researcher, travel.files / "systems" / f"{RUN}.kb.tsv")
    travel.submissions[submission] = RUN
    annotator = log_in(browser, travel, judge, "/annotate/", faults)
    wait_for(
        lambda: annotator.reload() and annotator.get_by_role("link", name="Begin").count(),
        "a question",
    )
    annotator.get_by_role("link", name="Begin").click()
    agree(annotator)
    learn(annotator)
    for by in (by_mouse, by_keyboard):
        for _ in range(3):
            answer(annotator, by)
    answers = [row[0] for row in travel.rows(RAW)]
    assert len(answers) == 6 and all(one["none"] == ["1"] and "holds" not in one for one in answers)
    with travel.judging(1.0, judge):
        travel.follow(submission, "scored")
    researcher.goto(f"{travel.service.url}/tracks/{travel.track}/")
    row = researcher.get_by_role("row").filter(has_text="First steps")
    expect(row).to_have_count(1)
    expect(row).to_contain_text("–")
    researcher.goto(f"{travel.service.url}/submissions/{submission}/")
    expect(researcher.locator("main")).to_contain_text("Scored")
    assert not any(faults)


def log_in(browser: Browser, travel: Travel, name: str, then: str, faults: list[list[str]]) -> Page:
    """A page of somebody who has logged in and is led where they wanted to go; its errors are
    noted.
    """
    page = browser.new_context(viewport={"width": 1400, "height": 900}).new_page()
    page.set_default_timeout(PATIENCE)
    faults.append(note_faults(page))
    page.goto(f"{travel.service.url}/login/?next={quote(then)}")
    page.locator("[name=username]").fill(name)
    page.locator("[name=password]").fill(PASSWORD)
    page.get_by_role("button", name="Log in").click()
    page.wait_for_url(f"**{then}")
    return page


def submit(page: Page, file: Path) -> int:
    """The number of the submission: a file is chosen, checked, described and confirmed."""
    with page.expect_file_chooser() as chooser:
        page.locator("#file").click()
    chooser.value.set_files(file)
    page.wait_for_url("**/submit/*/")
    page.get_by_role("button", name="Continue to description").click()
    page.get_by_label("Run name").fill("First steps")
    page.get_by_label("Description").fill("It walks before it runs.")
    page.get_by_role("button", name="Continue to the price").click()
    expect(page.get_by_text("It walks before it runs.")).to_be_visible()
    page.get_by_role("button", name="Confirm, at most").click()
    page.wait_for_url("**/submissions/*/")
    return int(page.url.rstrip("/").rsplit("/", 1)[1])


def agree(page: Page) -> None:
    """The terms, read and agreed to: without the tick the button does nothing."""
    expect(page.get_by_role("heading", name="Terms for annotators")).to_be_visible()
    page.get_by_role("button", name="Agree and go on").click()
    tick = page.get_by_label("I have read this, and I agree.")
    expect(tick).to_be_focused()  # the browser asks for it
    tick.check()
    page.get_by_role("button", name="Agree and go on").click()
    page.wait_for_url("**/annotate/tutorial/relation/")


def learn(page: Page) -> None:
    """The tutorial, passed with one mistake, and on to the first question; by mouse, then by
    keyboard alone.
    """
    page.get_by_role("button", name="Begin").click()
    questions = teach.shipped()["relation"].questions
    for number, question in enumerate(questions, start=1):
        expect(page.locator(".progress-line")).to_contain_text(f"{number} of {len(questions)}")
        page.wait_for_load_state()  # the scripts are there
        right = question["right"] | ({"none": ["1"], "holds": []} if number == 1 else {})
        for name, values in right.items():
            if name in "ab" and len(question["payload"][name]["candidates"]) == 1:
                continue  # nobody is asked
            for value in values:
                page.locator(f"input[name={name}][value='{value}']").check(force=True)
        page.locator(".submit-bar .primary").click() if number < 4 else page.keyboard.press("Enter")
        expect(page.locator(".explained")).to_contain_text(question["why"])
        page.wait_for_load_state()
        expect(page.locator(".explained")).to_contain_text(
            "Not quite" if number == 1 else "That is right"
        )
        page.locator("#onward").click() if number < 4 else page.keyboard.press("Enter")
    expect(page.get_by_role("heading", name="You passed")).to_be_visible()
    expect(page.locator("main")).to_contain_text(f"{len(questions) - 1} of {len(questions)} right")
    page.locator("#onward").click()
    page.locator("#answer").wait_for()
    page.wait_for_load_state()


def answer(page: Page, by: Callable[[Page, int], None]) -> None:
    """One question answered: each mention is the first candidate, and none of the relations
    holds.
    """
    sides = page.locator(".step-part .pills").count()
    with page.expect_navigation():
        by(page, sides)


def by_mouse(page: Page, sides: int) -> None:
    for side in range(sides):
        page.locator(".step-part .pills").nth(side).locator(".pill").first.click()
    page.locator(".choice.none").click()
    page.locator(".submit-bar .primary").click()


def by_keyboard(page: Page, sides: int) -> None:
    for key in ["1"] * sides + ["0", "Enter"]:
        page.keyboard.press(key)
