"""Intervals that hold at every moment at once, for scores that are watched while answers come in.

An 80 % confidence sequence contains the mean at *all* times with probability 0.8, so one may look
after every answer and stop when one likes; the price is width. Both sequences are from Waudby-Smith
and Ramdas (2024).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from estimators import checks
from estimators.checks import BoolArray, FloatArray, IntArray

BET = 0.5  # share of the capital that may be lost in one step, c in the paper
BLOCK = 2_000_000  # cells of time × grid held in memory at once


class ConfidenceSequence(NamedTuple):
    """The ends of the interval after each term, (n,) each; every interval lies inside the one
    before.

    Examples
    --------
    >>> import numpy as np
    >>> low, high = betting(np.ones(20))
    >>> bool((np.diff(low) >= 0).all() and (np.diff(high) <= 0).all())
    True
    """

    low: FloatArray
    high: FloatArray


def betting(
    x: ArrayLike,
    *,
    confidence_level: float = 0.8,
    planned_n: int | None = None,
    bounds: tuple[float, float] = (0.0, 1.0),
    grid: int = 1000,
) -> ConfidenceSequence:
    """Return the hedged betting confidence sequence of a bounded mean.

    For every candidate mean m two gamblers bet that the truth is higher, or lower: capital
    ``K±_t(m) = Π_{i≤t} (1 ± λ_i^± (x_i − m))``. Where m is the mean neither can hope to multiply a
    stake by 1/α (Ville), so ``{m : max(½ K⁺_t, ½ K⁻_t) < 1/α}`` at all times t contains it with
    probability 1 − α. Equations 23 to 26 of the paper, predictable plug-in bets.

    Parameters
    ----------
    x : (n,) array
        Terms in the order in which they came, within ``bounds``, each with the same mean given
        those before.
    confidence_level : float
        1 − α, strictly between 0 and 1; it holds over all times together.
    planned_n : int, optional
        Bets are sized to be best after this many terms (valid at all others too).
    bounds : (float, float)
        What the terms cannot leave.
    grid : int
        Candidates; ends are rounded outwards to the next of them, by at most (high − low)/grid.

    Returns
    -------
    ConfidenceSequence
        Running intersection; where it would become empty (which has probability at most α) it stays
        as it was.

    Raises
    ------
    ValueError
        If a term leaves the bounds or is NaN, or an option is out of range.

    Examples
    --------
    >>> import numpy as np
    >>> sequence = betting(np.tile([1.0, 1.0, 0.0], 100), confidence_level=0.9)
    >>> low, high = sequence.low[-1], sequence.high[-1]
    >>> bool(low < 2 / 3 < high and high - low < 0.2)
    True
    """
    unit, alpha = _unit(x, bounds), 1 - checks.level(confidence_level)
    if grid < 2:
        raise ValueError(f"grid must be at least 2; got {grid!r}")
    m = np.linspace(0, 1, grid + 1)
    bet = _bets(unit, alpha, planned_n)
    first, last = np.zeros(unit.size, dtype=np.int64), np.full(unit.size, grid)
    end = 0, grid
    up, down, alive = np.zeros(grid + 1), np.zeros(grid + 1), np.ones(grid + 1, dtype=np.bool_)
    step = max(1, BLOCK // (grid + 1))
    for start in range(0, unit.size, step):
        now = slice(start, start + step)
        log_up = up + np.cumsum(_log_gain(bet[now], unit[now], m), axis=0)
        log_down = down + np.cumsum(_log_gain(bet[now], 1 - unit[now], 1 - m), axis=0)
        accepted = np.maximum(log_up, log_down) < np.log(2 / alpha)
        kept = np.logical_and.accumulate(np.vstack([alive, accepted]), axis=0)[1:]
        first[now], last[now] = _ends(kept, end)
        end = int(first[now][-1]), int(last[now][-1])
        up, down, alive = log_up[-1], log_down[-1], kept[-1]
    return _scaled(m[np.maximum(first - 1, 0)], m[np.minimum(last + 1, grid)], bounds)


def _log_gain(bet: FloatArray, x: FloatArray, m: FloatArray) -> FloatArray:
    """Return log(1 + λ (x − m)) with λ cut to c/m, for every time and candidate."""
    with np.errstate(divide="ignore"):
        size = np.minimum(bet[:, None], BET / m)
    gain: FloatArray = np.log1p(size * (x[:, None] - m))
    return gain


def _ends(kept: BoolArray, before: tuple[int, int]) -> tuple[IntArray, IntArray]:
    """Return the first and the last candidate left at each time; where none is, those of the last
    time with any.
    """
    n_left = int(kept.any(axis=1).sum())  # candidates never come back
    lowest, highest = np.empty(len(kept), dtype=np.int64), np.empty(len(kept), dtype=np.int64)
    lowest[:n_left] = kept[:n_left].argmax(axis=1)
    highest[:n_left] = kept.shape[1] - 1 - kept[:n_left, ::-1].argmax(axis=1)
    lowest[n_left:], highest[n_left:] = (
        (lowest[n_left - 1], highest[n_left - 1]) if n_left else before
    )
    return lowest, highest


def empirical_bernstein(
    x: ArrayLike,
    *,
    confidence_level: float = 0.8,
    planned_n: int | None = None,
    bounds: tuple[float, float] = (0.0, 1.0),
) -> ConfidenceSequence:
    """Return the empirical-Bernstein confidence sequence of a bounded mean: wider, but in closed
    form.

    ``Σ λ_i x_i / Σ λ_i ± (log(2/α) + Σ (x_i − μ̂_{i−1})² (−log(1 − λ_i) − λ_i)) / Σ λ_i``
    (theorem 2 of the paper, predictable plug-in bets).

    Parameters
    ----------
    x, confidence_level, planned_n, bounds
        As for :func:`betting`.

    Returns
    -------
    ConfidenceSequence
        Running intersection, within the bounds.

    Raises
    ------
    ValueError
        As for :func:`betting`.

    Examples
    --------
    >>> import numpy as np
    >>> sequence = empirical_bernstein(np.full(200, 0.5))
    >>> low, high = sequence.low[-1], sequence.high[-1]
    >>> bool(low < 0.5 < high and high - low < 0.2)
    True
    """
    unit, alpha = _unit(x, bounds), 1 - checks.level(confidence_level)
    if unit.size == 0:
        return _scaled(unit, unit, bounds)
    bet = np.minimum(_bets(unit, alpha, planned_n), BET)
    weight = np.cumsum(bet)
    error = np.log(2 / alpha) + np.cumsum(
        (unit - _means_before(unit)) ** 2 * (-np.log1p(-bet) - bet)
    )
    centre, half = np.cumsum(bet * unit) / weight, error / weight
    low = np.maximum.accumulate(np.clip(centre - half, 0, 1))
    high = np.minimum.accumulate(np.clip(centre + half, 0, 1))
    crossed = np.maximum.accumulate(low > high)
    last = max(int(np.argmax(crossed)) - 1, 0) if crossed.any() else 0
    return _scaled(np.where(crossed, low[last], low), np.where(crossed, high[last], high), bounds)


def _unit(x: ArrayLike, bounds: tuple[float, float]) -> FloatArray:
    """Return the terms moved to [0, 1]."""
    low, high = bounds
    if not low < high:
        raise ValueError(f"bounds must be two increasing numbers; got {bounds!r}")
    terms = checks.finite("x", x)
    if terms.ndim != 1:
        raise ValueError(f"x must have one dimension; got shape {terms.shape}")
    outside = (terms < low) | (terms > high)
    if outside.any():
        raise ValueError(f"x must lie in {bounds!r}; got {terms[outside][0]!r}")
    return (terms - low) / (high - low)


def _means_before(x: FloatArray) -> FloatArray:
    """Return the running mean before each term, with one term of ½ added: it starts at ½."""
    before = np.concatenate([[0.0], np.cumsum(x)[:-1]]) if x.size else x
    means: FloatArray = (0.5 + before) / np.arange(1, x.size + 1)
    return means


def _bets(x: FloatArray, alpha: float, planned_n: int | None) -> FloatArray:
    """Return λ_t = √(2 log(2/α) / (σ̂²_{t−1} n)), n the plan or t log(1 + t): only what came before
    is used.
    """
    if planned_n is not None and planned_n < 1:
        raise ValueError(f"planned_n must be at least 1; got {planned_n!r}")
    t = np.arange(1, x.size + 1)
    means = (0.5 + np.cumsum(x)) / (t + 1)
    spread = (0.25 + np.cumsum((x - means) ** 2)) / (t + 1)
    before = np.concatenate([[0.25], spread[:-1]]) if x.size else x
    horizon = t * np.log1p(t) if planned_n is None else np.full(x.size, float(planned_n))
    bets: FloatArray = np.sqrt(2 * np.log(2 / alpha) / (before * horizon))
    return bets


def _scaled(low: FloatArray, high: FloatArray, bounds: tuple[float, float]) -> ConfidenceSequence:
    start, width = bounds[0], bounds[1] - bounds[0]
    return ConfidenceSequence(start + width * low, start + width * high)
