"""Step 7: stores a raw answer once; a repeated call returns the same outcome."""

from __future__ import annotations

import json
from collections.abc import Iterable
from enum import Enum
from typing import Any

from django.db import transaction

from annotation.budget.accrue import record_late_pay, total_extra_pay
from annotation.hits.held import OF_A_TEAM, has_conflict_of_interest
from annotation.hits.lease import is_place_free, return_to_queue
from annotation.interfaces.registry import interface_by_name
from annotation.models import ANSWERED, Assignment, Question
from kbpo import clock
from kbpo.prepared import Prepared

LOCK = Prepared(f"""
    SELECT a.status, a.returned_by, a.raw IS NOT NULL, a.accepted_at, {OF_A_TEAM}
    FROM annotation_assignment a JOIN annotation_hit h ON h.id = a.hit_id
    JOIN annotation_worker w ON w.id = a.worker_id
    WHERE a.id = %(assignment)s FOR UPDATE OF a, h
""")
"""Locks the rows in this order."""
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
"""Stores an answer and closes its HIT if all places now have answers. Both rows are locked, so that
no other transaction can take or fill a place meanwhile."""


class Outcome(Enum):
    STORED = "stored"
    ALREADY = "already"  # sent twice; the first one counts
    LATE = "late"  # the lease ran out, and its place is not free any more: paid, and never used
    LOST = "lost"  # not kept, and not paid: it was given back, or stopped at and taken by somebody
    # else, its worker's team has a stake in it, or it was late and the track has no money


@transaction.atomic
def submit_answer(
    assignment: Assignment, raw: dict[str, Any], questions: Iterable[Question] = ()
) -> Outcome:
    """Store an answer and return the outcome. Raises BadAnswer, with a sentence for the worker, for
    an answer that cannot be used. Callers that have the questions pass them.

    An expired lease is revived if its place is still free, so that no work is lost by a slow
    connection. An answer of a worker who has joined a team with a run on the track is refused; the
    question is offered to others. No step is triggered here, since the next tick settles many
    answers together at a fraction of the cost.
    """
    [(status, returned_by, was_sent, accepted_at, in_team)] = LOCK.fetch_all(
        assignment=assignment.pk
    )
    if status not in ("leased", "returned"):
        return Outcome.ALREADY
    if status == "returned" and was_sent:
        return Outcome.LATE
    if in_team and has_conflict_of_interest(assignment.worker_id, assignment.hit_id):
        return_to_queue(assignment)
        return Outcome.LOST
    late: Assignment | None = None
    if status == "returned":
        row = Assignment.objects.select_related("hit__track").get(pk=assignment.pk)
        late = None if is_place_free(row.hit, row) else row
    if late is not None and returned_by != Assignment.ReturnedBy.LEASE:
        return Outcome.LOST
    extra = total_extra_pay(
        (question, interface_by_name(question.interface).parse(question, raw))
        for question in questions or assignment.hit.questions.all()
    )
    now = clock.now()
    seconds = (now - accepted_at).total_seconds()
    if late is not None:
        if not record_late_pay(late, extra):
            return Outcome.LOST
        Assignment.objects.filter(pk=late.pk).update(
            raw=raw,
            draft=None,
            submitted_at=now,
            extra=extra,
            seconds=seconds,
            returned_by=Assignment.ReturnedBy.WORKER,  # they are not asked again
        )
        return Outcome.LATE
    STORE.execute(
        assignment=assignment.pk,
        raw=json.dumps(raw),
        extra=extra,
        seconds=seconds,
        now=now,
        answered=list(ANSWERED),
    )
    return Outcome.STORED
