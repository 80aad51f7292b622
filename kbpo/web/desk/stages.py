"""Reads the stages of the whole pipeline, the work in progress, and the failures."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta

from django.db.models import Count, Min
from django.urls import reverse

from annotation.desk.failures import LISTED, Failure, crowd_failures
from annotation.desk.journey import Stage, crowd_stages
from annotation.hits.batch import Batch, load_batch, unfinished_batches
from kbpo import clock
from kbpo.accounts.audit import dismissed_condition
from kbpo.accounts.models import Delivery
from kbpo.releases.models import Release
from kbpo.submissions.models import Submission

SUBMISSIONS = (
    # what is done to it, step, status, when somebody should look
    ("Read uploads", "ingest", "received", timedelta(minutes=10)),
    ("Make plans", "plan", "read", timedelta(minutes=10)),
    ("Draw samples", "draw", "confirmed", timedelta(minutes=5)),
)
SCORE = ("Judge and score", "estimate", "judging", timedelta(days=7))

RELEASE_AGAIN = "Nothing was published. Remove the cause, then retry."
"""Advice for a release that was not made"""


def all_stages() -> list[Stage]:
    """Return all stages in the order of the pipeline."""
    waiting = (
        Submission.objects.order_by()
        .values_list("status")
        .annotate(Count("pk"), Min("status_since"))
    )
    by_status = {status: (n, oldest) for status, n, oldest in waiting}
    ours = [
        Stage(name, step, *by_status.get(status, (0, None)), limit)
        for name, step, status, limit in (*SUBMISSIONS, SCORE)
    ]
    return [*ours[:-1], *crowd_stages(), ours[-1]]


@dataclass(frozen=True)
class Run:
    """A submission or an order in progress."""

    name: str
    url: str
    track: str
    state: str
    since: datetime
    batch: Batch | None = None
    """Its batch of questions, once people are asked"""

    @property
    def share(self) -> float:
        """Return the share of its questions that is settled."""
        return (
            self.batch.n_finished / self.batch.n_questions
            if self.batch and self.batch.n_questions
            else 0.0
        )


def work_in_progress(limit: int = 8) -> list[Run]:
    """Return the work in progress, the newest first: batches, then submissions without open
    questions.
    """
    asked = [_run_of_batch(batch) for batch in unfinished_batches(limit)]
    payers = {run.batch.payer for run in asked if run.batch}
    submissions = Submission.objects.filter(status__in=["received", "read", "confirmed", "judging"])
    latest = submissions.select_related("team", "track").order_by("-pk")[: 2 * limit]
    unasked = [row for row in latest if row.purpose not in payers]
    return [*asked, *(_run_without_questions(row) for row in unasked[: limit - len(asked)])]


def _run_without_questions(submission: Submission) -> Run:
    """Return a submission without open questions."""
    return Run(
        name=f"{submission.team.name} {submission.name}",
        url=reverse("submission", args=[submission.pk]),
        track=submission.track.name,
        state=submission.get_status_display(),
        since=submission.status_since,
        batch=load_batch(submission.purpose) if submission.status == "judging" else None,
    )


def _run_of_batch(batch: Batch) -> Run:
    state = "waits"
    if batch.halt:
        state = "paused"
    elif batch.published:
        state = "open to people"
    elif batch.answered:
        state = "being settled"
    address = reverse("desk-batch", args=[batch.payer])
    return Run(batch.name, address, batch.track.name, state, batch.moved_at, batch)


def list_failures(limit: int = 30) -> list[Failure]:
    """Return the failures that need an admin, money first, then the newest: submissions, rows of
    the crowd, mails and releases.
    """
    given_up = Submission.objects.filter(status="failed", status_since__gte=clock.now() - LISTED)
    retried = Submission.objects.filter(
        status__in=["received", "read", "confirmed", "judging"], attempts__gt=0
    )
    submissions = given_up.exclude(dismissed_condition("submission")) | retried.exclude(reason="")
    ours = [
        Failure(
            kind="submission",
            pk=row.pk,
            name=f"{row.team.name} {row.name}",
            state=row.get_status_display(),
            given_up=row.status == "failed",
            reason=row.reason,
            since=row.status_since,
            next_try_at=None if row.status == "failed" else row.next_try_at,
            url=reverse("submission", args=[row.pk]),
        )
        for row in submissions.select_related("team").order_by("-status_since")[:limit]
    ]
    return sorted(
        [*ours, *crowd_failures(limit), *_unsent_mails(limit), *_failed_releases()],
        key=lambda failed: (failed.is_money, failed.since),
        reverse=True,
    )[:limit]


def _unsent_mails(limit: int) -> list[Failure]:
    """Return the mails that could not be sent."""
    mails = Delivery.objects.filter(hook=None, status="failed")
    mails = mails.filter(status_since__gte=clock.now() - LISTED).exclude(
        dismissed_condition("mail")
    )
    return [
        Failure(
            kind="mail",
            pk=row.pk,
            name=f"Mail to {row.address}: {row.body['subject']}",
            state=row.status,
            given_up=True,
            reason=row.reason,
            since=row.status_since,
            next_try_at=None,
        )
        for row in mails.order_by("-status_since")[:limit]
    ]


def _failed_releases() -> list[Failure]:
    """Return the latest release of each track if it failed or is retried."""
    last = Release.objects.order_by("track", "-number").distinct("track").values("pk")
    rows = Release.objects.filter(pk__in=last).exclude(status=Release.Status.MADE)
    given_up = rows.exclude(status=Release.Status.ORDERED).exclude(dismissed_condition("release"))
    rows = rows.filter(status=Release.Status.ORDERED).exclude(reason="") | given_up
    return [
        Failure(
            kind="release",
            pk=row.pk,
            name=f"Release {row.number} of {row.track.name}",
            state=row.get_status_display().lower(),
            given_up=row.status != Release.Status.ORDERED,
            reason=f"{row.reason} {RELEASE_AGAIN}".strip(),
            since=row.status_since,
            next_try_at=None if row.status != Release.Status.ORDERED else row.next_try_at,
            url=reverse("desk-track", args=[row.track.slug]),
        )
        for row in rows.select_related("track")
    ]
