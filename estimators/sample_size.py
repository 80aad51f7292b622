"""Number of draws for an interval of given width: for a single system, and for a new system that
reuses the labels of others.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil, sqrt

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import ndtri

from estimators import checks
from estimators.checks import FloatArray, IntArray
from estimators.mixture import check_draws, mixture_weights

OWN_TERMS = ("second_moment", "largest_variance")
TARGET_TOLERANCE = 1e-9
SIZES_AT_A_TIME = 64
ENTRIES_AT_A_TIME = 200_000


def labels_for_half_width(
    half_width: float, confidence_level: float, p: float = 0.5, *, tolerance: float = 5e-4
) -> int:
    """Return the number of independent labels for which the interval of a proportion p is ±
    `half_width`.

    The smallest n with z √(p (1 − p) / n) ≤ `half_width` (1 + `tolerance`), z the normal quantile
    of the level.

    Parameters
    ----------
    half_width : float
        In units of the proportion: 0.03 is ± 3 percentage points; positive.
    confidence_level : float
        Strictly between 0 and 1.
    p : float
        The proportion expected; ½ is the worst case.
    tolerance : float, keyword-only
        Relative excess of the half-width that passes, as half-widths are quoted to three digits at
        most.

    Returns
    -------
    int
        At least 1.

    Raises
    ------
    ValueError
        A half-width that is not positive, a level or proportion out of range, a negative tolerance.

    References
    ----------
    Chaganty 2018, appendix A.1.4 (500 labels for ± 2.87 points at 80 %).

    Examples
    --------
    >>> (labels_for_half_width(0.03, 0.8), labels_for_half_width(0.03, 0.95),
    ...  labels_for_half_width(0.03, 0.8, p=0.1))
    (456, 1067, 165)
    """
    if not 0 < half_width < np.inf:
        raise ValueError(f"half_width must be positive and finite; got {half_width!r}")
    if not 0 <= tolerance < np.inf:
        raise ValueError(f"tolerance must be at least 0 and finite; got {tolerance!r}")
    proportion = float(checks.check_probabilities("p", p))
    z = float(ndtri(0.5 + checks.check_confidence_level(confidence_level) / 2))
    return max(1, ceil(proportion * (1 - proportion) * (z / (half_width * (1 + tolerance))) ** 2))


def half_width_of_proportion(n: int, confidence_level: float, p: float = 0.5) -> float:
    """Return z √(p (1 − p) / n), the half-width of n independent labels of a proportion p.

    Parameters
    ----------
    n : int
        Number of labels, 1 or more.
    confidence_level : float
        Strictly between 0 and 1.
    p : float
        The proportion; ½ is the worst case.

    Returns
    -------
    float
        A share: 0.03 is 3 points.

    Raises
    ------
    ValueError
        A number below 1, a level or proportion out of range.

    Examples
    --------
    >>> round(half_width_of_proportion(500, 0.8), 4)
    0.0287
    """
    if not n >= 1:
        raise ValueError(f"n must be 1 or more; got {n!r}")
    proportion = float(checks.check_probabilities("p", p))
    return float(ndtri(0.5 + checks.check_confidence_level(confidence_level) / 2)) * sqrt(
        proportion * (1 - proportion) / n
    )


def required_samples(
    P_new_support: ArrayLike,
    P: ArrayLike,
    system: ArrayLike,
    label: ArrayLike,
    overlap: ArrayLike,
    *,
    target_variance: float,
    bounds: tuple[int, int],
    own_term: str = "second_moment",
) -> int:
    """Return how many instances to draw from a new system so that its joint precision reaches a
    variance.

    The smallest n_m within `bounds` whose planned variance (see :func:`planned_variance`) is at
    most `target_variance`, within a relative 1e-9. The planned variance need not fall as n_m grows,
    so sizes are tried in ascending order until one suffices.

    Parameters
    ----------
    P_new_support : array_like of float, shape (N, m)
        Probability of each of the N predictions of the new system under every system. The new
        system is the last column, and sums to 1.
    P, system, label
        The draws so far, (n, m), (n,), (n,), as in :func:`estimators.joint.joint_precision`; none
        of them is of the new system, though it has its column in P.
    overlap : array_like of float, shape (m, m)
        Σ_x p_i(x) p_j(x), the new system included.
    target_variance : float
        Positive; for instance 0.25 / 500, the variance of 500 labels of a proportion of ½.
    bounds : (int, int)
        Least and greatest size to consider. With (0, 500) existing labels alone may do, and 500 are
        enough: a system's own 500 draws have variance 0.25 / 500 at worst, though the published
        bound says 1 / 500.
    own_term : {"second_moment", "largest_variance"}
        How the variance of the new draws is bounded; see :func:`planned_variance`.

    Returns
    -------
    int
        The upper bound if no size within the bounds will do; `planned_variance` says what it gives.

    Raises
    ------
    ValueError
        As joint_precision; bounds that are negative or the wrong way round; a target that is not
        positive; draws of the new system; a last column that does not sum to 1.

    References
    ----------
    Chaganty 2018, appendix A.1.4.

    Examples
    --------
    With nobody's draws to help, the published bound is 1/n.

    >>> required_samples([[0.5], [0.5]], np.zeros((0, 1)), np.zeros(0, int), [], [[0.5]],
    ...                  target_variance=0.05, bounds=(0, 500))
    20
    """
    low, high = _check_bounds(bounds)
    if not 0 < target_variance < np.inf:
        raise ValueError(f"target_variance must be positive and finite; got {target_variance!r}")
    plan = _check_plan(P_new_support, P, system, label, overlap, own_term)
    enough = target_variance * (1 + TARGET_TOLERANCE)
    start = low
    while start <= high:
        # The smallest size is tried first: others' labels are often enough.
        sizes = np.arange(
            start, start + 1 if start == low else min(start + SIZES_AT_A_TIME, high + 1)
        )
        reached = np.flatnonzero(plan.variance(sizes) <= enough)
        if reached.size:
            return int(sizes[reached[0]])
        start += sizes.size
    return high


def planned_variance(
    n_new: ArrayLike,
    P_new_support: ArrayLike,
    P: ArrayLike,
    system: ArrayLike,
    label: ArrayLike,
    overlap: ArrayLike,
    *,
    own_term: str = "second_moment",
) -> FloatArray:
    """Return the planned variance of the new system's joint precision for each number of its own
    draws.

    Σ_{j<m} (w_j² / n_j) V_j + (w_m² / n_m) Σ_{x ∈ X_m} p_m(x) (p_m(x) / q(x))², where q = Σ_j w_j
    p_j with the heuristic weights and V_j is the variance of p_m f / q over the labelled draws of
    system j. The last sum is the published bound: it takes every new prediction as right and
    subtracts no square, so a system that shares nothing has 1/n, four times what it can have.
    `own_term="largest_variance"` puts the largest variance of p_m f / q over all f in [0, 1] in its
    place; then such a system has 1/(4n).

    Parameters
    ----------
    n_new : array_like of int, shape (k,)
        Numbers of draws of the new system, 0 or more.
    P_new_support, P, system, label, overlap
        As in :func:`required_samples`.
    own_term : {"second_moment", "largest_variance"}
        The published bound, or the sharp one.

    Returns
    -------
    ndarray of float64, shape (k,)
        Infinite for 0 draws if others' labelled draws cannot reach every prediction of the new
        system.

    Raises
    ------
    ValueError
        As :func:`required_samples`.

    References
    ----------
    Chaganty 2018, appendix A.1.4.

    Examples
    --------
    A copy of a system with four labels, three of them right:

    >>> P = np.full((4, 2), 0.5)
    >>> half = np.full((2, 2), 0.5)
    >>> planned_variance([0, 4], half, P, [0] * 4, [1, 1, 1, 0], half).tolist()
    [0.046875, 0.07421875]
    """
    sizes = np.asarray(n_new)
    if (
        sizes.ndim != 1
        or (sizes.size and not np.issubdtype(sizes.dtype, np.integer))
        or (sizes < 0).any()
    ):
        raise ValueError(f"n_new must hold whole numbers of 0 or more; got {n_new!r}")
    plan = _check_plan(P_new_support, P, system, label, overlap, own_term)
    return plan.variance(sizes.astype(np.int64))


@dataclass(frozen=True, eq=False)
class _Plan:
    """The terms of the planned variance: q = w p_m + (1 − w) q_old, so only q_old / p_m and the
    share w matter.

    `mass` is Σ p_m over the predictions that have the ratio `ratio` = q_old / p_m. Of the labelled
    draws only those that the new system predicts and that are not wrong add anything: `label` is
    their f, `draw_ratio` their ratio, `draw_system` their system; all are sorted by system.
    """

    mass: FloatArray
    ratio: FloatArray
    label: FloatArray
    draw_ratio: FloatArray
    draw_system: IntArray
    old_weight: FloatArray
    old_counts: FloatArray
    old_pull: float
    own_pull: float

    own_term: str

    def variance(self, sizes: IntArray) -> FloatArray:
        """Return the planned variance of each number of draws, shape (k,)."""
        step = max(1, ENTRIES_AT_A_TIME // (self.ratio.size + self.label.size + 1))
        parts = [
            self._variance(sizes[start : start + step]) for start in range(0, sizes.size, step)
        ]
        return np.concatenate([np.zeros(0), *parts])

    def _variance(self, sizes: IntArray) -> FloatArray:
        own_size = np.maximum(sizes, 1)
        share = own_size * self.own_pull / (own_size * self.own_pull + self.old_pull)
        h = 1 / (share[:, None] + (1 - share)[:, None] * self.ratio)
        own = (
            (self.mass * h**2).sum(axis=1)
            if self.own_term == "second_moment"
            else _largest_variance(h, self.mass)
        )
        planned = share**2 / own_size * own + self._variance_of_old_draws(share)
        unreached = self.old_pull == 0 or bool((self.ratio == 0).any())
        none: FloatArray = (
            np.full(1, np.inf) if unreached else self._variance_of_old_draws(np.zeros(1))
        )
        return np.where(sizes == 0, none, planned)

    def _variance_of_old_draws(self, share: FloatArray) -> FloatArray:
        """Return Σ_j (w_j² / n_j) V_j for each share of the new draws, w_j the old weights times 1
        − share.
        """
        if not self.label.size:
            return np.zeros(share.size)
        h = self.label / (share[:, None] + (1 - share)[:, None] * self.draw_ratio)
        starts = np.flatnonzero(np.diff(self.draw_system, prepend=-1))
        owner = self.draw_system[starts]
        n = self.old_counts[owner]
        mean, square = (
            np.add.reduceat(h, starts, axis=1) / n,
            np.add.reduceat(h**2, starts, axis=1) / n,
        )
        weight = (1 - share)[:, None] * self.old_weight[owner]
        total: FloatArray = (weight**2 / n * np.maximum(square - mean**2, 0)).sum(axis=1)
        return total


def _check_plan(
    P_new_support: ArrayLike,
    P: ArrayLike,
    system: ArrayLike,
    label: ArrayLike,
    overlap: ArrayLike,
    own_term: str,
) -> _Plan:
    if own_term not in OWN_TERMS:
        raise ValueError(f"own_term must be one of {', '.join(OWN_TERMS)}; got {own_term!r}")
    if np.ndim(label) != 1:
        raise ValueError(f"label must have one dimension; got shape {np.shape(label)}")
    draws = check_draws(P, system, label, overlap)
    m = draws.n_systems
    support = _check_support(P_new_support, m)
    if (draws.system == m - 1).any():
        raise ValueError(f"system must be less than {m - 1}, the new system's code; got {m - 1}")
    labelled = ~np.isnan(draws.label[:, 0])
    counts = draws.counts(labelled)
    old_weight = mixture_weights(draws.overlap, counts)[-1]
    f = draws.label[:, 0]
    adds = np.flatnonzero(
        labelled & (draws.P[:, -1] > 0) & (f > 0) & (old_weight[draws.system] > 0)
    )
    adds = adds[np.argsort(draws.system[adds], kind="stable")]
    ratio, row = np.unique((support @ old_weight) / support[:, -1], return_inverse=True)
    return _Plan(
        mass=np.bincount(row, weights=support[:, -1], minlength=ratio.size).astype(np.float64),
        ratio=ratio,
        label=f[adds],
        draw_ratio=(draws.P[adds] @ old_weight) / draws.P[adds, -1],
        draw_system=draws.system[adds],
        old_weight=old_weight,
        old_counts=np.maximum(counts, 1).astype(np.float64),  # without labels the weight is 0
        old_pull=float(draws.overlap[-1] @ counts),
        own_pull=float(draws.overlap[-1, -1]),
        own_term=own_term,
    )


def _largest_variance(h: FloatArray, mass: FloatArray) -> FloatArray:
    """Return the largest variance E[h² f] − (E[h f])² that any probabilities f of being right
    allow, for each row of h (k, r).

    Each row of h is descending, and its entries have the probabilities `mass`. The worst f is 1
    above some h, 0 below it, and a fraction at it: adding more increases the variance while h > 2
    E[h f].
    """
    first_moment = np.cumsum(mass * h, axis=1) - mass * h
    second_moment = np.cumsum(mass * h**2, axis=1) - mass * h**2
    part = np.clip(0.5 - first_moment / h, 0, mass)
    largest: FloatArray = (second_moment + h**2 * part - (first_moment + h * part) ** 2).max(axis=1)
    return largest


def _check_support(P_new_support: ArrayLike, m: int) -> FloatArray:
    support = checks.check_probabilities("P_new_support", P_new_support)
    if support.ndim != 2 or support.shape[1] != m:
        raise ValueError(f"P_new_support must have shape (N, {m}); got {support.shape}")
    total = float(support[:, -1].sum())
    if abs(total - 1) > 1e-9:
        raise ValueError(f"the last column of P_new_support must sum to 1; got {total!r}")
    return support[support[:, -1] > 0]


def _check_bounds(bounds: tuple[int, int]) -> tuple[int, int]:
    low, high = bounds
    if int(low) != low or int(high) != high or not 0 <= low <= high:
        raise ValueError(f"bounds must be two whole numbers, 0 <= low <= high; got {bounds!r}")
    return int(low), int(high)
