"""Where a worker is in today's set of questions, and what they earned: what was sent counts at
once.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal

from django.db.models import QuerySet

from annotation.hits.lease import open_to
from annotation.models import ANSWERED, Assignment, Worker
from kbpo import clock
from kbpo.prepared import Prepared

TODAY = Prepared("""
    SELECT count(*), coalesce(sum(h.reward + a.extra), 0.00)
    FROM annotation_assignment a JOIN annotation_hit h ON h.id = a.hit_id
    WHERE a.worker_id = %(worker)s AND a.submitted_at >= %(since)s AND a.status = ANY(%(answered)s)
""")
LENGTH = 20  # questions that make a set: progress that one can see the end of


@dataclass(frozen=True)
class TodaysSet:
    """The top line of a judging page."""

    number: int
    of: int
    earned: Decimal


def todays_set(worker: Worker, holding: bool) -> TodaysSet:
    """Return where a worker is in today's set, and what they earned today; `holding` says that they
    have a question now.
    """
    [(done, earned)] = TODAY.rows(worker=worker.pk, since=midnight(), answered=list(ANSWERED))
    number = done + 1
    return TodaysSet(number, _goal(worker, number, holding), earned)


def _goal(worker: Worker, number: int, holding: bool) -> int:
    """Return how many answers the set goes up to in which the answer of that number is. It is fixed
    with the first question of the set: what others do meanwhile does not move it.
    """
    day = midnight().date()
    if worker.goal_day == day and number <= worker.goal:
        return worker.goal
    set_end = -(-number // LENGTH) * LENGTH
    left = (
        number
        - 1
        + int(holding)
        + open_to(worker, LENGTH, [worker.wants] if worker.wants else None)
    )
    goal = max(number, min(set_end, left))
    if holding:
        worker.goal, worker.goal_day = goal, day
        worker.save(update_fields=["goal", "goal_day"])
    return goal


def answered(worker: Worker) -> QuerySet[Assignment]:
    """Return the assignments that a worker answered."""
    return Assignment.objects.filter(worker=worker, status__in=ANSWERED)


def midnight() -> datetime:
    """Return the beginning of the day, UTC."""
    return clock.now().replace(hour=0, minute=0, second=0, microsecond=0)
