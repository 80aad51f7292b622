"""Unbiased estimate of the accuracy of a stream from a recorded audit sample.

Which inputs are audited depends on a recorded random number and on what the model expected when it
returned the labels, never on the labels. So live decisions may depend on answers in any way, and
the model may be wrong.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from estimators import checks
from estimators.checks import FloatArray
from estimators.estimate import Estimate
from estimators.horvitz_thompson import anticipated_variance, centred_difference_estimate


def audit_probability(expected: ArrayLike, *, share: float, multiplier: float) -> FloatArray:
    """Return the probability that each input is audited.

    ``π = max(share, min(1, λ √(p̂ (1 − p̂))))``

    Parameters
    ----------
    expected : (N,) array
        p̂, the accuracy that the model expected when it returned the labels.
    share : float
        The least probability, in (0, 1].
    multiplier : float
        λ, at least 0.

    Returns
    -------
    (N,) array
        In [share, 1].

    Examples
    --------
    >>> audit_probability([0.5, 0.8, 1.0], share=0.1, multiplier=0.5).round(6).tolist()
    [0.25, 0.2, 0.1]
    """
    p = checks.check_probabilities("expected", expected)
    least = float(checks.check_positive_probabilities("share", share))
    factor = float(checks.check_non_negative("multiplier", multiplier))
    return np.maximum(least, np.minimum(1.0, factor * np.sqrt(p * (1 - p))))


def stream_accuracy(pi: ArrayLike, right: ArrayLike, expected: ArrayLike) -> Estimate:
    """Return the mean accuracy of all inputs of a stream.

    ``mean p̂ + Σ_S (f − p̂)/π / Σ_S 1/π`` over the audited inputs S:
    :func:`estimators.horvitz_thompson.centred_difference_estimate` with the model's expectation as
    g. Its interval is that of boards, ``confidence_interval(level, method="wilson")``.

    Parameters
    ----------
    pi : (N,) array
        Probability of an audit, :func:`audit_probability`.
    right : (N,) array
        Share of right labels of each audited input; NaN where an input was not audited.
    expected : (N,) array
        The accuracy that the model expected.

    Returns
    -------
    Estimate
        The value, its variance, and the number of audited inputs.

    Examples
    --------
    >>> import numpy as np
    >>> estimate = stream_accuracy([0.5] * 4, [1.0, np.nan, 0.0, np.nan], [0.5] * 4)
    >>> estimate.value, estimate.n
    (0.5, 2)
    """
    f, g = checks.check_labels("right", right), checks.check_probabilities("expected", expected)
    chance = checks.check_positive_probabilities("pi", pi)
    if not f.shape == g.shape == chance.shape or f.ndim != 1 or not f.size:
        raise ValueError(
            "pi, right and expected must be of one length, at least 1;"
            f" got {chance.shape}, {f.shape}, {g.shape}"
        )
    audited = ~np.isnan(f)
    weight = np.full(f.size, 1 / f.size)
    anticipated = anticipated_variance(weight, chance, g, f[audited], g[audited])
    return centred_difference_estimate(
        weight[audited],
        chance[audited],
        f[audited],
        g[audited],
        float(g.mean()),
        anticipated=anticipated,
    )
