"""Facts that annotators overlook: the share of true predictions that annotation had found, and
recall corrected by it.

Annotators who read a whole document overlook facts. Of the predictions in it that were asked
directly (drawn, or all of them) and are true, the share c that annotation had marked says how many;
that of true facts which nobody predicted they found the same share is the assumption of capture and
recapture (Petersen 1896; Lincoln 1930). Where what systems overlook is also what people overlook, c
is too high and the corrected recall still too high, though less than the plain one.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import ArrayLike

from estimators import checks
from estimators.design import Design
from estimators.estimate import Estimate
from estimators.recall import Recall


def marked_share(
    true: ArrayLike,
    marked: ArrayLike,
    weight: ArrayLike,
    pi: ArrayLike,
    document: ArrayLike,
    design: Design,
    *,
    target: ArrayLike | None = None,
) -> Estimate:
    """Return c: the share of the true predictions in annotated documents that the annotation had
    found.

    ``c = Σ_d (1/β_d) Σ_{τ ∈ d} (w/π) f m / Σ_d (1/β_d) Σ_{τ ∈ d} (w/π) f`` over directly asked
    predictions in annotated documents: f right, m marked, w the share of a fact that it stands for.
    Where all predictions of these documents were asked, π = 1: nothing but the documents is then
    left to chance, and they alone carry the influence.

    Parameters
    ----------
    true : (n,) array
        f of each prediction that was asked: 1 right, 0 wrong, NaN missing (left out).
    marked : (n,) boolean array
        The annotation of its document had marked the fact.
    weight : (n,) array
        Share of a fact; 0 outside the scope.
    pi : (n,) array
        Probability that the prediction's target was asked, given its document.
    document : (n,) integer array
        Position of its annotated document; −1: in none, and it does not count.
    design : Design
        That of :func:`estimators.recall.recall` (targets, then documents). With the document route,
        π must be 1.
    target : (n,) integer array, optional
        Code of each row's target among the design's rows; of a row with π = 1 any will do.

    Returns
    -------
    Estimate
        ``n`` counts the true ones; NaN without any. The influence has the design's rows: a document
        carries its (k_d − c l_d)/(β_d L); a target √β_d of its own term, since the rest is in what
        the documents' sums vary by (exact where all documents are annotated).

    Raises
    ------
    ValueError
        If shapes disagree, a probability leaves (0, 1], or the design has the document route and
        some π is below 1.

    Examples
    --------
    >>> design = Design(np.array([1.0, 1.0, 1.0, 0.5, 0.5]), cluster=[-1, -1, -1, 0, 1], beta=0.5)
    >>> marked, one = [True, False, False], np.ones(3)
    >>> share = marked_share([1, 1, 0], marked, one, one, [0, 1, 1], design)
    >>> share.value, share.n
    (0.5, 2)
    """
    f = checks.check_labels("true", true)
    chance = checks.check_positive_probabilities("pi", pi)
    inside = checks.check_codes("document", document, f.size, lowest=-1)
    code = np.arange(f.size) if target is None else checks.check_codes("target", target, f.size)
    beta = np.ones(0) if design.beta is None else design.beta
    certain = chance >= 1
    if (
        design.cluster is not None
        and np.any(design.cluster[: design.pi.size - beta.size] >= 0)
        and not certain.all()
    ):
        raise ValueError(
            "the design has the document route: everything in them is known, so that pi of each"
            f" row must be 1; got {chance[~certain][0]!r}"
        )
    counts = (inside >= 0) & (f == 1)
    document_of = np.maximum(inside, 0)
    term = np.where(counts, checks.check_non_negative("weight", weight) / chance, 0.0)
    scaled = term / (beta[document_of] if beta.size else 1.0)
    mark = np.asarray(marked, dtype=np.bool_)
    total = float(scaled.sum())
    influence = np.zeros(design.pi.size)
    if not total > 0:
        return Estimate(np.nan, np.nan, 0, influence, degrees_of_freedom=0.0)
    value = float(scaled @ mark) / total
    z = scaled * (mark - value) / total
    drawn_alone = counts & ~certain
    np.add.at(influence, code[drawn_alone], (z * np.sqrt(beta[document_of]))[drawn_alone])
    np.add.at(influence, design.pi.size - beta.size + inside[counts], z[counts])
    drawn = int((beta < 1).sum())
    df = float(max(drawn - 1, 0)) if drawn else np.inf
    variance = float(np.asarray(design.variance(influence)))
    n = int(np.unique(code[counts]).size)
    return Estimate(value, variance, n, influence, degrees_of_freedom=df)


def correct_recall_for_misses(recall: Recall, share: Estimate) -> Recall:
    """Return recall corrected for facts that annotators missed: the number M of facts that no
    system predicts becomes M/c in ``r_i = T_i / (T + M/c)``; the variance is by the delta method.

    Parameters
    ----------
    recall : Recall
        From :func:`estimators.recall.recall`.
    share : Estimate
        c, from :func:`marked_share` with ``found.design``.

    Returns
    -------
    Recall
        NaN where c is NaN or 0: nothing then says how much was missed. What was anticipated of
        ``recall`` is gone.

    Examples
    --------
    >>> from estimators.recall import estimate_recall
    >>> plain = estimate_recall([[1], [1]], np.ones(2), [1, 1], np.full(2, 0.5), [1.0], 1.0,
    ...     [1, 1, 0, 0], 4)
    >>> half = Estimate(0.5, 0.0, 9, np.zeros(6))
    >>> (correct_recall_for_misses(plain, half).recall.value.round(4).tolist(),
    ...  plain.recall.value.tolist())
    ([0.3333], [0.5])
    """
    c = float(share.value)
    usable = c > 0
    missed, pool, systems = recall.unseen, recall.totals.pool, recall.totals.systems
    value = float(missed.value) / c if usable else np.nan
    n_targets = pool.influence.size
    z = np.zeros(n_targets + missed.influence.size)
    z[n_targets:] = missed.influence / (c if usable else np.nan)
    z = z - value / (c if usable else np.nan) * share.influence
    truth = float(pool.value) + value
    truth = truth if truth > 0 else np.nan
    whole = z.copy()
    whole[:n_targets] += pool.influence
    above = np.zeros((z.size, np.size(systems.value)))
    above[:n_targets] = np.reshape(systems.influence, (n_targets, -1))
    ratios = np.asarray(systems.value) / truth
    influence = (above - np.outer(whole, ratios)) / truth
    own_pool = np.pad(pool.influence, (0, missed.influence.size)) - whole * (
        float(pool.value) / truth
    )
    unseen = Estimate(
        value,
        float(np.asarray(recall.design.variance(z))),
        missed.n,
        z,
        degrees_of_freedom=missed.degrees_of_freedom,
        anticipated=float(np.asarray(missed.anticipated)) / c**2 if usable else 0.0,
    )
    return replace(
        recall,
        recall=replace(
            recall.recall,
            value=ratios,
            variance=recall.design.variance(influence),
            influence=influence,
            anticipated=np.zeros(ratios.shape),
        ),
        pool_recall=replace(
            recall.pool_recall,
            value=float(pool.value) / truth,
            variance=float(np.asarray(recall.design.variance(own_pool / truth))),
            influence=own_pool / truth,
        ),
        unseen=unseen,
    )
