"""Reads amounts of dollars that admins type."""

from __future__ import annotations

from decimal import Decimal, InvalidOperation


def amount_of(text: str, most: int = 100_000) -> Decimal | None:
    """Return an amount that somebody typed, to the cent; None if it is none, below zero or above
    `most`.
    """
    try:
        value = Decimal(text.strip().removeprefix("$"))
    except InvalidOperation:
        return None
    cents = value.is_finite() and 0 <= value <= most and value == value.quantize(Decimal("0.01"))
    return value.quantize(Decimal("0.01")) if cents else None
