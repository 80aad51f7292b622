"""Handing in a file in a browser: dropped anywhere, followed while it is sent and read, stopped,
refused.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from browsing import IN_CHROMIUM, PATIENCE, log_in, note_faults
from django.test import Client
from django.urls import reverse
from playwright.sync_api import Browser, Page, expect

from kbpo.sampling.plan import tick as plan
from kbpo.submissions.ingest import tick as ingest
from kbpo.submissions.models import Submission
from tests.conftest import Toy
from tests.test.web.conftest import GOOD, lines_of

pytestmark = [*IN_CHROMIUM, pytest.mark.django_db(transaction=True)]
DRAG = """([kinds, files]) => {
  const held = new DataTransfer();
  for (const [name, content] of files) held.items.add(new File([content], name));
  const over = document.querySelector("footer");
  const like = { dataTransfer: held, bubbles: true, cancelable: true };
  for (const kind of kinds) over.dispatchEvent(new DragEvent(kind, like));
}"""


@pytest.fixture
def page(browser: Browser, live_server: Any, toy: Toy, as_user: Callable[[str], Client]) -> Any:
    """The first page of a submission, as Rosa has it."""
    context = browser.new_context(viewport={"width": 1400, "height": 900})
    log_in(context, live_server.url, as_user("Rosa"))
    opened = context.new_page()
    opened.set_default_timeout(PATIENCE)
    faults = note_faults(opened)
    opened.goto(live_server.url + reverse("submit"))
    yield opened
    context.close()
    assert faults == []


def drop(page: Page, *files: tuple[str, str]) -> None:
    page.evaluate(DRAG, [["dragenter", "dragover", "drop"], files])


@pytest.mark.walk
def test_a_file_is_dropped_anywhere_read_and_priced_while_one_watches(page: Page, toy: Toy) -> None:
    body = lines_of(toy, GOOD)
    page.evaluate(DRAG, [["dragenter", "dragover"], [("patterns_1.jsonl", "")]])
    expect(page.locator("body")).to_have_class(re.compile("dropping"))
    drop(page, ("patterns_1.jsonl", body.decode()))
    page.wait_for_url("**/submit/*/")
    expect(page.get_by_text("Waiting to be read")).to_be_visible()
    ingest()
    plan()
    expect(
        page.get_by_role("button", name="Continue to description")
    ).to_be_visible()  # it came by itself
    row = Submission.objects.get()
    assert (row.file_name, row.status) == ("patterns_1.jsonl", "planned")
    assert Path(row.file.path).read_bytes() == body
    drop(
        page, ("patterns_2.jsonl", body.decode())
    )  # on the check, too, another file may be dropped
    page.wait_for_url(lambda address: not address.endswith(reverse("upload-check", args=[row.pk])))
    assert Submission.objects.order_by("-pk")[0].file_name == "patterns_2.jsonl"


def test_two_files_or_one_too_large_are_refused_before_anything_is_sent(
    page: Page, settings: Any, toy: Toy
) -> None:
    sent: list[str] = []
    page.on("request", lambda request: sent.append(request.method))
    drop(page, ("a.jsonl", "1"), ("b.jsonl", "2"))
    expect(page.get_by_role("alert")).to_have_text(
        "One file at a time: a knowledge base is one file."
    )
    settings.UPLOAD_LIMIT_MB = 1
    page.reload()
    drop(page, ("large.jsonl", "x" * (2 * 1024 * 1024)))
    expect(page.get_by_role("alert")).to_contain_text("at most 1 MB can be uploaded")
    assert "POST" not in sent and not Submission.objects.exists()
