"""The published estimators of precision and F1: simple (a system's own draws) and joint
(everybody's draws).

Those of recall are in :mod:`estimators.pool` and can be imported from here too. All of them treat
draws as independent, with replacement: an instance drawn twice counts twice.

The `influence` of a result has one row a draw, in the order given, 0 where the label is missing.
Variance and covariance are plain quadratic forms of it: Var = Σ influence², Cov of systems i and k
= Σ influence_i · influence_k.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from estimators import checks
from estimators.checks import BoolArray, FloatArray, IntArray, float_or_array
from estimators.estimate import Estimate
from estimators.mixture import Draws, check_draws, mixture_weights, proposal_probabilities
from estimators.pool import joint_recall, pool_recall, pooled_recall

__all__ = [
    "joint_f1",
    "joint_precision",
    "joint_recall",
    "joint_terms",
    "mixture_weights",
    "pool_recall",
    "pooled_recall",
    "precision_variance",
    "proposal_probabilities",
    "simple_precision",
]


def simple_precision(label: ArrayLike, system: ArrayLike, m: int, *, ddof: int = 0) -> Estimate:
    """Return the mean label of each system's own draws.

    π̂_i = (1/n_i) Σ_{x ∈ X̂_i} f(x), with variance π̂_i (1 − π̂_i) / (n_i − ddof).

    Parameters
    ----------
    label : array_like of float, shape (n,)
        1 for a right prediction, 0 for a wrong one, NaN for one without a label (which is left out,
        not wrong).
    system : array_like of int, shape (n,)
        The system, 0 … m − 1, whose draw it is.
    m : int
        Number of systems.
    ddof : int, keyword-only
        0 is the plug-in of the literature, 1 makes the variance unbiased.

    Returns
    -------
    Estimate
        `value`, `variance` and `n` (m,), `influence` (n, m). A system without a label has value and
        variance NaN.

    Raises
    ------
    ValueError
        A label outside [0, 1]; a system code below 0, or m or above.

    References
    ----------
    Chaganty 2018, section 3.4.2.

    Examples
    --------
    >>> result = simple_precision([1, 1, 0, 1, float("nan")], [0, 0, 0, 1, 1], 2)
    >>> result.value.round(3).tolist(), result.n.tolist()
    ([0.667, 1.0], [3, 1])
    >>> result.variance.round(4).tolist()
    [0.0741, 0.0]
    """
    values = checks.check_labels("label", label)
    if values.ndim != 1:
        raise ValueError(f"label must have one dimension; got shape {values.shape}")
    draws = check_draws(
        _single_owner_probabilities(system, values.size, m), system, values, np.eye(m)
    )
    labelled = ~np.isnan(values)
    counts = draws.counts(labelled)
    terms = np.zeros((values.size, m))
    rows = np.flatnonzero(labelled)
    terms[rows, draws.system[rows]] = values[rows] / counts[draws.system[rows]]
    return _estimate_from_terms(terms, labelled[:, None] & (draws.P > 0), counts, draws, ddof)


def joint_precision(
    P: ArrayLike,
    system: ArrayLike,
    label: ArrayLike,
    overlap: ArrayLike | None,
    *,
    method: str = "heuristic",
    ddof: int = 0,
) -> Estimate:
    """Return each system's precision from the draws of all systems.

    π̂_i = Σ_j (w_ij / n_j) Σ_{x ∈ X̂_j} p_i(x) f(x) / q_i(x), q_i = Σ_j w_ij p_j, n_j the labelled
    draws of system j.

    A system with n_j = 0 gives no draws and gets weight 0; the others' weights sum to 1 all the
    same. Its own score then rests on what it shares with others: the part of X_i that no draw can
    reach counts as 0. (Call this with labels of 1 everywhere: the value estimates the share of p_i
    that is reached.)

    Parameters
    ----------
    P : array_like of float, shape (n, m)
        Probability of each drawn instance under each system; 0 where the system does not predict
        it.
    system : array_like of int, shape (n,)
        The system whose distribution the draw came from.
    label : array_like of float, shape (n,) or (n, m)
        1 right, 0 wrong, NaN missing. With (n, m), column i judges the prediction as system i makes
        it.
    overlap : array_like of float, shape (m, m), or None
        Σ_x p_i(x) p_j(x) over all instances; only the heuristic weights need it.
    method : {"heuristic", "balance", "uniform"}
        See :func:`mixture_weights`.
    ddof : int, keyword-only
        0 is the plug-in of theorem 2, 1 makes the variance unbiased.

    Returns
    -------
    Estimate
        `value` (m,), unbiased but not confined to [0, 1]; `variance` (m,), see
        :func:`precision_variance`; `n` (m,), labelled draws that the system predicts; `influence`
        (n, m). A system of which no labelled draw is predicted has value and variance NaN.

    Raises
    ------
    ValueError
        A probability or label out of range; shapes that disagree; a draw with probability 0 under
        its own system.

    References
    ----------
    Chaganty 2018, section 3.4.3; Chaganty et al. 2017, section 4.2.

    Examples
    --------
    System 0 predicts instances a and b, system 1 only b. One draw each, a and b, both right.

    >>> result = joint_precision([[0.5, 0.0], [0.5, 1.0]], [0, 1], [1, 1], [[0.5, 0.5], [0.5, 1.0]])
    >>> result.value.round(4).tolist()
    [1.3333, 0.8]
    """
    draws = check_draws(P, system, label, overlap, method=method)
    terms, counted = _precision_terms(draws, method)
    return _estimate_from_terms(terms, counted, (counted & (draws.P > 0)).sum(axis=0), draws, ddof)


def joint_terms(
    P: ArrayLike,
    system: ArrayLike,
    label: ArrayLike,
    overlap: ArrayLike | None,
    *,
    method: str = "heuristic",
) -> FloatArray:
    """Return each draw's contribution to the joint precision of each system, shape (n, m).

    The column sums are the estimates, and multiplicities of a resample within systems, (B, n) @ (n,
    m), give the bootstrap replicates. Arguments, errors and equation as in :func:`joint_precision`.

    Parameters
    ----------
    P, system, label, overlap, method
        As for :func:`joint_precision`.

    Returns
    -------
    (n, m) array
        0 where a draw says nothing of a system, or has no label.

    Examples
    --------
    >>> P, overlap = [[0.5, 0.0], [0.5, 1.0]], [[0.5, 0.5], [0.5, 1.0]]
    >>> joint_terms(P, [0, 1], [1, 0], overlap).round(4).tolist()
    [[1.0, 0.0], [0.0, 0.0]]
    """
    return _precision_terms(check_draws(P, system, label, overlap, method=method), method)[0]


def precision_variance(
    P: ArrayLike,
    system: ArrayLike,
    label: ArrayLike,
    overlap: ArrayLike | None,
    *,
    method: str = "heuristic",
    ddof: int = 0,
) -> FloatArray:
    """Return the variance of each system's joint precision, shape (m,): theorem 2 with sample
    moments put in.

    Var π̂_i = Σ_j (w_ij² / n_j) { E_{p_j}[(p_i f / q_i)²] − (E_{p_j}[p_i f / q_i])² }, the
    expectations replaced by means over the labelled draws of system j. Arguments and errors as in
    :func:`joint_precision`; NaN as there.

    Parameters
    ----------
    P, system, label, overlap, method
        As for :func:`joint_precision`.
    ddof : int
        1 divides the spread of a system's n draws by n − 1, 0 by n as published.

    Returns
    -------
    (m,) array
        Of the estimates of :func:`joint_precision`.

    References
    ----------
    Chaganty 2018, theorem 2.

    Examples
    --------
    With one system the joint estimator is the simple one, and this is π̂ (1 − π̂) / n.

    >>> precision_variance([[0.25]] * 4, [0] * 4, [1, 1, 1, 0], [[0.25]]).tolist()
    [0.046875]
    """
    return np.asarray(joint_precision(P, system, label, overlap, method=method, ddof=ddof).variance)


def joint_f1(precision: Estimate, recall: Estimate) -> Estimate:
    """Return F1 = 2 π r / (π + r), its variance by the delta method from the joint covariance of
    both.

    The influence of F1 is 2 (r² ψ_π + π² ψ_r) / (π + r)², ψ the influences of precision π and
    recall r; the variance is Σ influence² and (2 π² / (π + r)²)² times the second-order part of the
    recall's variance (lemma 1). Both slopes are ½ where π = r = 0, as all along π = r. For targets
    with inclusion probabilities see
    :func:`estimators.recall.f1`.

    Parameters
    ----------
    precision, recall : Estimate
        From the same draws. If the recall's influence has more rows (the documents of
        :func:`joint_recall` stand below the draws), they are rows in which precision has no part.

    Returns
    -------
    Estimate
        Shapes as in the arguments; 0 where both are 0, NaN where either is.

    Raises
    ------
    ValueError
        Influences that do not fit each other.

    References
    ----------
    Chaganty 2018, section 3.4.

    Examples
    --------
    >>> half = Estimate(0.5, 0.01, 100, np.array([0.08, -0.06]))
    >>> result = joint_f1(half, half)
    >>> result.value, round(result.variance, 6)
    (0.5, 0.01)
    """
    p, r = np.asarray(precision.value), np.asarray(recall.value)
    nothing = p + r == 0
    total = np.where(nothing, 1.0, p + r)
    by_p, by_r = (np.where(nothing, 0.5, 2 * (part / total) ** 2) for part in (r, p))
    a, b = _pad_to_same_rows(precision.influence, recall.influence)
    influence = by_p * a + by_r * b
    beyond = np.maximum(recall.variance - np.einsum("t...,t...->...", b, b), 0)
    return Estimate(
        value=float_or_array(2 * p * r / total),
        variance=float_or_array(
            np.einsum("t...,t...->...", influence, influence) + by_r**2 * beyond
        ),
        n=_count_as_number(np.minimum(precision.n, recall.n)),
        influence=influence,
        degrees_of_freedom=float_or_array(
            np.minimum(precision.degrees_of_freedom, recall.degrees_of_freedom)
        ),
    )


def _precision_terms(draws: Draws, method: str) -> tuple[FloatArray, BoolArray]:
    """Return the terms and which of the draws count (labelled, with a positive weight), both of
    shape (n, m).
    """
    counted, terms = np.empty(draws.P.shape, dtype=np.bool_), np.empty(draws.P.shape)
    reached = np.zeros(draws.n_systems, dtype=np.bool_)
    for rows, inverse in draws.inverse_proposals(method):
        counted[rows] = inverse > 0
        importance = np.multiply(inverse, draws.P[rows], out=inverse)
        reached |= importance.any(axis=0)
        terms[rows] = importance * np.where(counted[rows], draws.label[rows], 0.0)
    terms[:, ~reached] = np.nan
    return terms, counted


def _estimate_from_terms(
    terms: FloatArray, counted: BoolArray, n: IntArray, draws: Draws, ddof: int
) -> Estimate:
    """Return the Estimate whose values are the column sums of `terms`; NaN for a system with n =
    0.
    """
    unknown = n == 0
    influence = draws.centred(terms, counted, ddof=ddof)
    influence[:, unknown] = np.nan
    return Estimate(
        value=np.where(unknown, np.nan, terms.sum(axis=0)),
        variance=np.einsum("tm,tm->m", influence, influence) + np.where(unknown, np.nan, 0.0),
        n=n.astype(np.int64),
        influence=influence,
    )


def _single_owner_probabilities(system: ArrayLike, n: int, m: int) -> FloatArray:
    """Return a probability matrix P in which every draw is predicted only by its own system."""
    if isinstance(m, bool) or int(m) != m or m < 1:
        raise ValueError(f"m must be a whole number of 1 or more; got {m!r}")
    codes = checks.check_codes("system", system, n)
    if (codes >= m).any():
        raise ValueError(f"system must be less than {m}; got {int(codes.max())}")
    own: BoolArray = codes[:, None] == np.arange(m)
    return own.astype(np.float64)


def _pad_to_same_rows(a: FloatArray, b: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return both influences with equally many rows; zeros are appended to the shorter one."""
    if a.ndim != b.ndim or a.shape[1:] != b.shape[1:] or len(a) > len(b):
        raise ValueError(
            f"influences of precision and recall do not fit; got shapes {a.shape} and {b.shape}"
        )
    padding = [(0, len(b) - len(a))] + [(0, 0)] * (a.ndim - 1)
    return np.pad(a, padding), b


def _count_as_number(n: ArrayLike) -> int | IntArray:
    array = np.asarray(n, dtype=np.int64)
    return int(array) if array.ndim == 0 else array
