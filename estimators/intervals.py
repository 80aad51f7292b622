"""Intervals for one proportion: Wilson's, and the rule that the board prints."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import ndtri, stdtrit

from estimators import checks
from estimators.checks import Numbers, float_or_array

NEARLY_ALL = 0.8
"""Share of a system's weight from which on nearly all of it counts as judged"""
HANDFUL = 5
"""Number of unjudged predictions that always counts as few"""
LEAST = 1e-100
"""Smallest number of judgments for which an interval is computed: with fewer it is [0, 1] anyway,
and the square of 1/n overflows
"""
MODEL_LABELS = 2  # right labels out of n that the model may expect although none was found


class ConfidenceInterval(NamedTuple):
    """The two ends of an interval; arrays over systems where the estimate is one.

    Examples
    --------
    >>> low, high = ConfidenceInterval(low=0.25, high=0.75)
    >>> high - low
    0.5
    """

    low: Numbers
    high: Numbers


def wilson_interval(
    value: ArrayLike, n_effective: ArrayLike, confidence_level: float = 0.8
) -> ConfidenceInterval:
    """Return Wilson's score interval of a proportion.

    The set of all p with ``(value − p)² ≤ z² p (1 − p) / n_effective`` (Wilson 1927).

    Parameters
    ----------
    value : float or (m,) array
        Estimated proportions, in [0, 1].
    n_effective : float or (m,) array
        The number of independent labels that the estimate is worth; > 0, need not be whole, may be
        infinite.
    confidence_level : float
        Nominal coverage, strictly between 0 and 1.

    Returns
    -------
    ConfidenceInterval
        ``low`` and ``high``, of the broadcast shape, inside [0, 1].

    Raises
    ------
    ValueError
        If a proportion leaves [0, 1] or an effective number is not positive.

    Examples
    --------
    >>> low, high = wilson_interval(0.5, 100, confidence_level=0.95)
    >>> print(f"{low:.4f} {high:.4f}")
    0.4038 0.5962
    """
    p = checks.check_probabilities("value", value)
    n = np.asarray(n_effective, dtype=np.float64)
    if not np.all(n > 0):
        raise ValueError(f"n_effective must be positive; got {n[~(n > 0)].flat[0]!r}")
    z = ndtri(0.5 + checks.check_confidence_level(confidence_level) / 2)
    n = np.maximum(n, LEAST)
    shrink = 1 / (1 + z * z / n)
    centre = (p + z * z / (2 * n)) * shrink
    half = z * np.sqrt(p * (1 - p) / n + (z / (2 * n)) ** 2) * shrink
    return ConfidenceInterval(
        float_or_array(np.clip(centre - half, 0, 1)), float_or_array(np.clip(centre + half, 0, 1))
    )


def score_interval(
    value: ArrayLike,
    variance: ArrayLike,
    n: ArrayLike,
    *,
    anticipated: ArrayLike = 0.0,
    total_g: ArrayLike = 0.0,
    confidence_level: float = 0.8,
    degrees_of_freedom: ArrayLike = np.inf,
    half_step: ArrayLike = 0.0,
    agreed: ArrayLike = np.nan,
) -> ConfidenceInterval:
    """Return the interval of a weighted proportion that the board prints.

    ``V = max(variance, anticipated)``; ``p̃ = clip(value, max(½/n, min(½ total_g, 2/n)), 1 −
    ½/n)``;
    ``n_eff = p̃(1 − p̃)/V``; Wilson's interval of (p̃, n_eff), its ends moved outwards by
    ``half_step``, extended to contain the value clipped to [0, 1], and what all
    labels agree on.

    The realised variance is too small exactly when the labels seen happen to agree (all right, all
    wrong), so the anticipated variance is its floor, and p̃ keeps away from the ends where a
    proportion would seem free of error. What the model says counts for p̃ only as far as labels can
    still agree with it: not capped at 2/n, a model that promises far too much would lift p̃ above
    the truth, and the interval with it (it then covers 0.5 for 0.8).

    Wilson's ends are inside (0, 1), and with a model the value is below 1 every other time where
    all is right: without ``agreed`` intervals of 80 % and of 95 % held 1 in half of 2,000 samples.

    Parameters
    ----------
    value, variance : float or (m,) array
        The estimate (may leave [0, 1]) and its estimated variance.
    n : int or (m,) array
        Labelled targets behind the estimate.
    anticipated : float or (m,) array
        :func:`estimators.horvitz_thompson.anticipated_variance`, or 0.
    total_g : float or (m,) array
        Σ p g, what the model alone says.
    confidence_level : float
        Nominal coverage.
    degrees_of_freedom : float or (m,) array
        Where finite (few documents), the normal quantile becomes Student's: V is scaled by (t/z)².
    half_step : float or (m,) array
        :func:`half_label_step`, where nearly all is judged.
    agreed : float or (m,) array
        0 or 1 where all labels say the same, else NaN.

    Returns
    -------
    ConfidenceInterval
        NaN where the value is NaN; [0, 1] where there is no label or no finite variance; the point
        where V = 0.

    Raises
    ------
    ValueError
        If a variance is negative.

    Examples
    --------
    >>> low, high = score_interval(1.0, 0.0, 50, anticipated=0.0004)
    >>> print(f"{low:.3f} {high:.3f}")
    0.920 1.000
    >>> score_interval(0.25, 0.0, 4)
    ConfidenceInterval(low=0.25, high=0.25)
    """
    estimate, spread, floor, count, model, df, step, alike = np.broadcast_arrays(
        *(
            np.asarray(x, dtype=np.float64)
            for x in (
                value,
                variance,
                anticipated,
                n,
                total_g,
                degrees_of_freedom,
                half_step,
                agreed,
            )
        )
    )
    for name, array in (("variance", spread), ("anticipated", floor)):
        if np.any(array < 0):
            raise ValueError(f"{name} must be at least 0; got {array[array < 0].flat[0]!r}")
    with np.errstate(invalid="ignore"):
        total = np.maximum(spread, floor) * np.square(
            t_to_normal_quantile_ratio(df, confidence_level)
        )
    half_label = 0.5 / np.maximum(count, 1)
    lowest = np.maximum(half_label, np.minimum(0.5 * model, MODEL_LABELS / np.maximum(count, 1)))
    lowest = np.minimum(lowest, 1 - half_label)
    centre = np.clip(np.nan_to_num(estimate), lowest, 1 - half_label)
    has_variance = (total > 0) & np.isfinite(total)
    with np.errstate(over="ignore"):  # a variance of almost 0: arbitrarily many
        effective = np.where(
            has_variance, centre * (1 - centre) / np.where(has_variance, total, 1.0), np.inf
        )
    low, high = wilson_interval(centre, effective, confidence_level)
    low, high = np.maximum(low - step, 0.0), np.minimum(high + step, 1.0)
    low, high = np.fmin(low, alike), np.fmax(high, alike)
    clipped = np.clip(estimate, 0, 1)
    exact = (total == 0) & (count > 0)
    blind = (count == 0) | ~np.isfinite(total)
    low = np.where(exact, clipped, np.where(blind, 0.0, np.minimum(low, clipped)))
    high = np.where(exact, clipped, np.where(blind, 1.0, np.maximum(high, clipped)))
    undefined = np.isnan(estimate)
    return ConfidenceInterval(
        float_or_array(np.where(undefined, np.nan, low)),
        float_or_array(np.where(undefined, np.nan, high)),
    )


SPANS = (2.5, 5.0, 10.0, 20.0, 50.0)
FACTORS = {0.8: (1.49, 1.62, 1.70, 1.77, 1.85), 0.95: (1.30, 1.38, 1.43, 1.47, 1.51)}
"""Quantiles of max |B(t)|/√t over t in [1, span], B a Brownian motion, as multiples of the normal
quantile: 200,000 paths, rounded up"""


def interim_width_factor(span: float, confidence_level: float = 0.8) -> float:
    """Return how much wider an interval is that stays valid at every moment than one that is
    computed only once. It is valid while the variance falls from `span` times its planned value to
    that value.

    Estimates from nested samples have independent increments, so that to first order estimate −
    truth is B(t)/t at information t = 1/V. Together such intervals are ever wrong about as often as
    the level says, if each is made with max(V, planned V).

    Parameters
    ----------
    span : float
        Variance at the first look over the planned variance, at least 1; less than 2.5 counts as
        2.5, more than 50 as 50.
    confidence_level : float
        0.8 or 0.95.

    Returns
    -------
    float
        The factor, linear in log span between the computed ones.

    Raises
    ------
    KeyError
        For another level.

    References
    ----------
    Armitage, McPherson and Rowe 1969; Jennison and Turnbull 1989.

    Examples
    --------
    >>> (interim_width_factor(5.0), interim_width_factor(5.0, 0.95),
    ...  round(interim_width_factor(7.0), 3))
    (1.62, 1.38, 1.659)
    """
    return float(np.interp(np.log(span), np.log(SPANS), FACTORS[confidence_level]))


def are_few_unjudged(p: ArrayLike, judged_weights: ArrayLike) -> bool:
    """Return whether all but a few predictions may be judged; otherwise :func:`half_label_step`
    is 0.

    Parameters
    ----------
    p : (N,) array
        Weights of all predictions of a system.
    judged_weights : (n,) array
        Weights of those that are judged, some of which may be 0.

    Returns
    -------
    bool
        True also in cases that depend on rounding.

    Examples
    --------
    >>> import numpy as np
    >>> (are_few_unjudged(np.full(10, 0.1), np.full(9, 0.1)),
    ...  are_few_unjudged(np.full(100, 0.01), np.full(50, 0.01)))
    (True, False)
    """
    weight, judged_weight = (
        checks.check_non_negative("p", p),
        checks.check_non_negative("judged", judged_weights),
    )
    left = np.count_nonzero(weight) - np.count_nonzero(judged_weight)
    total = float(weight.sum())
    return bool(
        left <= HANDFUL or total - float(judged_weight.sum()) <= (1 - NEARLY_ALL + 1e-6) * total
    )


def half_label_step(p: ArrayLike, judged_weights: ArrayLike) -> float:
    """Return half of the change of the score by one more right prediction, if all but a few
    predictions are judged; else 0.

    ``½ Σ_R p² / Σ_R p`` over the predictions R that are not judged, where these have at most a
    fifth of the weight or are at most five. There a score can only be one of few, and the normal
    law, which knows of none between them, misses up to half of the time; a correction for
    continuity (Yates 1934) of the finite remainder keeps the level.

    Parameters
    ----------
    p : (N,) array
        Weights of all predictions of a system.
    judged_weights : (N,) boolean array
        Which of them are judged.

    Returns
    -------
    float
        0 where all are judged, too: then nothing is left to chance.

    Raises
    ------
    ValueError
        If shapes disagree or a weight is negative.

    Examples
    --------
    >>> import numpy as np
    >>> round(half_label_step(np.full(10, 0.1), np.arange(10) < 9), 3)   # one of ten is left
    0.05
    >>> half_label_step(np.full(100, 0.01), np.arange(100) < 50)
    0.0
    """
    weight = checks.check_non_negative("p", p)
    is_judged = np.asarray(judged_weights, dtype=np.bool_)
    if weight.shape != is_judged.shape:
        raise ValueError(f"p and judged must agree; got {weight.shape} and {is_judged.shape}")
    left = weight[~is_judged & (weight > 0)]
    total = float(left.sum())
    few = left.size <= HANDFUL or total <= (1 - NEARLY_ALL + 1e-9) * float(weight.sum())
    return 0.5 * float(left @ left) / total if left.size and few else 0.0


def t_to_normal_quantile_ratio(degrees_of_freedom: ArrayLike, confidence_level: float) -> Numbers:
    """Return Student's quantile over the normal one: how much wider an interval is with few degrees
    of freedom.

    Parameters
    ----------
    degrees_of_freedom : float or (m,) array
        Infinite: the normal quantile itself, a ratio of 1.
    confidence_level : float
        Nominal coverage, strictly between 0 and 1.

    Returns
    -------
    float or (m,) array
        At least 1; infinite where there is no degree of freedom (one document).

    Examples
    --------
    >>> (round(t_to_normal_quantile_ratio(9, 0.8), 3),
    ...  t_to_normal_quantile_ratio(float("inf"), 0.8), t_to_normal_quantile_ratio(0, 0.8))
    (1.079, 1.0, inf)
    """
    df = np.asarray(degrees_of_freedom, dtype=np.float64)
    middle = 0.5 + checks.check_confidence_level(confidence_level) / 2
    with np.errstate(invalid="ignore"):
        ratio = np.where(df > 0, stdtrit(np.where(df > 0, df, 1.0), middle) / ndtri(middle), np.inf)
    return float_or_array(np.where(np.isposinf(df), 1.0, ratio))
