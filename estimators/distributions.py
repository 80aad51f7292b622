"""Sampling distributions p_i over the predictions of one system: the weight of each prediction in
its precision.

Precision is π_i = Σ_{x ∈ X_i} p_i(x) f_i(x), so a distribution is both what is drawn from and what
is meant by "the" precision (Chaganty 2018, section 3.6.1; Chaganty et al. 2017, section 4.1).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike
from scipy import sparse

from estimators import checks
from estimators.checks import FloatArray, IntArray

KINDS = ("instance", "relation", "entity", "entity_relation")
MEANS_OF_PREDICATES = ("relation", "entity_relation")
"""Distributions whose precision is a mean of the means of predicates, which recur in many documents
"""
SUM_TOLERANCE = 1e-9


def prediction_probabilities(
    kind: str, *, subject: ArrayLike, predicate: ArrayLike, object: ArrayLike
) -> FloatArray:
    """Return the sampling probability p_i(x) of every prediction x of one system: positive numbers
    that sum to 1.

    ==================  ======================================  ================================
    kind                p_i(x) ∝                                what it weighs alike
    ==================  ======================================  ================================
    `instance`          1                                       every prediction (micro average)
    `relation`          1 / |rel(x)|                            every predicate
    `entity`            1 / |subj(x)|                           every subject entity
    `entity_relation`   |subj-relns(x)| / |subj(x)| / |rel(x)|  predicates, and entities by what
                                                                is said of them
    ==================  ======================================  ================================

    |rel(x)| counts the system's predictions with x's predicate, |subj(x)| those about x's subject
    entity, and |subj-relns(x)| the distinct (predicate, object entity) pairs that it predicts of
    that subject entity.

    Parameters
    ----------
    kind : str
        `instance`, `relation`, `entity` or `entity_relation`.
    subject, predicate, object : array_like of int, shape (n,)
        Codes (0 or more) of subject entity, predicate and object entity of each of the system's n
        predictions, by the system's own linking. Every justification is a prediction of its own, so
        a row may occur twice.

    Returns
    -------
    ndarray of float64, shape (n,)
        Probabilities; empty for a system that predicts nothing.

    Raises
    ------
    ValueError
        An unknown kind; codes that are not integers, or negative; arrays of different lengths.

    References
    ----------
    Chaganty 2018, section 3.6.1.

    Examples
    --------
    Entity 0 has two predictions, entity 1 one; predicate 0 is predicted twice, predicate 1 once.

    >>> facts = dict(subject=[0, 0, 1], predicate=[0, 1, 0], object=[5, 6, 7])
    >>> prediction_probabilities("relation", **facts).tolist()
    [0.25, 0.5, 0.25]
    >>> prediction_probabilities("entity", **facts).tolist()
    [0.25, 0.25, 0.5]
    >>> prediction_probabilities("entity_relation", **facts).tolist()
    [0.25, 0.5, 0.25]
    """
    if kind not in KINDS:
        raise ValueError(f"kind must be one of {', '.join(KINDS)}; got {kind!r}")
    n = np.size(subject)
    subjects, predicates = (
        checks.check_codes("subject", subject, n),
        checks.check_codes("predicate", predicate, n),
    )
    return normalise(
        _unnormalised_weights(kind, subjects, predicates, checks.check_codes("object", object, n))
    )


def normalise(weight: ArrayLike) -> FloatArray:
    """Return `weight` divided by its sum: a distribution over predictions, from weights or a filter
    (0 and 1).

    Parameters
    ----------
    weight : array_like of float, shape (n,)
        Weights of 0 or more, in any unit.

    Returns
    -------
    ndarray of float64, shape (n,)
        Probabilities; empty if `weight` is.

    Raises
    ------
    ValueError
        A weight that is negative, infinite or NaN; weights that are all 0.

    References
    ----------
    Chaganty 2018, section 6.1.2 (new questions of old labels).

    Examples
    --------
    >>> normalise([1, 0, 3]).tolist()
    [0.25, 0.0, 0.75]
    """
    values = checks.check_non_negative("weight", weight)
    if values.ndim != 1:
        raise ValueError(f"weight must have one dimension; got shape {values.shape}")
    if not values.size:
        return values
    total = float(values.sum())
    if total == 0:
        raise ValueError(f"weight must be positive somewhere; got {values.size} times 0")
    return values / total


def pairwise_overlap(P: ArrayLike | sparse.sparray | sparse.spmatrix) -> FloatArray:
    """Return the overlap of every pair of systems, Σ_x p_i(x) p_j(x), shape (m, m).

    Parameters
    ----------
    P : array_like of float or scipy.sparse, shape (N, m)
        Probability of every one of the N instances that anybody predicts under each of the m
        systems; each column sums to 1 (or to 0, for a system that predicts nothing). Sparse where
        there are many: most are 0.

    Returns
    -------
    ndarray of float64, shape (m, m)
        Symmetric. Its diagonal entry is 1 / (number of predictions) under `instance`.

    Raises
    ------
    ValueError
        A probability outside [0, 1]; a column that sums to neither 1 nor 0, within 1e-9.

    References
    ----------
    Chaganty 2018, section 3.4.3 (the heuristic weights are made of these).

    Examples
    --------
    >>> pairwise_overlap([[0.5, 0.0], [0.5, 1.0]]).tolist()
    [[0.5, 0.5], [0.5, 1.0]]
    """
    if sparse.issparse(P):
        matrix = sparse.csr_array(P, dtype=np.float64)
        checks.check_probabilities("P", matrix.data)
    else:
        matrix = checks.check_probabilities("P", P)
    if matrix.ndim != 2:
        raise ValueError(f"P must have two dimensions; got shape {matrix.shape}")
    sums = np.asarray(matrix.sum(axis=0))
    for column in np.flatnonzero((np.abs(sums - 1) > SUM_TOLERANCE) & (sums != 0)):
        raise ValueError(
            f"every column of P must sum to 1; column {column} sums to {float(sums[column])!r}"
        )
    product = matrix.T @ matrix
    dense: FloatArray = product.toarray() if sparse.issparse(product) else product
    return dense


def _unnormalised_weights(
    kind: str, subject: IntArray, predicate: IntArray, object: IntArray
) -> FloatArray:
    if kind == "instance":
        return np.ones(len(subject))
    if kind == "relation":
        return 1 / _group_sizes(predicate)
    if kind == "entity":
        return 1 / _group_sizes(subject)
    return _distinct_facts(subject, predicate, object) / (
        _group_sizes(subject) * _group_sizes(predicate)
    )


def _group_sizes(group: IntArray) -> FloatArray:
    """Return, for every row, the number of rows in its group."""
    _, inverse, counts = np.unique(group, return_inverse=True, return_counts=True)
    return counts[inverse].astype(np.float64)


def _distinct_facts(subject: IntArray, predicate: IntArray, object: IntArray) -> FloatArray:
    """Return, for every row, how many distinct (predicate, object) pairs are predicted of its
    subject.
    """
    if not len(subject):
        return np.zeros(0)
    _, row = np.unique(subject, return_inverse=True)
    facts = np.unique(np.column_stack([row, predicate, object]), axis=0)
    return np.bincount(facts[:, 0])[row].astype(np.float64)
