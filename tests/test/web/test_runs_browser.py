"""Your runs and the pages that are cited, in a browser: keys, axe, widths. SCREENSHOTS=folder keeps
pictures.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from datetime import timedelta
from decimal import Decimal
from functools import partial
from typing import Any

import pytest
from browsing import IN_CHROMIUM
from django.urls import reverse
from playwright.sync_api import Browser

from kbpo import clock
from kbpo.evaluation.models import Evaluation, InterimInterval
from kbpo.money.models import Budget
from kbpo.money.spend import reserve_money, spend_money
from kbpo.submissions.models import Submission
from tests.conftest import Toy
from tests.test.web.scored import make_board, score
from tests.test.web.test_axe import context_of, looked_at
from tests.test.web.test_every_page import keep_pictures

pytestmark = [*IN_CHROMIUM, pytest.mark.django_db(transaction=True)]
Draft = Callable[..., Submission]
PICTURES = os.environ.get("SCREENSHOTS", "")


@pytest.fixture
def season(toy: Toy, draft: Draft) -> Submission:
    """A team in the middle of things: a draft, a run being judged, scored ones, a refused file."""
    now, team = clock.now(), toy.teams["Patterns"]
    Budget.objects.create(track=toy.track, scope="team", team=team, cap=Decimal("350.00"))
    toy.track.runs_a_week = 5
    toy.track.save()
    make_board(toy, 3)
    draft(name="broken", body=b"\xff\xfe nonsense")
    scored, private, judging = (draft(name=name) for name in ("Graph v1", "Graph v0", "Graph v2"))
    draft(name="Graph v3")
    first = toy.track.evaluations.get()
    Evaluation.objects.filter(pk=first.pk).update(made_at=now - timedelta(days=40), stage_end=True)
    for row, is_private in ((scored, False), (private, True)):
        row.is_private, row.description = is_private, "Nearest neighbours, twelve votes"
        row.paper_url = "https://example.org/paper"
        row.move("scored", confirmed_at=now, sampled_at=now, scored_at=now - timedelta(days=3))
        row.save()
        score(first, row, 0.31)
    latest = Evaluation.objects.create(track=toy.track, number=2)
    for row in Submission.objects.filter(status="scored"):
        score(latest, row, 0.25 + row.pk % 7 / 20)
    reserve_money(toy.track, team, judging.purpose, Decimal("24.00"), key="r")
    spend_money(toy.track, judging.purpose, Decimal("19.65"), key="s")
    judging.move("judging", confirmed_at=now, sampled_at=now)
    InterimInterval.objects.create(
        submission=judging,
        n=131,
        value=0.277,
        low80=0.259,
        high80=0.295,
        low95=0.25,
        high95=0.31,
        variance=0.001,
    )
    return scored


def test_runs_by_key_and_every_new_page_by_axe(
    browser: Browser, live_server: Any, toy: Toy, season: Submission
) -> None:
    context = context_of(browser, live_server.url, toy.users["Rosa"])
    page = context.new_page()
    page.goto(live_server.url + reverse("runs"))
    assert "27.7" in page.inner_text("table.runs") and "provisional" in page.inner_text(
        "table.runs"
    )
    page.keyboard.press("j")
    page.keyboard.press("j")
    assert page.inner_text("tr.selected th a") == "Graph v0"
    with page.expect_navigation():
        page.keyboard.press("Enter")
    assert "Graph v0" in page.inner_text("h1")
    found: list[str] = []
    slug = toy.track.slug
    addresses = [
        reverse("runs"),
        reverse("submission", args=[season.pk]),
        reverse("submission-edit", args=[season.pk]),
        reverse("board", args=[slug]),
        reverse("evaluation", args=[slug, 1]),
        reverse("evaluations", args=[slug]),
    ]
    for number, address in enumerate(addresses):
        page.goto(live_server.url + address)
        page.evaluate("document.querySelectorAll('details').forEach((one) => { one.open = true })")
        picture = partial(keep_pictures, number=number, address=address) if PICTURES else None
        found += looked_at(page, address, picture)
    context.close()
    assert "\n".join(found) == ""
