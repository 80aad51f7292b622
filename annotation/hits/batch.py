"""Reads batches (the questions of one payer), and stops one."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime, timedelta
from decimal import Decimal
from typing import Any

from django.db import connection, transaction
from django.db.models import Count, Max, Min, QuerySet, Sum

from annotation.budget.promises import lock_payer
from annotation.models import ANSWERABLE, ANSWERED, Assignment, Halt, Question
from kbpo import clock
from kbpo.accounts.audit import write_audit_entry
from kbpo.accounts.models import User
from kbpo.money.models import Purpose
from kbpo.money.spend import NOTHING, balances
from kbpo.queue import wake_step
from kbpo.submissions.models import Submission
from kbpo.tracks.models import Track

SUMS = """
    SELECT q.payer_kind, q.payer_number, q.track_id, count(*) FILTER (WHERE q.status = 'waiting'),
           count(*) FILTER (WHERE q.status = 'published'),
               count(*) FILTER (WHERE q.status = 'answered'),
           count(*) FILTER (WHERE q.status = 'settled'),
               count(*) FILTER (WHERE q.status = 'unanswered'),
           coalesce(sum(q.answers_wanted) FILTER (WHERE q.status <> 'cancelled'), 0),
               max(q.status_since)
    FROM annotation_question q
    WHERE q.status <> 'gold' AND q.payer_kind <> 'gold' AND (%(kind)s IS NULL
        OR q.payer_kind = %(kind)s AND q.payer_number = %(number)s)
    GROUP BY q.payer_kind, q.payer_number, q.track_id
    HAVING %(kind)s IS NOT NULL OR count(*) FILTER (WHERE q.status IN ('waiting', 'published',
        'answered')) > 0
    ORDER BY max(q.id) DESC LIMIT %(limit)s
"""
ANSWERS = """
    SELECT q.payer_kind, q.payer_number, count(*) FROM annotation_assignment a
    JOIN annotation_hit_questions hq ON hq.hit_id = a.hit_id JOIN annotation_question q
        ON q.id = hq.question_id
    JOIN unnest(%s::text[], %s::bigint[]) AS payer(kind, number)
        ON payer.kind = q.payer_kind AND payer.number = q.payer_number
    WHERE a.status IN ('submitted', 'accepted', 'approved', 'paid')
        GROUP BY q.payer_kind, q.payer_number
"""
WINDOW = timedelta(hours=1)  # answers that the rate is computed from
BASE = timedelta(minutes=1)
"""Minimal period of answers from which a rate is computed"""
IDLE, GAPS = timedelta(minutes=2), 5
"""A rate is no longer shown after this time without an answer, and after so many usual intervals
between answers
"""


class CannotChange(ValueError):
    """Raised for a batch that cannot be stopped; the text is a sentence for the admin."""


@dataclass(frozen=True, kw_only=True)
class QuestionCounts:
    """The number of questions in each status, and the number of their answers."""

    waiting: int
    published: int
    answered: int
    settled: int
    unanswered: int
    answers: int
    answers_wanted: int

    @property
    def n_questions(self) -> int:
        return self.waiting + self.published + self.answered + self.settled + self.unanswered

    @property
    def n_finished(self) -> int:
        return self.settled + self.unanswered

    @property
    def open(self) -> int:
        """Return the number of questions that are pending or published."""
        return self.waiting + self.published


@dataclass(frozen=True, kw_only=True)
class Batch(QuestionCounts):
    """The questions of one payer, its money, and its current stop."""

    payer: Purpose
    name: str
    track: Track
    moved_at: datetime
    spent: Decimal
    left: Decimal
    halt: Halt | None


@dataclass(frozen=True, kw_only=True)
class Progress(QuestionCounts):
    """The questions of a payer or a track, and the rate of answers. `seconds_left` is None while
    the rate is unknown.
    """

    reasons: dict[str, int]
    first_answer_at: datetime | None
    last_answer_at: datetime | None
    answers_per_hour: float
    seconds_left: float | None


def unfinished_batches(limit: int = 20) -> list[Batch]:
    """Return the batches with unfinished questions, newest first."""
    return _read_batches(None, limit)


def load_batch(payer: Purpose) -> Batch | None:
    """Return the batch of a payer (all questions that it pays for); None if nothing was ever asked
    for it.
    """
    return next(iter(_read_batches(payer, 1)), None)


def _read_batches(payer: Purpose | None, limit: int) -> list[Batch]:
    kind, number = payer or (None, None)
    with connection.cursor() as cursor:
        cursor.execute(SUMS, {"kind": kind, "number": number, "limit": limit})
        counted = [(Purpose(*row[:2]), row[2:]) for row in cursor.fetchall()]
        payers = [payer for payer, _ in counted]
        cursor.execute(ANSWERS, [[one.kind for one in payers], [one.number for one in payers]])
        answers = {Purpose(kind, number): n for kind, number, n in cursor.fetchall()}
    tracks = Track.objects.in_bulk({counts[0] for _, counts in counted})
    current = Halt.objects.filter(lifted_at=None, payer_kind__isnull=False)
    halts = {halt.payer: halt for halt in current.select_related("who")}
    names, money = batch_names(payers), balances(payers)
    made = []
    for payer, counts in counted:
        track, waiting, published, answered, settled, unanswered, wanted, moved_at = counts
        sums = money.get(payer, NOTHING)
        made.append(
            Batch(
                payer=payer,
                name=names[payer],
                track=tracks[track],
                waiting=waiting,
                published=published,
                answered=answered,
                settled=settled,
                unanswered=unanswered,
                answers=answers.get(payer, 0),
                answers_wanted=wanted,
                moved_at=moved_at,
                spent=sums.spent,
                left=sums.open,
                halt=halts.get(payer),
            )
        )
    return made


def batch_names(payers: Collection[Purpose]) -> dict[Purpose, str]:
    """Return payer -> the name that pages show for it: team and run, or else kind and number."""
    numbers = [payer.number for payer in payers if payer.kind == "submission"]
    submissions = Submission.objects.filter(pk__in=numbers).select_related("team")
    names = {payer: f"{payer.kind.capitalize()} {payer.number}" for payer in payers}
    return names | {row.purpose: f"{row.team.name} {row.name}" for row in submissions}


@transaction.atomic
def stop_batch(payer: Purpose, who: User, why: str) -> int:
    """End all open questions of a batch, and return their number. Questions with answers are
    settled with these; the others get a label for nonresponse. Leased questions may still be
    answered, and are paid.
    """
    if not why.strip():
        raise CannotChange("Say why; the owner of the batch reads it.")
    first = (
        Question.objects.filter(**payer.filter_condition("payer")).select_related("track").first()
    )
    if first is None:
        raise CannotChange("There is no such batch.")
    lock_payer(payer)
    live = Question.objects.select_for_update(of=("self",)).filter(
        status__in=ANSWERABLE, **payer.filter_condition("payer")
    )
    questions = list(live.order_by("pk"))
    for question in questions:
        question.move("unanswered", f"Stopped: {why.strip()}", ended_by=Question.EndedBy.STOP)
    Halt.objects.filter(lifted_at=None, **payer.filter_condition("payer")).update(
        lifted_at=clock.now(), lifted_by=who
    )
    after = f"{len(questions)} questions ended"
    write_audit_entry("stop", payer, who=who, why=why, after=after, track=first.track.slug)
    wake_step("settle")
    return len(questions)


def questions_progress(*, payer: Purpose | None = None, track: Track | None = None) -> Progress:
    """Return the counts, the reasons for pending questions and the rate, e.g.
    ``questions_progress(payer=submission.purpose)``.
    """
    questions = Question.objects.filter(**_questions_filter(track, payer, "")).filter(gold=None)
    counts = dict(questions.values_list("status").annotate(Count("pk")).order_by())
    sent = _answered_assignments(track, payer)
    times = sent.aggregate(n=Count("pk"), first=Min("submitted_at"), last=Max("submitted_at"))
    wanted = questions.exclude(status="cancelled").aggregate(sum=Sum("answers_wanted"))["sum"] or 0
    rate = _answers_per_hour(sent)
    live = questions.filter(status__in=ANSWERABLE)
    live_wanted = live.aggregate(sum=Sum("answers_wanted"))["sum"] or 0
    live_answers = Assignment.objects.filter(hit__questions__in=live, status__in=ANSWERED).count()
    left = max(0, live_wanted - live_answers)
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
    return _answers_per_hour(_answered_assignments(track, None))


def last_answer_time(track: Track) -> datetime | None:
    """Return the time of the last answer on a track; None without one in the last hour."""
    recent = _answered_assignments(track, None).filter(submitted_at__gte=clock.now() - WINDOW)
    last: datetime | None = recent.aggregate(last=Max("submitted_at"))["last"]
    return last


def is_idle(first: datetime, last: datetime, n: int) -> bool:
    """Return whether work has stopped, given the number of answers between a first and a
    last time.
    """
    return clock.now() - last > max(IDLE, GAPS * (last - first) / max(1, n - 1))


def _answered_assignments(track: Track | None, payer: Purpose | None) -> QuerySet[Assignment]:
    """Return the assignments with answers to real questions, without gold questions (questions with
    a known answer).
    """
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
        where |= payer.filter_condition(f"{prefix}payer")
    return where


def _answers_per_hour(answered: QuerySet[Assignment]) -> float:
    """Return the answers per hour over the last hour, or since the first answer if that is later; 0
    with too few answers, or if work has stopped.
    """
    now = clock.now()
    recent = answered.filter(submitted_at__gte=now - WINDOW).aggregate(
        n=Count("pk"), first=Min("submitted_at"), last=Max("submitted_at")
    )
    n, first = recent["n"], recent["first"]
    if n < 2 or now - first < BASE or is_idle(first, recent["last"], n):
        return 0.0
    return float(3600 * n / (now - first).total_seconds())
