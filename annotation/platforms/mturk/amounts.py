"""Money as the platform takes it: strings with two decimals, and what it adds for itself."""

from __future__ import annotations

from decimal import ROUND_CEILING, Decimal

CENT = Decimal("0.01")
FEE, MANY, FEE_OF_MANY = Decimal("0.20"), 10, Decimal("0.40")
"""The fee on rewards and bonuses, and from how many assignments on a HIT it doubles."""


def written(amount: Decimal) -> str:
    """Return an amount as the API takes it. Raises ValueError for one that is not positive or finer
    than a cent.
    """
    if not isinstance(amount, Decimal) or amount <= 0 or amount != amount.quantize(CENT):
        raise ValueError(f"{amount!r} is no amount in dollars and whole cents.")
    return f"{amount:.2f}"


def fee(amount: Decimal, assignments: int = 1) -> Decimal:
    """Return what the platform takes on top of an amount, rounded up to the cent."""
    rate = FEE_OF_MANY if assignments >= MANY else FEE
    return max(CENT, (amount * rate).quantize(CENT, rounding=ROUND_CEILING))
