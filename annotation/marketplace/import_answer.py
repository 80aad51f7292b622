"""Imports one answer from a platform. It is stored raw, once.

A platform lists the same answer many times, before or after our own page received it, and gives an
assignment that one worker returned to another. So the key is (assignment, worker), and the
platform's record counts.
"""

from __future__ import annotations

from typing import Any

from django.db import transaction

from annotation.hits.lease import lease_time
from annotation.hits.parts import read
from annotation.models import HIT, UNPROVEN, Assignment, Worker, WorkerIdentity
from annotation.platforms.proof import is_signed
from annotation.workers.teach import qualify_listed
from annotation.workers.worker import handle_of
from kbpo import clock


def import_answer(hit: HIT, answer: dict[str, Any]) -> int:
    """Store an answer, and return 1 if it was new."""
    status = answer.get("status", "submitted")
    assignments = Assignment.objects.filter(
        hit=hit,
        external_id=answer["external_id"],
        worker__handle=handle_of(hit.platform, answer["worker_id"]),
        worker__identity__isnull=False,
    ).exclude(status__in=["leased", "returned"])
    if (row := assignments.first()) is not None:
        if row.platform_status != status:
            Assignment.objects.filter(pk=row.pk).update(platform_status=status)
        return 0
    return _import_answer(hit, answer, status)


@transaction.atomic
def _import_answer(hit: HIT, answer: dict[str, Any], status: str) -> int:
    handle = handle_of(hit.platform, answer["worker_id"])
    worker, _ = Worker.objects.get_or_create(handle=handle, defaults={"platform": hit.platform})
    worker = Worker.objects.select_for_update(of=("self",), no_key=True).get(pk=worker.pk)
    WorkerIdentity.objects.get_or_create(
        worker=worker, defaults={"external_id": answer["worker_id"]}
    )
    now = clock.now()
    Worker.objects.filter(pk=worker.pk).update(last_seen_at=now)
    key = {"hit": hit, "worker": worker, "external_id": answer["external_id"]}
    row = Assignment.objects.select_for_update(of=("self",)).filter(**key).first()
    if row is not None and row.status not in ("leased", "returned"):
        return 0  # somebody else took it in meanwhile
    _end_leases(hit, worker, row, answer["external_id"])
    if row is None:
        row = Assignment(
            status="leased",
            leased_until=now + lease_time(),
            accepted_at=answer["accepted_at"],
            **key,
        )
        row.save()
    sent = answer["submitted_at"]
    seconds = (sent - answer["accepted_at"]).total_seconds()
    raw = _raw(hit, answer, handle)
    row.move(
        "submitted",
        raw=raw,
        draft=None,
        submitted_at=sent,
        seconds=seconds,
        platform_status=status,
        returned_by="",
    )
    qualify_listed(worker, answer["external_id"])
    return 1


def _end_leases(hit: HIT, worker: Worker, row: Assignment | None, external_id: str) -> None:
    """End leases that the platform ended without notice: other leases of this worker, and other
    workers' of this assignment.
    """
    leased = hit.assignments.filter(status="leased").exclude(pk=row.pk if row else 0)
    fields = {
        "status": "returned",
        "status_since": clock.now(),
        "returned_by": Assignment.ReturnedBy.PLATFORM,
    }
    leased.filter(worker=worker).update(**fields)
    leased.filter(external_id=external_id).update(**fields)


def _raw(hit: HIT, answer: dict[str, Any], handle: str) -> dict[str, Any]:
    """Return the answer as our page composed it. An answer that did not come from our page is
    stored unchanged, and cannot be used.
    """
    fields: dict[str, str] = answer["fields"]
    if is_signed(fields.get("proof", ""), hit.pk, answer["external_id"], handle):
        return dict(read(fields.get("answer", "")))
    return {UNPROVEN: fields}
