"""A submission's journey as its page tells it: what happened when, how long it took, and what
remains.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from django.test import Client
from django.urls import reverse

from kbpo.evaluation.latest import judging_extent
from kbpo.sampling.draw import tick as draw
from kbpo.submissions.models import Submission
from kbpo.web.research.follow import journey_stages

As = Callable[[str], Client]
Draft = Callable[..., Submission]
pytestmark = pytest.mark.django_db
NBSP = "\u00a0"


def told(row: Submission) -> dict[str, dict[str, Any]]:
    """Stage -> what is said of it."""
    row = Submission.objects.get(pk=row.pk)
    return {stage["name"]: stage for stage in journey_stages(row, judging_extent(row))}


@pytest.fixture
def drawn(draft: Draft, as_user: As) -> Submission:
    """A submission that people judge; its moments lie so far apart that they can be told."""
    row = draft()
    assert as_user("Rosa").post(reverse("upload-confirm", args=[row.pk])).status_code == 302
    draw()
    row.refresh_from_db()
    assert row.status == "judging" and row.sampled_at is not None
    row.received_at = row.sampled_at - timedelta(minutes=4)
    row.read_at, row.planned_at = (
        row.received_at + timedelta(seconds=3),
        row.received_at + timedelta(seconds=5),
    )
    row.confirmed_at = row.sampled_at - timedelta(seconds=7)
    row.save()
    return row


def test_every_stage_says_when_it_came_or_how_long_it_took(drawn: Submission) -> None:
    said = told(drawn)
    assert said["Received"]["of"] == f"{drawn.received_at:%H:%M}{NBSP}UTC"
    Submission.objects.filter(pk=drawn.pk).update(file_name="small.tsv", file_size=2_600)
    assert (
        told(Submission.objects.get(pk=drawn.pk))["Received"]["note"] == f"small.tsv, 2.5{NBSP}KB"
    )
    assert [said[name]["of"] for name in ("Read", "Planned", "Sampled")] == [
        f"in {n}{NBSP}s" for n in (3, 2, 7)
    ]
    assert f"confirmed {drawn.confirmed_at:%H:%M}{NBSP}UTC" in said["Planned"]["note"]
    assert said["Being judged"]["of"] == "0 of 4" and said["Scored"]["of"] == ""
    assert [stage["state"] for stage in said.values()] == ["done"] * 4 + ["now", "waiting"]


def test_the_page_shows_the_times(drawn: Submission, as_user: As) -> None:
    page = as_user("Rosa").get(reverse("submission", args=[drawn.pk])).content.decode()
    assert f"in 7{NBSP}s" in page and "of work left" in page
