"""Estimates the number of true facts that no system predicted, from annotated documents.

References: Särndal, Swensson and Wretman (1992), sections 3.3 and 6.4; Hájek (1964); Chaganty 2018,
section 3.5.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from estimators import checks
from estimators.checks import FloatArray
from estimators.design import Design
from estimators.estimate import Estimate


def estimate_unseen_facts(
    counts: ArrayLike,
    n_documents: int,
    *,
    inclusion: ArrayLike | None = None,
    features: ArrayLike | None = None,
    feature_totals: ArrayLike | None = None,
) -> Estimate:
    """Return the estimated number M of true facts in all documents that no submission predicts.

    ``M = (D/n_d) Σ_d M_d``, or ``Σ_d M_d/π_d`` with unequal probabilities; with features, plus the
    prediction of a weighted regression of M_d on them for the documents not drawn (the generalised
    regression estimator).

    Parameters
    ----------
    counts : (n_d,) array
        M_d: true facts of annotated document d that nobody predicted.
    n_documents : int
        D, documents in the corpus.
    inclusion : (n_d,) array, optional
        π_d in (0, 1]. Two stages: 1 for the documents of the first, the probability given the first
        for the second. Mix any weighting with a uniform one, so that every document of the corpus
        has π_d > 0.
    features : (n_d, k) array, optional
        Per annotated document, say its length and Σ g; a constant is added.
    feature_totals : (k,) array
        Their sums over all D documents. Needed with ``features``.

    Returns
    -------
    Estimate
        Influence M_d/π_d (residuals with features, scaled up by their leverage); degrees of freedom
        n_d − 1 − k, certain documents not counted. NaN without an annotated document; the variance
        is NaN with a single one. ``anticipated`` is the variance that half a missed fact would give
        (:func:`half_fact_changes`): where none was found, none is seen, and yet the next document
        may have one.

    Raises
    ------
    ValueError
        If a count is negative or NaN, D is smaller than n_d, or there are too few documents for the
        features.

    Notes
    -----
    The variance has the finite-population factor: all D documents annotated leave none.

    Examples
    --------
    >>> estimate = estimate_unseen_facts([2, 4], 10)
    >>> estimate.value, round(estimate.variance, 6), estimate.degrees_of_freedom
    (30.0, 80.0, 1.0)
    """
    missed = checks.check_non_negative("counts", counts)
    if missed.ndim != 1 or missed.size > n_documents:
        raise ValueError(
            f"counts must be one number a document, at most {n_documents}; got shape {missed.shape}"
        )
    if missed.size == 0:
        return Estimate(np.nan, np.nan, 0, np.zeros(0), degrees_of_freedom=0.0)
    beta = document_probabilities(missed.size, n_documents, inclusion)
    terms, value, used = missed / beta, float(np.sum(missed / beta)), 0
    if features is not None:
        terms, value, used = _regression_estimate(
            missed, beta, n_documents, features, feature_totals
        )
    variance = Design(beta, cluster=np.arange(missed.size), beta=beta).variance(terms)
    return Estimate(
        value,
        variance,
        int(missed.size),
        terms,
        degrees_of_freedom=_degrees_of_freedom(beta, used),
        anticipated=half_fact_changes(beta)[1],
    )


def half_fact_changes(beta: ArrayLike) -> tuple[float, float]:
    """Return by how much M, the number of facts that no system predicts, and its variance would
    grow if annotators had found half a fact more. These are ``½ mean 1/π_d`` and ``½ mean (1 −
    π_d)/π_d²`` over the documents that were drawn at random.

    A whole one gives twice that variance, whatever the number of documents; so this is the floor
    that half a label is for a mean of labels, and moves nothing where a fact was found.

    Parameters
    ----------
    beta : (n_d,) array
        Probabilities of the annotated documents.

    Returns
    -------
    float, float
        0 and 0 where every document of the corpus was annotated.

    Examples
    --------
    >>> half_fact_changes([0.25, 0.25, 1.0])
    (2.0, 6.0)
    """
    chance = checks.check_positive_probabilities("beta", beta)
    chance = chance[chance < 1]
    if not chance.size:
        return 0.0, 0.0
    return 0.5 * float(np.mean(1 / chance)), 0.5 * float(np.mean((1 - chance) / chance**2))


def document_probabilities(n: int, n_documents: int, inclusion: ArrayLike | None) -> FloatArray:
    """Return the inclusion probability of each annotated document: ``n / D``, or the recorded one.

    Parameters
    ----------
    n : int
        Documents annotated.
    n_documents : int
        D, documents in the corpus.
    inclusion : (n,) array or None
        Recorded probabilities, where documents were not drawn uniformly.

    Returns
    -------
    (n,) array
        In (0, 1].

    Raises
    ------
    ValueError
        If there is not one probability in (0, 1] for each document.

    Examples
    --------
    >>> document_probabilities(2, 8, None).tolist()
    [0.25, 0.25]
    >>> document_probabilities(2, 8, [1.0, 0.5]).tolist()  # one of a first stage, one of the second
    [1.0, 0.5]
    """
    if inclusion is None:
        return np.full(n, n / n_documents)
    beta = checks.check_positive_probabilities("inclusion", inclusion)
    if beta.shape != (n,):
        raise ValueError(f"inclusion must have shape ({n},); got {beta.shape}")
    return beta


def _degrees_of_freedom(beta: FloatArray, used: int) -> float:
    drawn = int((beta < 1).sum())
    return float(max(drawn - 1 - used, 0)) if drawn else np.inf


def _regression_estimate(
    missed: FloatArray,
    beta: FloatArray,
    n_documents: int,
    features: ArrayLike,
    feature_totals: ArrayLike | None,
) -> tuple[FloatArray, float, int]:
    """Return the residual terms, the generalised regression estimate and the number of features."""
    x = checks.check_finite("features", features)
    if feature_totals is None:
        raise ValueError(
            "feature_totals, the features' sums over all documents, go with features; got none"
        )
    sums = checks.check_finite("feature_totals", feature_totals)
    if x.ndim != 2 or x.shape[0] != missed.size or sums.shape != x.shape[1:]:
        raise ValueError(
            f"features must be ({missed.size}, k) with (k,) totals; got {x.shape} and {sums.shape}"
        )
    if missed.size <= x.shape[1] + 1:
        raise ValueError(
            f"{x.shape[1]} features need more than {x.shape[1] + 1} documents; got {missed.size}"
        )
    x = np.column_stack([np.ones(missed.size), x])
    inverse = np.linalg.pinv(x.T @ (x / beta[:, None]))
    coefficients = inverse @ (x.T @ (missed / beta))
    residual = missed - x @ coefficients
    value = float(np.concatenate([[n_documents], sums]) @ coefficients + np.sum(residual / beta))
    leverage = np.einsum("dk,kl,dl->d", x, inverse, x) / beta
    fitted_away = np.sqrt((1 - 1 / missed.size) / np.maximum(1 - leverage, 1e-9))
    return residual * fitted_away / beta, value, x.shape[1] - 1
