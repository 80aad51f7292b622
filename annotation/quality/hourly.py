"""Computes planned and measured hourly rates, and the usual time of an answer."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from statistics import median

from django.core.cache import cache

from annotation.interfaces.registry import interface_by_name, interface_names
from annotation.models import ANSWERED, Assignment, Worker
from annotation.quality.signals import TOO_FAST
from kbpo.corpus.sql import fetch_rows
from kbpo.tracks.models import Track
from kbpo.tracks.registry import kind_of

LATEST = 2000
"""Number of latest answers that are measured"""
FEWEST_FOR_RATE, FEWEST_FOR_PACE = 5, 20
"""Least number of answers for a measured rate, and for a pace"""
KEPT_SECONDS = 60
"""Seconds for which a pace is cached"""
FLOOR, ADVICE = Decimal("8"), Decimal("12")
"""Dollars an hour: the minimum and the recommendation of Prolific"""
HOUR = 3600
CENT = Decimal("0.01")
MEASURE = """
    WITH latest AS MATERIALIZED (
        SELECT a.hit_id, a.seconds FROM annotation_assignment a
        JOIN annotation_hit h ON h.id = a.hit_id
        WHERE h.track_id = %s AND a.status = ANY(%s) ORDER BY a.id DESC LIMIT %s)
    SELECT percentile_cont(0.5) WITHIN GROUP (ORDER BY latest.seconds / page.questions), count(*),
        coalesce(bool_or(page.questions > 1), false)
    FROM latest CROSS JOIN LATERAL (
        SELECT count(*) AS questions, sum(q.seconds) AS expected, min(q.interface) AS interface
        FROM annotation_hit_questions hq JOIN annotation_question q ON q.id = hq.question_id
        WHERE hq.hit_id = latest.hit_id) page
    WHERE page.interface = %s AND latest.seconds >= %s * page.expected
"""
"""Measures the median time per question, over how many answers, and whether some pages had several
questions. All questions of a page have one interface.
"""


@dataclass(frozen=True)
class Answer:
    """The interface, expected seconds, reward and measured duration of an answer."""

    interface: str
    expected: int
    reward: Decimal
    seconds: float


@dataclass(frozen=True)
class Hourly:
    """The hourly rate of one interface, in dollars. The measured rate uses the median duration;
    None with too few answers.
    """

    interface: str
    planned: Decimal
    measured: Decimal | None
    answers: int

    @property
    def rate(self) -> Decimal:
        """Return the measured rate, or else the planned one."""
        return self.planned if self.measured is None else self.measured

    @property
    def is_below_floor(self) -> bool:
        return self.rate < FLOOR

    @property
    def is_below_advice(self) -> bool:
        return self.rate < ADVICE


def hourly_rates(*, worker: Worker | None = None, track: Track | None = None) -> dict[str, Hourly]:
    """Return interface -> hourly rate over the latest answers, of one worker or of all, on one
    track or on all.
    """
    assignments = Assignment.objects.filter(status__in=ANSWERED, seconds__gt=0)
    assignments = assignments if worker is None else assignments.filter(worker=worker)
    assignments = assignments if track is None else assignments.filter(hit__track=track)
    columns = ("pk", "hit__questions__interface", "hit__questions__seconds")
    answers: dict[int, Answer] = {}
    for pk, interface, expected, reward, seconds in assignments.order_by("-pk").values_list(
        *columns, "hit__reward", "seconds"
    )[:LATEST]:
        before = answers.get(pk)
        planned = expected + (before.expected if before else 0)  # of all questions of its HIT
        answers[pk] = Answer(interface, planned, reward, seconds)
    return {
        name: _hourly_rate(
            name, [answer for answer in answers.values() if answer.interface == name]
        )
        for name in interface_names()
    }


def _hourly_rate(interface: str, answers: Sequence[Answer]) -> Hourly:
    kind = interface_by_name(interface)
    planned = [answer.reward * HOUR / answer.expected for answer in answers if answer.expected]
    usual = kind.terms.reward * HOUR / kind.terms.seconds
    # Without answers that are faster than anybody reads: they come from programs.
    measured = [
        float(one.reward) * HOUR / one.seconds
        for one in answers
        if one.seconds >= TOO_FAST * one.expected
    ]
    return Hourly(
        interface,
        (median(planned) if planned else usual).quantize(CENT),
        Decimal(median(measured)).quantize(CENT) if len(measured) >= FEWEST_FOR_RATE else None,
        len(measured),
    )


@dataclass(frozen=True)
class Pace:
    """The median time of an answer over `answers`; None with too few of them. Answers that are
    faster than anybody reads are left out.
    """

    seconds: float | None
    answers: int
    shared: bool
    """Whether some pages had several questions"""


def track_pace(track: Track) -> Pace:
    """Return the median time of an answer to the first interface of a track, cached for a
    minute.
    """
    key = f"pace.{track.pk}"
    cached: Pace | None = cache.get(key)
    if cached is not None:
        return cached
    interface = kind_of(track).asking[0].interface
    [(seconds, answers, shared)] = fetch_rows(
        MEASURE, [track.pk, list(ANSWERED), LATEST, interface, TOO_FAST]
    )
    measured = Pace(seconds if answers >= FEWEST_FOR_PACE else None, answers, shared)
    cache.set(key, measured, KEPT_SECONDS)
    return measured
