"""Compares the systems of a board, all pairs simultaneously: possible ranks, ties, the overlap of
two systems' predictions, and the precision of their differences in each stratum.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import combinations

import numpy as np

from estimators.design import Design
from estimators.estimate import Estimate
from estimators.horvitz_thompson import hajek_estimate
from estimators.multiple import rank_intervals, simultaneous_intervals, tie_groups
from scoring.arrays import Floats, Ids, Matrix
from scoring.data import Data
from scoring.default import Centred
from scoring.report import Comparison, Named, Part, Relations
from scoring.slices import Cut

Number = tuple[Estimate, Design]
LEVEL = 0.95
"""Simultaneous confidence level of all statements about a board"""
SEED = 20_171_017
ROUNDING = 1e-18
"""Share of the expected variance below which a realised variance counts as 0: terms of unanimous
labels differ in their last digits only"""
MOST = 45
"""Number of systems above which comparisons are not stored, since there are too many pairs"""
BLOCK = 2**16
"""Number of predictions that are counted at once"""


@dataclass(frozen=True)
class Order:
    """The quantities by which a kind of track ranks systems, the preferred one first."""

    quantities: Sequence[str]
    """Quantities that depend on the distribution; the first available one is used"""
    is_better: Callable[[str, str], bool]
    """Function that tells whether more of a quantity is better under a criterion"""

    def ranking_keys(self, keys: Collection[Named]) -> set[Named]:
        """Return the keys of the numbers by which systems are ranked, one for each criterion and
        distribution.
        """
        best: dict[Named, Named] = {}
        weighed = [key for key in keys if key[0] in self.quantities]
        for key in sorted(weighed, key=lambda key: self.quantities.index(key[0])):
            best.setdefault(key[1:], key)
        return set(best.values())

    def sign(self, key: Named) -> float:
        return 1.0 if self.is_better(key[0], key[1]) else -1.0


def compare_boards(
    order: Order,
    data: Data,
    estimates: Mapping[Named, Number],
    board: set[int],
    references: Collection[int] = (),
) -> dict[Named, Comparison]:
    """Return, for the headline of every criterion under every distribution, ranks and tie groups of
    the systems on the board, without ranks for references; for all numbers the covariance of
    differences.
    """
    columns = _columns_of_systems(data, board)
    if not columns.size:
        return {}
    compared = {key: _joint_comparison(data, number, columns) for key, number in estimates.items()}
    for key in order.ranking_keys(estimates):
        compared[key] = _ranked_comparison(
            compared[key], estimates[key], columns, order.sign(key), references
        )
    return compared


def compare_private_runs(
    data: Data, estimates: Mapping[Named, Number], scored: set[int], board: set[int]
) -> dict[Named, Comparison]:
    """Return the covariances of each number of all scored runs, private ones included, for teams
    that compare their own; empty if all runs are on the board.
    """
    columns = _columns_of_systems(data, scored)
    if scored <= board or not columns.size:
        return {}
    return {key: _joint_comparison(data, number, columns) for key, number in estimates.items()}


def _columns_of_systems(data: Data, systems: set[int]) -> Ids:
    return np.flatnonzero(np.isin(data.systems, list(systems))).astype(np.int64)


def is_rank_decided(
    order: Order, data: Data, key: Named, number: Number, column: int, stage: int
) -> bool:
    """Return whether a system's rank among all participating systems with a number is decided:
    every other system is significantly better or worse, for all pairs simultaneously.

    The test is repeated after each stage. The k-th uses the level 5 %/(k (k + 1)), so that the
    probability of a wrong decision at any stage is at most 5 %.
    """
    estimate, _ = number
    defined = data.shown & ~np.isnan(np.asarray(estimate.value))
    columns = np.flatnonzero(defined).astype(np.int64)
    if columns.size < 2 or not defined[column]:
        return False
    level = 1 - (1 - LEVEL) / (stage * (stage + 1))
    joint = _joint_comparison(data, number, columns)
    ranks = _ranked_comparison(joint, number, columns, order.sign(key), level=level).ranks
    best, worst = ranks[data.systems[column]]
    return best == worst


def covariance_of(estimate: Estimate, design: Design, columns: Ids) -> Floats:
    """Return the joint covariance of systems. Where the anticipated variance A is larger than the
    estimated variance V, it is scaled up from V to A, as for printed intervals.

    Scaling keeps correlations, so that the difference of a copy stays 0. If all labels agree, V is
    0 up to rounding, and nothing is scaled.
    """
    covered = np.atleast_2d(design.covariance(np.nan_to_num(estimate.influence[:, columns])))
    realised = np.diagonal(covered).copy()
    floor = np.broadcast_to(estimate.anticipated, np.shape(estimate.value))[columns]
    floor = np.where(np.isfinite(floor), floor, 1.0)  # without data anything may be true
    informative = realised > ROUNDING * floor
    scale = np.sqrt(
        np.divide(
            np.maximum(realised, floor), realised, out=np.ones(columns.size), where=informative
        )
    )
    covariance: Floats = np.where(
        np.outer(informative, informative), covered * np.outer(scale, scale), 0.0
    )
    covariance[np.diag_indices(columns.size)] += np.where(informative, 0.0, floor)
    return covariance


def _fewest_degrees_of_freedom(estimate: Estimate, columns: Ids) -> float:
    """Return the smallest degrees of freedom among systems with a number. A single rating has 0,
    which is replaced by 1, the widest interval.
    """
    value = np.asarray(estimate.value)
    degrees = np.broadcast_to(estimate.degrees_of_freedom, value.shape)[columns]
    return max(1.0, float(np.min(degrees, where=~np.isnan(value[columns]), initial=np.inf)))


def _joint_comparison(data: Data, number: Number, columns: Ids) -> Comparison:
    estimate, design = number
    df = _fewest_degrees_of_freedom(estimate, columns)
    return Comparison(
        systems=[data.systems[column] for column in columns],
        covariance=covariance_of(estimate, design, columns).tolist(),
        df=df if np.isfinite(df) else None,
    )


def _ranked_comparison(
    joint: Comparison,
    number: Number,
    columns: Ids,
    sign: float,
    references: Collection[int] = (),
    *,
    level: float = LEVEL,
) -> Comparison:
    """Return the comparison with ranks and ties; `sign` is −1 if less is better."""
    systems = joint.systems
    family = simultaneous_intervals(
        sign * np.asarray(number[0].value)[columns],
        np.array(joint.covariance),
        rng=np.random.default_rng(SEED),
        confidence_level=level,
        degrees_of_freedom=_fewest_degrees_of_freedom(number[0], columns),
    )
    ranked = [system not in references for system in systems]
    ranks = rank_intervals(family, ranked=ranked)
    best, worst = (
        [rank if kept else None for rank, kept in zip(ends.tolist(), ranked, strict=True)]
        for ends in (ranks.best, ranks.worst)
    )
    return replace(
        joint,
        best=best,
        worst=worst,
        groups=[[systems[column] for column in group] for group in tie_groups(family)],
        different=family.different.tolist(),
        level=level,
    )


# --- what two systems predict both ---------------------------------------------------------------


def overlaps(
    data: Data, criterion: str, scored: set[int]
) -> dict[tuple[int, int], tuple[Part, Part, Part]]:
    """Return, for each pair of scored systems, the number and the share right of the predictions
    that both make, only the first, and only the second.

    Predictions have equal weights. A prediction of both may be right for one and wrong for the
    other, which links its names differently: then it counts half.
    """
    columns = [number for number, system in enumerate(data.systems) if system in scored]
    if not 2 <= len(columns) <= MOST or not data.judged.size:
        return {}
    sizes = _shared_prediction_counts(data.pool.member)[np.ix_(columns, columns)]
    arranged = Centred(data, criterion)
    predicted = data.pool.member[arranged.row].toarray()[:, columns] > 0
    label = arranged.verdicts[:, columns]
    shared, alone = [], []
    for i in range(len(columns)):
        mine, halves = predicted[:, [i]], (label + label[:, [i]]) / 2
        shared.append(_overlap_parts(arranged, predicted * mine, sizes[i], halves))
        own = label[:, [i]] + 0 * predicted
        alone.append(_overlap_parts(arranged, mine & ~predicted, sizes[i, i] - sizes[i], own))
    return {
        (data.systems[columns[i]], data.systems[columns[k]]): (
            shared[i][k],
            alone[i][k],
            alone[k][i],
        )
        for i, k in combinations(range(len(columns)), 2)
    }


def _shared_prediction_counts(member: Matrix) -> Ids:
    """Return (m, m) the number of predictions that two systems share."""
    sizes = np.zeros((member.shape[1], member.shape[1]))
    for begin in range(0, member.shape[0], BLOCK):
        block = (member[begin : begin + BLOCK].toarray() > 0).astype(np.float32)
        sizes += block.T @ block  # whole numbers that a float32 holds: there are fewer rows
    return sizes.astype(np.int64)


def _overlap_parts(centred: Centred, inside: np.ndarray, sizes: Ids, label: Floats) -> list[Part]:
    """Return, for each column of `inside` (used rows × systems), the number of predictions and the
    estimated share of right ones.
    """
    estimate = hajek_estimate(
        inside / np.maximum(sizes, 1),
        centred.row_pi,
        label,
        target=centred.counted_targets[1],
        n_targets=centred.counted_targets[0].size,
        design=centred.design,
    )
    low, high = (np.asarray(end) for end in estimate.confidence_interval(0.80, method="wilson"))
    n, value = np.asarray(estimate.n), np.asarray(estimate.value)
    return [
        Part(int(size), float(value[k]), float(low[k]), float(high[k]), int(n[k]))
        if np.isfinite(value[k])
        else Part(int(size))
        for k, size in enumerate(sizes)
    ]


# --- strata --------------------------------------------------------------------------------------


@dataclass
class Errors:
    """Collects the standard errors of differences while the slices are scored."""

    systems: list[int]
    columns: Ids
    errors: dict[str, list[float | None]] = field(default_factory=dict)

    @classmethod
    def from_data(cls, data: Data, scored: set[int]) -> Errors:
        columns = _columns_of_systems(data, scored)
        return cls([data.systems[column] for column in columns], columns)

    def add_errors(self, cut: Cut, estimate: Estimate, design: Design) -> None:
        """Store the errors of a slice if it is exactly one stratum."""
        if cut.stratum is None or not 2 <= self.columns.size <= MOST:
            return
        defined = np.isfinite(np.asarray(estimate.value)[self.columns])
        covariance = covariance_of(estimate, design, self.columns)
        self.errors[cut.name] = [
            _difference_error(covariance, i, k) if defined[i] and defined[k] else None
            for i, k in combinations(range(defined.size), 2)
        ]

    @property
    def relations(self) -> Relations:
        return Relations(self.systems, self.errors) if self.errors else Relations()


def _difference_error(covariance: Floats, i: int, k: int) -> float:
    variance = covariance[i, i] + covariance[k, k] - 2 * covariance[i, k]
    return float(f"{np.sqrt(max(variance, 0.0)):.6g}")
