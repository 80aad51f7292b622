"""How long answers take: distributions of delays, conditional on the time waited so far."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import ndtr, ndtri

from estimators.checks import FloatArray, check_non_negative


class Delays:
    """A distribution of delays, by its quantile function; see :class:`Empirical`.

    Examples
    --------
    >>> Empirical([1.0, 2.0]).expected_max(1)
    1.5
    """

    mean: float

    def __init__(self) -> None:
        self._largest = {0: 0.0}

    def quantile(self, share: FloatArray) -> FloatArray:
        """Return the delays that the given shares in (0, 1) of the answers do not exceed."""
        raise NotImplementedError

    def draw(self, uniform: float, elapsed: float = 0.0) -> float:
        """Return the delay at the quantile ``uniform`` of those that are at least ``elapsed``."""
        raise NotImplementedError

    def expected(self, elapsed: float) -> float:
        """Return the expectation of the delays that are at least ``elapsed``."""
        if elapsed <= 0:
            return self.mean
        return sum(self.draw((k + 0.5) / 16, elapsed) for k in range(16)) / 16

    def expected_max(self, n: int) -> float:
        """Return the expected value of the largest of n delays: ``∫ Q(u^{1/n}) du`` with the
        quantile function Q.
        """
        if n not in self._largest:
            middles = (np.arange(400) + 0.5) / 400
            self._largest[n] = float(self.quantile(middles ** (1 / n)).mean())
        return self._largest[n]


class Empirical(Delays):
    """The delays of recorded answers.

    Given that an answer has not come for ``elapsed``, its delay is one of the recorded ones that
    are at least so long; if there is none, ``elapsed`` plus an exponential of the mean.

    Parameters
    ----------
    delays : (n,) array
        Recorded delays, at least one.

    Examples
    --------
    >>> delays = Empirical([3.0, 1.0, 2.0])
    >>> delays.draw(0.0), delays.draw(0.0, elapsed=1.5), delays.draw(0.0, elapsed=9.0)
    (1.0, 2.0, 9.0)
    """

    def __init__(self, delays: ArrayLike) -> None:
        super().__init__()
        self._sorted = np.sort(check_non_negative("delays", delays))
        if not self._sorted.size:
            raise ValueError("delays must hold at least one delay; got none")
        self.mean = float(self._sorted.mean())

    def quantile(self, share: FloatArray) -> FloatArray:
        n = self._sorted.size
        return np.asarray(self._sorted[np.minimum((share * n).astype(np.int64), n - 1)])

    def draw(self, uniform: float, elapsed: float = 0.0) -> float:
        # A delay that ends now has not passed yet: allow for rounding of time.
        first = int(self._sorted.searchsorted(elapsed - 1e-9)) if elapsed > 0 else 0
        left = self._sorted.size - first
        if not left:
            return elapsed - self.mean * math.log1p(-uniform)
        return max(float(self._sorted[first + int(uniform * left)]), elapsed)


class ShiftedLogNormal(Delays):
    """Delays ``shift + exp(μ + σ Z)`` with a standard normal Z.

    Parameters
    ----------
    shift, mu, sigma : float
        The shortest delay, and mean and standard deviation of the logarithm of the rest.

    Examples
    --------
    >>> delays = ShiftedLogNormal(1.0, 0.0, 0.5)
    >>> delays.draw(0.5), delays.draw(0.5, elapsed=2.0) > 2.0
    (2.0, True)
    """

    def __init__(self, shift: float, mu: float, sigma: float) -> None:
        super().__init__()
        self.shift, self.mu, self.sigma = shift, mu, sigma
        self.mean = shift + math.exp(mu + sigma**2 / 2)

    @classmethod
    def fit(cls, delays: ArrayLike) -> ShiftedLogNormal:
        """Return the distribution with the mean and variance of recorded delays, shifted by nine
        tenths of the shortest one.
        """
        values = check_non_negative("delays", delays)
        shift = 0.9 * float(values.min())
        mean, variance = float(values.mean()) - shift, float(values.var())
        if mean <= 0 or variance <= 0:
            raise ValueError("delays must not all be equal")
        sigma_squared = math.log1p(variance / mean**2)
        return cls(shift, math.log(mean) - sigma_squared / 2, math.sqrt(sigma_squared))

    @classmethod
    def from_quantiles(cls, median: float, p90: float) -> ShiftedLogNormal:
        """Return the log-normal distribution without shift that has this median and 90th
        percentile.
        """
        if not 0 < median < p90:
            raise ValueError(f"median and p90 must rise from 0; got {median}, {p90}")
        return cls(0.0, math.log(median), math.log(p90 / median) / float(ndtri(0.9)))

    def quantile(self, share: FloatArray) -> FloatArray:
        return np.asarray(self.shift + np.exp(self.mu + self.sigma * ndtri(share)))

    def draw(self, uniform: float, elapsed: float = 0.0) -> float:
        if elapsed > self.shift:
            passed = float(ndtr((math.log(elapsed - self.shift) - self.mu) / self.sigma))
            uniform = passed + uniform * (1 - passed)
        z = float(ndtri(min(max(uniform, 1e-12), 1 - 1e-12)))
        return max(self.shift + math.exp(self.mu + self.sigma * z), elapsed)


def delay_model(delays: ArrayLike, prior: Delays, *, min_delays: int = 30) -> Delays:
    """Return the distribution to plan with: fitted to recorded delays, or the prior while there are
    few.

    Parameters
    ----------
    delays : (n,) array
        Recorded delays of this stream so far.
    prior : Delays
        What is assumed before ``min_delays`` answers are there.
    min_delays : int
        Number of answers from which on they are fitted.

    Returns
    -------
    Delays
        :class:`ShiftedLogNormal` by moments, or ``prior``.

    Examples
    --------
    >>> import numpy as np
    >>> prior = ShiftedLogNormal.from_quantiles(1.0, 2.0)
    >>> delay_model([0.5, 0.7], prior) is prior, round(delay_model(np.arange(1, 31), prior).mean, 6)
    (True, 15.5)
    """
    values = check_non_negative("delays", delays)
    return prior if values.size < min_delays else ShiftedLogNormal.fit(values)
