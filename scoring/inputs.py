"""Estimates for inputs like these, which treat the inputs of a track as a sample.

Other estimates are about the given inputs: if all are judged, and people do not differ, there is no
sampling error. For other inputs of the kind a system's outputs may be better or worse. With weights
w that sum to W, a = w/π of what is judged, Â = Σ a, μ = Σ a (y − g)/Â and ḡ = Σ w g/W, input d adds
to a mean

    e_d = Σ_{x∈d} w (g − ḡ)/W + Σ_{judged x∈d} a (y − g − μ)/Â
    V = (D − 1)/D Σ_d (e_d/(1 − w_d/W))²                (all but one; D/(D − 1) Σ e_d² of equal w_d)

which holds what inputs differ by, what was drawn of them, and what people differ by at random. All
that was written for one input, repeated generations too, is one term. Of relations the inputs are
the documents that they were found in. Where a distribution weighs every relation alike, the mean is
one of means: the terms of a relation are taken about its own mean. Recall T_i/(T + M) has the terms
(T_id − r (T_d + M_d))/(T + M) of document d, M_d the mean of all where a document was not read.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np
from scipy import sparse

from estimators import recall as totals
from estimators.design import Design
from estimators.distributions import MEANS_OF_PREDICATES
from estimators.estimate import Estimate
from scoring.arrays import Bools, Floats, Ids, Matrix
from scoring.data import Data
from scoring.default import Centred

SAME = 1e-9
"""Ratings that differ by less count as equal"""
HALF = 0.5
"""π of rows whose terms are used in full: (1 − ½) (√2 e)² = e²"""
RECALLS = {"recall": "fact", "instance_recall": "mention"}
"""quantity -> the unit that is counted once"""

Key = tuple[str, str, str]
"""(quantity, criterion, distribution)"""


def estimates_for_similar_inputs(
    data: Data, estimates: Mapping[Key, tuple[Estimate, Design]]
) -> dict[Key, tuple[Estimate, Design]]:
    """Return the weighted means, recalls and F1 of every system as estimates for inputs, or
    documents, like these, each with its design; none for kinds with a single population.
    `estimates` are about the given inputs.
    """
    if not data.population or not data.judged.size:
        return {}
    code = data.input if data.input.size else _document_codes(data, data.pool.document)
    arranged, like = Centred(data), dict[Key, tuple[Estimate, Design]]()
    for key, (estimate, _) in estimates.items():
        quantity, criterion, kind = key
        if quantity == data.mean:
            like[key] = _mean_over_inputs(arranged, code, key, estimate)
        elif quantity in RECALLS:
            like[key] = _recall_over_inputs(arranged, code, criterion, RECALLS[quantity], estimate)
    for key, (both, _) in estimates.items():
        quantity, criterion, kind = key
        recall = like.get(("recall", criterion, data.unweighed))
        if quantity == "f1" and recall is not None:
            made = totals.f1_of_recall(like[data.mean, criterion, kind][0], *recall)
            like[key] = replace(made, anticipated=_own_variance(both), n=both.n), recall[1]
    return like


def _document_codes(data: Data, documents: Ids) -> Ids:
    """Return the code of each of `documents`: its position among all documents, in ascending order,
    that have predictions in the pool or were read in full.
    """
    read = np.array(data.documents.documents, dtype=np.int64)
    return np.searchsorted(np.union1d(data.pool.document, read), documents)


def _own_variance(estimate: Estimate) -> Floats:
    """Return the variance for the given inputs, a lower bound of the variance for inputs like
    these.
    """
    return np.maximum(estimate.variance, estimate.anticipated)


def _mean_over_inputs(
    centred: Centred, code: Ids, key: Key, estimate: Estimate
) -> tuple[Estimate, Design]:
    _, criterion, kind = key
    data, under = centred.data, centred.for_criterion(criterion)
    p, g, n_inputs = data.pool.p[kind], data.g[criterion], int(code.max()) + 1
    verdict, weight = under.verdicts, p[under.row].toarray()
    known = ~np.isnan(verdict) & (weight > 0)
    a = np.where(known, weight / under.row_pi[:, None], 0.0)
    if (
        criterion not in data.noise
    ):  # what is judged as a whole is the truth (`Centred.precision_where_settled`)
        whole = np.where(known, weight, 0.0).sum(axis=0) > np.asarray(p.sum(axis=0)) - SAME
        a = np.where(known & whole, weight, a)
    total = np.maximum(a.sum(axis=0), np.finfo(float).tiny)
    residual = np.where(known, verdict - g[under.row, None], 0.0)
    sampled = a * (residual - (a * residual).sum(axis=0) / total) / total
    terms = np.zeros((n_inputs, weight.shape[1]))
    n, judged = np.zeros(weight.shape[1]), np.zeros(weight.shape[1])
    for column in range(n.size):
        rows, weights = data.pool.rows_and_probabilities(kind, column)
        share = weights / (weights.sum() or 1.0)
        each = share * (g[rows] - share @ g[rows])
        own = known[:, column]
        each[np.searchsorted(rows, under.row[own])] += sampled[own, column]
        left = np.asarray(1.0 - np.bincount(code[rows], share, n_inputs), dtype=np.float64)
        if kind in MEANS_OF_PREDICATES:
            each, left = (
                _terms_about_group_means(each, data.pool.stratum[rows], code[rows]),
                np.ones(n_inputs),
            )
        of_inputs = np.bincount(code[rows], each, minlength=n_inputs)
        terms[:, column] = of_inputs / np.where(left > SAME, left, 1.0)
        n[column] = np.unique(code[rows[weights > 0]]).size
        judged[column] = np.unique(code[under.row[own]]).size
    terms *= np.sqrt(np.maximum(n - 1, 0) / np.maximum(n, 1))
    is_binary = _is_binary(under, verdict, known)
    floor = _least_variance(
        under, kind, estimate, judged, _are_all_ratings_equal(verdict, known), is_binary
    )
    noise = data.noise.get(criterion)
    if noise is None or noise.is_separable:  # else an upper bound, which is not of inputs
        floor = np.maximum(floor, _own_variance(estimate))
    is_duel = noise is not None and noise.lowers is not None  # what one wins the other loses
    joined = bool(data.input.size) and is_binary and not is_duel
    apart = _least_difference_terms(data.pool.member, n) if joined else np.zeros((0, n.size))
    freedom = np.maximum(judged - 1.0, 0.0)
    return _estimate_from_terms(
        estimate, np.concatenate([terms, apart]), terms, floor, judged, freedom
    )


def _estimate_from_terms(
    estimate: Estimate, rows: Floats, terms: Floats, floor: Floats, n: Floats, freedom: Floats
) -> tuple[Estimate, Design]:
    influence = rows / np.sqrt(1 - HALF)
    like = replace(
        estimate,
        variance=(terms**2).sum(axis=0),
        anticipated=floor,
        n=n.astype(np.int64),
        influence=influence,
        degrees_of_freedom=freedom,
        half_step=0.0,
    )
    return like, Design(np.full(influence.shape[0], HALF))


def _terms_about_group_means(each: Floats, group: Ids, code: Ids) -> Floats:
    """Return terms relative to the mean of their own group, each divided by the share of the group
    without its input. A group within a single input has no known variance: it counts as a part of
    that input.
    """
    n_groups = int(group.max(initial=-1)) + 1
    size = np.bincount(group, minlength=n_groups)
    mean = np.bincount(group, each, minlength=n_groups) / np.maximum(size, 1)
    _, place, count = np.unique(code * n_groups + group, return_inverse=True, return_counts=True)
    left = 1 - count[place] / size[group]
    return np.where(left > 0, (each - mean[group]) / np.where(left > 0, left, 1.0), each)


def _recall_over_inputs(
    centred: Centred, code: Ids, criterion: str, unit: str, estimate: Estimate
) -> tuple[Estimate, Design]:
    data, pool = centred.data, centred.data.pool
    found = centred.recall(criterion, unit=unit)
    assert found is not None and data.facts is not None
    share, D = centred.fact_shares(unit), data.facts.n_documents
    truth = float(found.totals.pool.value) + float(found.unseen.value)
    r = np.asarray(found.totals.systems.value) / truth
    read = _document_codes(data, np.array(data.documents.documents, dtype=np.int64))
    n_known = int(max(code.max(), read.max(initial=0))) + 1
    n_targets = found.totals.pool.influence.size
    of_target = np.zeros(pool.target_id.size, dtype=np.int64)
    of_target[pool.target] = code
    drawn = _input_indicator(
        of_target[centred.for_criterion(criterion).counted_targets[0]], n_known
    )
    influence = found.recall.influence
    terms = drawn @ influence[:n_targets]
    guessed = np.bincount(code, share.pool_shares * data.g[data.base], minlength=n_known)
    for column in range(r.size):
        rows = pool.support(column).row
        true = share.shares_of_system(column) * data.g[criterion][rows]
        own = np.bincount(code[rows], true, minlength=n_known)
        terms[:, column] += (own - r[column] * guessed) / truth
    unread = -r * float(found.unseen.value) / D / truth  # a document has the mean, until it is read
    beta = found.design.pi[n_targets:]
    terms[read] += influence[n_targets:] - unread / beta[:, None]
    # Documents that nothing is predicted in and nobody read are one row, as they have equal terms.
    rest = np.sqrt(max(D - n_known, 0)) * unread
    terms = np.concatenate([terms + unread, rest[None, :]]) * np.sqrt(D / max(D - 1, 1))
    freedom = np.minimum(estimate.degrees_of_freedom, D - 1)
    return _estimate_from_terms(
        estimate, terms, terms, _own_variance(estimate), np.asarray(estimate.n), freedom
    )


def _input_indicator(code: Ids, n: int) -> Matrix:
    """Return the indicator matrix (n, u): 1 if an instance belongs to an input."""
    entries = np.ones(code.size)
    return sparse.csr_array((entries, (code, np.arange(code.size))), shape=(n, code.size))


def _are_all_ratings_equal(verdict: Floats, known: Bools) -> Bools:
    """Return (m,) whether all ratings of a system are equal."""
    low = np.where(known, verdict, np.inf).min(axis=0, initial=np.inf)
    high = np.where(known, verdict, -np.inf).max(axis=0, initial=-np.inf)
    return np.asarray(high - low < SAME)


def _is_binary(under: Centred, verdict: Floats, known: Bools) -> bool:
    """Return whether single ratings under a criterion have at most two values."""
    noise = under.data.noise.get(under.criterion)
    count = noise.count[under.judged_positions] if noise is not None else np.ones(verdict.shape[0])
    value, n = verdict[known], np.broadcast_to(count[:, None], verdict.shape)[known]
    whole = np.abs(value * n - np.round(value * n)) < SAME
    return bool(whole.all() or (np.unique(value.round(9)).size <= 2 and (n == 1).all()))


def _least_variance(
    under: Centred, kind: str, estimate: Estimate, judged: np.ndarray, alike: Bools, is_binary: bool
) -> Floats:
    """Return (m,) a lower bound of each variance: for ratings with two values, the variance of a
    share; for equal ratings, the variance of a mean over as many inputs as were judged.
    """
    p, n = under.data.pool.p[kind], np.maximum(judged, 1)
    inside = np.clip(np.nan_to_num(np.asarray(estimate.value)), 0.5 / n, 1 - 0.5 / n)
    spread = inside * (1 - inside)
    squares = np.asarray(p.power(2).sum(axis=0)).ravel()
    sampled = np.asarray(estimate.anticipated)
    if under.criterion in under.data.noise:  # the part of what was drawn alone
        sampled = np.asarray(under.precision(kind, under.criterion).anticipated)
    floor = np.where(alike, spread / n, 0.0)
    return np.maximum(floor, spread * squares + sampled) if is_binary else floor


def _least_difference_terms(member: Matrix, n: np.ndarray) -> Floats:
    """Return (k, m) terms that give the difference of two systems a variance of at least 1/(D + 2)²
    (Agresti and Min 2005), for k systems with different texts; the difference of copies stays 0.
    """
    columns = sparse.csc_array(member)
    wrote = [columns.indices[slice(*columns.indptr[i : i + 2])].tobytes() for i in range(n.size)]
    first = np.array([wrote.index(of_system) for of_system in wrote])
    return np.asarray((np.arange(n.size)[:, None] == first) * np.sqrt(0.5) / (n + 2))


def variance_once_all_judged(p: Floats, g: Floats, error: Floats) -> float:
    """Return the expected variance of one system's mean for inputs like these when all is judged: Σ
    p² ((g − ḡ)² + v), from its weights p, the guesses g and their squared errors v.
    """
    return float(p**2 @ ((g - p @ g / max(p.sum(), SAME)) ** 2 + error))


def expected_variance_of_means(data: Data, key: Key, estimate: Estimate) -> Floats:
    """Return (m,) the variance of each system's mean that the model expects, to compare with the
    realised one: for inputs like these if the track has inputs.
    """
    _, criterion, kind = key
    anticipated = np.broadcast_to(estimate.anticipated, np.shape(estimate.value))
    if not data.input.size:
        return anticipated
    under = Centred(data).for_criterion(criterion)
    sampled = np.asarray(under.precision(kind, criterion).anticipated)
    g = data.g[criterion]
    error = data.error.get(criterion, g * (1 - g))
    left = np.zeros(sampled.size)
    for column in range(left.size):
        rows, p = data.pool.rows_and_probabilities(kind, column)
        left[column] = variance_once_all_judged(p, g[rows], error[rows])
    return sampled + left
