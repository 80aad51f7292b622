"""The published estimator of recall: the pool's recall θ times each system's recall within the pool
ν.

θ comes from documents (or instances) annotated exhaustively, ν from the labelled draws of all
systems that turned out true; r̂_i = θ̂ ν̂_i (Chaganty 2018, section 3.4.3 and appendix A.1).
:mod:`estimators.joint` offers these functions too.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from estimators import checks
from estimators.checks import BoolArray, FloatArray, IntArray, float_or_array
from estimators.estimate import Estimate
from estimators.mixture import Draws, check_draws

SUPPORTS = {"common": "balance", "per_system": "heuristic"}
ROUNDING = 1e-12
"""Variances below this count as 0, since sums of equal terms differ in their last digits"""


def pool_recall(
    predicted_by_any: ArrayLike,
    weight: ArrayLike | None = None,
    *,
    document: ArrayLike | None = None,
    n_annotated: int | None = None,
    n_documents: int | None = None,
) -> Estimate:
    """Return the pool's recall θ̂: the share of all true instances that at least one system
    predicts.

    θ̂ = Σ_{x ∈ Ŷ_0} p_0(x) g(x) / Σ_{x ∈ Ŷ_0} p_0(x), g(x) = 1 if anybody predicts x, Ŷ_0 the true
    instances found by exhaustive annotation. With documents as clusters, r_d the sum of p_0 (g −
    θ̂) / Σ p_0 in document d: Var θ̂ = (1 − n_d/D) n_d/(n_d − 1) Σ_d r_d². Without: Σ_x r_x², every
    instance drawn by itself.

    Parameters
    ----------
    predicted_by_any : array_like of bool, shape (n_0,)
        Whether any system predicts it, for each true instance annotated.
    weight : array_like of float, shape (n_0,), optional
        p_0, up to a factor; 1 by default.
    document : array_like of int, shape (n_0,), optional
        Code of its document. Annotated documents were drawn whole, so this is what an honest
        variance needs.
    n_annotated : int, optional
        Number n_d of documents annotated, those without a true instance among them; the number of
        distinct codes if left out.
    n_documents : int, optional
        Number D of documents they were drawn from, for the finite-population factor 1 − n_d/D;
        infinite if left out.

    Returns
    -------
    Estimate
        Single numbers. `influence` has one row an instance, or one a distinct document in the order
        of the codes; Var = Σ influence². NaN without any instance (or weight), and variance NaN
        with one document of several. Where all or none are predicted no variance is seen, and
        `anticipated` is that of half an instance of the other kind; none where all documents are
        annotated.

    Raises
    ------
    ValueError
        A membership that is not 0 or 1, a negative weight, numbers of documents that contradict
        each other.

    References
    ----------
    Chaganty 2018, section 3.4.3; the cluster variance: Cochran 1977, section 6.3 (ratio
    estimators).

    Examples
    --------
    >>> result = pool_recall([1, 1, 0, 1], document=[0, 0, 1, 1])
    >>> result.value, round(result.variance, 4)
    (0.75, 0.0625)
    """
    predicted = _check_booleans("predicted_by_any", predicted_by_any, 1).astype(np.float64)
    mass = _check_weight(weight, predicted.size)
    total = mass.sum()
    share = mass / total if total > 0 else np.full(predicted.size, np.nan)
    theta = (share * predicted).sum() if total > 0 else np.nan
    terms = share * (predicted - theta)
    is_sample = True
    if document is not None:
        n_read = np.unique(document).size if n_annotated is None else n_annotated
        is_sample = n_documents is None or n_read < n_documents
        terms = _sum_by_document(
            terms,
            checks.check_codes("document", document, predicted.size),
            n_annotated,
            n_documents,
        )
    elif n_annotated is not None or n_documents is not None:
        raise ValueError("n_annotated and n_documents need document; got None")
    variance = np.einsum("t,t->", terms, terms) if total > 0 else np.nan
    n = int((mass > 0).sum())
    floor = float(_half_label_variance(np.asarray(theta), np.asarray(variance), np.asarray(n)))
    return Estimate(
        value=float_or_array(theta),
        variance=float_or_array(variance),
        n=n,
        influence=terms,
        anticipated=floor if is_sample else 0.0,
    )


def pooled_recall(
    P: ArrayLike,
    system: ArrayLike,
    label: ArrayLike,
    overlap: ArrayLike | None,
    membership: ArrayLike,
    *,
    weight: ArrayLike | None = None,
    support: str = "common",
    ddof: int = 0,
) -> Estimate:
    """Return ν̂_i, the share of the pool's true instances that system i predicts.

    ν̂_i = Σ_j (w_j / n_j) Σ_{x ∈ X̂_j} p_0 f g_i / q  divided by  Σ_j (w_j / n_j) Σ_{x ∈ X̂_j} p_0
    f / q, where f is the label, g_i(x) = 1 if i predicts x, and under `common` one mixture for all,
    w_j = n_j / n, q = Σ_j w_j p_j.

    `per_system` is the form with weights w_ij and a mixture q_i for each system. It is **not
    consistent** when instances of the pool lie outside the support of q_i: it then measures the
    share of that support only, and is too large. It is here for comparison.

    Parameters
    ----------
    P, system, label, overlap
        The draws, as in :func:`estimators.joint.joint_precision`; label (n,). Only `per_system`
        needs overlap.
    membership : array_like of bool, shape (n, m)
        Whether system i predicts the drawn instance.
    weight : array_like of float, shape (n,), optional
        p_0 of each drawn instance, up to a factor; 1 by default.
    support : {"common", "per_system"}
    ddof : int, keyword-only
        As in :func:`estimators.joint.joint_precision`.

    Returns
    -------
    Estimate
        `value`, `variance` (delta method for the ratio, theorem 4's Var ν̂), `n` (true draws that
        count), all (m,), and
        `influence` (n, m) with Var = Σ influence². NaN where no draw that counts is true. Where all
        true draws agree, `anticipated` is the variance of half a draw that does not.

    Raises
    ------
    ValueError
        As joint_precision; an unknown support; a membership that is not 0 or 1.

    References
    ----------
    Chaganty 2018, section 3.4.3 (`per_system`), appendix A.1.2 (`common`).

    Examples
    --------
    System 0 predicts instances a and b, system 1 only b; a and b are true, so ν is (1, 1/2).

    >>> P, overlap = [[0.5, 0.0], [0.5, 1.0], [0.5, 1.0]], [[0.5, 0.5], [0.5, 1.0]]
    >>> result = pooled_recall(P, [0, 0, 1], [1, 1, 1], overlap, [[1, 0], [1, 1], [1, 1]])
    >>> result.value.round(3).tolist()
    [1.0, 0.5]
    """
    draws, mass, member = _check_recall_inputs(
        P, system, label, overlap, membership, weight, support
    )
    labelled = ~np.isnan(draws.label[:, 0])
    true_mass = np.where(labelled, draws.label[:, 0], 0.0) * mass
    inverse = draws.inverse_proposal(0, labelled, "balance")
    value, n = np.full(draws.n_systems, np.nan), np.zeros(draws.n_systems, dtype=np.int64)
    influence = np.full(member.shape, np.nan)
    for i in range(draws.n_systems):
        if support == "per_system":
            inverse = draws.inverse_proposal(i, labelled, "heuristic")
        share = inverse * true_mass
        total = share.sum()
        n[i] = np.count_nonzero(share)
        if total > 0:
            value[i] = (share * member[:, i]).sum() / total
            influence[:, i] = draws.centred(
                share * (member[:, i] - value[i]) / total, inverse > 0, ddof=ddof
            )
    variance = np.einsum("tm,tm->m", influence, influence)
    floor = _half_label_variance(value, variance, n)
    return Estimate(value=value, variance=variance, n=n, influence=influence, anticipated=floor)


def joint_recall(
    P: ArrayLike,
    system: ArrayLike,
    label: ArrayLike,
    overlap: ArrayLike | None,
    membership: ArrayLike,
    predicted_by_any: ArrayLike,
    *,
    weight: ArrayLike | None = None,
    pool_weight: ArrayLike | None = None,
    support: str = "common",
    ddof: int = 0,
    document: ArrayLike | None = None,
    n_annotated: int | None = None,
    n_documents: int | None = None,
) -> Estimate:
    """Return each system's recall among all true instances, r̂_i = θ̂ ν̂_i: the pool's recall times
    the system's share of the pool.

    Var r̂_i = θ̂² Var ν̂_i + ν̂_i² Var θ̂ + Var θ̂ Var ν̂_i, the draws and the documents being
    independent samples.

    Parameters
    ----------
    P, system, label, overlap, membership, weight, support, ddof
        For ν̂, as in :func:`pooled_recall`.
    predicted_by_any, document, n_annotated, n_documents
        For θ̂, as in :func:`pool_recall`.
    pool_weight : array_like of float, shape (n_0,), optional
        p_0 of the annotated instances; 1 by default.

    Returns
    -------
    Estimate
        `value`, `variance` (m,); `n` (m,), the true draws and annotated instances together;
        `influence` (n + rows of θ̂, m): θ̂ times ν̂'s rows, and below them ν̂_i times θ̂'s. Its sum
        of squares is the variance without the last, second-order term. `anticipated`: the same
        with the floors of both.

    Raises
    ------
    ValueError
        As :func:`pooled_recall` and :func:`pool_recall`.

    References
    ----------
    Chaganty 2018, lemma 1 (theorem 4 lacks the squares in print).

    Examples
    --------
    >>> P, overlap = [[0.5, 0.0], [0.5, 1.0], [0.5, 1.0]], [[0.5, 0.5], [0.5, 1.0]]
    >>> membership, found = [[1, 0], [1, 1], [1, 1]], [1, 1, 0, 1]
    >>> result = joint_recall(P, [0, 0, 1], [1, 1, 1], overlap, membership, found)
    >>> result.value.round(3).tolist(), result.influence.shape
    ([0.75, 0.375], (7, 2))
    """
    theta = pool_recall(
        predicted_by_any,
        pool_weight,
        document=document,
        n_annotated=n_annotated,
        n_documents=n_documents,
    )
    nu = pooled_recall(
        P, system, label, overlap, membership, weight=weight, support=support, ddof=ddof
    )
    value = np.asarray(nu.value)
    by_theta = theta.influence[:, None] * value
    of_theta = np.maximum(theta.variance, theta.anticipated)
    of_nu = np.maximum(nu.variance, nu.anticipated)
    return Estimate(
        value=theta.value * value,
        variance=theta.value**2 * nu.variance
        + value**2 * theta.variance
        + theta.variance * nu.variance,
        n=np.asarray(nu.n + theta.n),
        influence=np.concatenate([theta.value * nu.influence, by_theta]),
        anticipated=np.nan_to_num(theta.value**2 * of_nu + value**2 * of_theta + of_theta * of_nu),
    )


def _half_label_variance(value: FloatArray, variance: FloatArray, n: IntArray) -> FloatArray:
    """Return p (1 − p)/n where the sample variance is 0, with p half a label away from the mean of
    all n labels.
    """
    labels = np.maximum(n, 1)
    p = np.clip(np.nan_to_num(value), 0.5 / labels, 1 - 0.5 / labels)
    agree = (n > 0) & (variance < ROUNDING)
    return np.asarray(np.where(agree, p * (1 - p) / labels, 0.0))


def _check_recall_inputs(
    P: ArrayLike,
    system: ArrayLike,
    label: ArrayLike,
    overlap: ArrayLike | None,
    membership: ArrayLike,
    weight: ArrayLike | None,
    support: str,
) -> tuple[Draws, FloatArray, BoolArray]:
    if support not in SUPPORTS:
        raise ValueError(f"support must be one of {', '.join(SUPPORTS)}; got {support!r}")
    draws = check_draws(P, system, label, overlap, method=SUPPORTS[support])
    if np.ndim(label) != 1:
        raise ValueError(f"label must have one dimension; got shape {np.shape(label)}")
    member = _check_booleans("membership", membership, 2)
    if member.shape != draws.P.shape:
        raise ValueError(f"membership must have shape {draws.P.shape}; got {member.shape}")
    return draws, _check_weight(weight, len(member)), member


def _check_booleans(name: str, values: ArrayLike, ndim: int) -> BoolArray:
    array = np.asarray(values)
    if array.ndim != ndim:
        raise ValueError(f"{name} must have {ndim} dimension(s); got shape {array.shape}")
    odd = (array != 0) & (array != 1)
    if odd.any():
        raise ValueError(f"{name} must be 0 or 1; got {array[odd][0]!r}")
    return array.astype(np.bool_)


def _check_weight(weight: ArrayLike | None, n: int) -> FloatArray:
    if weight is None:
        return np.ones(n)
    values = checks.check_non_negative("weight", weight)
    if values.shape != (n,):
        raise ValueError(f"weight must have shape ({n},); got {values.shape}")
    return values


def _sum_by_document(
    terms: FloatArray, document: IntArray, n_annotated: int | None, n_documents: int | None
) -> FloatArray:
    """Return the terms summed per document, scaled so that their squares sum to the cluster
    variance.
    """
    codes, row = np.unique(document, return_inverse=True)
    n = codes.size if n_annotated is None else n_annotated
    if n < codes.size:
        raise ValueError(
            f"n_annotated must be at least {codes.size}, the documents that occur; got {n!r}"
        )
    if n_documents is not None and n_documents < n:
        raise ValueError(
            f"n_documents must be at least {n}, the documents annotated; got {n_documents!r}"
        )
    unseen_share = 1.0 if n_documents is None else 1 - n / n_documents
    spread = n / (n - 1) if n > 1 else np.nan
    scale = np.sqrt(unseen_share * spread) if unseen_share > 0 else 0.0
    return np.bincount(row, weights=terms, minlength=codes.size).astype(np.float64) * float(scale)
