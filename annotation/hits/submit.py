"""Step 7: an answer arrives. It is stored raw, once; whoever sends it again gets the same
outcome.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from datetime import datetime
from decimal import Decimal
from enum import Enum
from typing import Any

from django.db import transaction

from annotation.budget.extra import extras_of
from annotation.budget.late import pay_late
from annotation.hits.held import OF_A_TEAM
from annotation.hits.lease import give_back, is_free
from annotation.hits.stake import has_stake
from annotation.interfaces.registry import interface_of
from annotation.models import ANSWERED, Assignment, Question
from kbpo import clock
from kbpo.prepared import Prepared

LOCK = Prepared(f"""
    SELECT a.status, a.returned_by, a.raw IS NOT NULL, a.accepted_at, {OF_A_TEAM}
    FROM annotation_assignment a JOIN annotation_hit h ON h.id = a.hit_id
    JOIN annotation_worker w ON w.id = a.worker_id
    WHERE a.id = %(assignment)s FOR UPDATE OF a, h
""")
"""Locked in this order."""
STORE = Prepared("""
    WITH sent AS (
        UPDATE annotation_assignment
        SET status = 'submitted', status_since = %(now)s, next_try_at = %(now)s, attempts = 0,
            reason = '', raw = %(raw)s::jsonb, draft = NULL, submitted_at = %(now)s,
            extra = %(extra)s, seconds = %(seconds)s
        WHERE id = %(assignment)s RETURNING id, hit_id)
    UPDATE annotation_hit h
    SET status = 'closed', status_since = %(now)s, next_try_at = %(now)s, attempts = 0, reason = ''
    FROM sent
    WHERE h.id = sent.hit_id AND h.max_assignments <= 1 + (
        SELECT count(*) FROM annotation_assignment o
        WHERE o.hit_id = h.id AND o.id <> sent.id AND o.status = ANY(%(answered)s))
""")
"""An answer, and its HIT closed where its places have answers now: both are locked, so that nobody
else can take or fill one meanwhile."""


class Outcome(Enum):
    STORED = "stored"
    ALREADY = "already"  # sent twice; the first one counts
    LATE = "late"  # the lease ran out, and its place is not free any more: paid, and never used
    LOST = "lost"  # not kept, and not paid: it was given back, or stopped at and taken by somebody
    # else, its worker's team has a stake in it, or it was late and the track has no money


@transaction.atomic
def submit(
    assignment: Assignment, raw: dict[str, Any], questions: Iterable[Question] = ()
) -> Outcome:
    """Return what became of an answer. Raises BadAnswer, with a sentence for the worker, for one
    that cannot be used. Who has its questions already passes them.

    A lease that ran out is revived if its place is still free: nobody's work is lost for a slow
    minute. Whoever has joined a team meanwhile that pays for the question or predicts what it asks
    does not judge it: it goes back to be asked of others. Nobody is nudged: the next tick settles
    what came since the last one together, which costs a fraction of settling answer by answer.
    """
    [(status, returned_by, was_sent, accepted_at, in_team)] = LOCK.rows(assignment=assignment.pk)
    if status not in ("leased", "returned"):
        return Outcome.ALREADY
    if status == "returned" and was_sent:
        return Outcome.LATE
    if in_team and has_stake(assignment.worker_id, assignment.hit_id):
        give_back(assignment)
        return Outcome.LOST
    lost = status == "returned" and not _has_place(assignment)
    if lost and returned_by != Assignment.ReturnedBy.LEASE:
        return Outcome.LOST
    extra = extras_of(
        (question, interface_of(question.interface).parse(question, raw))
        for question in questions or assignment.hit.questions.all()
    )
    now = clock.now()
    if lost:
        return _late(_reloaded(assignment), raw, extra, now)
    STORE.run(
        assignment=assignment.pk,
        raw=json.dumps(raw),
        extra=extra,
        seconds=(now - accepted_at).total_seconds(),
        now=now,
        answered=list(ANSWERED),
    )
    return Outcome.STORED


def _has_place(assignment: Assignment) -> bool:
    """Return whether an assignment that came back may take its place again."""
    row = _reloaded(assignment)
    return is_free(row.hit, row)


def _reloaded(assignment: Assignment) -> Assignment:
    """Return the assignment as it is stored now."""
    return Assignment.objects.select_related("hit__track").get(pk=assignment.pk)


def _late(row: Assignment, raw: dict[str, Any], extra: Decimal, now: datetime) -> Outcome:
    """Return what became of an answer to a question that others have by now. It is kept where it
    is, so that an admin can read what was paid for, and its worker is not asked again.
    """
    if not pay_late(row, extra):
        return Outcome.LOST
    row.raw, row.draft, row.submitted_at, row.extra = raw, None, now, extra
    row.seconds = (now - row.accepted_at).total_seconds()
    row.returned_by = Assignment.ReturnedBy.WORKER
    row.save(update_fields=["raw", "draft", "submitted_at", "extra", "seconds", "returned_by"])
    return Outcome.LATE
