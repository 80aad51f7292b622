"""Simultaneous comparison of all pairs of systems: which differ, which ranks are possible, and
which are tied.

The confidence level holds for all pairs together: with 28 systems there are 378 pairs, and at 80 %
each some 75 of them would "differ" by chance. References: Romano and Wolf (2005) for the step-down,
Mohamad, Goeman and van Zwet (2022) for the ranks.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from estimators import checks
from estimators.checks import BoolArray, FloatArray, IntArray

CELLS = 4_000_000  # replicates × pairs held in memory at once
ROUNDING = 1e-12  # a variance of a difference below this share of the largest is treated as 0
DECIMALS = 12  # relative to a score: smaller differences are rounding errors


@dataclass(frozen=True, eq=False)
class Comparison:
    """All pairwise differences, with simultaneous intervals.

    Attributes
    ----------
    values : (m,) array
        The scores.
    difference, low, high : (m, m) array
        Row minus column, and its simultaneous interval (single step).
    different : (m, m) boolean array
        Which pairs differ at the family's level, by step-down: at least those whose interval
        excludes 0.
    critical : float
        Half-widths in standard errors of the difference.
    confidence_level : float
        Of all statements together.

    Examples
    --------
    >>> import numpy as np
    >>> board = simultaneous_intervals([0.9, 0.5], np.eye(2) * 1e-3, rng=np.random.default_rng(0))
    >>> bool(board.different[0, 1]), round(float(board.difference[0, 1]), 3)
    (True, 0.4)
    """

    values: FloatArray
    difference: FloatArray
    low: FloatArray
    high: FloatArray
    different: BoolArray
    critical: float
    confidence_level: float


def simultaneous_intervals(
    values: ArrayLike,
    covariance: ArrayLike,
    *,
    rng: np.random.Generator,
    confidence_level: float = 0.8,
    repeats: int = 10_000,
    degrees_of_freedom: float = np.inf,
) -> Comparison:
    """Return simultaneous intervals of all pairwise differences, by the largest |t| of a parametric
    bootstrap.

    Draws ``Z ~ N(0, covariance)``; the critical value is the quantile of ``max_{i<k} |Z_i − Z_k| /
    se_ik``. Pairs beyond it differ; without them the maximum is smaller, so the test is repeated on
    the rest until no more fall (step-down).

    Parameters
    ----------
    values : (m,) array
        Scores; NaN is undefined and differs from nobody.
    covariance : (m, m) array
        Joint covariance, from ``Design.covariance`` of the influences.
    rng : numpy.random.Generator
        Source of the bootstrap.
    confidence_level : float
        Of all intervals together.
    repeats : int
        Bootstrap replicates, at least 100.
    degrees_of_freedom : float
        Where finite (few documents), multivariate t instead of normal.

    Returns
    -------
    Comparison
        A pair without variance (identical systems) gets its difference as a point.

    Raises
    ------
    ValueError
        If the covariance is not symmetric, square and positive semidefinite, or an option is out of
        range.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> board = simultaneous_intervals([0.9, 0.5, 0.45], np.eye(3) * 1e-3, rng=rng)
    >>> board.different[0].tolist()
    [False, True, True]
    >>> tie_groups(board)
    [(0,), (1, 2)]
    """
    score, spread = np.asarray(values, dtype=np.float64), np.array(covariance, dtype=np.float64)
    level = checks.check_confidence_level(confidence_level)
    defined = np.isfinite(score)
    spread = _defined_covariance(score, spread, defined)
    if repeats < 100 or not degrees_of_freedom > 0:
        raise ValueError(
            f"repeats must be at least 100, degrees positive; got {repeats!r},"
            f" {degrees_of_freedom!r}"
        )
    difference = score[:, None] - score[None, :]
    variance = np.diag(spread)[:, None] + np.diag(spread)[None, :] - 2 * spread
    error = np.sqrt(
        np.where(variance > ROUNDING * max(np.diag(spread).max(initial=0.0), 1e-300), variance, 0.0)
    )
    draws = _draw_errors(spread, repeats, degrees_of_freedom, rng)
    pairs = [
        (i, k)
        for i in range(score.size)
        for k in range(i)
        if error[i, k] > 0 and defined[i] and defined[k]
    ]
    critical, apart = _step_down_test(
        draws, np.array(pairs, dtype=np.int64).reshape(-1, 2), difference, error, level
    )
    certain = (error == 0) & (np.abs(difference) > 0)
    half = np.where(np.isfinite(difference), critical * error, np.nan)
    return Comparison(
        score, difference, difference - half, difference + half, apart | certain, critical, level
    )


def _defined_covariance(score: FloatArray, spread: FloatArray, defined: BoolArray) -> FloatArray:
    if score.ndim != 1 or spread.shape != (score.size, score.size):
        raise ValueError(
            f"values must be (m,) and covariance (m, m); got {score.shape} and {spread.shape}"
        )
    spread[~defined] = 0.0
    spread[:, ~defined] = 0.0
    checks.check_finite("covariance", spread)
    scale = np.abs(spread).max(initial=0.0)
    if not np.allclose(spread, spread.T, atol=1e-9 * scale):
        raise ValueError("covariance must be symmetric; it is not")
    least = np.linalg.eigvalsh(spread).min(initial=0.0)
    if least < -1e-6 * scale:
        raise ValueError(
            f"covariance must be positive semidefinite; its least eigenvalue is {least!r}"
        )
    return spread


def _draw_errors(
    spread: FloatArray, repeats: int, df: float, rng: np.random.Generator
) -> FloatArray:
    """Return (repeats, m) random errors with this covariance, which may be singular (identical
    systems).
    """
    eigenvalues, vectors = np.linalg.eigh(spread)
    real = eigenvalues > ROUNDING * eigenvalues.max(initial=0.0)
    # The symmetric root is unique. Eigenvectors are not: processors differ, which would
    # change the draws.
    root = (vectors * np.sqrt(np.where(real, eigenvalues, 0.0))) @ vectors.T
    draws: FloatArray = rng.standard_normal((repeats, spread.shape[0])) @ root
    return draws if np.isinf(df) else draws / np.sqrt(rng.chisquare(df, (repeats, 1)) / df)


def _step_down_test(
    draws: FloatArray, pairs: IntArray, difference: FloatArray, error: FloatArray, level: float
) -> tuple[float, BoolArray]:
    """Return the critical value of the single step, and which pairs differ, in the first step or
    later.
    """
    apart = np.zeros(difference.shape, dtype=np.bool_)
    single_step, left = 0.0, pairs
    while len(left):
        critical = float(np.quantile(_largest_abs_t(draws, left, error), level))
        single_step = single_step or critical
        falls = (
            np.abs(difference[left[:, 0], left[:, 1]]) > critical * error[left[:, 0], left[:, 1]]
        )
        if not falls.any():
            break
        apart[left[falls, 0], left[falls, 1]] = True
        left = left[~falls]
    return single_step, apart | apart.T


def _largest_abs_t(draws: FloatArray, pairs: IntArray, error: FloatArray) -> FloatArray:
    """Return the largest |t| over the pairs in each replicate."""
    left_system, right_system = pairs[:, 0], pairs[:, 1]
    scale = error[left_system, right_system]
    step = max(1, CELLS // len(pairs))
    blocks = (draws[start : start + step] for start in range(0, len(draws), step))
    return np.concatenate(
        [
            (np.abs(block[:, left_system] - block[:, right_system]) / scale).max(axis=1)
            for block in blocks
        ]
    )


@dataclass(frozen=True, eq=False)
class RankIntervals:
    """The best and the worst rank that each system may have; 1 is best. Systems with a NaN score
    range from 1 to m.

    Examples
    --------
    >>> import numpy as np
    >>> # the first two cannot be told apart
    >>> ranks = RankIntervals(best=np.array([1, 1, 3]), worst=np.array([2, 2, 3]))
    >>> (ranks.worst - ranks.best).tolist()
    [1, 1, 0]
    """

    best: IntArray
    worst: IntArray


def rank_intervals(comparison: Comparison, *, ranked: ArrayLike | None = None) -> RankIntervals:
    """Return the ranks that each system may have, simultaneously at the comparison's confidence
    level.

    ``best = 1 + #{k significantly better}``, ``worst = m − #{k significantly worse}``.

    Parameters
    ----------
    comparison : Comparison
        From :func:`simultaneous_intervals`; higher scores are better.
    ranked : (m,) boolean array, optional
        Who takes a place; the others (a reference) are compared, but nobody stands behind them.

    Returns
    -------
    RankIntervals
        Integers from 1 to m; of who takes no place, those that they would have.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> board = simultaneous_intervals([0.9, 0.5, 0.45], np.eye(3) * 1e-3, rng=rng)
    >>> ranks = rank_intervals(board)
    >>> ranks.best.tolist(), ranks.worst.tolist()
    ([1, 2, 2], [1, 3, 3])
    """
    with np.errstate(invalid="ignore"):
        better = comparison.different & (comparison.difference < 0)
        worse = comparison.different & (comparison.difference > 0)
    m = comparison.values.size
    counted = np.ones(m, dtype=np.bool_) if ranked is None else np.asarray(ranked, dtype=np.bool_)
    if counted.shape != (m,):
        raise ValueError(f"ranked must have shape ({m},); got {counted.shape}")
    best = 1 + better[:, counted].sum(axis=1)
    n_others = counted.sum() - counted  # besides the system itself
    return RankIntervals(best, 1 + n_others - worse[:, counted].sum(axis=1))


def tie_groups(comparison: Comparison) -> list[tuple[int, ...]]:
    """Return the maximal groups of neighbours in rank none of whose pairs differ: the tie lines of
    a board.

    Groups may overlap (A ties with B and B with C while A and C differ), none lies inside another,
    and every system with a score is in at least one, if need be alone.

    Parameters
    ----------
    comparison : Comparison
        From :func:`simultaneous_intervals`.

    Returns
    -------
    list of tuple of int
        Indices of systems, the best first, and in their own order where scores differ by less
        than rounding does; groups in the order of their best.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> board = simultaneous_intervals([0.6, 0.5, 0.4], np.eye(3) * 3e-3, rng=rng)
    >>> tie_groups(board)
    [(0, 1), (1, 2)]
    """
    order = np.argsort(-np.round(comparison.values, DECIMALS), kind="stable")
    order = order[np.isfinite(comparison.values[order])]
    groups: list[tuple[int, ...]] = []
    reached = 0
    for start in range(order.size):
        end = start + 1
        while end < order.size and not comparison.different[order[end], order[start:end]].any():
            end += 1
        if end > reached:
            groups.append(tuple(int(i) for i in order[start:end]))
            reached = end
    return groups
