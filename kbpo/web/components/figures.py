"""Formats shares, intervals, money, durations and times as text. Without Django."""

import math
from datetime import UTC, datetime, timedelta
from decimal import ROUND_HALF_UP, Decimal

from scoring.words import DASH as DASH
from scoring.words import MINUS
from scoring.words import interval_text as interval_text
from scoring.words import number_text as number_text

NBSP = "\u00a0"


def coefficient_text(value: float | None) -> str:
    """Return a coefficient between −1 and 1: “0.76”, “−0.10”."""
    if value is None or not math.isfinite(value):
        return DASH
    text = f"{abs(value):.2f}"
    return MINUS + text if value < 0 and float(text) else text


def percent_text(value: float | None, *, n: int | None = None) -> str:
    """Return a share with a non-breaking sign: “30.0 %”."""
    text = number_text(value, n=n)
    return text if text == DASH else f"{text}{NBSP}%"


def half_width_text(half_width: float | Decimal) -> str:
    """Return a half-width: 0.03 is “±3 %”, 0.025 is “±2.5 %”."""
    return f"±{float(half_width) * 100:.4g}{NBSP}%"


def count_text(count: float) -> str:
    """Return a whole number with commas: “25,676”."""
    return f"{count:,.0f}".replace("-", MINUS)


def plural(n: int, noun: str) -> str:
    """Return a number with its noun: “1 answer”, “1,200 answers”."""
    return f"{n:,} {noun}{'' if n == 1 else 's'}"


def range_text(low: int, high: int) -> str:
    """Return a range of whole numbers: “2–4”, or “3” if both ends are 3."""
    return f"{low}" if low == high else f"{low}–{high}"


def money_text(amount: Decimal | int | str, *, cents: bool = True) -> str:
    """Return an amount in dollars: “$31.80”, or “$32” without cents. Refuses floats."""
    if isinstance(amount, float):
        raise TypeError(f"money is Decimal, not float: {amount!r}")
    exact = Decimal(amount).quantize(
        Decimal("0.01") if cents else Decimal("1"), rounding=ROUND_HALF_UP
    )
    return f"{MINUS if exact < 0 else ''}${abs(exact):,}"


def duration_text(duration: timedelta | float) -> str:
    """Return a rounded duration: “40 s”, “48 min”, “2 h”, “3 days”."""
    seconds = duration.total_seconds() if isinstance(duration, timedelta) else float(duration)
    if seconds < 90:
        return f"{max(round(seconds), 0)}{NBSP}s"
    if seconds < 90 * 60:
        return f"{round(seconds / 60)}{NBSP}min"
    if seconds < 48 * 3600:
        hours = round(seconds / 3600 * 2) / 2 if seconds < 4 * 3600 else round(seconds / 3600)
        return f"{hours:g}{NBSP}h"
    return f"{round(seconds / 86400)}{NBSP}days"


def about_text(duration: timedelta | float) -> str:
    """Return a duration as an estimate: “about 48 min”."""
    return f"about {duration_text(duration)}"


def time_text(moment: datetime, *, date: bool = True) -> str:
    """Return a time in UTC with the word: “20 November 2026, 14:05 UTC”, or “14:05 UTC”. A naive
    time is refused.
    """
    if moment.tzinfo is None:
        raise ValueError(f"a time needs its zone: {moment!r}")
    moment = moment.astimezone(UTC)
    clock = f"{moment:%H:%M}{NBSP}UTC"
    return f"{moment.day}{NBSP}{moment:%B %Y}, {clock}" if date else clock
