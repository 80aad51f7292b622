"""Variance between outputs, variance between annotators, the judgments that a metric saves, and the
number of judgments for an interval.

A judgment of output z is ``Y(z)``, its expectation over people ``f(z) = E Y(z)``. The variance
between outputs is ``σ_f² = Var f``, the variance between annotators of one output ``σ_a² = E Var
Y``. A metric g that is known for **all** outputs takes away the part of σ_f² that it explains,
whatever its own bias; σ_a² it cannot touch. :mod:`estimators.control_variates` offers these
functions too.

Reference: Chaganty, Mussmann and Liang (2018), *The price of debiasing automatic metrics in natural
language evaluation*.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import ndtri

from estimators import checks
from estimators.bootstrap import Bootstrap, bootstrap
from estimators.checks import BoolArray, FloatArray, IntArray
from estimators.intervals import ConfidenceInterval
from estimators.sums import sum_by_code

FLAT = 1e-12  # a metric whose variance is below this share of its mean square is rounding error
COMPONENTS = ("sigma_f2", "sigma_a2", "gamma")
WORTH = ("rho", "r", "data_efficiency")


@dataclass(frozen=True, eq=False)
class VarianceComponents:
    """The variance between outputs, and the variance between annotators of one output.

    Attributes
    ----------
    sigma_f2 : float
        σ_f², the variance of f over the outputs (within groups, if there are any). May be negative
        by chance, and is then told in ``warnings``. NaN with fewer than two outputs in every group.
    sigma_a2 : float
        σ_a², the variance of single judgments about one output. NaN if no output has two.
    gamma : float
        σ_a²/σ_f²; NaN where it is undefined, or σ_f² is not positive.
    n_items, n_judgments, n_repeated : int
        Outputs, judgments, and outputs with at least two judgments.
    warnings : tuple of str
        What a reader should know before using the numbers.
    replicates : Bootstrap or None
        (sigma_f2, sigma_a2, gamma) of resampled outputs.

    Examples
    --------
    >>> components = VarianceComponents(0.25, 0.25, 1.0, 100, 120, 20, (), None)
    >>> data_efficiency(0.5, components.gamma)
    1.1428571428571428
    """

    sigma_f2: float
    sigma_a2: float
    gamma: float
    n_items: int
    n_judgments: int
    n_repeated: int
    warnings: tuple[str, ...]
    replicates: Bootstrap | None

    def confidence_interval(
        self, quantity: str, confidence_level: float = 0.8, method: str = "percentile"
    ) -> ConfidenceInterval:
        """Return the bootstrap interval of "sigma_f2", "sigma_a2" or "gamma".

        Raises
        ------
        ValueError
            An unknown quantity, or components that were made without resamples.
        """
        return _bootstrap_interval(self.replicates, COMPONENTS, quantity, confidence_level, method)


def variance_components(
    values: ArrayLike,
    item: ArrayLike,
    *,
    group: ArrayLike | None = None,
    n_resamples: int = 0,
    rng: np.random.Generator | None = None,
) -> VarianceComponents:
    """Return the variance between outputs (σ_f²), between annotators of one output (σ_a²) and their
    ratio γ = σ_a²/σ_f², from single judgments, with intervals over resampled outputs.

    ``σ̂_a² = Σ_i Σ_k (y_ik − ȳ_i)² / Σ_i (c_i − 1)`` over outputs with c_i ≥ 2 judgments, and
    ``σ̂_f² = Var(ȳ_i) − σ̂_a² mean(1/c_i)`` (ddof 1). Both are unbiased if the outputs with two
    judgments are a random part.

    Parameters
    ----------
    values : (n,) array
        Single judgments; NaN is missing and left out.
    item : (n,) integer array
        Code of the output that each judgment is about.
    group : (n,) integer array, optional
        Code of the system (or stratum) of each output: variances are then taken within groups, and
        the groups pooled by their degrees of freedom.
    n_resamples : int
        Bootstrap resamples of outputs; 0: no intervals.
    rng : numpy.random.Generator, optional
        Needed where there are resamples.

    Returns
    -------
    VarianceComponents
        NaN where nothing can be told.

    Raises
    ------
    ValueError
        If shapes disagree, a value is infinite, an output lies in two groups,
        or ``rng`` is missing.

    References
    ----------
    Chaganty, Mussmann and Liang 2018, section 3.

    Examples
    --------
    >>> components = variance_components([1, 0, 1, 1, 0, 0], [0, 0, 1, 1, 2, 2])
    >>> round(components.sigma_a2, 4), round(components.sigma_f2, 4), round(components.gamma, 4)
    (0.1667, 0.1667, 1.0)
    """
    summaries = _summarise_items(values, item, group)
    value, replicates = _statistic_and_bootstrap(
        summaries, _components_under_weights, n_resamples, rng
    )
    sigma_f2, sigma_a2, gamma = (float(number) for number in value)
    repeated = int((summaries.count > 1).sum())
    judgments = int(summaries.count.sum())
    warnings = _component_warnings(sigma_f2, repeated)
    return VarianceComponents(
        sigma_f2, sigma_a2, gamma, summaries.count.size, judgments, repeated, warnings, replicates
    )


def _component_warnings(sigma_f2: float, repeated: int) -> tuple[str, ...]:
    warnings = []
    if repeated == 0:
        warnings.append("No output has two judgments, so what people differ by cannot be told.")
    elif repeated < 30:
        warnings.append(
            f"Only {repeated} outputs have two judgments: the variance between people is rough."
        )
    if sigma_f2 < 0:
        warnings.append(
            "The variance between outputs comes out negative: people differ by more"
            " than the outputs."
        )
    return tuple(warnings)


def combine_with_prior(
    measured: VarianceComponents | None,
    *,
    sigma_f2: float,
    sigma_a2: float,
    strength: float = 20.0,
) -> VarianceComponents:
    """Return variance components for planning: the measured ones, combined with a prior that has
    the weight of a number of outputs.

    Each variance is the mean of prior and measurement, weighted by ``strength`` and by the degrees
    of freedom of the measurement (outputs − 1 and judgments − outputs).

    Parameters
    ----------
    measured : VarianceComponents or None
        None before a pilot: the prior alone.
    sigma_f2, sigma_a2 : float
        The prior, at least 0.
    strength : float
        For how many outputs the prior counts, > 0.

    Returns
    -------
    VarianceComponents
        Without resamples; neither variance is below 0.

    Raises
    ------
    ValueError
        If a prior is negative or the strength is not positive.

    Examples
    --------
    >>> prior = combine_with_prior(None, sigma_f2=0.26, sigma_a2=0.32)
    >>> round(prior.gamma, 2)
    1.23
    """
    prior = checks.check_non_negative("sigma_f2 and sigma_a2", [sigma_f2, sigma_a2])
    if not strength > 0:
        raise ValueError(f"strength must be positive; got {strength!r}")
    warnings: tuple[str, ...] = ("Planned from other studies: nobody has been asked here yet.",)
    if measured is None:
        values, counts = prior, (0, 0, 0)
    else:
        counts = (measured.n_items, measured.n_judgments, measured.n_repeated)
        seen = np.array([measured.sigma_f2, measured.sigma_a2])
        weight = np.array([max(counts[0] - 1, 0), max(counts[1] - counts[0], 0)], dtype=np.float64)
        weight[np.isnan(seen)] = 0.0
        values = (strength * prior + weight * np.nan_to_num(seen)) / (strength + weight)
        values, warnings = np.maximum(values, 0.0), measured.warnings
    f2, a2 = float(values[0]), float(values[1])
    return VarianceComponents(f2, a2, _ratio_or_nan(a2, f2), *counts, warnings, None)


def data_efficiency(rho: float, gamma: float) -> float:
    """Return the data efficiency DE: how many times fewer judgments a metric needs for the same
    interval.

    ``DE = (1 + γ)/(1 − ρ² + γ)``, at most ``(1 + γ)/γ``; halving the cost needs ρ² ≥ (1 + γ)/2.

    Parameters
    ----------
    rho : float
        Correlation of the metric with f, in [−1, 1], corrected for the noise of the judgments.
    gamma : float
        σ_a²/σ_f², at least 0.

    Returns
    -------
    float
        At least 1; infinite for a perfect metric and people who never differ.

    Raises
    ------
    ValueError
        If an argument is out of range.

    References
    ----------
    Chaganty, Mussmann and Liang 2018, section 3.3.

    Examples
    --------
    >>> round(data_efficiency(0.8, 1.0), 3), data_efficiency(1.0, 1.0), data_efficiency(0.0, 3.0)
    (1.471, 2.0, 1.0)
    """
    if not -1 <= rho <= 1:
        raise ValueError(f"rho must lie in [-1, 1]; got {rho!r}")
    if not gamma >= 0:
        raise ValueError(f"gamma must be at least 0; got {gamma!r}")
    left = 1 - rho * rho + gamma
    return math.inf if left == 0 else (1 + gamma) / left


@dataclass(frozen=True, eq=False)
class MetricWorth:
    """How much a metric adds to human judgments of the same outputs: its correlation with them, and
    the judgments that it saves.

    Attributes
    ----------
    rho : float
        Correlation with f, corrected for the noise of judgments; may leave [−1, 1] by chance. NaN
        where σ_f² is not positive or unknown.
    r : float
        Correlation with a single judgment.
    data_efficiency : float
        ``1/(1 − r²)``, which is (1 + γ)/(1 − ρ² + γ).
    components : VarianceComponents
        Of the judgments.
    replicates : Bootstrap or None
        (rho, r, data_efficiency) of resampled outputs.

    Examples
    --------
    >>> values, item = [1, 1, 1, 0, 0, 0, 0, 1], [0, 0, 1, 1, 2, 2, 3, 3]
    >>> worth = metric_worth(values, item, [0.9, 0.6, 0.2, 0.4])
    >>> round(worth.rho, 3), round(worth.r, 3), round(worth.data_efficiency, 3)
    (1.914, 0.723, 2.098)
    """

    rho: float
    r: float
    data_efficiency: float
    components: VarianceComponents
    replicates: Bootstrap | None

    def confidence_interval(
        self, quantity: str, confidence_level: float = 0.8, method: str = "percentile"
    ) -> ConfidenceInterval:
        """Return the bootstrap interval of "rho", "r" or "data_efficiency".

        Raises
        ------
        ValueError
            An unknown quantity, or a worth that was measured without resamples.
        """
        return _bootstrap_interval(self.replicates, WORTH, quantity, confidence_level, method)


def metric_worth(
    values: ArrayLike,
    item: ArrayLike,
    g: ArrayLike,
    *,
    group: ArrayLike | None = None,
    n_resamples: int = 0,
    rng: np.random.Generator | None = None,
) -> MetricWorth:
    """Return the correlation of a metric with people's judgments of single outputs, and the
    judgments that it saves.

    With C the covariance of output means ȳ_i and g: ``ρ̂ = C/√(σ̂_f² Var g)``, ``r̂ = C/√((σ̂_f² +
    σ̂_a²) Var g)``. Without an output judged twice σ_a² is not known: the values are then taken for
    single judgments, and ρ is NaN.

    Parameters
    ----------
    values, item, group, n_resamples, rng
        As for :func:`variance_components`; with groups, covariances are within groups.
    g : (number of distinct items,) array
        The metric for each output, in the order of the sorted codes of ``item``; NaN leaves the
        output out.

    Returns
    -------
    MetricWorth
        NaN for a metric that does not vary.

    Raises
    ------
    ValueError
        As :func:`variance_components`, and if ``g`` does not have one number an output.

    Examples
    --------
    >>> worth = metric_worth([1, 0, 1, 0], [0, 1, 2, 3], [0.8, 0.1, 0.9, 0.2])
    >>> round(worth.r, 3), worth.rho
    (0.99, nan)
    """
    every = _summarise_items(values, item, group)
    metric = np.asarray(g, dtype=np.float64)
    if metric.shape != every.code.shape:
        raise ValueError(
            f"g must have one number for each of {every.code.size} items; got {metric.shape}"
        )
    kept = ~np.isnan(metric)
    checks.check_finite("g", metric[kept])
    summaries = every.only(kept)
    value, replicates = _statistic_and_bootstrap(
        summaries,
        lambda part, weights: _worth_under_weights(part, metric[kept], weights),
        n_resamples,
        rng,
    )
    rho, r, efficiency = (float(number) for number in value)
    ratings = np.asarray(values, dtype=np.float64)
    codes = np.asarray(item)
    judged = np.isin(codes, every.code[kept])
    groups = None if group is None else np.asarray(group)[judged]
    components = variance_components(ratings[judged], codes[judged], group=groups)
    return MetricWorth(rho, r, efficiency, components, replicates)


def mean_variance(
    n_items: int,
    *,
    sigma_f2: float,
    sigma_a2: float,
    rho: float = 0.0,
    per_item: float = 1.0,
    population: int | None = None,
) -> float:
    """Return the planned variance of a mean of ratings.

    ``[σ_f² (1 − ρ²)(1 − n/N) + σ_a²/c]/n``: n of N outputs, c judgments each. At a price a judgment
    c = 1 is best as long as n < N.

    Parameters
    ----------
    n_items : int
        Outputs judged, at least 1.
    sigma_f2, sigma_a2 : float
        Variance components, at least 0.
    rho : float
        Correlation of the metric (or of g) with f; 0: people alone.
    per_item : float
        c, judgments an output; a mean of 1.2 stands for 1/c = 1/1.2.
    population : int, optional
        N, all outputs of the system; unlimited if left out.

    Returns
    -------
    float
        With n = N only people's differences are left.

    Raises
    ------
    ValueError
        If a number is out of range, or n exceeds N.

    Examples
    --------
    >>> mean_variance(100, sigma_f2=0.25, sigma_a2=0.25)
    0.005
    >>> mean_variance(100, sigma_f2=0.25, sigma_a2=0.25, population=100)
    0.0025
    """
    checks.check_non_negative("sigma_f2 and sigma_a2", [sigma_f2, sigma_a2])
    if not -1 <= rho <= 1:
        raise ValueError(f"rho must lie in [-1, 1]; got {rho!r}")
    if not n_items >= 1 or not per_item > 0:
        raise ValueError(
            f"n_items must be at least 1, per_item positive; got {n_items}, {per_item}"
        )
    if population is not None and n_items > population:
        raise ValueError(f"n_items must be at most the population {population}; got {n_items!r}")
    left = 1.0 if population is None else 1 - n_items / population
    return (sigma_f2 * (1 - rho * rho) * left + sigma_a2 / per_item) / n_items


@dataclass(frozen=True)
class RequiredJudgments:
    """The number of judgments that an interval needs, and how they are best distributed.

    Attributes
    ----------
    items, per_item, judgments : int
        Outputs to judge, people each, and their product.
    half_width : float
        Of the interval that they are planned to give.
    everything : bool
        True if all outputs have to be judged.

    Examples
    --------
    >>> needed = RequiredJudgments(
    ...     items=100, per_item=1, judgments=100, half_width=0.05, everything=False
    ... )
    >>> needed.judgments
    100
    """

    items: int
    per_item: int
    judgments: int
    half_width: float
    everything: bool


def required_judgments(
    half_width: float,
    *,
    sigma_f2: float,
    sigma_a2: float,
    rho: float = 0.0,
    confidence_level: float = 0.8,
    per_item: int = 1,
    population: int | None = None,
) -> RequiredJudgments:
    """Return how many judgments a mean needs for an interval of ± half_width.

    The smallest n with ``z² · mean_variance(n) ≤ half_width²``. Where all N outputs with
    ``per_item`` people each are not enough, every output is judged by as many people as it takes.

    Parameters
    ----------
    half_width : float
        > 0, in the unit of the ratings.
    sigma_f2, sigma_a2, rho, population
        As for :func:`mean_variance`.
    confidence_level : float
        Nominal coverage, strictly between 0 and 1.
    per_item : int
        People an output, at least 1.

    Returns
    -------
    RequiredJudgments

    Raises
    ------
    ValueError
        If an argument is out of range.

    Examples
    --------
    >>> required_judgments(0.05, sigma_f2=0.26, sigma_a2=0.32).judgments
    382
    >>> required_judgments(0.05, sigma_f2=0.26, sigma_a2=0.32, rho=0.7).judgments
    298
    """
    if not half_width > 0 or not per_item >= 1:
        raise ValueError(
            f"half_width must be positive, per_item at least 1; got {half_width!r}, {per_item!r}"
        )
    planned = partial(mean_variance, sigma_f2=sigma_f2, sigma_a2=sigma_a2, rho=rho)
    planned(1)  # checks them
    z = float(ndtri(0.5 + checks.check_confidence_level(confidence_level) / 2))
    target = (half_width / z) ** 2
    spread = sigma_f2 * (1 - rho * rho)
    whole = target if population is None else target + spread / population
    items = max(1, _ceil_tolerantly((spread + sigma_a2 / per_item) / whole))
    people = per_item
    if population is not None and items > population:
        items, people = (
            population,
            max(per_item, _ceil_tolerantly(sigma_a2 / (population * target))),
        )
    variance = planned(items, per_item=people, population=population)
    return RequiredJudgments(
        items, people, items * people, z * math.sqrt(variance), items == population
    )


def _ceil_tolerantly(number: float) -> int:
    """Return the number rounded up, ignoring floating-point error."""
    return math.ceil(number * (1 - 1e-12))


@dataclass(frozen=True, eq=False)
class _Summaries:
    """The judgments of each output: count, mean, sum of squares about the mean, and group 0 … G −
    1.
    """

    code: IntArray
    count: FloatArray
    mean: FloatArray
    squares: FloatArray
    group: IntArray

    def only(self, kept: BoolArray) -> _Summaries:
        group = np.unique(self.group[kept], return_inverse=True)[1].astype(np.int64)
        return _Summaries(
            self.code[kept], self.count[kept], self.mean[kept], self.squares[kept], group
        )


def _summarise_items(values: ArrayLike, item: ArrayLike, group: ArrayLike | None) -> _Summaries:
    ratings = np.asarray(values, dtype=np.float64)
    if ratings.ndim != 1 or np.isinf(ratings).any():
        raise ValueError(
            f"values must be finite or NaN, in one dimension; got shape {ratings.shape}"
        )
    codes = checks.check_codes("item", item, ratings.size)
    groups = (
        np.zeros_like(codes) if group is None else checks.check_codes("group", group, ratings.size)
    )
    rated = ~np.isnan(ratings)
    ratings, codes, groups = ratings[rated], codes[rated], groups[rated]
    names, start, place = np.unique(codes, return_index=True, return_inverse=True)
    home = groups[start]
    for row in np.flatnonzero(home[place] != groups):
        raise ValueError(f"an item must lie in one group; got item {codes[row]} in two")
    count = np.bincount(place, minlength=names.size).astype(np.float64)
    mean = sum_by_code(ratings, place, names.size) / np.maximum(count, 1.0)
    squares = sum_by_code((ratings - mean[place]) ** 2, place, names.size)
    group_code = np.unique(home, return_inverse=True)[1].astype(np.int64)
    return _Summaries(names, count, mean, squares, group_code)


def _components_under_weights(part: _Summaries, weights: FloatArray) -> FloatArray:
    """Return (B, 3): the variances σ_f² between outputs and σ_a² between annotators, and their
    ratio γ, under each row of item weights.
    """
    spread, _, degrees = _covariance_within_groups(part, part.mean, part.mean, weights)
    with np.errstate(divide="ignore", invalid="ignore"):
        sigma_a2 = (weights @ part.squares) / (weights @ (part.count - 1))
        noise = sigma_a2 * (weights @ (1 / part.count)) / weights.sum(axis=1)
        sigma_f2 = np.where(degrees > 0, spread, np.nan) - noise
        gamma = np.where(sigma_f2 > 0, sigma_a2 / sigma_f2, np.nan)
    return np.column_stack([sigma_f2, sigma_a2, gamma])


def _worth_under_weights(part: _Summaries, metric: FloatArray, weights: FloatArray) -> FloatArray:
    """Return (B, 3): a metric's correlation with mean ratings (ρ) and with single ratings (r), and
    its data efficiency, under each row of item weights.
    """
    components = _components_under_weights(part, weights)
    sigma_f2, sigma_a2 = components[:, 0], components[:, 1]
    spread, _, _ = _covariance_within_groups(part, part.mean, part.mean, weights)
    total = np.where(np.isnan(sigma_a2), spread, sigma_f2 + sigma_a2)
    covariance, size, _ = _covariance_within_groups(part, part.mean, metric, weights)
    variance, _, _ = _covariance_within_groups(part, metric, metric, weights)
    variance = np.where(variance > FLAT * size, variance, np.nan)
    with np.errstate(divide="ignore", invalid="ignore"):
        r = covariance / np.sqrt(np.where(total > 0, total, np.nan) * variance)
        rho = covariance / np.sqrt(np.where(sigma_f2 > 0, sigma_f2, np.nan) * variance)
        efficiency = np.where(np.abs(r) < 1, 1 / (1 - r * r), np.where(np.isnan(r), np.nan, np.inf))
    return np.column_stack([rho, r, efficiency])


def _covariance_within_groups(
    part: _Summaries, left: FloatArray, right: FloatArray, weights: FloatArray
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return the covariance within groups (ddof 1 for each group), the mean square of ``right``
    about its minimum, and the degrees of freedom.
    """
    # Sums of squares of numbers far from 0 lose their digits.
    left, right = left - left.min(initial=np.inf), right - right.min(initial=np.inf)
    n_groups = int(part.group.max(initial=-1)) + 1
    member = np.zeros((part.group.size, n_groups))
    member[np.arange(part.group.size), part.group] = 1.0
    size = weights @ member
    with np.errstate(divide="ignore", invalid="ignore"):
        sums = (weights * left) @ member, (weights * right) @ member
        between = np.where(size > 0, sums[0] * sums[1] / size, 0.0).sum(axis=1)
        degrees = np.maximum(size - 1, 0).sum(axis=1)
        product = (weights @ (left * right) - between) / degrees
        square = (weights @ (right * right)) / weights.sum(axis=1)
    return product, square, degrees


def _statistic_and_bootstrap(
    summaries: _Summaries,
    statistic: Callable[[_Summaries, FloatArray], FloatArray],
    n_resamples: int,
    rng: np.random.Generator | None,
) -> tuple[FloatArray, Bootstrap | None]:
    """Return the statistic of the outputs, and its bootstrap if `n_resamples` is not 0."""
    n = summaries.count.size
    if n == 0:
        return np.full(3, np.nan), None
    if n_resamples == 0:
        return statistic(summaries, np.ones((1, n)))[0], None
    if rng is None:
        raise ValueError("rng is needed to resample; got None")
    replicates = bootstrap(
        lambda weights: statistic(summaries, weights),
        n,
        rng=rng,
        n_resamples=n_resamples,
        stratum=summaries.group,
    )
    return np.asarray(replicates.value), replicates


def _bootstrap_interval(
    replicates: Bootstrap | None, names: tuple[str, ...], quantity: str, level: float, method: str
) -> ConfidenceInterval:
    if quantity not in names:
        raise ValueError(f"quantity must be one of {', '.join(names)}; got {quantity!r}")
    if replicates is None:
        raise ValueError("there are no resamples; ask for n_resamples when measuring")
    place = names.index(quantity)
    low, high = replicates.confidence_interval(level, method=method)
    return ConfidenceInterval(float(np.asarray(low)[place]), float(np.asarray(high)[place]))


def _ratio_or_nan(above: float, below: float) -> float:
    return above / below if below > 0 else math.nan
