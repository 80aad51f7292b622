"""Means of ratings with automatic metrics as control variates,
from plain random samples of outputs.

A metric g is known for all outputs of a system, human ratings for a few; the mean of ``y − α g``
estimates the mean of y without any bias of the metric, and with less variance if the two go
together. For outputs with probabilities of their own, see :mod:`estimators.ratings`.

References: Chaganty, Mussmann and Liang (2018), *The price of debiasing automatic metrics in
natural language evaluation*; Angelopoulos, Duchi and Zrnic (2023), *PPI++*, for the tuned
multiplier.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from estimators import checks
from estimators.checks import FloatArray, IntArray
from estimators.components import (
    MetricWorth,
    RequiredJudgments,
    VarianceComponents,
    combine_with_prior,
    data_efficiency,
    mean_variance,
    metric_worth,
    required_judgments,
    variance_components,
)
from estimators.estimate import Estimate

__all__ = [
    "MetricWorth",
    "RequiredJudgments",
    "VarianceComponents",
    "combine_with_prior",
    "control_variate_mean",
    "data_efficiency",
    "mean_variance",
    "metric_worth",
    "regression_mean",
    "required_judgments",
    "variance_components",
]

PENALTIES = np.logspace(-1, 4, 11)  # of the ridge, for metrics with standard deviation 1
FLAT = 1e-12  # a variance below this share of the mean square is rounding error


def control_variate_mean(
    y: ArrayLike, g: ArrayLike, g_population: ArrayLike, *, power_tune: bool = True
) -> Estimate:
    """Return the mean rating of all outputs, estimated with one metric as control variate.

    As published (algorithm 1): with g standardised over the population, ``α̂ = mean((y − ȳ) g)`` and
    ``μ̂ = mean(y − α̂ g)``; its bias is ``−(n − 1)/n² · E[(Y − μ) g²]``, its variance about
    ``(σ_f² (1 − ρ²) + σ_a²)/n``. With ``power_tune`` the correction is multiplied by
    ``λ = Cov(y, h)/Var(h)`` cut to [0, 1], h_i = α̂_(−i) g_i without the output's own rating: a
    metric that says nothing is then left out instead of adding its noise.

    Parameters
    ----------
    y : (n,) array
        A rating (or a mean of ratings) of each output drawn, n ≥ 3; draws are independent, or
        without replacement from many.
    g : (n,) array
        The metric of the outputs drawn.
    g_population : (N,) array
        The metric of **all** outputs.
    power_tune : bool
        False: exactly as published.

    Returns
    -------
    Estimate
        The influence has one row an output drawn; the variance is its plain sum of squares. Degrees
        of freedom n − 2, for the method "t". A metric that is constant changes nothing.

    Raises
    ------
    ValueError
        If shapes disagree, a value is not finite, or there are fewer than three ratings.

    References
    ----------
    Chaganty, Mussmann and Liang 2018, algorithm 1 and equations (2) to (7).

    Examples
    --------
    >>> import numpy as np
    >>> g = np.linspace(0, 1, 101)
    >>> drawn = g[::4]  # the metric goes with the rating, and by itself it would say 0.5
    >>> print(round(control_variate_mean(0.2 + 0.5 * drawn, drawn, g).value, 3))
    0.45
    """
    rating, metric = _check_sample(y, g)
    whole = checks.check_finite("g_population", g_population)
    if metric.ndim != 1 or whole.ndim != 1 or whole.size == 0:
        raise ValueError(
            f"g and g_population must have one dimension; got {np.shape(g)}, {whole.shape}"
        )
    # A constant metric becomes exactly 0, and one far from 0 keeps its digits.
    metric, whole = metric - whole[0], whole - whole[0]
    centre, scale = float(whole.mean()), float(whole.std())
    n = rating.size
    if scale == 0:
        return _estimate_from_residuals(float(rating.mean()), rating - rating.mean(), 1)
    z = (metric - centre) / scale
    deviation = rating - rating.mean()
    slope = float((deviation * z).mean())
    if power_tune:
        slope *= _power_tuning_factor(rating, _leave_one_out_guesses(rating, z))
    corrected = rating - slope * z
    value = float(corrected.mean())
    return _estimate_from_residuals(value, corrected - value, min(2, n - 1))


def _leave_one_out_guesses(rating: FloatArray, z: FloatArray) -> FloatArray:
    """Return the guess of each rating from all other outputs: h_i = α̂_(−i) z_i, where α̂ is the
    slope of algorithm 1.
    """
    n = rating.size
    mean = (rating.sum() - rating) / (n - 1)
    slope = ((rating * z).sum() - rating * z) / (n - 1) - mean * (z.sum() - z) / (n - 1)
    products: FloatArray = slope * z
    return products


def _power_tuning_factor(rating: FloatArray, guess: FloatArray) -> float:
    """Return the multiplier λ in [0, 1] of the guess that minimises the variance of rating − λ
    guess.
    """
    centred = guess - guess.mean()
    spread = float(centred @ centred)
    if spread <= FLAT * float(guess @ guess) or spread == 0:
        return 0.0
    return min(1.0, max(0.0, float((rating - rating.mean()) @ centred) / spread))


def _estimate_from_residuals(value: float, residual: FloatArray, fitted: int) -> Estimate:
    """Return the estimate of an i.i.d. sample from its residuals and the number of fitted
    parameters.
    """
    n = residual.size
    degrees = n - fitted
    influence = residual / math.sqrt(n * degrees)
    return Estimate(value, float(influence @ influence), n, influence, degrees_of_freedom=degrees)


def regression_mean(
    y: ArrayLike,
    G: ArrayLike,
    G_population: ArrayLike,
    *,
    cross_fit: int = 10,
    fold: ArrayLike | None = None,
    ridge: float | None = None,
    power_tune: bool = True,
) -> Estimate:
    """Return the mean rating with several metrics as control variates, cross-fitted.

    ``μ̂ = mean(y_i − g_k(i)(G_i)) + Σ_k (n_k/n) mean over the population of g_k``: g_k is a ridge
    regression on the ratings of all folds but k, times λ_k as for :func:`control_variate_mean`,
    both told by leave-one-out within those folds. For independent draws it is exactly unbiased: no
    rating has a say in its own guess. Many weak metrics cost little: the penalty grows until they
    do not.

    Parameters
    ----------
    y : (n,) array
        A rating (or a mean of ratings) of each output drawn, n ≥ 3.
    G : (n, k) array
        Metrics of the outputs drawn; NaN (a metric that is missing) counts as the metric's mean.
    G_population : (N, k) array
        Metrics of **all** outputs.
    cross_fit : int
        Number of folds, at least 2; at most n are used.
    fold : (n,) integer array, optional
        Fold of each row, for outputs that belong together; by position, in turns, if left out.
    ridge : float, optional
        Penalty for metrics standardised over the population, ≥ 0;
        chosen by leave-one-out if left out.
    power_tune : bool
        False: λ = 1.

    Returns
    -------
    Estimate
        As :func:`control_variate_mean`; the variance comes from residuals against guesses that did
        not know them, with n − 1 degrees of freedom.

    Raises
    ------
    ValueError
        If shapes disagree, a value is infinite, or an option is out of range.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> metrics = rng.normal(size=(1000, 3))
    >>> rating = 0.5 + 0.1 * metrics[:, 0] - 0.1 * metrics[:, 2] + rng.normal(0, 0.05, 1000)
    >>> people = float(np.std(rating[:100], ddof=1) / 10)
    >>> round(regression_mean(rating[:100], metrics[:100], metrics).standard_error / people, 1)
    0.4
    """
    rating, metric = _check_sample(y, G, missing=True)
    whole = np.asarray(G_population, dtype=np.float64)
    if metric.ndim != 2 or whole.ndim != 2 or whole.shape[1] != metric.shape[1] or not len(whole):
        raise ValueError(
            f"G must be (n, k), G_population (N, k); got {metric.shape}, {whole.shape}"
        )
    if np.isinf(whole).any() or np.isinf(metric).any():
        raise ValueError("G and G_population must be finite or NaN; got an infinite value")
    if ridge is not None and not ridge >= 0:
        raise ValueError(f"ridge must be at least 0; got {ridge!r}")
    scale = _Scale.fit_scale(whole)
    mean = scale(whole).mean(axis=0)
    folds = _read_folds(rating.size, cross_fit, fold)
    z = scale(metric) - mean
    residual = rating.copy()
    for code in np.unique(folds):
        here = folds == code
        if not here.all():
            slopes = _ridge_slopes(rating[~here], z[~here], ridge, power_tune)
            residual[here] -= z[here] @ slopes
    value = float(residual.mean())
    return _estimate_from_residuals(value, residual - value, 1)


class _Scale(NamedTuple):
    """Standardises metrics by their population; missing values become the mean."""

    centre: FloatArray
    size: FloatArray

    @classmethod
    def fit_scale(cls, whole: FloatArray) -> _Scale:
        scored = ~np.isnan(whole)
        count = np.maximum(scored.sum(axis=0), 1)
        origin = np.where(scored.any(axis=0), np.fmin.reduce(whole, axis=0), 0.0)
        above = np.where(scored, whole - origin, 0.0)  # exactly 0 where a metric is constant
        mean = above.sum(axis=0) / count
        variance = np.where(scored, (above - mean) ** 2, 0.0).sum(axis=0) / count
        return cls(origin + mean, np.sqrt(np.where(variance > 0, variance, np.inf)))

    def __call__(self, metrics: FloatArray) -> FloatArray:
        scaled: FloatArray = np.nan_to_num((metrics - self.centre) / self.size)
        return scaled


def _read_folds(n: int, k: int, fold: ArrayLike | None) -> IntArray:
    if fold is not None:
        return checks.check_codes("fold", fold, n)
    if k < 2:
        raise ValueError(f"cross_fit must be at least 2; got {k!r}")
    return np.arange(n, dtype=np.int64) % min(k, n)


def _ridge_slopes(
    rating: FloatArray, z: FloatArray, ridge: float | None, power_tune: bool
) -> FloatArray:
    """Return the slopes β of the ridge regression with an intercept, times λ. The penalty and λ are
    chosen by leave-one-out.
    """
    deviation, centred = rating - rating.mean(), z - z.mean(axis=0)
    left, sizes, right = np.linalg.svd(centred, full_matrices=False)
    explained = sizes > 1e-9 * max(sizes.max(initial=0.0), 1e-300)
    left, sizes, right = left[:, explained], sizes[explained], right[explained]
    shares = left.T @ deviation
    best, kept = math.inf, np.zeros(z.shape[1])
    for penalty in PENALTIES if ridge is None else [ridge]:
        shrink = sizes**2 / (sizes**2 + penalty)
        leverage = 1 / rating.size + (left**2) @ shrink
        error = (deviation - left @ (shrink * shares)) / np.maximum(1 - leverage, 1e-9)
        loss = float(error @ error)
        if loss < best:
            guess = rating - error
            multiplier = _power_tuning_factor(rating, guess) if power_tune else 1.0
            best, kept = loss, multiplier * (right.T @ (shrink / sizes * shares))
    return kept


def _check_sample(
    y: ArrayLike, g: ArrayLike, *, missing: bool = False
) -> tuple[FloatArray, FloatArray]:
    rating = checks.check_finite("y", y)
    metric = np.asarray(g, dtype=np.float64) if missing else checks.check_finite("g", g)
    if rating.ndim != 1 or metric.shape[:1] != rating.shape:
        raise ValueError(
            f"y must be (n,) and g have as many rows; got {rating.shape}, {metric.shape}"
        )
    if rating.size < 3:
        raise ValueError(f"y must have at least three ratings; got {rating.size}")
    return rating, metric
