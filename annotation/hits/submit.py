"""Step 7: an answer arrives. It is stored raw, once; whoever sends it again gets the same
outcome.
"""

from __future__ import annotations

from datetime import datetime
from decimal import Decimal
from enum import Enum
from typing import Any

from django.db import transaction

from annotation.budget.extra import extras_of
from annotation.budget.late import pay_late
from annotation.hits.lease import give_back, is_free
from annotation.hits.stake import has_stake, in_team
from annotation.interfaces.registry import interface_of
from annotation.models import ANSWERED, Assignment
from kbpo import clock


class Outcome(Enum):
    STORED = "stored"
    ALREADY = "already"  # sent twice; the first one counts
    LATE = "late"  # the lease ran out, and its place is not free any more: paid, and never used
    LOST = "lost"  # the same, and nothing is paid: it was given back, its worker's team has a stake
    # in it, or the track has no money


@transaction.atomic
def submit(assignment: Assignment, raw: dict[str, Any]) -> Outcome:
    """What became of an answer. Raises BadAnswer, with a sentence for the worker, for one that
    cannot be used.

    A lease that ran out is revived if its place is still free: nobody's work is lost for a slow
    minute. Whoever has joined a team meanwhile that pays for the question or predicts what it asks
    does not judge it: it goes back to be asked of others. Nobody is nudged: the next tick settles
    what came since the last one together, which costs a fraction of settling answer by answer.
    """
    row = (
        Assignment.objects.select_for_update(of=("self", "hit"))  # locked in this order
        .select_related("hit__track")
        .annotate(in_team=in_team())
        .get(pk=assignment.pk)
    )
    if row.status not in ("leased", "returned"):
        return Outcome.ALREADY
    hit = row.hit
    if row.in_team and has_stake(row.worker_id, hit.pk):
        give_back(row)
        return Outcome.LOST
    lost = row.status == "returned" and not is_free(hit, row)
    if lost and row.returned_by != Assignment.ReturnedBy.LEASE:
        return Outcome.LOST
    extra = extras_of(
        (question, interface_of(question.interface).parse(question, raw))
        for question in assignment.hit.questions.all()
    )
    now = clock.now()
    if lost:
        return _late(row, raw, extra, now)
    row.move(
        "submitted",
        raw=raw,
        draft=None,
        submitted_at=now,
        extra=extra,
        seconds=(now - row.accepted_at).total_seconds(),
    )
    if hit.assignments.filter(status__in=ANSWERED).count() >= hit.max_assignments:
        hit.move("closed")
    return Outcome.STORED


def _late(row: Assignment, raw: dict[str, Any], extra: Decimal, now: datetime) -> Outcome:
    """What became of an answer to a question that others have by now. It is kept where it is, so
    that an admin can read what was paid for, and its worker is not asked again.
    """
    if not pay_late(row, extra):
        return Outcome.LOST
    row.raw, row.draft, row.submitted_at, row.extra = raw, None, now, extra
    row.seconds = (now - row.accepted_at).total_seconds()
    row.returned_by = Assignment.ReturnedBy.WORKER
    row.save(update_fields=["raw", "draft", "submitted_at", "extra", "seconds", "returned_by"])
    return Outcome.LATE
