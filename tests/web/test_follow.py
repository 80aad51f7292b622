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
from django.utils import timezone

from annotation.hits import progress
from kbpo import clock
from kbpo.evaluation.extent import Extent, extent_of
from kbpo.instances.models import Label
from kbpo.instances.record import NewLabel, record
from kbpo.sampling.draw import tick as draw
from kbpo.sampling.models import Sample
from kbpo.submissions.models import Submission
from kbpo.web.research import follow
from kbpo.web.research.follow import stages, time_left

As = Callable[[str], Client]
Draft = Callable[..., Submission]
pytestmark = pytest.mark.django_db
NBSP = "\u00a0"


def told(row: Submission) -> dict[str, dict[str, Any]]:
    """Stage -> what is said of it."""
    row = Submission.objects.get(pk=row.pk)
    return {stage["name"]: stage for stage in stages(row, extent_of(row))}


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


def test_what_happened_days_ago_has_its_date(drawn: Submission) -> None:
    Submission.objects.update(received_at=timezone.now() - timedelta(days=3))
    when = timezone.now() - timedelta(days=3)
    assert told(drawn)["Received"]["of"].startswith(f"{when.day}{NBSP}{when:%B %Y}, ")


def test_of_a_sample_that_is_drawn_in_stages_it_is_told_that_more_may_follow(
    drawn: Submission,
) -> None:
    drawn.track.design = "poisson"
    extent = Extent(sample=1, judged=0, open=1, unanswered=0, labels=0, half_width=None)
    note = stages(drawn, extent)[3]["note"]
    planned = drawn.plan["options"][drawn.plan["chosen"]]["targets"]
    assert note.startswith(f"1 relations drawn so far, of about {planned} planned")
    drawn.status = "scored"
    assert stages(drawn, extent)[3]["note"] == "1 relations drawn"


def test_without_a_pace_the_work_that_is_left_is_told(drawn: Submission) -> None:
    seconds = drawn.plan["options"][drawn.plan["chosen"]]["work_seconds"]
    note = told(drawn)["Being judged"]["note"]
    assert (
        seconds
        and note.startswith("about ")
        and note.endswith("of work left; nobody judged in the last hour")
    )


def test_at_the_pace_of_the_last_hour_the_end_is_near(
    drawn: Submission, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(follow, "answers_per_hour", lambda track: 24.0)
    monkeypatch.setattr(follow, "people_expected", lambda track: 3)
    monkeypatch.setattr(follow, "last_answer", lambda track: clock.now())
    before, note = timezone.now(), told(drawn)["Being judged"]["note"]
    ends = {
        f"{moment + timedelta(minutes=30):%H:%M}{NBSP}UTC" for moment in (before, timezone.now())
    }
    assert note in {
        f"about 30{NBSP}min left, done near {end}" for end in ends
    }  # four relations, three people each


def test_no_time_of_day_is_told_before_anybody_answers_since_its_sample_was_drawn(
    drawn: Submission, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(follow, "answers_per_hour", lambda track: 24.0)
    before = drawn.sampled_at - timedelta(seconds=1)
    monkeypatch.setattr(follow, "last_answer", lambda track: before)
    assert "done near" not in told(drawn)["Being judged"]["note"]


def test_who_answered_fast_is_not_at_work_after_minutes_of_silence() -> None:
    now = clock.now()
    assert progress.is_idle(now - timedelta(minutes=5), now - timedelta(seconds=130), 200)
    assert not progress.is_idle(now - timedelta(minutes=5), now - timedelta(seconds=30), 200)


def test_what_was_judged_before_its_sample_was_drawn_is_no_pace_of_it(drawn: Submission) -> None:
    samples = Sample.objects.filter(batch__submission=drawn).values_list("target", flat=True)
    targets = sorted(set(samples))[:3]
    value = {"holds": [], "votes": {}, "links": {}}
    record([NewLabel(target, value, "crowd", "majority", 1, "v") for target in targets])
    for minutes, label in zip((40, 20, 2), Label.objects.order_by("pk"), strict=True):
        before = clock.now() - timedelta(minutes=minutes)
        Label.objects.filter(pk=label.pk).update(created_at=before)
    extent = Extent(sample=4, judged=3, open=1, unanswered=0, labels=3, half_width=None)
    assert time_left(drawn, extent) is None
    drawn.sampled_at = clock.now() - timedelta(minutes=50)
    left = time_left(drawn, extent)
    assert left is not None and timedelta(minutes=19) < left < timedelta(minutes=21)


def test_the_first_answers_tell_no_pace(drawn: Submission) -> None:
    samples = Sample.objects.filter(batch__submission=drawn).values_list("target", flat=True)
    value = {"holds": [], "votes": {}, "links": {}}
    record(
        [
            NewLabel(target, value, "crowd", "majority", 1, "v")
            for target in sorted(set(samples))[:3]
        ]
    )
    drawn.sampled_at = clock.now() - timedelta(minutes=50)
    extent = Extent(sample=4, judged=3, open=1, unanswered=0, labels=3, half_width=None)
    assert time_left(drawn, extent) is None, "three within a second"
    Label.objects.update(created_at=clock.now() - follow.BASE)
    assert time_left(drawn, extent) is not None


def test_while_the_pace_is_not_known_nobody_is_said_to_have_judged_nothing(
    drawn: Submission, monkeypatch: pytest.MonkeyPatch
) -> None:
    for ago, why in (
        (timedelta(seconds=5), "it is too early to say when it is done"),
        (timedelta(minutes=12), f"nobody has judged for 12{NBSP}min"),
    ):
        answered_at = clock.now() - ago
        monkeypatch.setattr(follow, "last_answer", lambda track, at=answered_at: at)
        note = told(drawn)["Being judged"]["note"]
        assert note.endswith(f"of work left; {why}")


def test_a_submission_that_waits_for_its_sample_says_so(draft: Draft, as_user: As) -> None:
    row = draft()
    as_user("Rosa").post(reverse("upload-confirm", args=[row.pk]))
    said = told(row)
    assert (said["Sampled"]["state"], said["Sampled"]["note"]) == (
        "now",
        "the sample is drawn next",
    )
    row.refresh_from_db()
    row.move("failed", "No sample was drawn within six hours. Press Retry.")
    ended = list(told(row).values())
    assert [stage["name"] for stage in ended] == ["Received", "Read", "Planned", "Given up"]
    assert ended[-1]["of"] == f"{row.status_since:%H:%M}{NBSP}UTC" and ended[-1]["retry_url"]


def test_the_page_shows_the_times(drawn: Submission, as_user: As) -> None:
    page = as_user("Rosa").get(reverse("submission", args=[drawn.pk])).content.decode()
    assert f"in 7{NBSP}s" in page and "of work left" in page
