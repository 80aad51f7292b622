"""Pays for work that came too late: somebody else had the question by then, so nothing of the
answer is used, but it was done.

Nobody's reservation has money for it, since its payer promised no more answers than it wanted: it
is the track's own.
"""

from __future__ import annotations

from decimal import Decimal

from annotation.models import Assignment, Payment
from kbpo.money.models import Ledger
from kbpo.money.purpose import Purpose
from kbpo.money.spend import OverBudget, release, reserve, spend

WHY = "An answer that came too late to count"


def pay_late(assignment: Assignment, extra: Decimal) -> bool:
    """Return whether its worker is owed, once, what the answer would have earned; not if the track
    has less than that left. The caller holds the assignment.
    """
    purpose, track = Purpose("late", assignment.pk), assignment.hit.track
    amount = assignment.hit.reward + extra
    try:
        reserve(track, None, purpose, amount, key=f"{purpose}/reserve", why=WHY)
    except OverBudget:
        return False
    spend(track, purpose, amount, key=str(purpose), why=WHY)
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


def give_up_late(payment: Payment) -> None:
    """Return the money of late work that its worker gives up to the track. The caller has already
    taken the spending back.
    """
    spent = Ledger.objects.filter(key=payment.token, purpose_kind="late").first()
    if spent is not None:
        release(spent.track, spent.purpose, key=f"{spent.purpose}/waived", why="Given up")
