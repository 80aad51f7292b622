"""Draws the documents of a second stage, with probabilities that grow with their mentions of the
first stage's entities and are never 0.

References: Särndal, Swensson and Wretman (1992), section 3.6; Madow (1949), randomised systematic
sampling.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from estimators import checks
from estimators.checks import FloatArray, IntArray


def summed_tf_idf(
    document: ArrayLike, entity: ArrayLike, count: ArrayLike, n_documents: int
) -> FloatArray:
    """Return Σ_e tf_de · log(D / df_e) of every document, shape (D,), from (document, entity,
    count) triples.

    An entity that occurs in every document distinguishes none of them: its idf is 0.

    Parameters
    ----------
    document, entity : (k,) integer arrays
        Codes; each pair at most once. Documents are numbered 0 … D − 1.
    count : (k,) array
        tf: how often the entity is named in the document, above 0.
    n_documents : int
        D.

    Returns
    -------
    (n_documents,) array
        0 for a document without any of the entities, or with none but those that all documents
        have.

    Raises
    ------
    ValueError
        If the arrays differ in size, a count is not positive, or a document is not below D.

    Examples
    --------
    >>> summed_tf_idf([0, 0, 1], [0, 1, 1], [2, 1, 1], 4).round(3).tolist()
    [3.466, 0.693, 0.0, 0.0]
    """
    times = checks.check_non_negative("count", count)
    place = checks.check_codes("document", document, times.size)
    columns = checks.check_codes("entity", entity, times.size)
    if (times <= 0).any():
        raise ValueError(f"count must be above 0; got {times[times <= 0][0]!r}")
    if place.max(initial=-1) >= n_documents:
        raise ValueError(
            f"document must be below {n_documents}, the number of documents; got {place.max()}"
        )
    found_in = np.bincount(columns)
    idf = np.log(n_documents / np.maximum(found_in, 1))
    total: FloatArray = np.bincount(
        place, weights=times * idf[columns], minlength=n_documents
    ).astype(np.float64)
    return total


def proportional_inclusion_probabilities(
    size: ArrayLike, n: int, *, uniform: float = 0.5
) -> FloatArray:
    """Return inclusion probabilities of n among N units: mixed from proportional to ``size`` and
    uniform.

    ``π = min(1, c q)`` with ``q = (1 − ε) size/Σ size + ε/N`` and c such that Σ π = n; so no
    probability is below ε n/N, and no weight 1/π is above 1/ε times that of a uniform draw. Without
    any size all are n/N.

    Parameters
    ----------
    size : (N,) array
        At least 0.
    n : int
        How many are to be drawn, 0 … N.
    uniform : float
        ε in (0, 1]; 1 is the uniform draw.

    Returns
    -------
    (N,) array
        In [0, 1], with the sum n; 1 for a unit so large that it is certain.

    Raises
    ------
    ValueError
        If a size is negative, n is not in 0 … N, or ε leaves (0, 1].

    Examples
    --------
    >>> proportional_inclusion_probabilities([3, 1, 0, 0], 2, uniform=0.5).round(3).tolist()
    [1.0, 0.5, 0.25, 0.25]
    >>> proportional_inclusion_probabilities([0, 0, 0, 0], 1).tolist()
    [0.25, 0.25, 0.25, 0.25]
    """
    sizes = checks.check_non_negative("size", size)
    if not 0 <= n <= sizes.size:
        raise ValueError(f"n must be between 0 and {sizes.size}, the number of units; got {n!r}")
    if not 0 < uniform <= 1:
        raise ValueError(f"uniform must be in (0, 1]; got {uniform!r}")
    if n == 0:
        return np.zeros(sizes.size)
    total = float(sizes.sum())
    share = sizes / total if total > 0 else np.full(sizes.size, 1 / sizes.size)
    q = (1 - uniform) * share + uniform / sizes.size
    pi = np.zeros(sizes.size)
    certain = np.zeros(sizes.size, dtype=np.bool_)
    while True:  # each round makes at least one unit certain, or ends
        left = n - int(certain.sum())
        pi = np.where(
            certain, 1.0, left * q / max(float(q[~certain].sum()), np.finfo(np.float64).tiny)
        )
        over = (pi >= 1 - 1e-12) & ~certain
        if not over.any():
            return pi
        certain |= over


def systematic_sample(pi: ArrayLike, rng: np.random.Generator) -> IntArray:
    """Return the units that a systematic sample draws from the units in random order; their number
    is the sum of `pi`.

    Every unit is drawn with exactly its π. The order of the units is random, so that the joint
    probabilities are close to those of the sample of greatest entropy, and
    :class:`estimators.design.Design` with these π as ``beta`` gives the variance. The order of the
    result is random too, and independent of which are drawn.

    Parameters
    ----------
    pi : (N,) array
        Inclusion probabilities whose sum is a whole number.
    rng : numpy.random.Generator

    Returns
    -------
    (n,) integer array
        Indices of the units drawn, each once.

    Raises
    ------
    ValueError
        If a probability leaves [0, 1], or their sum is no whole number.

    Examples
    --------
    >>> sorted(systematic_sample([1.0, 1.0, 0.0], np.random.default_rng(1)).tolist())
    [0, 1]
    """
    chance = checks.check_probabilities("pi", pi)
    n = round(float(chance.sum()))
    if abs(float(chance.sum()) - n) > 1e-6:
        raise ValueError(f"the sum of pi must be a whole number; got {float(chance.sum())!r}")
    certain = np.flatnonzero(chance >= 1)
    order = rng.permutation(np.flatnonzero((chance > 0) & (chance < 1)))
    left = n - certain.size
    drawn: NDArray[np.int64] = np.zeros(0, dtype=np.int64)
    if left > 0:
        ends = np.cumsum(chance[order])
        ends *= left / ends[-1]  # rounding must not lose a unit
        drawn_places = np.searchsorted(ends, rng.random() + np.arange(left), side="right")
        drawn = order[np.minimum(drawn_places, order.size - 1)]
    return rng.permutation(np.concatenate([certain, drawn]).astype(np.int64))
