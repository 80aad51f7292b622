"""Counts the questions of a payer or a track by status, and measures how fast people answer."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from django.db.models import Count, Max, Min, QuerySet, Sum

from annotation.models import ANSWERED, Assignment, Question
from kbpo import clock
from kbpo.money.purpose import Purpose
from kbpo.tracks.models import Track

WINDOW = timedelta(hours=1)  # of answers, from which the rate is told
BASE = timedelta(minutes=1)
"""Least period of answers for a pace"""
IDLE, GAPS = timedelta(minutes=2), 5
"""A pace holds no longer once nobody answered for so long, and for so many of its usual gaps"""


@dataclass(frozen=True)
class Progress:
    """The questions of a payer or a track by status. `seconds_left` is None while no rate
    is known.
    """

    waiting: int
    published: int
    answered: int
    settled: int
    unanswered: int
    answers: int
    answers_wanted: int
    reasons: dict[str, int]
    first_answer_at: datetime | None
    last_answer_at: datetime | None
    answers_per_hour: float
    seconds_left: float | None

    @property
    def asked(self) -> int:
        return self.waiting + self.published + self.answered + self.settled + self.unanswered

    @property
    def done(self) -> int:
        return self.settled + self.unanswered


def questions_progress(*, payer: Purpose | None = None, track: Track | None = None) -> Progress:
    """Return the counts, the reasons for waiting and the rate, e.g.
    ``questions_progress(payer=submission.purpose)``.
    """
    questions = Question.objects.filter(**_questions_filter(track, payer, "")).filter(gold=None)
    counts = dict(questions.values_list("status").annotate(Count("pk")).order_by())
    sent = _answers(track, payer)
    times = sent.aggregate(n=Count("pk"), first=Min("submitted_at"), last=Max("submitted_at"))
    wanted = questions.exclude(status="cancelled").aggregate(sum=Sum("answers_wanted"))["sum"] or 0
    rate = _rate(sent)
    left = _answers_left(questions)
    waiting = questions.filter(status="waiting").exclude(reason="")
    return Progress(
        waiting=counts.get("waiting", 0),
        published=counts.get("published", 0),
        answered=counts.get("answered", 0),
        settled=counts.get("settled", 0),
        unanswered=counts.get("unanswered", 0),
        answers=times["n"],
        answers_wanted=wanted,
        reasons=dict(waiting.values_list("reason").annotate(Count("pk")).order_by()),
        first_answer_at=times["first"],
        last_answer_at=times["last"],
        answers_per_hour=rate,
        seconds_left=3600 * left / rate if rate else (0.0 if not left else None),
    )


def answers_per_hour(track: Track) -> float:
    """Return the rate of answers on a track, from the last hour."""
    return _rate(_answers(track, None))


def last_answer(track: Track) -> datetime | None:
    """Return the time of the last answer on a track; None without one in the last hour."""
    recent = _answers(track, None).filter(submitted_at__gte=clock.now() - WINDOW)
    last: datetime | None = recent.aggregate(last=Max("submitted_at"))["last"]
    return last


def is_idle(first: datetime, last: datetime, n: int) -> bool:
    """Return whether nobody works any more, given the number of things done in a time."""
    return clock.now() - last > max(IDLE, GAPS * (last - first) / max(1, n - 1))


def _answers(track: Track | None, payer: Purpose | None) -> QuerySet[Assignment]:
    """Return the assignments with answers to questions, without gold."""
    return Assignment.objects.filter(
        status__in=ANSWERED,
        hit__questions__gold=None,
        **_questions_filter(track, payer, "hit__questions__"),
    )


def _questions_filter(track: Track | None, payer: Purpose | None, prefix: str) -> dict[str, Any]:
    where: dict[str, Any] = {}
    if track is not None:
        where[f"{prefix}track"] = track
    if payer:
        where |= payer.at(f"{prefix}payer")
    return where


def _rate(sent: QuerySet[Assignment]) -> float:
    """Return answers an hour in the last hour, or since the first answer if that is later; 0 with
    too few answers, or if nobody works any more.
    """
    now = clock.now()
    recent = sent.filter(submitted_at__gte=now - WINDOW).aggregate(
        n=Count("pk"), first=Min("submitted_at"), last=Max("submitted_at")
    )
    n, first = recent["n"], recent["first"]
    if n < 2 or now - first < BASE or is_idle(first, recent["last"], n):
        return 0.0
    return float(3600 * n / (now - first).total_seconds())


def _answers_left(questions: QuerySet[Question]) -> int:
    live = questions.filter(status__in=["waiting", "published"])
    wanted = live.aggregate(sum=Sum("answers_wanted"))["sum"] or 0
    answered = Assignment.objects.filter(hit__questions__in=live, status__in=ANSWERED).count()
    return max(0, wanted - answered)
