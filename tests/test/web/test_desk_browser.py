"""The desk in a browser: it refreshes but not while somebody types, and stops with a typed word."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from browsing import IN_CHROMIUM, PATIENCE, log_in, note_faults
from django.test import Client
from django.urls import reverse
from playwright.sync_api import Browser, Page, expect

from annotation.budget import halts
from annotation.hits import publish
from annotation.labels import exclude
from annotation.questions import ask
from annotation.workers.models import Application
from kbpo.accounts.models import AccountRequest, User
from kbpo.clock import served
from kbpo.sampling.confirm import confirm_plan
from kbpo.sampling.draw import tick as draw
from kbpo.submissions.models import Submission
from tests.conftest import Toy
from tests.test.web.conftest import OTHERS
from tests.test.web.test_desk_screen import doubt

pytestmark = [
    *IN_CHROMIUM,
    pytest.mark.django_db(transaction=True),
]

MOST_HEIGHT = 1600
"""Pixels of the desk at a width of 1400, with as much on it as the demo has"""
MORE_RUNS = 4 * 34
"""What four more runs under way would add"""


@pytest.fixture
def batch(toy: Toy, draft: Callable[..., Submission]) -> Submission:
    """A submission whose questions are open."""
    row = confirm_plan(draft(), toy.users["Rosa"])
    draw()
    ask.tick()
    publish.tick()
    return row


def busy(toy: Toy, draft: Callable[..., Submission]) -> None:
    """As much as the demo's desk has: three runs under way, annotators at work, people who ask."""
    for name in ("second", "third"):
        confirm_plan(draft(OTHERS, by="Tim", name=name), toy.users["Tim"])
    draw()
    ask.tick()
    publish.tick()
    for worker in doubt(toy, "Ada", "Bo", "Cy"):
        exclude.note_worker_reviewed(worker, toy.users["Admin"], "The gold was wrong.")
    AccountRequest.objects.create(name="Nia", email="nia@lab.example", team="Patterns")
    volunteer = User.objects.create_user("vera")
    Application.objects.create(user=volunteer, why="I read a lot.")
    served.record_beat()


def open_desk(browser: Browser, live_server: Any, admin: Client, width: int) -> Page:
    context = browser.new_context(viewport={"width": width, "height": 900})
    log_in(context, live_server.url, admin)
    page = context.new_page()
    page.set_default_timeout(PATIENCE)
    page.goto(live_server.url + reverse("desk"))
    return page


@pytest.mark.walk
def test_the_desks_main_actions(
    batch: Submission,
    toy: Toy,
    draft: Callable[..., Submission],
    as_user: Callable[[str], Client],
    browser: Browser,
    live_server: Any,
) -> None:
    busy(toy, draft)
    page = open_desk(browser, live_server, as_user("Admin"), 1400)
    faults = note_faults(page)
    for what in ("1 request", "1 volunteer", "Money", "Health", "Queues"):
        expect(page.locator("main")).to_contain_text(what)
    assert page.locator("#runs tbody tr, #annotators tbody tr").count() == 6
    height = page.evaluate("document.documentElement.scrollHeight") + MORE_RUNS
    assert height <= MOST_HEIGHT, f"the desk is {height} px high"
    page.goto(live_server.url + reverse("desk-people"))
    gap = page.evaluate("""() => {
      const [notice, button] = ["#requests .notice", "#requests button"].map(
        (one) => document.querySelector(one).getBoundingClientRect());
      return button.top - notice.bottom;
    }""")
    assert gap >= 8, "what one reads first stands apart from the button"
    page.goto(live_server.url + reverse("desk"))
    page.get_by_role("link", name=f"{batch.team.name} {batch.name}").first.click()
    page.locator("#pause-why").fill("The page shows too little.")
    page.get_by_role("button", name="Pause").click()
    expect(page.get_by_text("Paused since")).to_be_visible()
    page.get_by_label("Reason to continue").fill("It is mended")
    page.get_by_role("button", name="Go on").click()
    expect(page.locator("#pause-why")).to_be_visible()
    page.locator("#stop-why").fill("Wrong prices.")
    page.locator("#word").fill("stpo")
    page.get_by_role("button", name="Stop this batch now").click()
    expect(page.locator("#word")).to_be_focused()  # the browser asks for the word; nothing is sent
    page.goto(live_server.url + reverse("desk"))
    page.keyboard.press("!")
    page.wait_for_url("**/#stop")  # the key leads to the box and stops nothing
    page.locator("#why").fill("Prices are wrong.")
    page.locator("#word").fill("stop")
    page.get_by_role("button", name="Stop now").click()
    expect(page.get_by_role("button", name="Resume publishing")).to_be_visible()
    assert [halt.why for halt in halts.current_halts()] == ["Prices are wrong."]
    page.get_by_label("Reason to resume").fill("It is mended")
    page.get_by_role("button", name="Resume publishing").click()
    expect(page.get_by_text("Publishing is on")).to_be_visible()
    assert faults == []
