"""Intervals of an ordinary estimate that may be looked at while its sample grows.

An interval that is made anew after every label is wrong sooner or later. Made with a larger
quantile in the place of the normal one, and only when enough has come since the last interim
interval, it is ever wrong no more often than it says (repeated confidence intervals: Jennison and
Turnbull 1989). The error is spent interval by interval (Lan and DeMets 1983), so that nobody need
know beforehand when they will be taken, nor how many.

Estimates from nested samples (thresholds that only rise) have independent increments, as a mean of
more and more labels has: with information I = 1/V, √I (estimate − truth) is to first order a
Brownian motion B at time t = I / I_last over √t. That is an approximation of large samples:
`benchmarks/peeking.py` says how good it is.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy.stats import norm

from estimators import checks
from estimators.checks import FloatArray

GROWTH = 1.2
"""How much more information an interim interval should have than the one before it, while they are
early; and the root of the share that the first one has which is not, times this, where they are
late: three are then enough to come to the end. Three that hardly know of each other are 1.4 times
as wide as an interval for one look, and as few as one of a tenth of the information and the last
alone are 1.25 times: less than 1.15 times is only to be had where the first has seven tenths.
"""
FIRST = 0.92
"""The quantile of the first interval that is not early, over that of the later ones. Of few
judgments the half of one is much, so that without this it would be the widest.
"""
SPENT = 0.97
"""Share of the error that is spent where there are several: the rest is for what is no Brownian
motion."""
ROUGH, EXACT = 0.5, 0.25
"""Of one judgment, what the ends of an interval are moved outwards by, for shares of few counts are
rough: where the first that is not early knows much, so that there is room, and where it does not.
"""
MUCH = 0.4
"""Share of the information that is much."""
EARLY = 0.02
"""Share of the error that may be spent while they are early."""
GRID: FloatArray = np.linspace(-5.5, 5.5, 441)  # of B/√t, whose scale no time changes
STEP = float(GRID[1] - GRID[0])
ROUNDS = 16
LEAST_GROWTH = 1.02
SETTLED = 100
"""Judgments before which they are early..."""
HALF = 0.5
"""...unless they have so much of the information: then there will hardly be more judgments."""
MOST_WIDER = 1.5
"""How many times as far from the estimate as that of an interval for one look an end may be from
the hundredth judgment on. The quantiles alone keep to this but where one in fifty is right: there
the part of a judgment that ends are moved by is much of so small a share, and not needed.
"""


class Pace(NamedTuple):
    """How interim intervals follow each other: they are early below this share of the information,
    each that is not should have so many times the information of the one before, and their ends are
    moved outwards by this share of a judgment.

    Examples
    --------
    >>> round(pace([80], [0.3]).growth, 2)
    1.7
    """

    early: float
    growth: float
    continuity: float


def pace(judged: Sequence[int], information: Sequence[float]) -> Pace:
    """Return how intervals follow these, the last of which is the one that is being made.

    From 100 judgments on none is early, however little information they turned out to have; how
    many more there should be follows from the information of the first of these. Fewer are early,
    and may be wide, unless they have half of the information: what few say of their own variance is
    not to be relied on.

    Parameters
    ----------
    judged : (k,) sequence of int
        The judgments that each interval rests on.
    information : (k,) sequence of float
        Shares of what the last one will have.

    Returns
    -------
    Pace
        What :func:`critical_value` takes as `early` and `growth`, and what
        :func:`estimators.intervals.score_interval` takes as `continuity`.

    Examples
    --------
    >>> round(pace([40, 110], [0.02, 0.05]).growth, 2)
    5.37
    """
    late = [time for n, time in zip(judged, information, strict=True) if n >= SETTLED]
    early = late[0] if late else HALF
    return Pace(early, growth_of(early), ROUGH if early >= MUCH else EXACT)


def is_due(judged: Sequence[int], information: Sequence[float], n: int, now: float) -> bool:
    """Return whether another interval is to be made: enough has come since the last one, or all
    that was ordered, or these are the first 100 judgments. Early ones come at each fifth of
    information more: they cost next to nothing.

    Parameters
    ----------
    judged, information
        As for :func:`pace`, of the intervals so far; there may be none.
    n : int
        The judgments that there are now.
    now : float
        Their information.

    Returns
    -------
    bool
        False where the last one stands.

    Examples
    --------
    >>> [is_due([80], [0.08], n, n / 1000) for n in (90, 100)]
    [False, True]
    """
    if not judged:
        return True
    if n <= judged[-1] or now <= LEAST_GROWTH * information[-1]:
        return False
    if now == 1 or judged[-1] < SETTLED <= n:
        return True
    early, growth, _ = pace(judged, information)
    is_early = n < SETTLED and now < early
    return now >= (GROWTH if is_early else growth) * information[-1]


def drawn_in(
    ends: tuple[float, float], value: float, one_look: tuple[float, float], judged: int
) -> tuple[float, float]:
    """Return the ends of an interim interval, neither more than 1.5 times as far from the estimate
    as the interval for one look at the same judgments has it. Of fewer than 100 judgments they
    stay.

    Parameters
    ----------
    ends : (2,) tuple of float
        The interval with the quantile of :func:`critical_value`.
    value : float
        The estimate.
    one_look : (2,) tuple of float
        The interval with the normal quantile, whose ends are not moved outwards.
    judged : int
        The judgments that both rest on.

    Returns
    -------
    (2,) tuple of float
        The lower and the upper end.

    Examples
    --------
    >>> drawn_in((0.0, 0.125), 0.0625, (0.03125, 0.125), 100)
    (0.015625, 0.125)
    >>> drawn_in((0.0, 0.125), 0.0625, (0.03125, 0.125), 99)
    (0.0, 0.125)
    """
    if judged < SETTLED:
        return ends
    value = min(max(value, one_look[0]), one_look[1])  # of a share outside 0 to 1, its nearer end
    low = max(ends[0], value - MOST_WIDER * (value - one_look[0]))
    return low, min(ends[1], value + MOST_WIDER * (one_look[1] - value))


def growth_of(early: float) -> float:
    """Return how much more information an interim interval should have than the one before it, from
    the first on that is not early.

    Parameters
    ----------
    early : float
        The share of the information before which they are early: 100 judgments of those planned.

    Returns
    -------
    float
        So much that two more come to the end.

    Examples
    --------
    >>> [round(growth_of(100 / planned), 1) for planned in (200, 1000, 3000)]
    [1.7, 3.8, 6.6]
    """
    return float(GROWTH / np.sqrt(early))


def critical_value(
    information: ArrayLike,
    critical: ArrayLike,
    now: float,
    *,
    confidence_level: float = 0.8,
    early: float = 0.3,
    growth: float | None = None,
) -> float:
    """Return the quantile of the interim interval that is made now: estimate ± quantile · √V.

    Of what may still be spent of the error, as little is spent that the same quantile would do for
    all that come, each with `growth` times the information of the one before, up to the last; the
    first that is not early has 0.92 times the quantile of the others. Before a share `early` of the
    information not more than a fiftieth of the error is spent, in proportion. Three hundredths of
    the error are kept back where there are several.

    Parameters
    ----------
    information : (k,) array
        Of those so far, as shares of what the last will have, ascending, in (0, 1].
    critical : (k,) array
        The quantiles that they were taken with.
    now : float
        Information of this one, more than of the one before; at most 1, the last one.
    confidence_level : float
        Of all together, strictly between 0 and 1.
    early, growth : float
        See above; `growth` is more than 1, and :func:`growth_of` `early` if left out.

    Returns
    -------
    float
        At least the normal quantile; infinite where nothing is left to be spent.

    Raises
    ------
    ValueError
        If information does not ascend by 2 % an interval, or an option is out of range.

    References
    ----------
    Jennison and Turnbull 1989; Lan and DeMets 1983; Armitage, McPherson and Rowe 1969 (the
    recursion).

    Examples
    --------
    >>> alone = critical_value([], [], 1.0, confidence_level=0.8)
    >>> first = critical_value([], [], 0.5, confidence_level=0.8)
    >>> round(alone, 2), alone < first < 1.75
    (1.28, True)
    """
    alpha = 1 - checks.level(confidence_level)
    growth = growth_of(early) if growth is None else growth
    times = [float(number) for number in np.atleast_1d(np.asarray(information, dtype=np.float64))]
    quantiles = [float(number) for number in np.atleast_1d(np.asarray(critical, dtype=np.float64))]
    if len(times) != len(quantiles):
        raise ValueError(f"{len(times)} intervals have {len(quantiles)} critical values")
    before = 0.0
    for time in [*times, now]:
        if not before * LEAST_GROWTH < time <= 1:
            raise ValueError(f"information must ascend to at most 1; got {time!r} after {before!r}")
        before = time
    if growth <= 1:
        raise ValueError(f"growth must be more than 1; got {growth!r}")
    spent, density, reached = 0.0, None, 0.0
    for time, quantile in zip(times, quantiles, strict=True):
        density = _moved(density, reached, time)
        outside = _outside(quantile)
        spent += float(density @ outside) * STEP
        density, reached = density * (1 - outside), time
    density = _moved(density, reached, now)
    if now < early:
        return _solve(density, [], EARLY * alpha * now / early - spent)
    steps = _to_come(now, growth)
    alone = not times and not steps
    is_first = bool(steps) and not any(time >= early for time in times)
    share = FIRST if is_first else 1.0
    return share * _solve(density, steps, (1.0 if alone else SPENT) * alpha - spent, share)


def _to_come(now: float, growth: float) -> list[FloatArray]:
    """Return the steps from this interval to the next, and so on to the last."""
    times = [now]
    while times[-1] * growth < 1:
        times.append(times[-1] * growth)
    if times[-1] * LEAST_GROWTH < 1:
        times.append(1.0)
    return [_step(begin / end) for begin, end in pairwise(times)]


def _solve(density: FloatArray, steps: list[FloatArray], error: float, share: float = 1.0) -> float:
    """Return the quantile that is left with a probability of `error`: `share` of it now, or the
    whole after one of the steps.
    """
    if error <= 0:
        return float("inf")
    low, high = 0.0, 6.0
    for _ in range(ROUNDS):
        middle = (low + high) / 2
        quantiles = [share * middle, *(middle for _ in steps)]
        low, high = (middle, high) if _crossed(density, steps, quantiles) > error else (low, middle)
    return high


def _crossed(density: FloatArray, steps: list[FloatArray], quantiles: list[float]) -> float:
    """Return the probability of leaving ± the first quantile now,
    or the next ones after the steps.
    """
    outside = _outside(quantiles[0])
    crossed = float(density @ outside) * STEP
    for step, quantile in zip(steps, quantiles[1:], strict=True):
        density = step @ (density * (1 - outside))
        outside = _outside(quantile)
        crossed += float(density @ outside) * STEP
    return crossed


def _moved(density: FloatArray | None, before: float, now: float) -> FloatArray:
    """Return the density of B/√t at a time, of paths that never were outside."""
    if density is None:
        return np.asarray(norm.pdf(GRID))
    return np.asarray(_step(before / now) @ density)


def _step(share: float) -> FloatArray:
    """Return the transition of B/√t, as a matrix over the grid, to where `share` of the time is
    what has passed already; its columns sum to 1.
    """
    distance = GRID[:, None] - GRID[None, :] * np.sqrt(share)
    kernel = np.exp(-np.square(distance) / (2 * (1 - share)))
    return np.asarray(kernel / kernel.sum(axis=0))


def _outside(quantile: float) -> FloatArray:
    """Return the share of each cell of the grid that lies outside ± quantile."""
    beyond = (np.abs(GRID) - quantile) / STEP + 0.5
    return np.asarray(np.clip(beyond, 0.0, 1.0))
