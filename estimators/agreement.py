"""Agreement beyond chance: Fleiss' κ and Krippendorff's α, each with weights for a bootstrap over
units.

Also offered here: :func:`majority_answers`, :func:`token_majority` and :func:`dawid_skene` of
:mod:`estimators.votes`.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy import sparse

from estimators import checks
from estimators.checks import FloatArray, Numbers, float_or_array
from estimators.votes import (
    DawidSkene,
    Majority,
    Spans,
    check_votes,
    count_votes,
    dawid_skene,
    majority_answers,
    token_majority,
)

__all__ = [
    "DawidSkene",
    "Majority",
    "Spans",
    "dawid_skene",
    "fleiss_kappa",
    "krippendorff_alpha",
    "majority_answers",
    "token_majority",
]

LEVELS = ("nominal", "ordinal", "interval")


def fleiss_kappa(counts: Any, *, weights: ArrayLike | None = None) -> Numbers:
    """Return Fleiss' κ = (P̄ − P̄_e) / (1 − P̄_e).

    P̄ is the mean over items of Σ_k c_ik (c_ik − 1) / (c_i (c_i − 1)), the share of pairs of raters
    who agree; P̄_e is Σ_k p_k², p_k the share of all ratings that are k. Items may have different
    numbers of ratings; those with fewer than two are left out.

    Parameters
    ----------
    counts : array_like or scipy.sparse, shape (N, K)
        How many raters put item i into category k.
    weights : array_like of float, shape (B, N), optional
        Multiplicities of the items in B resamples (see :mod:`estimators.bootstrap`).

    Returns
    -------
    float, or ndarray of shape (B,) with `weights`
        At most 1. NaN without an item with two ratings, and where all ratings are of one category.

    Raises
    ------
    ValueError
        Counts that are negative or not whole; shapes that disagree.

    References
    ----------
    Fleiss 1971.

    Examples
    --------
    >>> fleiss_kappa([[3, 0], [0, 3]])
    1.0
    >>> round(fleiss_kappa([[2, 1], [1, 2]]), 4)
    -0.3333
    """
    table = counts if sparse.issparse(counts) else checks.check_non_negative("counts", counts)
    if table.ndim != 2:
        raise ValueError(f"counts must have two dimensions; got shape {table.shape}")
    entries = checks.check_non_negative("counts", table.data) if sparse.issparse(table) else table
    for odd in entries[entries != np.floor(entries)]:
        raise ValueError(f"counts must be whole numbers; got {float(odd)!r}")
    table = sparse.csr_array(table, dtype=np.float64)
    multiplicity = _check_weights(weights, table.shape[0])
    raters = table.sum(axis=1)
    rated = raters >= 2
    table, raters, used = table[rated], raters[rated], multiplicity[:, rated]
    agreeing = (table.power(2).sum(axis=1) - raters) / (raters * (raters - 1))
    with np.errstate(invalid="ignore", divide="ignore"):
        observed = used @ agreeing / used.sum(axis=1)
        ratings = used @ table
        expected = ((ratings / ratings.sum(axis=1, keepdims=True)) ** 2).sum(axis=1)
        kappa = np.where(expected < 1, (observed - expected) / (1 - expected), np.nan)
    return float_or_array(kappa[0] if weights is None else kappa)


def krippendorff_alpha(
    values: ArrayLike,
    unit: ArrayLike,
    annotator: ArrayLike,
    *,
    level: str,
    weights: ArrayLike | None = None,
) -> Numbers:
    """Return Krippendorff's α = 1 − D_o / D_e.

    With o_ck the coincidences, Σ_u (pairs of values c, k of different annotators on u) / (m_u − 1),
    n_c = Σ_k o_ck and n = Σ_c n_c: D_o = Σ o_ck δ²_ck / n and D_e = Σ n_c n_k δ²_ck / (n (n − 1)).
    δ² is 1{c ≠ k} (nominal), (c − k)² (interval) or (Σ_{g from c to k} n_g − (n_c + n_k)/2)²
    (ordinal).

    Parameters
    ----------
    values : array_like of float, shape (v,)
        Answers; NaN is no answer.
    unit, annotator : array_like of int, shape (v,)
        What was asked about, and who answered. Units with one answer are left out.
    level : {"nominal", "ordinal", "interval"}
        What differences between values mean.
    weights : array_like of float, shape (B, U), optional
        Multiplicities, in B resamples, of the U distinct units that have an answer, in the order of
        their codes.

    Returns
    -------
    float, or ndarray of shape (B,) with `weights`
        At most 1. NaN without a unit with two answers, and where all answers are the same.

    Raises
    ------
    ValueError
        An unknown level; an annotator who answers a unit twice; shapes that disagree.

    References
    ----------
    Krippendorff 2011, Computing Krippendorff's alpha-reliability.

    Examples
    --------
    >>> unit, annotator = [0, 0, 1, 1, 2, 2], [0, 1, 0, 1, 0, 1]
    >>> answers = dict(values=[1, 1, 2, 2, 1, 2], unit=unit, annotator=annotator)
    >>> round(krippendorff_alpha(**answers, level="nominal"), 4)
    0.4444
    """
    if level not in LEVELS:
        raise ValueError(f"level must be one of {', '.join(LEVELS)}; got {level!r}")
    units, categories, table = count_votes(check_votes(values, unit, annotator))
    multiplicity = _check_weights(weights, units.size)
    answers = table.sum(axis=1)
    paired = answers >= 2
    table, answers, used = table[paired], answers[paired], multiplicity[:, paired]
    if level == "nominal":
        alpha = _alpha_of_nominal_answers(table, answers, used)
    else:
        dense = table.toarray()
        alpha = np.array(
            [_alpha_of_table(dense, answers, weight, categories, level) for weight in used]
        )
    return float_or_array(alpha[0] if weights is None else alpha)


def _alpha_of_nominal_answers(
    table: sparse.csr_array, answers: FloatArray, weights: FloatArray
) -> FloatArray:
    """Return Krippendorff's α of nominal answers for each row of weights. The distance δ² is the
    same for all rows, so its quadratic forms are sums of squares.
    """
    disagreement = (answers**2 - table.power(2).sum(axis=1)) / (answers - 1)
    totals = weights @ table
    n = totals.sum(axis=1)
    expected = n**2 - (totals**2).sum(axis=1)
    alpha = np.full(n.size, np.nan)
    np.divide((n - 1) * (weights @ disagreement), expected, out=alpha, where=expected > 0)
    return 1 - alpha


def _alpha_of_table(
    table: FloatArray, answers: FloatArray, weight: FloatArray, categories: FloatArray, level: str
) -> float:
    totals = weight @ table
    distance = _squared_distance(categories, totals, level)
    # An answer is not paired with itself, but its distance to itself is 0: the square form counts
    # the right pairs.
    disagreement = (table @ distance * table).sum(axis=1) / (answers - 1)
    expected = float(totals @ distance @ totals)
    if expected <= 0:
        return float("nan")
    return 1 - (float(totals.sum()) - 1) * float(weight @ disagreement) / expected


def _squared_distance(categories: FloatArray, totals: FloatArray, level: str) -> FloatArray:
    """Return the squared distance δ² of every pair of values, shape (K, K)."""
    place = categories if level == "interval" else np.cumsum(totals) - totals / 2
    squared: FloatArray = (place[:, None] - place[None, :]) ** 2
    return squared


def _check_weights(weights: ArrayLike | None, n: int) -> FloatArray:
    if weights is None:
        return np.ones((1, n))
    table = checks.check_non_negative("weights", weights)
    if table.ndim != 2 or table.shape[1] != n:
        raise ValueError(f"weights must have shape (B, {n}); got {table.shape}")
    return table
