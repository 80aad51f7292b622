"""PRMSE, a measure of how well a machine's scores predict the true scores behind human ratings.

Agreement with human ratings depends on how much the raters differ. The proportional reduction in
mean squared error (PRMSE) asks how well the machine predicts the *true* score, the expectation of a
response's ratings, and so compares machines that were held against different raters.

References: Haberman (2008), *When can subscores have value?*; Loukina, Madnani, Cahill, Yao,
Johnson, Riordan and McCaffrey (2020), *Using PRMSE to evaluate automated scoring systems in the
presence of label noise*.
"""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from estimators import checks
from estimators.bootstrap import Bootstrap, bootstrap
from estimators.checks import FloatArray

ENOUGH, ENOUGH_AGREEING, AGREEING = (
    1000,
    500,
    0.65,
)  # double-scored responses; correlation of raters
FEWEST = 30  # shared responses; with fewer, two raters are not compared
SIGNIFICANT = 3.0  # standard errors
OTHER_SPREAD = 1.5  # ratio of raters' variances from which on there is a warning


@dataclass(frozen=True, eq=False)
class PRMSE:
    """The PRMSE (proportional reduction in mean squared error) of one machine's scores, and the
    variances that it is computed from.

    Attributes
    ----------
    value : float
        ``1 − mse/true_score_variance``; above 1 and below 0 by chance, never clipped. NaN where it
        is undefined: no response with two ratings, or a true-score variance that is not positive.
    mse : float
        Mean squared error of the machine against the true scores.
    true_score_variance, error_variance : float
        Variance of the true scores, and of ratings about them; the former may come out negative.
    n, n_multiple : int
        Responses with at least one rating, and with at least two.
    warnings : tuple of str
        What a reader must know before using the number.
    replicates : Bootstrap or None
        (value, true_score_variance, error_variance) of resampled responses.

    Examples
    --------
    >>> found = prmse([[3, 4], [2, 2], [5, 4], [1, 2]], [3.5, 2.0, 4.5, 1.5])
    >>> round(found.value, 3), round(found.true_score_variance, 3), found.n_multiple
    (1.11, 1.708, 4)
    """

    value: float
    mse: float
    true_score_variance: float
    error_variance: float
    n: int
    n_multiple: int
    warnings: tuple[str, ...]
    replicates: Bootstrap | None


def prmse(
    human: ArrayLike,
    system: ArrayLike,
    *,
    error_variance: float | None = None,
    random_subset: bool = True,
    n_resamples: int = 0,
    rng: np.random.Generator | None = None,
) -> PRMSE:
    """Return the PRMSE of a machine's scores, for complete, partial and unequal ratings.

    c_i ratings of response i with mean H̄_i and variance V_i, c_• in all, H̄ their grand mean, M_i
    the machine's score, N responses with c_i ≥ 1:

        V̂   = Σ (c_i − 1) V_i / Σ (c_i − 1)
        V̂_T = [Σ c_i (H̄_i − H̄)² − (N − 1) V̂] / [c_• − Σ c_i²/c_•]
        MSE = [Σ c_i (H̄_i − M_i)² − N V̂] / c_•          PRMSE = 1 − MSE/V̂_T

    Parameters
    ----------
    human : (N, R) array
        Ratings, NaN where a rater did not rate; (N,) is one rater. A column is one rater, or the
        first, second, … rating.
    system : (N,) array
        The machine's scores.
    error_variance : float, optional
        V̂ from elsewhere, at least 0: without it, at least one response must have two ratings.
    random_subset : bool
        False if the responses with two ratings were not drawn at random: then that is warned of.
    n_resamples : int
        Bootstrap resamples of responses; 0: none.
    rng : numpy.random.Generator, optional
        Needed where there are resamples.

    Returns
    -------
    PRMSE

    Raises
    ------
    ValueError
        If shapes disagree, a score is not finite, ``error_variance`` is negative,
        or ``rng`` is missing.

    References
    ----------
    Loukina et al. 2020, section 3 and appendix.

    Examples
    --------
    >>> prmse([[1, 1], [2, 2], [3, 3]], [1.0, 2.0, 3.0]).value
    1.0
    >>> prmse([1, 2, 3], [1.0, 2.0, 3.0]).value
    nan
    """
    ratings, score = _check_ratings(human, system)
    if error_variance is not None and not (error_variance >= 0 and math.isfinite(error_variance)):
        raise ValueError(f"error_variance must be finite and at least 0; got {error_variance!r}")
    table = _Sums.from_ratings(ratings, score)
    n = table.count.size
    value, mse, spread, noise = (float(x[0]) for x in table.solve(np.ones((1, n)), error_variance))
    replicates = None
    if n_resamples and n:
        if rng is None:
            raise ValueError("rng is needed to resample; got None")
        replicates = bootstrap(
            lambda weights: np.column_stack(
                [part for k, part in enumerate(table.solve(weights, error_variance)) if k != 1]
            ),
            n,
            rng=rng,
            n_resamples=n_resamples,
        )
    n_multiple = int((table.count > 1).sum())
    warnings = _prmse_warnings(
        ratings, score, value, spread, n_multiple, random_subset, error_variance
    )
    return PRMSE(value, mse, spread, noise, n, n_multiple, warnings, replicates)


@dataclass(frozen=True, eq=False)
class _Sums:
    """The ratings of each response: count, mean, sum of squares about the mean, and the machine's
    score. Means and scores are differences from the grand mean.
    """

    count: FloatArray
    mean: FloatArray
    squares: FloatArray
    score: FloatArray

    @classmethod
    def from_ratings(cls, ratings: FloatArray, score: FloatArray) -> _Sums:
        has_rating = ~np.isnan(ratings)
        rated = has_rating.any(axis=1)
        has_rating, ratings = has_rating[rated], ratings[rated]
        count = has_rating.sum(axis=1).astype(np.float64)
        # Sums of squares of scores far from 0 lose their digits. One of the ratings is subtracted
        # first, so that equal ratings become exactly 0, then the grand mean of what is left.
        origin = float(ratings[has_rating][0]) if count.size else 0.0
        ratings = np.where(has_rating, ratings - origin, 0.0)
        grand = float(ratings.sum() / count.sum()) if count.size else 0.0
        mean = ratings.sum(axis=1) / count
        squares = (np.where(has_rating, ratings - mean[:, None], 0.0) ** 2).sum(axis=1)
        return cls(count, mean - grand, squares, score[rated] - origin - grand)

    def solve(
        self, weights: FloatArray, error_variance: float | None
    ) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
        """Return PRMSE, MSE, true-score and error variance under each row of response weights."""
        c = self.count
        with np.errstate(divide="ignore", invalid="ignore"):
            noise = (weights @ self.squares) / (weights @ (c - 1))
            if error_variance is not None:
                noise = np.full(len(weights), error_variance)
            size, ratings = weights.sum(axis=1), weights @ c
            grand = (weights @ (c * self.mean)) / ratings
            between = weights @ (c * self.mean**2) - ratings * grand**2
            spread = (between - (size - 1) * noise) / (ratings - (weights @ c**2) / ratings)
            mse = (weights @ (c * (self.mean - self.score) ** 2) - size * noise) / ratings
            value = np.where(spread > 0, 1 - mse / spread, np.nan)
        return value, mse, spread, noise


def _prmse_warnings(
    ratings: FloatArray,
    score: FloatArray,
    value: float,
    spread: float,
    n_multiple: int,
    random_subset: bool,
    error_variance: float | None,
) -> tuple[str, ...]:
    warnings = ["Report PRMSE beside other measures of agreement, never by itself."]
    if error_variance is None:
        warnings += _subset_warnings(ratings, n_multiple, random_subset)
    given = ratings[~np.isnan(ratings)]
    if given.size and np.ptp(given) == 0:
        warnings.append("All ratings are equal, so PRMSE is undefined.")
    if spread < 0:
        warnings.append(
            "The variance of true scores comes out negative: people agree by chance only."
        )
    if value > 1:
        warnings.append("PRMSE comes out above 1, by chance: more responses need two ratings.")
    return (*warnings, *_rater_warnings(ratings, score))


def _subset_warnings(ratings: FloatArray, n_multiple: int, random_subset: bool) -> list[str]:
    if n_multiple == 0:
        return ["No response has two ratings, so PRMSE is undefined."]
    warnings = []
    if not random_subset:
        warnings.append(
            "The responses with two ratings were not drawn at random: PRMSE may be far off."
        )
    agreeing = rater_correlation(ratings) > AGREEING
    wanted = ENOUGH_AGREEING if agreeing else ENOUGH
    if n_multiple < wanted:
        warnings.append(
            f"Only {n_multiple} responses have two ratings; {wanted:,} are recommended"
            + (" where raters agree this well." if agreeing else ".")
        )
    return warnings


def _rater_warnings(ratings: FloatArray, score: FloatArray) -> list[str]:
    """Return sentences about the variance between raters, and whether they rated different
    responses.
    """
    has_rating = ~np.isnan(ratings)
    many = np.flatnonzero(has_rating.sum(axis=0) >= FEWEST)
    if many.size < 2:
        return []
    warnings = []
    own = [ratings[has_rating[:, j], j] for j in many]
    mean = np.array([part.mean() for part in own])
    error = np.array([part.std(ddof=1) / math.sqrt(part.size) for part in own])
    if _differ_beyond_chance(mean, error):
        warnings.append("Raters differ in their mean: some are more severe than others.")
    log_spread = np.log([max(float(part.var(ddof=1)), 1e-12) for part in own])
    log_error = np.array([math.sqrt(2 / (part.size - 1)) for part in own])
    if _differ_beyond_chance(log_spread, log_error) and np.ptp(log_spread) > math.log(OTHER_SPREAD):
        warnings.append("Raters differ in the spread of their ratings.")
    agreement = np.array([_pearson_correlation(ratings[:, j], score) for j in many])
    if np.isfinite(agreement).all():
        bounded = np.clip(agreement, -0.999, 0.999)
        errors = np.array([1 / math.sqrt(max(part.size - 3, 1)) for part in own])
        if _differ_beyond_chance(np.arctanh(bounded), errors):
            warnings.append("Raters differ in how far they agree with the machine.")
    pairs = itertools.combinations(many, 2)
    if not any((has_rating[:, i] & has_rating[:, j]).any() for i, j in pairs):
        warnings.append("Each rater rated another set of responses: they cannot be compared.")
    return warnings


def _differ_beyond_chance(values: FloatArray, errors: FloatArray) -> bool:
    """Return whether any two values differ by more than chance explains."""
    pairs = itertools.combinations(range(values.size), 2)
    return any(
        abs(values[i] - values[j]) > SIGNIFICANT * math.hypot(errors[i], errors[j])
        for i, j in pairs
    )


def rater_correlation(human: ArrayLike) -> float:
    """Return the correlation of two ratings of one response, over all pairs of raters.

    Every pair of columns counts by the responses that both rated.

    Parameters
    ----------
    human : (N, R) array
        Ratings, NaN where there is none.

    Returns
    -------
    float
        NaN where no two raters share three responses that vary.

    Raises
    ------
    ValueError
        If there are not two dimensions, or a rating is infinite.

    Examples
    --------
    >>> print(round(rater_correlation([[1, 2], [2, 2], [3, 4]]), 3))
    0.866
    """
    ratings = np.asarray(human, dtype=np.float64)
    if ratings.ndim != 2 or np.isinf(ratings).any():
        raise ValueError(f"human must be (N, R), finite or NaN; got shape {ratings.shape}")
    total = weight = 0.0
    for i, j in itertools.combinations(range(ratings.shape[1]), 2):
        both = ~np.isnan(ratings[:, i]) & ~np.isnan(ratings[:, j])
        shared = int(both.sum())
        together = (
            _pearson_correlation(ratings[both, i], ratings[both, j]) if shared > 2 else math.nan
        )
        if math.isfinite(together):
            total, weight = total + shared * together, weight + shared
    return total / weight if weight else math.nan


def _pearson_correlation(a: FloatArray, b: FloatArray) -> float:
    both = ~np.isnan(a) & ~np.isnan(b)
    if both.sum() < 3 or np.ptp(a[both]) == 0 or np.ptp(b[both]) == 0:
        return math.nan
    return float(np.corrcoef(a[both], b[both])[0, 1])


def _check_ratings(human: ArrayLike, system: ArrayLike) -> tuple[FloatArray, FloatArray]:
    ratings = np.asarray(human, dtype=np.float64)
    ratings = ratings[:, None] if ratings.ndim == 1 else ratings
    score = checks.check_finite("system", system)
    if ratings.ndim != 2 or score.shape != ratings.shape[:1]:
        raise ValueError(
            f"human must be (N, R) and system (N,); got {ratings.shape} and {score.shape}"
        )
    if np.isinf(ratings).any():
        raise ValueError("human must be finite or NaN; got an infinite rating")
    return ratings, score
