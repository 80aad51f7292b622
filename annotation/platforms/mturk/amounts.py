"""Money as the platform takes it: strings with two decimals, and what it adds for itself."""

from __future__ import annotations

from decimal import Decimal

CENT = Decimal("0.01")
FEE = Decimal("0.20")
"""The fee on rewards and bonuses, as long as a HIT has fewer than ten assignments"""


def written(amount: Decimal) -> str:
    """Return an amount as the API takes it. Raises ValueError for one that is not positive or finer
    than a cent.
    """
    if not isinstance(amount, Decimal) or amount <= 0 or amount != amount.quantize(CENT):
        raise ValueError(f"{amount!r} is no amount in dollars and whole cents.")
    return f"{amount:.2f}"
