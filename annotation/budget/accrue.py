"""Step 9, money: spends the price of an answer from its payer's reservation and records what its
worker is owed, once.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from datetime import timedelta
from decimal import Decimal
from hashlib import sha256

from django.db.models import Sum

from annotation.interfaces.base import Judgment
from annotation.interfaces.registry import interface_by_name
from annotation.models import HIT, Assignment, Bonus, Payment, Question, Response
from annotation.platforms.registry import local_platform_names, platform_by_name
from kbpo import clock
from kbpo.money.models import Ledger, Purpose
from kbpo.money.spend import (
    ZERO,
    Bill,
    OverBudget,
    release_money,
    reserve_money,
    spend_bill_groups,
    spend_money,
)
from kbpo.tracks.models import Track

PATIENCE = timedelta(minutes=10)
WHY = "An answer that came too late to count"


def spend_and_owe(assignments: Sequence[Assignment]) -> None:
    """Spend the prices of answers and record what their workers are owed. The caller holds the
    locks of the assignments.
    """
    Assignment.objects.filter(
        pk__in=[assignment.pk for assignment in record_earned_pay(assignments)]
    ).move("approved")


def record_earned_pay(assignments: Sequence[Assignment]) -> list[Assignment]:
    """Record that workers are owed the reward of these answers, and return the answers that their
    reservations could pay. The others are retried, since all work is paid in the end. Locks tracks
    in primary-key order.
    """
    hits = HIT.objects.in_bulk({assignment.hit_id for assignment in assignments})
    questions = _questions_by_hit(hits)
    bonuses = _new_bonuses(assignments, hits, questions)
    by_track: dict[int, list[Assignment]] = defaultdict(list)
    for answer in assignments:
        by_track[hits[answer.hit_id].track_id].append(answer)
    tracks = Track.objects.in_bulk(by_track)
    owed: list[Assignment] = []
    for track, of_track in sorted(by_track.items()):
        groups = []
        for answer in of_track:
            bills = _ledger_charges(answer, hits[answer.hit_id], questions[answer.hit_id])
            for question, bonus in bonuses.get(answer.pk, ()):  # at most the promised amount
                cost = min(bonus.amount + bonus.fee, question.extra_price)
                why = f"{question}: {bonus.why}"
                bills.append(Bill(question.payer, cost, bonus.token, why))
            groups.append(bills)
        for answer, refusal in zip(of_track, spend_bill_groups(tracks[track], groups), strict=True):
            if refusal:
                answer.attempts = 0
                answer.reason = f"Not enough is reserved: {refusal}"
                answer.next_try_at = clock.now() + PATIENCE
                answer.save(update_fields=["attempts", "reason", "next_try_at"])
            else:
                owed.append(answer)
    already_owed = set(
        Payment.objects.filter(assignment__in=owed).values_list("assignment", flat=True)
    )
    Payment.objects.bulk_create(
        _new_payment(answer, hits[answer.hit_id])
        for answer in owed
        if answer.pk not in already_owed
    )
    Bonus.objects.bulk_create(
        (bonus for answer in owed for _, bonus in bonuses.get(answer.pk, ())), ignore_conflicts=True
    )
    return owed


def _new_payment(assignment: Assignment, hit: HIT) -> Payment:
    """Return the payment of an answer, at the endpoint where its worker worked. On our own pages
    the payment includes extra pay; elsewhere extra pay is a separate bonus.
    """
    extra = assignment.extra if hit.platform in local_platform_names() else ZERO
    return Payment(
        status="owed",
        assignment=assignment,
        worker_id=assignment.worker_id,
        amount=hit.reward + extra,
        endpoint=hit.endpoint,
    )


def _new_bonuses(
    assignments: Sequence[Assignment],
    hits: Mapping[int, HIT],
    questions: Mapping[int, Sequence[Question]],
) -> dict[int, list[tuple[Question, Bonus]]]:
    """Return assignment -> the unsaved bonuses by which another platform pays extra, one for each
    question that earned it. Their tokens are derived from the assignment's token, so a repeat
    creates no second bonus.
    """
    earned = [
        assignment
        for assignment in assignments
        if assignment.extra and hits[assignment.hit_id].platform not in local_platform_names()
    ]
    judgments: dict[tuple[int, int], list[Response]] = defaultdict(list)
    for response in Response.objects.filter(assignment__in=earned):
        judgments[response.assignment_id, response.question_id].append(response)
    bonuses: dict[int, list[tuple[Question, Bonus]]] = {}
    for answer in earned:
        hit = hits[answer.hit_id]
        for question in questions[hit.pk]:
            extra = extra_pay(question, judgments[answer.pk, question.pk])
            if not extra:
                continue
            bonus = Bonus(
                status="owed",
                token=sha256(f"extra:{answer.token}:{question.pk}".encode()).hexdigest(),
                track_id=hit.track_id,
                worker_id=answer.worker_id,
                assignment=answer,
                **question.payer.filter_condition("payer"),
                amount=extra,
                fee=platform_by_name(hit.platform).capabilities.fee(extra),
                why=interface_by_name(question.interface).terms.extra_reason,
                endpoint=hit.endpoint,
            )
            bonuses.setdefault(answer.pk, []).append((question, bonus))
    return bonuses


def _questions_by_hit(hits: Mapping[int, HIT]) -> dict[int, list[Question]]:
    """Return HIT -> its questions, which name the payers."""
    questions: dict[int, list[Question]] = defaultdict(list)
    pairs = HIT.questions.through.objects.filter(hit__in=hits)
    for pair in pairs.select_related("question").order_by("question"):
        questions[pair.hit_id].append(pair.question)
    return questions


def _ledger_charges(assignment: Assignment, hit: HIT, questions: Sequence[Question]) -> list[Bill]:
    """Return one ledger movement for each question of an assignment; most have one question."""
    key = f"assignment:{assignment.pk}"
    shares = _costs_by_question(assignment, hit, questions)
    bills = []
    for question, amount in zip(questions, shares, strict=True):
        own_key = key if len(questions) == 1 else f"{key}/{question.pk}"
        bills.append(Bill(question.payer, amount, own_key, str(question)))
    return bills


def _costs_by_question(
    assignment: Assignment, hit: HIT, questions: Sequence[Question]
) -> list[Decimal]:
    """Return the cost of an answer to a HIT, question by question. The price of a question includes
    its own fee, rounded up. A marketplace charges less for several questions, one fee on their sum;
    that fee is assigned to the first of them. On our own pages a HIT is one question, and an extra
    that was earned is paid with the reward.
    """
    if hit.platform in local_platform_names():
        return [
            question.price - (ZERO if assignment.extra else question.extra_price)
            for question in questions
        ]
    left, shares = platform_by_name(hit.platform).capabilities.fee(hit.reward), []
    for question in questions:
        share = min(left, question.price - question.extra_price - question.reward)
        left -= share
        shares.append(question.reward + share)
    return shares


def total_owed() -> Decimal:
    """Return the total that annotators are owed."""
    owed: Decimal | None = Payment.objects.filter(status="owed").aggregate(sum=Sum("amount"))["sum"]
    return owed or ZERO


def extra_pay(question: Question, judgments: Sequence[Judgment]) -> Decimal:
    """Return the additional pay of an answer to a question; 0 if it earns none."""
    if question.extra and interface_by_name(question.interface).earns_extra(judgments):
        return question.extra
    return ZERO


def total_extra_pay(answers: Iterable[tuple[Question, Sequence[Judgment]]]) -> Decimal:
    """Return the additional pay of an answer to all questions of a HIT."""
    return sum((extra_pay(question, judgments) for question, judgments in answers), ZERO)


def record_late_pay(assignment: Assignment, extra: Decimal) -> bool:
    """Record once that the worker of a late answer is owed its reward and extra; return False if
    the track has too little money left. The caller holds the assignment.
    """
    purpose, track = Purpose("late", assignment.pk), assignment.hit.track
    amount = assignment.hit.reward + extra
    try:
        reserve_money(track, None, purpose, amount, key=f"{purpose}/reserve", why=WHY)
    except OverBudget:
        return False
    spend_money(track, purpose, amount, key=str(purpose), why=WHY)
    Payment.objects.get_or_create(
        token=str(purpose),
        defaults={
            "status": "owed",
            "worker_id": assignment.worker_id,
            "amount": amount,
            "why": WHY,
        },
    )
    return True


def return_waived_money(payment: Payment) -> None:
    """Give the money of a late answer back to the track, after its worker waived the pay. The
    caller has already undone the spending.
    """
    spent = Ledger.objects.filter(key=payment.token, purpose_kind="late").first()
    if spent is not None:
        release_money(spent.track, spent.purpose, key=f"{spent.purpose}/waived", why="Given up")
