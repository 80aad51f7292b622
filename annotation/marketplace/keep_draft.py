"""Stores the draft of a worker on another site, by assignment and worker. A draft is never an
answer.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from django.db import transaction
from django.db.models import Exists, OuterRef, QuerySet

from annotation.hits.publish import hit_advert
from annotation.models import HIT, UNLISTED, Assignment, Worker, WorkerIdentity
from annotation.workers.models import Consent
from kbpo import clock

MOST = 4
"""Drafts that are kept at once for each place of a HIT. If workers who never sent an answer hold
them all, a new draft replaces the one that was idle for longest, so that invented ids lock nobody
out.
"""


@dataclass(frozen=True)
class Kept:
    """The stored draft, or the sent answer, of a worker of a marketplace."""

    answer: dict[str, Any]
    leased: bool = False
    """Whether the draft may still change"""
    begun: bool = False
    """Whether its worker has seen the questions of this HIT"""
    ended: bool = False
    """Whether this worker has submitted the HIT"""

    @property
    def refused(self) -> bool:
        """Return whether nothing was stored because there is no room."""
        return not self.leased and not self.ended


@transaction.atomic
def keep_draft(
    hit: HIT, assignment: str, handle: str, answer: dict[str, Any] | None, *, external_id: str = ""
) -> Kept:
    """Store a worker's draft and return it as stored. Without a new answer only the time of the
    last activity changes.

    The worker's id on the platform, if the address contains it, is stored at once: a worker who
    cannot submit may still be owed a compensation.
    """
    worker_exists = Worker.objects.filter(handle=handle).exists()
    if not worker_exists and _is_full(hit) and not _free_a_place(hit):
        return Kept(answer or {})  # before the worker is stored
    lease = timedelta(seconds=hit_advert(hit).lease_seconds)
    worker, _ = Worker.objects.get_or_create(handle=handle, defaults={"platform": hit.platform})
    if external_id:
        WorkerIdentity.objects.get_or_create(worker=worker, defaults={"external_id": external_id})
    worker = Worker.objects.select_for_update(of=("self",), no_key=True).get(pk=worker.pk)
    mine = hit.assignments.select_for_update(of=("self",)).filter(worker=worker)
    row = mine.filter(external_id=assignment).exclude(status="returned").first()
    if row is None:
        if mine.exclude(status__in=UNLISTED).exists():
            return Kept(answer or {}, ended=True)
        if _is_full(hit) and not _free_a_place(hit):
            return Kept(answer or {})
        now = clock.now()
        # They returned it there, and have it again under another name.
        mine.filter(status="leased").update(
            status="returned", status_since=now, returned_by=Assignment.ReturnedBy.LEASE
        )
        row = mine.filter(external_id=assignment, status="returned").first()
        row = row or Assignment(
            hit=hit, worker=worker, external_id=assignment, leased_until=now + lease
        )
        row.first_accepted_at = row.first_accepted_at or row.accepted_at
        row.status, row.status_since, row.accepted_at = "leased", now, now
    if row.status != "leased":
        return Kept(dict(row.raw or {}), begun=True, ended=True)
    row.leased_until = clock.now() + lease
    row.draft = answer if answer is not None else row.draft
    row.save()
    return Kept(dict(row.draft or {}), leased=True, begun=row.draft is not None)


def _is_full(hit: HIT) -> bool:
    return _leased_assignments(hit).count() >= MOST * hit.max_assignments


def _leased_assignments(hit: HIT) -> QuerySet[Assignment]:
    return hit.assignments.filter(status="leased", leased_until__gt=clock.now())


def _free_a_place(hit: HIT) -> bool:
    """Make room for a draft by closing the oldest draft of a worker who never sent an answer, and
    return whether there was one. Its contents are kept; an empty draft is deleted, and so is a
    worker of whom nothing else is known.

    Such a worker may be invented. If they are real, they take a place again with the next key they
    press.
    """
    sent_in = Assignment.objects.filter(worker=OuterRef("worker")).exclude(status__in=UNLISTED)
    strangers = _leased_assignments(hit).exclude(Exists(sent_in)).order_by("leased_until", "pk")
    workers = Worker.objects.select_for_update(of=("self",), skip_locked=True)
    for pk, worker_pk in list(strangers.values_list("pk", "worker")[:5]):
        worker = workers.filter(pk=worker_pk).first()
        row = strangers.select_for_update(of=("self",), skip_locked=True).filter(pk=pk).first()
        if worker is None or row is None:  # it is being answered now
            continue
        if row.draft:
            row.move("returned", returned_by=Assignment.ReturnedBy.LEASE)
        else:
            row.delete()
            _delete_blank_worker(worker)
        return True
    return False


def _delete_blank_worker(worker: Worker) -> None:
    """Delete a worker of whom only the id is known, and perhaps the consent to the terms."""
    for relation in Worker._meta.related_objects:
        related = relation.related_model._default_manager.filter(**{relation.field.name: worker})
        if relation.related_model not in (WorkerIdentity, Consent) and related.exists():
            return
    worker.delete()
