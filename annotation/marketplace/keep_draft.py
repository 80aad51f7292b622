"""Keeps what a worker has done of a HIT on another site, under (assignment, worker): a draft, never
an answer.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from django.db import transaction
from django.utils import timezone

from annotation.hits.publish import lease_seconds_of
from annotation.models import HIT, Assignment, Worker, WorkerIdentity

MOST = 4
"""Drafts of a HIT for each of its places. Whoever opens its address with invented names fills no
table."""


@dataclass(frozen=True)
class Kept:
    """What is kept of a go: the draft, or the answer that was sent."""

    answer: dict[str, Any]
    leased: bool = False
    """Whether it is a draft that may still change"""
    begun: bool = False
    """Whether its worker has seen the questions in this go"""
    ended: bool = False
    """Whether this worker has sent the HIT in"""

    @property
    def refused(self) -> bool:
        """Whether nothing was kept, for want of room."""
        return not self.leased and not self.ended


@transaction.atomic
def keep_draft(
    hit: HIT, assignment: str, handle: str, answer: dict[str, Any] | None, *, external_id: str = ""
) -> Kept:
    """The draft as it stands now. Without a new answer nothing is changed but the time that it is
    kept.

    The worker's id on the platform, where the address names it, is noted at once: whoever cannot
    send anything in may still be owed a compensation.
    """
    if _is_full(hit) and not Worker.objects.filter(handle=handle).exists():
        return Kept(
            answer or {}
        )  # before anybody is written down: an invented name leaves no worker either
    lease = timedelta(seconds=lease_seconds_of(hit))
    worker, _ = Worker.objects.get_or_create(handle=handle, defaults={"platform": hit.platform})
    if external_id:
        WorkerIdentity.objects.get_or_create(worker=worker, defaults={"external_id": external_id})
    worker = Worker.objects.select_for_update(of=("self",), no_key=True).get(pk=worker.pk)
    mine = hit.assignments.select_for_update(of=("self",)).filter(worker=worker)
    row = mine.filter(external_id=assignment).exclude(status="returned").first()
    if row is None:
        if mine.exclude(status__in=["returned", "leased"]).exists() or _is_full(hit):
            return Kept(
                answer or {}, ended=mine.exclude(status__in=["returned", "leased"]).exists()
            )
        now = timezone.now()
        returned = {"status": "returned", "status_since": now, "reason": Assignment.LEASE_LOST}
        mine.filter(status="leased").update(
            **returned
        )  # they returned it there, and have it again under another name
        row = mine.filter(external_id=assignment, status="returned").first()
        row = row or Assignment(
            hit=hit, worker=worker, external_id=assignment, leased_until=now + lease
        )
        row.status, row.status_since, row.accepted_at = "leased", now, now
    if row.status != "leased":
        return Kept(dict(row.raw or {}), begun=True, ended=True)
    row.leased_until = timezone.now() + lease
    row.draft = answer if answer is not None else row.draft
    row.save()
    return Kept(dict(row.draft or {}), leased=True, begun=row.draft is not None)


def _is_full(hit: HIT) -> bool:
    return (
        hit.assignments.filter(status__in=["leased", "returned"]).count()
        >= MOST * hit.max_assignments
    )
