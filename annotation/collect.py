"""Step 7, what time does: lost leases return, free places open again, other platforms' answers are fetched."""

from __future__ import annotations

import logging
from typing import Any

from django.db import connection, transaction
from django.utils import timezone

from annotation.lease import lease_time
from annotation.models import HIT, Assignment, Worker, WorkerIdentity
from annotation.platforms.base import PlatformDown, UnknownOutcome
from annotation.platforms.registry import platform_of
from annotation.worker import handle_of
from kbpo.queue import nudge

log = logging.getLogger(__name__)

REOPEN = """
    UPDATE annotation_hit h SET status = 'open', status_since = now()
    WHERE h.status = 'closed'
      AND EXISTS (SELECT 1 FROM annotation_hit_questions hq JOIN annotation_question q ON q.id = hq.question_id
                  WHERE hq.hit_id = h.id AND q.status = 'published')
      AND (SELECT count(*) FROM annotation_assignment a WHERE a.hit_id = h.id
           AND a.status IN ('submitted', 'accepted', 'approved', 'paid')) < h.max_assignments
"""
CLOSE = """
    UPDATE annotation_hit h SET status = 'closed', status_since = now()
    WHERE h.status = 'open'
      AND NOT EXISTS (SELECT 1 FROM annotation_hit_questions hq JOIN annotation_question q ON q.id = hq.question_id
                      WHERE hq.hit_id = h.id AND q.status IN ('published', 'gold'))
"""


def tick() -> int:
    """How many rows moved."""
    return _lost_leases() + _run(REOPEN) + _run(CLOSE) + _elsewhere()


@transaction.atomic
def _lost_leases() -> int:
    """How many leases ran out; the question is offered again, also to the same worker, who keeps nothing of it."""
    now = timezone.now()
    lost = Assignment.objects.filter(status="leased", leased_until__lte=now).select_for_update(skip_locked=True)
    ids = list(lost.values_list("pk", flat=True)[:1000])
    return Assignment.objects.filter(pk__in=ids, status="leased").update(
        status="returned", status_since=now, reason=Assignment.LEASE_LOST
    )


def _run(sql: str) -> int:
    with connection.cursor() as cursor:
        cursor.execute(sql)
        return int(cursor.rowcount)


def _elsewhere() -> int:
    """How many answers were fetched that only another platform had."""
    fetched = 0
    for hit in HIT.objects.filter(status__in=["open", "closed"], questions__status="published").exclude(
        platform__in=["pool", "simulated"]
    ):
        try:
            answers = list(platform_of(hit.platform).collect(hit))
        except (PlatformDown, UnknownOutcome) as error:
            log.warning("Answers to HIT %s cannot be fetched: %s", hit.pk, error)
            continue
        fetched += sum(_store(hit, answer) for answer in answers)
    if fetched:
        nudge("settle")
    return fetched


@transaction.atomic
def _store(hit: HIT, answer: dict[str, Any]) -> int:
    """1 if the answer is new: a platform tells the same one many times, and an assignment may change hands."""
    handle = handle_of(hit.platform, answer["worker_id"])
    worker, _ = Worker.objects.get_or_create(handle=handle, defaults={"platform": hit.platform})
    WorkerIdentity.objects.get_or_create(worker=worker, defaults={"external_id": answer["worker_id"]})
    now = timezone.now()
    row, _ = Assignment.objects.select_for_update(of=("self",)).get_or_create(
        hit=hit, worker=worker, external_id=answer["external_id"],
        defaults={
            "status": "leased", "leased_until": now + lease_time(), "accepted_at": answer.get("accepted_at", now),
        },
    )  # fmt: skip
    if row.status not in ("leased", "returned"):
        return 0
    sent = answer.get("submitted_at", now)
    row.move("submitted", raw=answer["raw"], submitted_at=sent, seconds=(sent - row.accepted_at).total_seconds())
    return 1
