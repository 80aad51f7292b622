"""An estimate with its variance, and the influences that it is made of."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np
from scipy.special import ndtri

from estimators import checks
from estimators.checks import FloatArray, IntArray, Numbers, float_or_array
from estimators.intervals import ConfidenceInterval, score_interval, t_to_normal_quantile_ratio

METHODS = ("wald", "wilson", "t")


@dataclass(frozen=True, eq=False)
class Estimate:
    """An estimate, or one for each system, with its variance, number of labels and influence (the
    terms that it sums).

    Attributes
    ----------
    value, variance : float or (m,) array
        The estimate, and the estimate of its variance. NaN where undefined.
    n : int or (m,) array
        Labelled targets (or documents) behind it.
    influence : (t,) or (t, m) array
        One term per target or document: what that target's label moves the estimate by, weighted by
        its inclusion probability. ``Design.variance(influence)`` is the variance,
        ``Design.covariance(a, b)`` any covariance.
    degrees_of_freedom : float or (m,) array
        For the method "t", and for the widening of "wilson"; infinite by default.
    anticipated : float or (m,) array
        The model's variance, a floor of the realised one (method "wilson").
    total_g : float or (m,) array
        What the model alone says, Σ p g (method "wilson").
    half_step : float or (m,) array
        What intervals are widened by at each end where nearly all is judged (method "wilson"):
        :func:`estimators.intervals.half_label_step`.
    agreed : float or (m,) array
        1 where all labels say so, 0 where all say that, NaN elsewhere: what no label speaks against
        is inside the interval (method "wilson").

    Examples
    --------
    >>> import numpy as np
    >>> estimate = Estimate(0.5, 0.0025, 100, np.zeros(100))
    >>> low, high = estimate.confidence_interval(0.95, method="wald")
    >>> print(f"{low:.3f} {high:.3f}")
    0.402 0.598
    """

    value: Numbers
    variance: Numbers
    n: int | IntArray
    influence: FloatArray
    degrees_of_freedom: Numbers = np.inf
    anticipated: Numbers = 0.0
    total_g: Numbers = 0.0
    half_step: Numbers = 0.0
    agreed: Numbers = np.nan

    @property
    def standard_error(self) -> Numbers:
        """Return the square root of the variance."""
        return float_or_array(np.sqrt(self.variance))

    def confidence_interval(
        self, confidence_level: float = 0.8, method: str = "wald"
    ) -> ConfidenceInterval:
        """Return the interval at ``confidence_level``.

        Parameters
        ----------
        confidence_level : float
            Nominal coverage, strictly between 0 and 1.
        method : {"wald", "t", "wilson"}
            "wald": value ± z·√V, not clipped, fit for differences. "t": the same with Student's
            quantile. "wilson": for scores in [0, 1], see
            :func:`estimators.intervals.score_interval`.

        Raises
        ------
        ValueError
            If the method is none of these, or the level is not inside (0, 1).
        """
        if method not in METHODS:
            raise ValueError(f"method must be one of {', '.join(METHODS)}; got {method!r}")
        if method == "wilson":
            return score_interval(
                self.value,
                self.variance,
                self.n,
                anticipated=self.anticipated,
                total_g=self.total_g,
                confidence_level=confidence_level,
                degrees_of_freedom=self.degrees_of_freedom,
                half_step=self.half_step,
                agreed=self.agreed,
            )
        half = ndtri(0.5 + checks.check_confidence_level(confidence_level) / 2) * np.asarray(
            self.standard_error
        )
        if method == "t":
            half = half * t_to_normal_quantile_ratio(self.degrees_of_freedom, confidence_level)
        return ConfidenceInterval(
            float_or_array(self.value - half), float_or_array(self.value + half)
        )


def replace_columns(estimate: Estimate, replacements: Mapping[int, Estimate]) -> Estimate:
    """Return the estimates of several systems after replacing those of some columns.

    Parameters
    ----------
    estimate : Estimate
        Of m systems.
    replacements : mapping of column to Estimate
        Estimates of one system each, with influences over the same rows; degrees of freedom stay as
        they are.

    Returns
    -------
    Estimate
        Of m systems; ``estimate`` itself where there is nothing to replace.

    Examples
    --------
    >>> import numpy as np
    >>> value, variance = np.array([0.5, 0.9]), np.array([0.01, 0.01])
    >>> both = Estimate(value, variance, np.array([4, 4]), np.zeros((4, 2)))
    >>> replace_columns(both, {1: Estimate(0.6, 0.02, 3, np.ones(4))}).value.tolist()
    [0.5, 0.6]
    """
    if not replacements:
        return estimate
    shape = np.shape(estimate.value)
    names = ("value", "variance", "n", "anticipated", "total_g", "half_step", "agreed")
    columns = {name: np.array(np.broadcast_to(getattr(estimate, name), shape)) for name in names}
    influence = np.array(estimate.influence)
    for column, replacement in replacements.items():
        influence[:, column] = replacement.influence
        for name in names:
            columns[name][column] = getattr(replacement, name)
    return replace(estimate, influence=influence, **columns)
