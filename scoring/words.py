"""Formats scores as text, for pages and mails."""

from __future__ import annotations

import math

from scoring.report import FEW, Figure

MINUS = "−"
DASH = "–"

HALVES_UP = 1e-7
"""Added to percentages before rounding, so that equal numbers from different sums print alike"""


def number_text(
    value: float | None, *, n: int | None = None, decimals: int | None = None, signed: bool = False
) -> str:
    """Return a share in per cent without its sign: 0.3 is “30.0”, and “30” for fewer than 50
    judgments.
    """
    if value is None or not math.isfinite(value):
        return DASH
    if decimals is None:
        decimals = 0 if n is not None and n < FEW else 1
    text = f"{abs(value) * 100 + HALVES_UP:.{decimals}f}"
    if float(text) == 0:
        return text
    if value < 0:
        return MINUS + text
    return f"+{text}" if signed else text


def interval_text(low: float | None, high: float | None, *, n: int | None = None) -> str:
    """Return an interval with an en dash: “28.6–31.4”; with “to” if a bound is negative, so that
    signs stay legible.
    """
    if low is None or high is None or not (math.isfinite(low) and math.isfinite(high)):
        return DASH
    if low < 0:
        return f"{number_text(low, n=n, signed=True)} to {number_text(high, n=n, signed=True)}"
    return f"{number_text(low, n=n)}{DASH}{number_text(high, n=n)}"


ALL_JUDGED = "all judged"
"""Printed instead of an interval without width: there is no sampling error"""
MEANS = "no sampling error; the judges’ remains."
"""Explanation of `ALL_JUDGED`"""
ALL_CHECKED = "All judged and checked by experts: no sampling error, and none of the crowd."


def no_width_text(n_checked: int = 0) -> str:
    """Return a sentence on why an interval has no width: “All judged: …”; for a number that is
    corrected by expert checks, with their number `n_checked`.
    """
    return ALL_CHECKED if n_checked else f"{ALL_JUDGED.capitalize()}: {MEANS}"


def figure_text(figure: Figure) -> str:
    """Return “30.0 (28.6–31.4)”, or “30.0 (all judged)” without sampling error."""
    n = figure.n_labels
    if figure.is_exact:
        return f"{number_text(figure.value, n=n)} ({ALL_JUDGED})"
    return f"{number_text(figure.value, n=n)} ({interval_text(figure.low80, figure.high80, n=n)})"
