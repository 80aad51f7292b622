"""The pages of metrics and judges: axe finds nothing, and nothing scrolls sideways on a phone.

SCREENSHOTS=folder keeps a picture of each.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest
from browsing import IN_CHROMIUM
from django.db import transaction
from playwright.sync_api import Browser, Page

from kbpo import clock
from kbpo.evaluation.run import score_track
from kbpo.instances.models import Label
from kbpo.submissions.models import Submission
from tests.test.scores.conftest import World
from tests.test.web.test_axe import context_of, looked_at

pytestmark = [*IN_CHROMIUM, pytest.mark.django_db(transaction=True)]
PICTURES = os.environ.get("SCREENSHOTS", "")
ADDRESSES = {
    "board": "/tracks/answers/",
    "metrics": "/tracks/answers/metrics/",
    "scores": "/desk/tracks/answers/scores/",
}


def test_every_page_of_metrics_is_for_everybody(
    studied: World, live_server: Any, browser: Browser
) -> None:
    with transaction.atomic():
        score_track(studied.track)
    Submission.objects.update(status="scored")
    Label.objects.update(public_at=clock.now())  # so that texts and points stand there
    context = context_of(browser, live_server.url, studied.admin)
    page = context.new_page()
    wrong: list[str] = []
    for name, address in ADDRESSES.items():
        page.goto(live_server.url + address)

        def keep(page: Page, width: int, name: str = name) -> None:
            if PICTURES:
                page.screenshot(path=Path(PICTURES) / f"{name}-{width}.png", full_page=True)

        wrong += looked_at(page, address, keep)
    assert wrong == []
