"""How two systems of a board differ in the precision of each relation, all relations at once, from
labels that exist.

A slice's influences give its covariances as the whole's do. Only the standard error of every pair's
difference is kept.
"""

from __future__ import annotations

from itertools import combinations
from typing import Any

import numpy as np
from scipy.special import ndtri

from estimators.design import Design
from estimators.estimate import Estimate as Found
from kbpo.evaluation.compare.difference import Difference
from kbpo.evaluation.compare.overlap import MOST
from kbpo.evaluation.compare.ranks import covariance_of
from kbpo.evaluation.leaderboard import Figure
from kbpo.evaluation.models import Evaluation
from kbpo.tracks.base import Track as Kind
from kbpo.tracks.registry import class_of
from scoring.data import Data
from scoring.slices import Cut

KEY = "relations"
"""Where the standard errors of all pairs stand among an evaluation's comparisons."""


def strata_group(kind: type[Kind]) -> str:
    """The group of slices that are strata, one each: what systems are compared by; empty if the
    kind has none.
    """
    return next((name for name, group in kind.groups.items() if group.strata), "")


class Errors:
    """Collects the standard errors of differences while the slices are scored."""

    def __init__(self, data: Data, scored: set[int]) -> None:
        self.columns = np.array(
            [number for number, system in enumerate(data.systems) if system in scored],
            dtype=np.int64,
        )
        self.systems = [data.systems[column] for column in self.columns]
        self.found: dict[str, list[float | None]] = {}

    def take(self, cut: Cut, estimate: Found, design: Design) -> None:
        """Keeps what a slice has to tell, if it is one relation: one whole stratum."""
        if not cut.is_stratum or not 2 <= self.columns.size <= MOST:
            return
        defined = np.isfinite(np.asarray(estimate.value)[self.columns])
        covariance = covariance_of(estimate, design, self.columns)
        self.found[cut.name] = [
            _error(covariance, i, k) if defined[i] and defined[k] else None
            for i, k in combinations(range(defined.size), 2)
        ]

    def stored(self) -> dict[str, Any]:
        """For each relation the errors of all pairs of systems, the pairs in the order of
        `combinations`.
        """
        return {KEY: {"systems": self.systems, "errors": self.found}} if self.found else {}


def _error(covariance: Any, i: int, k: int) -> float:
    variance = covariance[i, i] + covariance[k, k] - 2 * covariance[i, k]
    return float(f"{np.sqrt(max(variance, 0.0)):.6g}")


def differences_by_relation(
    evaluation: Evaluation, first: int, second: int, *, least: int
) -> list[Difference]:
    """The first's precision minus the second's in every relation in which both have `least`
    judgments; the greatest difference first.

    The intervals hold for all these relations at once: each has the level whose power by their
    number is the level said, which for normal estimates is enough however they depend on each other
    (Šidák 1967). Which relations there are depends on numbers of judgments, never on what was
    found.
    """
    stored = evaluation.comparisons.get(KEY, {"systems": [], "errors": {}})
    if not {first, second} <= set(stored["systems"]) or first == second:
        return []
    places = sorted(stored["systems"].index(submission) for submission in (first, second))
    pair = list(combinations(range(len(stored["systems"])), 2)).index((places[0], places[1]))
    figures = _figures(evaluation, first, second)
    relations = [
        (name, *figures[name], errors[pair])
        for name, errors in stored["errors"].items()
        if name in figures
        and errors[pair] is not None
        and min(figure.n_labels for figure in figures[name]) >= least
    ]
    z80, z95 = (simultaneous(level, len(relations)) for level in (0.80, 0.95))
    differences = [_difference(*relation, z80, z95) for relation in relations]
    return sorted(differences, key=lambda difference: (-difference.value, difference.quantity))


def simultaneous(level: float, n: int) -> float:
    """The normal quantile with which n two-sided intervals hold together at a level, whatever their
    dependence.
    """
    return float(ndtri(0.5 + level ** (1 / max(n, 1)) / 2))


def _figures(evaluation: Evaluation, first: int, second: int) -> dict[str, tuple[Figure, Figure]]:
    """The precision of both systems in every relation in which both have one."""
    kind = class_of(evaluation.track.kind)
    estimates = evaluation.estimates.filter(
        submission__in=[first, second],
        quantity=kind.mean,
        criterion=evaluation.track.criterion,
        slice__startswith=f"{strata_group(kind)}:",
        value__isnull=False,
    )
    figures = {
        (row.slice.partition(":")[2], row.submission_id): Figure.of(row) for row in estimates
    }
    figure_of = {place: figure for place, figure in figures.items() if figure.value is not None}
    return {
        name: (figure_of[name, first], figure_of[name, second])
        for name, owner in figure_of
        if owner == first and (name, second) in figure_of
    }


def _difference(
    name: str, figure: Figure, other: Figure, error: float, z80: float, z95: float
) -> Difference:
    assert figure.value is not None and other.value is not None
    value = figure.value - other.value
    low, high = value - z95 * error, value + z95 * error
    return Difference(
        name,
        figure,
        other,
        value,
        error,
        value - z80 * error,
        value + z80 * error,
        low,
        high,
        low > 0 or high < 0,
    )
