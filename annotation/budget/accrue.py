"""Step 9, the money: an answer's price is spent out of its payer's reservation, and its worker is
owed it, once.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from datetime import timedelta
from decimal import Decimal
from hashlib import sha256

from django.db.models import Sum

from annotation.budget.extra import extra_of
from annotation.interfaces.registry import interface_of
from annotation.models import HIT, Assignment, Bonus, Payment, Question, Response
from annotation.platforms.registry import local_names, platform_of
from kbpo import clock
from kbpo.money.spend import ZERO, Bill, spend_all
from kbpo.tracks.models import Track

PATIENCE = timedelta(minutes=10)


def approve(assignments: Sequence[Assignment]) -> None:
    """Spends the answers' prices and notes what their workers are owed. The caller holds the
    assignments' locks.
    """
    Assignment.objects.filter(pk__in=[assignment.pk for assignment in accrue(assignments)]).move(
        "approved"
    )


def accrue(assignments: Sequence[Assignment]) -> list[Assignment]:
    """Return the answers for which the money was there; their workers are owed the reward then. For
    the others it is waited: the work was done and will be paid, never for ever in vain. Tracks are
    locked in the order of their numbers.
    """
    hits = HIT.objects.in_bulk({assignment.hit_id for assignment in assignments})
    questions = _questions(hits)
    bonuses = _bonuses(assignments, hits, questions)
    by_track: dict[int, list[Assignment]] = defaultdict(list)
    for answer in assignments:
        by_track[hits[answer.hit_id].track_id].append(answer)
    tracks = Track.objects.in_bulk(by_track)
    owed: list[Assignment] = []
    for track, of_track in sorted(by_track.items()):
        groups = [
            _bills(answer, hits[answer.hit_id], questions[answer.hit_id])
            + [_bonus_bill(bonus, question) for question, bonus in bonuses.get(answer.pk, ())]
            for answer in of_track
        ]
        for answer, refusal in zip(of_track, spend_all(tracks[track], groups), strict=True):
            if refusal:
                _wait(answer, refusal)
            else:
                owed.append(answer)
    already_owed = set(
        Payment.objects.filter(assignment__in=owed).values_list("assignment", flat=True)
    )
    Payment.objects.bulk_create(
        _payment(answer, hits[answer.hit_id]) for answer in owed if answer.pk not in already_owed
    )
    Bonus.objects.bulk_create(
        (bonus for answer in owed for _, bonus in bonuses.get(answer.pk, ())), ignore_conflicts=True
    )
    return owed


def _payment(assignment: Assignment, hit: HIT) -> Payment:
    """Return what a worker is owed, and where: at the endpoint where they worked, never at another.
    On our own pages that is all of it; elsewhere what they earned besides the reward is a bonus.
    """
    extra = assignment.extra if hit.platform in local_names() else ZERO
    return Payment(
        status="owed",
        assignment=assignment,
        worker_id=assignment.worker_id,
        amount=hit.reward + extra,
        endpoint=hit.endpoint,
    )


def _bonuses(
    assignments: Sequence[Assignment],
    hits: Mapping[int, HIT],
    questions: Mapping[int, Sequence[Question]],
) -> dict[int, list[tuple[Question, Bonus]]]:
    """Assignment -> the bonuses by which another platform pays what was earned besides its reward,
    one for each question that pays it; not yet saved. Their tokens follow from the assignment's,
    so that no repeat makes a second one.
    """
    earned = [
        assignment
        for assignment in assignments
        if assignment.extra and hits[assignment.hit_id].platform not in local_names()
    ]
    judgments: dict[tuple[int, int], list[Response]] = defaultdict(list)
    for response in Response.objects.filter(assignment__in=earned):
        judgments[response.assignment_id, response.question_id].append(response)
    bonuses: dict[int, list[tuple[Question, Bonus]]] = {}
    for answer in earned:
        hit = hits[answer.hit_id]
        for question in questions[hit.pk]:
            extra = extra_of(question, judgments[answer.pk, question.pk])
            if not extra:
                continue
            bonus = Bonus(
                status="owed",
                token=sha256(f"extra:{answer.token}:{question.pk}".encode()).hexdigest(),
                track_id=hit.track_id,
                worker_id=answer.worker_id,
                assignment=answer,
                **question.payer.at("payer"),
                amount=extra,
                fee=platform_of(hit.platform).capabilities.fee(extra),
                why=interface_of(question.interface).terms.extra_reason,
                endpoint=hit.endpoint,
            )
            bonuses.setdefault(answer.pk, []).append((question, bonus))
    return bonuses


def _bonus_bill(bonus: Bonus, question: Question) -> Bill:
    """Return what a bonus costs its payer: never more than was promised for it."""
    cost = min(bonus.amount + bonus.fee, question.extra_price)
    return Bill(question.payer, cost, bonus.token, f"{question}: {bonus.why}")


def _questions(hits: Mapping[int, HIT]) -> dict[int, list[Question]]:
    """HIT -> its questions, which say who pays."""
    questions: dict[int, list[Question]] = defaultdict(list)
    pairs = (
        HIT.questions.through.objects.filter(hit__in=hits)
        .select_related("question")
        .order_by("question")
    )
    for pair in pairs:
        questions[pair.hit_id].append(pair.question)
    return questions


def _bills(assignment: Assignment, hit: HIT, questions: Sequence[Question]) -> list[Bill]:
    """One movement for each question of an assignment; most have one."""
    key = f"assignment:{assignment.pk}"
    shares = _shares(assignment, hit, questions)
    return [
        Bill(
            question.payer,
            amount,
            key if len(questions) == 1 else f"{key}/{question.pk}",
            str(question),
        )
        for question, amount in zip(questions, shares, strict=True)
    ]


def _shares(assignment: Assignment, hit: HIT, questions: Sequence[Question]) -> list[Decimal]:
    """Return what an answer to a HIT costs, question by question. A price has the fee of its
    question alone, rounded up; of several together a marketplace takes less: one fee of their sum,
    which the first of them bear. Our own pages show one question at a time, and pay what it earned
    besides with its reward.
    """
    if hit.platform in local_names():
        return [
            question.price - (ZERO if assignment.extra else question.extra_price)
            for question in questions
        ]
    left, shares = platform_of(hit.platform).capabilities.fee(hit.reward), []
    for question in questions:
        share = min(left, question.price - question.extra_price - question.reward)
        left -= share
        shares.append(question.reward + share)
    return shares


def _wait(assignment: Assignment, refusal: str) -> None:
    assignment.attempts = 0
    assignment.reason = f"Not enough is reserved: {refusal}"
    assignment.next_try_at = clock.now() + PATIENCE
    assignment.save(update_fields=["attempts", "reason", "next_try_at"])


def total_owed() -> Decimal:
    """Return what is owed to annotators and not yet paid."""
    owed: Decimal | None = Payment.objects.filter(status="owed").aggregate(sum=Sum("amount"))["sum"]
    return owed or ZERO
