"""Bootstrap by multinomial weights: a resample is the number of times that each row was drawn, so a
statistic of B resamples is one matrix product. Supports strata (each system's draws) and clusters
(whole documents).

Intervals: basic (the published "empirical bootstrap"), percentile and BCa (Efron 1987).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import ndtr, ndtri

from estimators import checks
from estimators.checks import FloatArray, IntArray, Numbers, float_or_array
from estimators.intervals import ConfidenceInterval

METHODS = ("basic", "percentile", "bca")
ENTRIES_AT_A_TIME = 4_000_000

Statistic = Callable[[FloatArray], FloatArray]


@dataclass(frozen=True, eq=False)
class Bootstrap:
    """A statistic, its values on resamples, and (for BCa) its acceleration.

    Attributes
    ----------
    value : float or (m,) array
        The statistic of the data themselves.
    replicates : (B,) or (B, m) array
        The statistic of each resample.
    acceleration : float or (m,) array
        Skewness of the leave-one-out values over 6, for BCa; NaN where they do not vary. Worked out
        when it is first asked for: it takes the statistic of as many samples as there are units.

    Examples
    --------
    >>> import numpy as np
    >>> four = Bootstrap(value=0.5, replicates=np.array([0.25, 0.5, 0.5, 0.75]), skew=0.0)
    >>> round(four.standard_error, 3)
    0.204
    """

    value: Numbers
    replicates: FloatArray
    skew: Numbers | Callable[[], Numbers]
    """The acceleration, or a function that computes it."""

    @cached_property
    def acceleration(self) -> Numbers:
        """Return the skewness of the leave-one-out values over 6."""
        return self.skew() if callable(self.skew) else self.skew

    @property
    def standard_error(self) -> Numbers:
        """Return the standard deviation of the replicates."""
        return float_or_array(self.replicates.std(axis=0, ddof=1))

    def confidence_interval(
        self, confidence_level: float = 0.8, method: str = "basic"
    ) -> ConfidenceInterval:
        """Return the interval at `confidence_level`.

        `basic` reflects the replicates' quantiles about the value: (2 θ̂ − Q(1 − α/2), 2 θ̂ −
        Q(α/2)), the published one; `percentile` uses them unchanged; `bca` shifts them for bias and
        skewness. Replicates that are NaN (a resample without any true draw) are left out.

        Raises
        ------
        ValueError
            An unknown method, a level that is not inside (0, 1).
        """
        if method not in METHODS:
            raise ValueError(f"method must be one of {', '.join(METHODS)}; got {method!r}")
        tail = (1 - checks.check_confidence_level(confidence_level)) / 2
        table = self.replicates.reshape(len(self.replicates), -1)
        values = np.atleast_1d(self.value)
        skews = np.atleast_1d(self.acceleration) if method == "bca" else np.zeros(values.size)
        ends = np.array(
            [
                _interval_ends(column[np.isfinite(column)], value, skew, tail, method)
                for column, value, skew in zip(table.T, values, skews, strict=True)
            ]
        )
        if np.ndim(self.value) == 0:
            return ConfidenceInterval(float(ends[0, 0]), float(ends[0, 1]))
        return ConfidenceInterval(ends[:, 0], ends[:, 1])


def resample_weights(
    n: int,
    n_resamples: int,
    *,
    rng: np.random.Generator,
    stratum: ArrayLike | None = None,
    cluster: ArrayLike | None = None,
) -> FloatArray:
    """Return how often each row is taken in each resample, shape (n_resamples, n).

    Within each stratum as many units are drawn, with replacement, as it has; a unit is a row, or a
    cluster of rows that come and go together.

    Parameters
    ----------
    n, n_resamples : int
        Numbers of rows and of resamples, 0 and 1 at least.
    rng : numpy.random.Generator
    stratum, cluster : array_like of int, shape (n,), optional
        Codes. A cluster lies in one stratum.

    Returns
    -------
    (n_resamples, n) array
        Whole numbers; each row sums to n where every unit is one row.

    Raises
    ------
    ValueError
        A cluster that lies in two strata; codes that are no codes; numbers below the least.

    Examples
    --------
    >>> weights = resample_weights(4, 2, rng=np.random.default_rng(1), stratum=[0, 0, 1, 1])
    >>> weights[:, :2].sum(axis=1).tolist(), weights[:, 2:].sum(axis=1).tolist()
    ([2.0, 2.0], [2.0, 2.0])
    """
    _check_integer("n_resamples", n_resamples, 1)
    return _draw_resample_counts(_check_units(n, stratum, cluster), n_resamples, rng)


def bootstrap(
    statistic: Statistic,
    n: int,
    *,
    rng: np.random.Generator,
    n_resamples: int = 1000,
    stratum: ArrayLike | None = None,
    cluster: ArrayLike | None = None,
) -> Bootstrap:
    """Return the statistic with its bootstrap replicates, ready for an interval.

    Parameters
    ----------
    statistic : callable
        Takes row weights (B, n) and returns (B,) or (B, m): the statistic of each weighted sample.
        Weights of 1 everywhere stand for the data themselves; leaving a unit out gives the rest of
        its stratum weights above 1.
    n : int
        Number of rows, 1 or more.
    rng : numpy.random.Generator
    n_resamples : int
        1,000 will do for an interval; 10,000 for its third digit.
    stratum, cluster : array_like of int, shape (n,), optional
        As in :func:`resample_weights`.

    Returns
    -------
    Bootstrap

    Raises
    ------
    ValueError
        As :func:`resample_weights`; a statistic whose result does not have a row a resample.

    References
    ----------
    Chaganty 2018, section 2.2.1; BCa for several samples: Davison and Hinkley 1997, section 5.3.

    Examples
    --------
    A joint precision is a sum of terms, so its replicates are weights @ terms; here a plain mean of
    four labels.

    >>> labels = np.array([1.0, 1.0, 0.0, 1.0])
    >>> result = bootstrap(lambda weights: weights @ labels / 4, 4, rng=np.random.default_rng(0))
    >>> result.value
    0.75
    >>> low, high = result.confidence_interval(0.8)
    >>> print(low, high)
    0.5 1.0
    """
    _check_integer("n", n, 1)
    _check_integer("n_resamples", n_resamples, 1)
    units = _check_units(n, stratum, cluster)
    value = _replicates(statistic, np.ones((1, n)))[0]
    step = max(1, ENTRIES_AT_A_TIME // n)
    parts = [
        _replicates(statistic, _draw_resample_counts(units, min(step, n_resamples - start), rng))
        for start in range(0, n_resamples, step)
    ]
    return Bootstrap(
        float_or_array(value),
        np.concatenate(parts),
        lambda: float_or_array(_acceleration(statistic, units, step)),
    )


@dataclass(frozen=True, eq=False)
class _Units:
    """The unit of each row (0 … U − 1), and the units of each stratum."""

    of_row: IntArray
    strata: list[IntArray]

    @property
    def number(self) -> int:
        return sum(len(units) for units in self.strata)


def _check_units(n: int, stratum: ArrayLike | None, cluster: ArrayLike | None) -> _Units:
    _check_integer("n", n, 0)
    strata = (
        np.zeros(n, dtype=np.int64)
        if stratum is None
        else checks.check_codes("stratum", stratum, n)
    )
    clusters = np.arange(n) if cluster is None else checks.check_codes("cluster", cluster, n)
    names, first_row, of_row = np.unique(clusters, return_index=True, return_inverse=True)
    home = strata[first_row]
    for row in np.flatnonzero(home[of_row] != strata):
        raise ValueError(f"a cluster must lie in one stratum; got cluster {clusters[row]} in two")
    return _Units(
        of_row, [np.flatnonzero(home == code) for code in np.unique(home)] if names.size else []
    )


def _draw_resample_counts(units: _Units, n_resamples: int, rng: np.random.Generator) -> FloatArray:
    counts = np.zeros((n_resamples, units.number))
    for members in units.strata:
        size = len(members)
        drawn = rng.integers(0, size, (n_resamples, size)) + size * np.arange(n_resamples)[:, None]
        counts[:, members] = np.bincount(drawn.ravel(), minlength=n_resamples * size).reshape(
            n_resamples, size
        )
    return counts[:, units.of_row]


def _replicates(statistic: Statistic, weights: FloatArray) -> FloatArray:
    result = np.asarray(statistic(weights), dtype=np.float64)
    if result.ndim not in (1, 2) or len(result) != len(weights):
        raise ValueError(
            f"statistic must return {len(weights)} rows, one a resample; got shape {result.shape}"
        )
    return result


def _leave_one_out(units: _Units, members: IntArray, step: int) -> Iterator[FloatArray]:
    """Yield row weights that leave out the units of one stratum in turn, a few at a time, and scale
    up the other units of the stratum.
    """
    for start in range(0, len(members), step):
        left_out = members[start : start + step]
        weights = np.ones((len(left_out), units.number))
        weights[:, members] = len(members) / (len(members) - 1)
        weights[np.arange(len(left_out)), left_out] = 0
        yield weights[:, units.of_row]


def _acceleration(statistic: Statistic, units: _Units, step: int) -> FloatArray:
    """Return the acceleration of BCa from leave-one-out values: Σ_s n_s⁻³ Σ l³ / (6 (Σ_s n_s⁻² Σ
    l²)^{3/2}), l = (n_s − 1)(mean of the leave-one-out values − value).
    """
    cubes, squares = 0.0, 0.0
    for members in units.strata:
        size = len(members)
        if size == 1:
            continue
        left_out = np.concatenate(
            [_replicates(statistic, w) for w in _leave_one_out(units, members, step)]
        )
        influence = (size - 1) * (left_out.mean(axis=0) - left_out)
        cubes = cubes + (influence**3).sum(axis=0) / size**3
        squares = squares + (influence**2).sum(axis=0) / size**2
    flat = np.asarray(squares) <= 0
    return np.where(flat, np.nan, np.asarray(cubes) / (6 * np.where(flat, 1, squares) ** 1.5))


def _interval_ends(
    replicates: FloatArray, value: float, skew: float, tail: float, method: str
) -> tuple[float, float]:
    if not replicates.size or not np.isfinite(value):
        return np.nan, np.nan
    if method == "bca":
        tails = _bca_tails(replicates, value, skew, tail)
    else:
        tails = (tail, 1 - tail)
    low, high = (float(end) for end in np.quantile(replicates, tails))
    return (2 * value - high, 2 * value - low) if method == "basic" else (low, high)


def _bca_tails(
    replicates: FloatArray, value: float, skew: float, tail: float
) -> tuple[float, float]:
    """Return the two probabilities at which BCa reads the replicates' quantiles."""
    below = ((replicates < value).mean() + (replicates <= value).mean()) / 2
    edge = 0.5 / replicates.size
    bias = ndtri(np.clip(below, edge, 1 - edge))
    acceleration = 0.0 if np.isnan(skew) else skew
    shifted = bias + ndtri([tail, 1 - tail])
    low, high = ndtr(bias + shifted / (1 - acceleration * shifted))
    return float(low), float(high)


def _check_integer(name: str, value: int, minimum: int) -> None:
    if isinstance(value, bool) or int(value) != value or value < minimum:
        raise ValueError(f"{name} must be a whole number of {minimum} or more; got {value!r}")
