"""Who has seen what: labels that a team could see are no sample of what it uploads next.

A team that deletes what it was shown to be wrong would otherwise be scored on its own key. So the
targets that its earlier submissions (or public ones) predict are split by what it could see at
upload: a visible label counts for itself alone, with certainty (``certainty=`` of the estimators);
a target shown as *unjudged* is known to have u ≥ π_old, and is sampled anew with the conditional
probability.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from estimators import checks
from estimators.checks import FloatArray, Numbers, plain


def visible_total(p: ArrayLike, label: ArrayLike) -> Numbers:
    """Return Σ p f over the visible labels, exactly: each stands for itself, none for its
    neighbours.

    Parameters
    ----------
    p : (n,) or (n, m) array
        Weights of the predictions whose label the team could see.
    label : (n,) array
        Their labels; NaN (missing) adds nothing.

    Returns
    -------
    float or (m,) array
        A part of the precision, to which what is estimated of all other predictions is added.

    Examples
    --------
    >>> import numpy as np
    >>> visible_total(np.array([0.25, 0.25]), np.array([1.0, 0.0]))
    0.25
    """
    weight, f = checks.non_negative("p", p), np.nan_to_num(checks.labels("label", label))
    if weight.shape[0] != f.size:
        raise ValueError(f"p and label must have as many rows; got {weight.shape} and {f.shape}")
    return plain(f @ weight)


def recondition(pi_new: ArrayLike, pi_old: ArrayLike) -> FloatArray:
    """Return the probability that a target shown as unjudged under π_old is asked under π_new.

    ``P(u < π_new | u ≥ π_old) = (π_new − π_old) / (1 − π_old)``. It is 0 where the threshold was
    not raised: such a target can never be asked, and an estimate over it is not defined until it
    is.

    Parameters
    ----------
    pi_new, pi_old : (n,) array
        Thresholds now, and when the team saw that the target was unjudged; π_new ≥ π_old < 1.

    Returns
    -------
    (n,) array
        In [0, 1].

    Raises
    ------
    ValueError
        If a threshold sank, or an unjudged target had been certain to be asked.

    Examples
    --------
    >>> import numpy as np
    >>> recondition(np.array([0.6]), np.array([0.2])).round(6).tolist()
    [0.5]
    """
    new, old = checks.probabilities("pi_new", pi_new), checks.probabilities("pi_old", pi_old)
    if np.any(old >= 1):
        raise ValueError(
            "pi_old must be below 1: a target that was certain to be asked is not unjudged; got 1.0"
        )
    if np.any(new < old):
        raise ValueError(
            f"pi_new must be at least pi_old; got {new[new < old][0]!r} below {old[new < old][0]!r}"
        )
    chance: FloatArray = (new - old) / (1 - old)
    return chance


def threshold(conditional: ArrayLike, pi_old: ArrayLike) -> FloatArray:
    """Return π_new for a wanted conditional probability: the inverse of :func:`recondition`.

    Parameters
    ----------
    conditional : (n,) array
        The probability with which a target that was shown as unjudged is to be asked.
    pi_old : (n,) array
        Its threshold when the team saw that.

    Returns
    -------
    (n,) array
        In [0, 1]; nowhere below ``pi_old``.

    Examples
    --------
    >>> import numpy as np
    >>> threshold(np.array([0.5]), np.array([0.2])).round(6).tolist()
    [0.6]
    """
    chance, old = (
        checks.probabilities("conditional", conditional),
        checks.probabilities("pi_old", pi_old),
    )
    raised: FloatArray = old + chance * (1 - old)
    return raised


def on_common_design(influence: ArrayLike, pi_own: ArrayLike, pi: ArrayLike) -> FloatArray:
    """Return the influence so scaled that the design of all systems gives it the variance of its
    own.

    A submission with seen targets has its own conditional probabilities, the board has one design.
    Scaled by
    ``√((1 − π_own)/(1 − π))`` the variance ``Σ (1 − π) z²`` is the submission's own; covariances
    with other systems take the geometric mean of both factors.

    Parameters
    ----------
    influence : (t,) or (t, m) array
        Made with ``pi_own``.
    pi_own, pi : (t,) array
        Probabilities of the targets for this submission, and for everybody; a target with π = 1
        keeps its term.

    Returns
    -------
    (t,) or (t, m) array
        Of the shape of ``influence``.

    Examples
    --------
    >>> import numpy as np
    >>> on_common_design(np.array([1.0, 1.0]), np.array([0.0, 1.0]), np.array([0.75, 1.0])).tolist()
    [2.0, 1.0]
    """
    z = checks.finite("influence", influence)
    own, common = checks.probabilities("pi_own", pi_own), checks.positive_probabilities("pi", pi)
    if own.shape != common.shape or z.shape[:1] != common.shape:
        raise ValueError(
            f"influence, pi_own and pi must have as many rows; got {z.shape}, {own.shape},"
            f" {common.shape}"
        )
    open_ = common < 1
    factor = np.sqrt(np.divide(1 - own, 1 - common, out=np.ones(common.shape), where=open_))
    scaled: FloatArray = (z.T * factor).T
    return scaled
