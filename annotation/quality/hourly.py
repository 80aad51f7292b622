"""Computes hourly rates: as planned, and at the measured pace."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from statistics import median

from annotation.interfaces.registry import interface_of, names
from annotation.models import ANSWERED, Assignment, Worker
from annotation.quality.signals import TOO_FAST
from kbpo.tracks.models import Track

LATEST = 2000
"""Number of latest answers that are measured"""
FEWEST = 5
"""Least number of answers for a pace"""
FLOOR, ADVICE = Decimal("8"), Decimal("12")
"""Dollars an hour: the minimum and the recommendation of Prolific"""
HOUR = 3600
CENT = Decimal("0.01")


@dataclass(frozen=True)
class Answer:
    """The interface, expected seconds, reward and duration of an answer."""

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
    def holds(self) -> Decimal:
        """The measured rate, or else the planned one."""
        return self.planned if self.measured is None else self.measured

    @property
    def below_floor(self) -> bool:
        return self.holds < FLOOR

    @property
    def below_advice(self) -> bool:
        return self.holds < ADVICE


def hourly_rates(*, worker: Worker | None = None, track: Track | None = None) -> dict[str, Hourly]:
    """Return interface -> hourly rate by the latest answers, of one worker or of all, on one track
    or on all.
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
        name: _rate(name, [answer for answer in answers.values() if answer.interface == name])
        for name in names()
    }


def _rate(interface: str, answers: Sequence[Answer]) -> Hourly:
    kind = interface_of(interface)
    planned = [answer.reward * HOUR / answer.expected for answer in answers if answer.expected]
    usual = kind.terms.reward * HOUR / kind.terms.seconds
    read = [
        one for one in answers if one.seconds >= TOO_FAST * one.expected
    ]  # programs are no pace
    measured = [float(one.reward) * HOUR / one.seconds for one in read]
    return Hourly(
        interface,
        (median(planned) if planned else usual).quantize(CENT),
        Decimal(median(measured)).quantize(CENT) if len(read) >= FEWEST else None,
        len(read),
    )
