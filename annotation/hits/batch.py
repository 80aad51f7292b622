"""Reads batches (the questions of one payer), and stops one."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal

from django.db import connection, transaction

from annotation.budget.promises import lock_payer
from annotation.models import ANSWERABLE, Halt, Question
from kbpo import clock
from kbpo.accounts.audit import note
from kbpo.accounts.models import User
from kbpo.money.purpose import Purpose
from kbpo.money.spend import NOTHING, balances
from kbpo.queue import nudge
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


class CannotChange(ValueError):
    """A batch that cannot be stopped; the text is a sentence for the admin."""


@dataclass(frozen=True)
class Batch:
    """The questions of one payer by status, its money, and its current stop."""

    payer: Purpose
    name: str
    track: Track
    waiting: int
    published: int
    answered: int
    settled: int
    unanswered: int
    answers: int
    answers_wanted: int
    moved_at: datetime
    spent: Decimal
    left: Decimal
    halt: Halt | None

    @property
    def asked(self) -> int:
        return self.waiting + self.published + self.answered + self.settled + self.unanswered

    @property
    def done(self) -> int:
        return self.settled + self.unanswered

    @property
    def open(self) -> int:
        """Questions that wait or are published."""
        return self.waiting + self.published


def batches(limit: int = 20) -> list[Batch]:
    """Return the batches with unfinished questions, newest first."""
    return _read_batches(None, limit)


def batch(payer: Purpose) -> Batch | None:
    """Return the batch of a payer; None if nothing was ever asked for it."""
    return next(iter(_read_batches(payer, 1)), None)


def _read_batches(payer: Purpose | None, limit: int) -> list[Batch]:
    kind, number = payer or (None, None)
    with connection.cursor() as cursor:
        cursor.execute(SUMS, {"kind": kind, "number": number, "limit": limit})
        counted = [(Purpose(*row[:2]), row[2:]) for row in cursor.fetchall()]
        payers = [payer for payer, _ in counted]
        cursor.execute(
            ANSWERS,
            [
                [payer_purpose.kind for payer_purpose in payers],
                [payer_purpose.number for payer_purpose in payers],
            ],
        )
        answers = {Purpose(kind, number): n for kind, number, n in cursor.fetchall()}
    tracks = Track.objects.in_bulk({counts[0] for _, counts in counted})
    halts = {
        halt.payer: halt
        for halt in Halt.objects.filter(lifted_at=None, payer_kind__isnull=False).select_related(
            "who"
        )
    }
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
    """Return payer -> name for pages."""
    numbers = [payer.number for payer in payers if payer.kind == "submission"]
    submissions = Submission.objects.filter(pk__in=numbers).select_related("team")
    names = {payer: f"{payer.kind.capitalize()} {payer.number}" for payer in payers}
    return names | {row.purpose: f"{row.team.name} {row.name}" for row in submissions}


@transaction.atomic
def stop_batch(payer: Purpose, who: User, why: str) -> int:
    """Give up all open questions of a batch, and return their number. Questions with answers are
    settled with these; the others get a label for nonresponse. Answers in hand are taken and paid.
    """
    if not why.strip():
        raise CannotChange("Say why; the owner of the batch reads it.")
    track = _track_of_batch(payer)
    lock_payer(payer)
    live = Question.objects.select_for_update(of=("self",)).filter(
        status__in=ANSWERABLE, **payer.at("payer")
    )
    questions = list(live.order_by("pk"))
    for question in questions:
        question.move("unanswered", f"Stopped: {why.strip()}", ended_by=Question.EndedBy.STOP)
    Halt.objects.filter(lifted_at=None, **payer.at("payer")).update(
        lifted_at=clock.now(), lifted_by=who
    )
    note(
        "stop",
        payer,
        who=who,
        why=why,
        after=f"{len(questions)} questions given up",
        track=track.slug,
    )
    nudge("settle")
    return len(questions)


def _track_of_batch(payer: Purpose) -> Track:
    """Return the track of a batch. Raises CannotChange if there is no such batch."""
    row = Question.objects.filter(**payer.at("payer")).select_related("track").first()
    if row is None:
        raise CannotChange("There is no such batch.")
    return row.track
