"""A worker in a browser: preview, accept, answer in the frame, send in; and from there to a paid,
disposed HIT.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from browsing import IN_CHROMIUM, note_faults
from mturk_world import Turk, check_books, rounds
from playwright.sync_api import Browser, expect

from annotation.models import HIT, Assignment, Payment
from kbpo.instances.models import Label

pytestmark = [
    *IN_CHROMIUM,
    pytest.mark.django_db(transaction=True),
]


@pytest.mark.soak
@pytest.mark.walk
@pytest.mark.parametrize("script", [True, False], ids=["with script", "without script"])
def test_from_preview_to_disposal(
    browser: Browser, turk: Turk, two_in_a_hit: HIT, script: bool
) -> None:
    context = browser.new_context(
        viewport={"width": 1400, "height": 1100}, java_script_enabled=script
    )
    page = context.new_page()
    faults = note_faults(page)
    page.goto(f"{turk.url}/?workerId=WBROWSER")
    page.locator("a.hit").first.click()
    frame = page.frame_locator("#task")
    frame.get_by_text("This is a preview. Accept the HIT to answer.").wait_for()
    page.wait_for_load_state()
    assert frame.locator(".submit-bar").count() == 0
    assert not Assignment.objects.exists()
    page.locator("#accept button").click()
    for number in (1, 2):
        frame.get_by_text(f"Question {number} of 2").wait_for()
        expect(frame.locator(".top-end")).to_contain_text("$0.10 for all 2")
        frame.locator(".pill", has_text="Ann").first.click()
        frame.locator(".pill.b", has_text="Another name").click()
        frame.locator(".choice", has_text="studied at").click()
        frame.locator(".submit-bar .primary").click()
    if not script:
        frame.get_by_role("button", name="Send it in").click()
    frame.get_by_text("Your answer has arrived.").wait_for()
    ours = [cookie for cookie in context.cookies() if cookie["name"] in ("csrftoken", "sessionid")]
    assert ours == [] and faults == []
    context.close()
    for worker in ("W2", "W3"):
        turk.do(worker, two_in_a_hit.external_id)
    rounds()
    assert [label.n for label in Label.objects.filter(target__kind="pair")] == [3, 3]
    assert Payment.objects.counts() == {"paid": 3}
    assert HIT.objects.counts() == {"disposed": 1}
    check_books(turk)


def test_the_frame_fits_a_phone_and_another_site_cannot_show_it(
    browser: Browser, turk: Turk, two_in_a_hit: HIT, tmp_path: Path
) -> None:
    _, src = turk.accept("WPHONE", two_in_a_hit.external_id)
    page = browser.new_context(viewport={"width": 390, "height": 800}).new_page()
    page.goto(src)
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    (tmp_path / "evil.html").write_text(f'<iframe src="{src.replace("&", "&amp;")}"></iframe>')
    with page.expect_console_message(lambda line: "frame-ancestors" in line.text):
        page.goto(f"file://{tmp_path}/evil.html")
