"""Counts the answers of a worker today, and what they earned: an answer counts once it is sent."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal

from annotation.models import ANSWERED, Worker
from kbpo import clock
from kbpo.prepared import Prepared

TODAY = Prepared("""
    SELECT count(*), coalesce(sum(h.reward + a.extra), 0.00)
    FROM annotation_assignment a JOIN annotation_hit h ON h.id = a.hit_id
    WHERE a.worker_id = %(worker)s AND a.submitted_at >= %(since)s AND a.status = ANY(%(answered)s)
""")


@dataclass(frozen=True)
class AnswersToday:
    """The number of answers that a worker sent since midnight (UTC), and their pay."""

    n: int
    earned: Decimal


def answers_today(worker: Worker) -> AnswersToday:
    """Return how many answers a worker sent today, and what they earned by them."""
    midnight = clock.now().replace(hour=0, minute=0, second=0, microsecond=0)
    [(n, earned)] = TODAY.rows(worker=worker.pk, since=midnight, answered=list(ANSWERED))
    return AnswersToday(n, earned)
