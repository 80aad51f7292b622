"""Pays for answers that came too late to be used. No reservation includes them, so the track pays
from what is left under its caps.
"""

from __future__ import annotations

from decimal import Decimal

from annotation.models import Assignment, Payment
from kbpo.money.models import Ledger
from kbpo.money.purpose import Purpose
from kbpo.money.spend import OverBudget, release, reserve, spend

WHY = "An answer that came too late to count"


def pay_late(assignment: Assignment, extra: Decimal) -> bool:
    """Note that the worker of a late answer is owed what it would have earned, once; return False
    if the track has less left. The caller holds the assignment.
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
    """Return the money of a late answer, which its worker waived, to the track. The caller has
    already undone the spending.
    """
    spent = Ledger.objects.filter(key=payment.token, purpose_kind="late").first()
    if spent is not None:
        release(spent.track, spent.purpose, key=f"{spent.purpose}/waived", why="Given up")
