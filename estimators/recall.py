"""Recall from totals: true facts that were predicted, and facts found by annotators that no system
predicted.

The unit is the fact, counted once in T_i (true facts of system i), T (of the pool) and M (true
facts in no submission): ``r_i = T_i / (T + M)``. T_i and T are difference estimates over labelled
facts, M a total over annotated documents.

Influences have one row a target and then one row an annotated document, so that
:class:`estimators.design.Design` gives every variance. References: Särndal, Swensson and Wretman
(1992), sections 3.3, 5.6 and 6.4; Chaganty 2018, section 3.5.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike
from scipy import sparse

from estimators import checks
from estimators.anticipated import (
    Belief,
    f1_weights,
    overconfidence_factor,
    variance_beyond_targets,
)
from estimators.checks import FloatArray, IntArray, Numbers, float_or_array
from estimators.design import Design
from estimators.documents import (
    document_probabilities,
    estimate_unseen_facts,
    half_fact_changes,
)
from estimators.estimate import Estimate
from estimators.horvitz_thompson import difference_estimate

__all__ = [
    "Recall",
    "Totals",
    "add_anticipated_variance",
    "add_missed_fact_floor",
    "estimate_recall",
    "estimate_totals",
    "estimate_unseen_facts",
    "f1_of_recall",
    "recall_from_totals",
]


@dataclass(frozen=True, eq=False)
class Totals:
    """Estimated numbers of true facts: of each system (m,), and of the whole pool.

    Examples
    --------
    >>> import numpy as np
    >>> counted = estimate_totals([[1, 0], [1, 1]], np.ones(2), [1, 0], np.full(2, 0.5),
    ...     [1.0, 0.5], 1.0)
    >>> counted.systems.value.tolist(), counted.pool.value
    ([1.0, 0.0], 1.0)
    """

    systems: Estimate
    pool: Estimate


@dataclass(frozen=True, eq=False)
class Recall:
    """Recall with the estimates that it is computed from.

    Attributes
    ----------
    recall : Estimate
        r_i = T_i / (T + M), one a system.
    pool_recall : Estimate
        θ = T / (T + M), of all systems together.
    totals : Totals
        T_i and T; influences have one row a target.
    unseen : Estimate
        M; influence has one row an annotated document.
    design : Design
        Of the rows of ``recall.influence``: targets first, then documents.

    Examples
    --------
    >>> import numpy as np
    >>> found = estimate_recall([[1], [1]], np.ones(2), [1, 1], np.full(2, 0.5), [1.0], 1.0,
    ...     [1, 1, 0, 0], 4)
    >>> # two targets and four documents
    >>> found.totals.pool.value, found.unseen.value, found.design.pi.size
    (2.0, 2.0, 6)
    """

    recall: Estimate
    pool_recall: Estimate
    totals: Totals
    unseen: Estimate
    design: Design


def estimate_totals(
    membership: ArrayLike,
    pi: ArrayLike,
    label: ArrayLike,
    g: ArrayLike,
    total_g: ArrayLike,
    pool_total_g: float,
    *,
    target: ArrayLike | None = None,
    n_targets: int | None = None,
    pool_label: ArrayLike | None = None,
    pool_g: ArrayLike | None = None,
    pool_weight: ArrayLike | None = None,
) -> Totals:
    """Return the estimated numbers of true facts of each system and of the pool.

    ``T_i = Σ_{X_i} g + Σ_{S ∩ X_i} (f − g)/π``; T the same over the pool, each fact once.

    Parameters
    ----------
    membership : (n, m) array
        1 where a system predicts the labelled fact, 0 where not. Where several instances of the
        pool predict one fact, each stands for its share: 1 over the number of them (of the system's
        own, of the pool's in ``pool_weight``).
    pi : (n,) array
        Inclusion probability of the fact's target, in (0, 1].
    label, g : (n,) or (n, m) array
        Labels (NaN is missing) and cross-fitted guesses.
    total_g : (m,) array
        Σ g over all facts that each system predicts.
    pool_total_g : float
        Σ g over all facts of the pool.
    target, n_targets
        As for :func:`estimators.horvitz_thompson.difference_estimate`.
    pool_label, pool_g : (n,) array, optional
        For a criterion that depends on the system: the label (and guess) that the denominator asks
        for.
    pool_weight : (n,) array, optional
        Share of a fact of the pool that each row stands for; 1 if left out.

    Returns
    -------
    Totals
        Variances are those of Poisson sampling.

    Raises
    ------
    ValueError
        As :func:`estimators.horvitz_thompson.difference_estimate`, or if the pool's labels are
        needed and missing.

    Examples
    --------
    >>> import numpy as np
    >>> counted = estimate_totals([[1, 0], [1, 1]], np.ones(2), [1, 0], np.full(2, 0.5),
    ...     [1.0, 0.5], 1.0)
    >>> counted.systems.value.tolist(), counted.pool.value
    ([1.0, 0.0], 1.0)
    """
    members = checks.check_probabilities("membership", membership)
    if members.ndim != 2:
        raise ValueError(
            f"membership must be an (n, m) array of shares in [0, 1]; got shape {members.shape}"
        )
    if np.ndim(label) == 2 and pool_label is None:
        raise ValueError("pool_label is needed where the label depends on the system; got none")
    systems = difference_estimate(
        members, pi, label, g, total_g, target=target, n_targets=n_targets
    )
    own_label, own_g = label if pool_label is None else pool_label, g if pool_g is None else pool_g
    everything = (
        np.ones(members.shape[0])
        if pool_weight is None
        else checks.check_probabilities("pool_weight", pool_weight)
    )
    pool = difference_estimate(
        everything, pi, own_label, own_g, pool_total_g, target=target, n_targets=n_targets
    )
    return Totals(systems, pool)


def estimate_recall(
    membership: ArrayLike,
    pi: ArrayLike,
    label: ArrayLike,
    g: ArrayLike,
    total_g: ArrayLike,
    pool_total_g: float,
    counts: ArrayLike,
    n_documents: int,
    *,
    target: ArrayLike | None = None,
    n_targets: int | None = None,
    pool_label: ArrayLike | None = None,
    pool_g: ArrayLike | None = None,
    inclusion: ArrayLike | None = None,
    features: ArrayLike | None = None,
    feature_totals: ArrayLike | None = None,
    pool_weight: ArrayLike | None = None,
) -> Recall:
    """Return recall of every system and of the pool.

    ``r_i = T_i/(T + M)``, ``θ = T/(T + M)``. The term of a target is ``(1{x ∈ X_i} − r_i)(f − g)/(π
    (T + M))``, that of an annotated document ``−r_i D M_d/(n_d (T + M))``; the variance is the
    design's, with the finite-population factor 1 − n_d/D, and intervals take Student's t with n_d −
    1 degrees of freedom.

    Parameters
    ----------
    membership, pi, label, g, total_g, pool_total_g, target, n_targets, pool_label, pool_g,
    pool_weight
        As for :func:`estimate_totals`.
    counts, n_documents, inclusion, features, feature_totals
        As for :func:`estimate_unseen_facts`.

    Returns
    -------
    Recall
        NaN throughout without an annotated document, or where T + M is not positive.

    Raises
    ------
    ValueError
        As :func:`estimate_totals` and :func:`estimate_unseen_facts`.

    Examples
    --------
    >>> import numpy as np
    >>> found = estimate_recall([[1], [1]], np.ones(2), [1, 1], np.full(2, 0.5), [1.0], 1.0,
    ...     [1, 1, 0, 0], 4)
    >>> found.recall.value.tolist(), found.pool_recall.value
    ([0.5], 0.5)
    """
    counted = estimate_totals(
        membership,
        pi,
        label,
        g,
        total_g,
        pool_total_g,
        target=target,
        n_targets=n_targets,
        pool_label=pool_label,
        pool_g=pool_g,
        pool_weight=pool_weight,
    )
    missed = estimate_unseen_facts(
        counts, n_documents, inclusion=inclusion, features=features, feature_totals=feature_totals
    )
    beta = document_probabilities(max(missed.influence.size, 1), max(n_documents, 1), inclusion)
    design = _joint_design(np.asarray(pi, dtype=np.float64), target, counted, missed, beta)
    return recall_from_totals(counted, missed, design)


def _joint_design(
    pi: FloatArray,
    target: ArrayLike | None,
    counted: Totals,
    missed: Estimate,
    beta: FloatArray,
) -> Design:
    """Return the design of the targets' rows followed by the documents' rows."""
    n_targets, n_drawn = counted.pool.influence.size, missed.influence.size
    code = np.arange(pi.size) if target is None else np.asarray(target)
    chance = np.ones(n_targets)
    chance[code] = pi
    if n_drawn == 0:
        return Design(chance)
    cluster = np.concatenate([np.full(n_targets, -1), np.arange(n_drawn)])
    return Design(np.concatenate([chance, beta]), cluster=cluster, beta=beta)


def recall_from_totals(counted: Totals, missed: Estimate, design: Design) -> Recall:
    """Return recall computed from given totals, such as those that experts corrected.

    Parameters
    ----------
    counted : Totals
        T_i and T; their influences share their rows.
    missed : Estimate
        M, see :func:`estimate_unseen_facts`.
    design : Design
        Of the rows of the totals' influences, and after them of the annotated documents.

    Returns
    -------
    Recall
        With linearised influences, ``(z_i − r_i (z_T + z_M))/(T + M)``; NaN where T + M is not
        positive.

    Examples
    --------
    >>> import numpy as np
    >>> half = np.full(2, 0.5)
    >>> counted = estimate_totals([[1, 0], [1, 1]], half, [1, 0], half, [1.0, 0.5], 1.0)
    >>> found = recall_from_totals(counted, estimate_unseen_facts([2, 0], 2),
    ...     Design(np.array([0.5, 0.5, 1.0, 1.0])))
    >>> found.recall.value.tolist(), found.pool_recall.value
    ([0.3333333333333333, -0.16666666666666666], 0.3333333333333333)
    """
    truth = float(counted.pool.value) + float(missed.value)
    truth = truth if truth > 0 else np.nan
    whole = np.concatenate([counted.pool.influence, missed.influence])
    above = np.column_stack([counted.systems.influence, counted.pool.influence])
    above = np.concatenate([above, np.zeros((missed.influence.size, above.shape[1]))])
    values = np.append(counted.systems.value, counted.pool.value) / truth
    influence = (above - np.outer(whole, values)) / truth
    variance = np.asarray(design.variance(influence))
    labelled, df = int(counted.pool.n), missed.degrees_of_freedom
    count: IntArray = np.full(values.size - 1, labelled)
    systems = Estimate(values[:-1], variance[:-1], count, influence[:, :-1], degrees_of_freedom=df)
    pool = Estimate(
        float(values[-1]), float(variance[-1]), labelled, influence[:, -1], degrees_of_freedom=df
    )
    return Recall(systems, pool, counted, missed, design)


def add_anticipated_variance(
    recall: Recall,
    membership_all: ArrayLike | sparse.sparray | sparse.spmatrix,
    pi_all: ArrayLike,
    g_all: ArrayLike,
    label: ArrayLike,
    g: ArrayLike,
    *,
    target: ArrayLike | None = None,
    pool_g: ArrayLike | None = None,
    pool_weight: ArrayLike | None = None,
    correlation: float = 1.0,
) -> Recall:
    """Return ``recall`` with the variance that the model expects, a lower bound for its "wilson"
    intervals.

    ``A_i = c Σ_pool (1{x ∈ X_i} − r_i)² (1/π − 1) g (1 − g)/(T + M)²``, summed per target, plus
    what comes from the documents: the variance of their own terms, −r_i M_d/(π_d (T + M)), and of
    the labels that came in with them. Without it A would be no floor.

    Parameters
    ----------
    recall : Recall
        From :func:`recall`.
    membership_all : (N, m) array or scipy.sparse
        Which systems predict each fact of the pool, labelled or not (its share, where several
        instances predict one).
    pi_all, g_all, label, g, target, correlation
        As for :func:`estimators.horvitz_thompson.anticipated_variance`.
    pool_g, pool_weight : (N,) array, optional
        As for :func:`estimate_totals`, over the whole pool.

    Returns
    -------
    Recall
        The same numbers with ``recall.anticipated``; ``recall`` itself where T + M is not positive.

    Examples
    --------
    >>> import numpy as np
    >>> members, half = np.ones((2, 1)), np.full(2, 0.5)
    >>> found = estimate_recall(members, half, [1, 1], half, [1.0], 1.0, [1, 1, 1, 1], 8)
    >>> planned = add_anticipated_variance(found, members, half, half, [1, 1], half)
    >>> planned.recall.anticipated.round(4).tolist()
    [0.005]
    """
    truth = float(recall.totals.pool.value) + float(recall.unseen.value)
    if not truth > 0:
        return recall
    members = sparse.csr_array(membership_all, dtype=np.float64)
    guess = checks.check_probabilities("g_all", g_all)
    belief = Belief(
        pi=checks.check_probabilities("pi_all", pi_all),
        g=guess,
        pool_g=guess if pool_g is None else checks.check_probabilities("pool_g", pool_g),
        pool_weight=(
            np.ones(guess.size)
            if pool_weight is None
            else checks.check_probabilities("pool_weight", pool_weight)
        ),
        target=(
            np.arange(guess.size)
            if target is None
            else checks.check_codes("target", target, guess.size)
        ),
        correlation=float(checks.check_probabilities("correlation", correlation)),
        overconfidence=overconfidence_factor(label, g),
    )
    n_targets = recall.totals.pool.influence.size
    floor = belief.variance(members / truth, np.asarray(recall.totals.systems.value) / truth**2)
    floor = floor + variance_beyond_targets(recall.recall.influence, recall.design, n_targets)
    floored = replace(recall.recall, anticipated=floor)
    return replace(recall, recall=add_missed_fact_floor(floored, recall))


def add_missed_fact_floor(
    estimate: Estimate, recall: Recall, by_recall: ArrayLike = 1.0
) -> Estimate:
    """Return recall, or F1, with half a missed fact added to the variance if the documents show
    none.

    Without a missed fact in the documents that were read, M and its variance are 0, and recall
    would look as certain as after reading all documents. So M's variance counts for at least that
    of half a fact (:func:`estimators.documents.half_fact_changes`), times ``(w r_i/(T + M))²``, and
    the estimate keeps half a fact, of those that the documents have, away from 1. Where its
    realised variance is larger, as with one fact in one document, nothing changes.

    Parameters
    ----------
    estimate : Estimate
        Of recall, or of what is made of it, with what else is anticipated.
    recall : Recall
        What it is made of.
    by_recall : float or (m,) array
        w, what a step of recall is worth in the estimate: 1 for recall itself.

    Returns
    -------
    Estimate
        The same number; ``anticipated`` at least the realised variance where the floor counts.

    Examples
    --------
    >>> import numpy as np
    >>> found = estimate_recall([[1], [1]], np.ones(2), [1, 1], np.full(2, 0.5), [1.0], 1.0,
    ...     [0, 0], 4)
    >>> told = add_missed_fact_floor(found.recall, found)
    >>> # half a fact of four: ½ · ½ · 4/2²
    >>> found.recall.variance.tolist(), told.anticipated.tolist()
    ([0.0], [0.25])
    """
    missed = recall.unseen
    short = float(np.asarray(missed.anticipated)) - float(np.asarray(missed.variance))
    truth = float(recall.totals.pool.value) + float(missed.value)
    if not (short > 0 and truth > 0):
        return estimate
    taken = np.asarray(by_recall) * np.asarray(recall.totals.systems.value) / truth**2
    floor = np.maximum(estimate.variance, estimate.anticipated) + short * taken**2
    half, _ = half_fact_changes(recall.design.pi[recall.totals.pool.influence.size :])
    read = max(1, round(0.5 * truth / half))
    return replace(estimate, anticipated=floor, n=np.minimum(estimate.n, read))


def f1_of_recall(precision: Estimate, recall: Estimate, design: Design) -> Estimate:
    """Return the harmonic mean of precision and recall, its variance by the delta method.

    ``F = 2PR/(P + R)``; influence ``2 (R² z_P + P² z_R)/(P + R)²``, so that the covariance of the
    two is in it.

    Parameters
    ----------
    precision, recall : Estimate
        Of the same systems and criterion. Where one has fewer rows (precision has no documents),
        the missing rows count as 0: both must number their targets alike.
    design : Design
        Of the longer influence, :attr:`Recall.design`.

    Returns
    -------
    Estimate
        0 where both are 0, NaN where either is.

    Raises
    ------
    ValueError
        If the two are not about the same number of systems, or the design has other rows.

    Examples
    --------
    >>> import numpy as np
    >>> half = Estimate(0.5, 0.01, 4, np.array([0.1, 0.1]))
    >>> f1_of_recall(half, half, Design(np.array([0.5, 0.5]))).value
    0.5
    """
    P, R = np.asarray(precision.value, dtype=np.float64), np.asarray(recall.value, dtype=np.float64)
    if P.shape != R.shape:
        raise ValueError(
            f"precision and recall must be of the same systems; got shapes {P.shape} and {R.shape}"
        )
    nothing = (P == 0) & (R == 0)
    by_precision, by_recall = f1_weights(precision, recall)
    influence = by_precision * _pad_influence(precision, design) + by_recall * _pad_influence(
        recall, design
    )
    value: Numbers = float_or_array(
        np.where(nothing, 0.0, 2 * P * R / np.where(nothing, 1.0, P + R))
    )
    variance = float_or_array(np.where(np.isnan(value), np.nan, design.variance(influence)))
    df = float_or_array(np.minimum(precision.degrees_of_freedom, recall.degrees_of_freedom))
    n = np.minimum(precision.n, recall.n)
    return Estimate(value, variance, n if n.ndim else int(n), influence, degrees_of_freedom=df)


def _pad_influence(estimate: Estimate, design: Design) -> FloatArray:
    z = np.asarray(estimate.influence, dtype=np.float64)
    missing = design.pi.size - z.shape[0]
    if missing < 0:
        raise ValueError(f"an influence has {z.shape[0]} rows, the design {design.pi.size}")
    return np.concatenate([z, np.zeros((missing, *z.shape[1:]))])
