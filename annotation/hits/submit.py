"""Step 7: stores a raw answer, once; a repeat gets the same outcome."""

from __future__ import annotations

import json
from collections.abc import Iterable
from datetime import datetime
from decimal import Decimal
from enum import Enum
from typing import Any

from django.db import transaction

from annotation.budget.accrue import extras_of, pay_late
from annotation.hits.held import OF_A_TEAM, has_stake
from annotation.hits.lease import give_back, is_free
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
    """Store an answer and return the outcome. Raises BadAnswer, with a sentence for the worker, for
    an answer that cannot be used. Callers that have the questions pass them.

    A lease that ran out is revived if its place is still free, so that no work is lost by a slow
    connection. An answer of a worker who has joined a team with a run on the track is not taken;
    the question is offered to others. No step is triggered here, since the next tick settles many
    answers together at a fraction of the cost.
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
        return _store_late(_reload(assignment), raw, extra, now)
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
    """Return whether a returned assignment may take its place again."""
    row = _reload(assignment)
    return is_free(row.hit, row)


def _reload(assignment: Assignment) -> Assignment:
    """Return the assignment as it is stored now."""
    return Assignment.objects.select_related("hit__track").get(pk=assignment.pk)


def _store_late(row: Assignment, raw: dict[str, Any], extra: Decimal, now: datetime) -> Outcome:
    """Store a late answer, pay it if the track has money, and return the outcome. Its worker is not
    asked again.
    """
    if not pay_late(row, extra):
        return Outcome.LOST
    row.raw, row.draft, row.submitted_at, row.extra = raw, None, now, extra
    row.seconds = (now - row.accepted_at).total_seconds()
    row.returned_by = Assignment.ReturnedBy.WORKER
    row.save(update_fields=["raw", "draft", "submitted_at", "extra", "seconds", "returned_by"])
    return Outcome.LATE
