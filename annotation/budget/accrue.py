"""Step 9, the money: an answer's price is spent out of its payer's reservation, and its worker is
owed it, once.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from datetime import timedelta
from decimal import Decimal

from django.db.models import Sum

from annotation.models import HIT, Assignment, Payment, Question
from annotation.platforms.registry import platform_of
from kbpo import clock
from kbpo.money.spend import ZERO, Bill, spend_all
from kbpo.tracks.models import Track

PATIENCE = timedelta(minutes=10)


def approve(assignments: Sequence[Assignment]) -> None:
    """Spends the answers' prices and notes what their workers are owed. The caller holds the
    assignments' locks.
    """
    Assignment.objects.filter(pk__in=[one.pk for one in owe(assignments)]).move("approved")


def owe(assignments: Sequence[Assignment]) -> list[Assignment]:
    """The answers for which the money was there; their workers are owed the reward then. For the
    others it is waited: the work was done and will be paid, never for ever in vain. Tracks are
    locked in the order of their numbers.
    """
    hits = HIT.objects.in_bulk({one.hit_id for one in assignments})
    questions = _questions(hits)
    by_track: dict[int, list[Assignment]] = defaultdict(list)
    for one in assignments:
        by_track[hits[one.hit_id].track_id].append(one)
    tracks = Track.objects.in_bulk(by_track)
    owed: list[Assignment] = []
    for track, some in sorted(by_track.items()):
        groups = [_bills(one, hits[one.hit_id], questions[one.hit_id]) for one in some]
        for one, refusal in zip(some, spend_all(tracks[track], groups), strict=True):
            if refusal:
                _wait(one, refusal)
            else:
                owed.append(one)
    known = set(Payment.objects.filter(assignment__in=owed).values_list("assignment", flat=True))
    Payment.objects.bulk_create(
        _payment(one, hits[one.hit_id]) for one in owed if one.pk not in known
    )
    return owed


def _payment(assignment: Assignment, hit: HIT) -> Payment:
    """What a worker is owed, and where: at the endpoint where they worked, never at another."""
    return Payment(
        status="owed",
        assignment=assignment,
        worker_id=assignment.worker_id,
        amount=hit.reward,
        endpoint=hit.endpoint,
    )


def _questions(hits: dict[int, HIT]) -> dict[int, list[Question]]:
    """HIT -> its questions, which say who pays."""
    found: dict[int, list[Question]] = defaultdict(list)
    pairs = (
        HIT.questions.through.objects.filter(hit__in=hits)
        .select_related("question")
        .order_by("question")
    )
    for pair in pairs:
        found[pair.hit_id].append(pair.question)
    return found


def _bills(assignment: Assignment, hit: HIT, questions: Sequence[Question]) -> list[Bill]:
    """One movement for each question of an assignment; most have one."""
    key = f"assignment:{assignment.pk}"
    return [
        Bill(
            question.payer,
            amount,
            key if len(questions) == 1 else f"{key}/{question.pk}",
            str(question),
        )
        for question, amount in zip(questions, _shares(hit, questions), strict=True)
    ]


def _shares(hit: HIT, questions: Sequence[Question]) -> list[Decimal]:
    """What an answer to a HIT costs, question by question. A price has the fee of its question
    alone, rounded up; of several together a marketplace takes less: one fee of their sum, which the
    first of them bear.
    """
    platform = platform_of(hit.platform)
    if platform.local:
        return [question.price for question in questions]
    left, shares = platform.fee(hit.reward), []
    for question in questions:
        share = min(left, question.price - question.reward)
        left -= share
        shares.append(question.reward + share)
    return shares


def _wait(assignment: Assignment, refusal: str) -> None:
    assignment.attempts = 0
    assignment.reason = f"Not enough is reserved: {refusal}"
    assignment.next_try_at = clock.now() + PATIENCE
    assignment.save(update_fields=["attempts", "reason", "next_try_at"])


def total_owed() -> Decimal:
    """What is owed to annotators and not yet paid."""
    owed: Decimal | None = Payment.objects.filter(status="owed").aggregate(sum=Sum("amount"))["sum"]
    return owed or ZERO
