"""Reads how two systems of a board differ: the difference of what is printed, with its interval
from both samples.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from scipy.special import ndtri, stdtrit

from kbpo.evaluation.compare.ranks import PRIVATE
from kbpo.evaluation.leaderboard import Figure, ranking
from kbpo.evaluation.models import Evaluation
from kbpo.tracks.registry import kind_of
from scoring.data import ABOUT_THESE, THESE
from scoring.score import DEFAULT


@dataclass(frozen=True)
class Difference:
    """One number of two systems, and the first minus the second."""

    quantity: str
    first: Figure
    second: Figure
    value: float
    error: float
    """Standard error"""
    low80: float
    high80: float
    low95: float
    high95: float
    told_apart: bool | None
    """Whether the two differ among all pairs of the board at once; None where that was not asked"""

    @property
    def shown(self) -> bool:
        """Whether the 80 % interval leaves zero."""
        return self.low80 > 0 or self.high80 < 0


def differences(
    evaluation: Evaluation,
    first: int,
    second: int,
    *,
    distribution: str,
    criterion: str,
    population: str = "",
) -> list[Difference]:
    """The quantities of the track's kind that are compared, as far as both systems have them."""
    about_these = population == THESE
    figures: dict[tuple[str, int], Figure] = {}
    of_track = kind_of(evaluation.track)
    compared = of_track.compared()
    unweighed = {quantity.name for quantity in compared if not quantity.weighed}
    estimates = evaluation.estimates.filter(
        submission__in=[first, second],
        criterion=criterion,
        method=f"{DEFAULT}{ABOUT_THESE}" if about_these else DEFAULT,
        slice="",
        value__isnull=False,
    )
    for row in estimates:
        figure = Figure.of(row)
        if figure.value is None:
            continue
        if row.distribution == distribution or row.quantity in unweighed:
            figures[row.quantity, row.submission_id] = figure
    quantity_differences = []
    for quantity in (quantity_of_kind.name for quantity_of_kind in compared):
        kind = of_track.unweighed if quantity in unweighed else distribution
        key = "|".join((quantity, criterion, kind, *([THESE] if about_these else [])))
        stored = _stored(evaluation, key, {first, second})
        own, other = figures.get((quantity, first)), figures.get((quantity, second))
        if stored and own and other:
            quantity_differences.append(_difference(quantity, own, other, stored, first, second))
    return quantity_differences


def _stored(evaluation: Evaluation, key: str, pair: set[int]) -> dict[str, Any] | None:
    """What an evaluation says of a number of both systems: of the board, or where one is private,
    of all that is scored. None of an open shared track, which stores no covariance.
    """
    for numbers in (evaluation.comparisons, evaluation.comparisons.get(PRIVATE, {})):
        stored: dict[str, Any] | None = numbers.get(key)
        if stored and "covariance" in stored and pair <= set(stored["systems"]):
            return stored
    return None


def _difference(
    quantity: str, figure: Figure, other: Figure, stored: dict[str, Any], first: int, second: int
) -> Difference:
    assert figure.value is not None and other.value is not None
    value, error = figure.value - other.value, error_of(stored, first, second)
    half80, half95 = (_quantile(stored.get("df"), level) * error for level in (0.8, 0.95))
    apart = _is_separated(stored, first, second, value, error)
    return Difference(
        quantity,
        figure,
        other,
        value,
        error,
        value - half80,
        value + half80,
        value - half95,
        value + half95,
        apart,
    )


def _is_separated(
    stored: dict[str, Any], first: int, second: int, value: float, error: float
) -> bool | None:
    """Whether the board tells two systems apart, as its ranks do; None where it ranks by another
    number. Evaluations that did not keep it have the first step of that test alone.
    """
    if "different" in stored:
        i, k = (stored["systems"].index(submission) for submission in (first, second))
        return bool(stored["different"][i][k])
    return abs(value) > stored["critical"] * error if "critical" in stored else None


def error_of(stored: dict[str, Any], first: int, second: int) -> float:
    """The standard error of a difference, from the joint covariance."""
    i, k = (stored["systems"].index(submission) for submission in (first, second))
    return error_at(stored["covariance"], i, k)


def error_at(covariance: list[list[float]], i: int, k: int) -> float:
    """The same, of the systems in two places of the covariance."""
    return math.sqrt(max(covariance[i][i] + covariance[k][k] - 2 * covariance[i][k], 0.0))


def _quantile(df: float | None, level: float) -> float:
    return float(ndtri(0.5 + level / 2) if df is None else stdtrit(df, 0.5 + level / 2))


def closest(
    evaluation: Evaluation | None, *, distribution: str, criterion: str
) -> tuple[int, int] | None:
    """The two systems of a board that are hardest to tell apart; None with fewer than two."""
    if evaluation is None:
        return None
    quantity, stored = ranking(evaluation, distribution=distribution, criterion=criterion)
    estimates = evaluation.estimates.filter(
        quantity=quantity,
        criterion=criterion,
        distribution=distribution,
        method="centred",
        slice="",
        value__isnull=False,
        submission__in=stored.get("systems", []),
        submission__status="scored",
    )
    ranked = sorted(
        ((float(value or 0), pk) for value, pk in estimates.values_list("value", "submission_id")),
        reverse=True,
    )
    pairs = [(high - low, winner, other) for (high, winner), (low, other) in pairwise(ranked)]
    return min(pairs)[1:] if pairs else None
