"""The published estimators on a track's draws with replacement: simple and joint (Chaganty 2018,
section 3.4).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from estimators.anticipated import f1_weights
from estimators.bootstrap import bootstrap
from estimators.estimate import Estimate
from estimators.joint import (
    joint_f1,
    joint_precision,
    joint_recall,
    joint_terms,
    pool_recall,
    simple_precision,
)
from scoring.arrays import Bools, Floats
from scoring.data import Data, Draws
from scoring.default import blank_unjudged
from scoring.documents import Facts
from scoring.shares import Shares

ROUNDING = 1e-12
"""Variances below this count as 0, since sums of equal labels differ in their last digits"""
RESAMPLES, SEED = 1000, 20_180_715
"""Settings of the published bootstrap; the same labels always give the same interval"""


def published_precision(data: Data, draws: Draws, criterion: str, method: str) -> Estimate:
    """Return the precision of every system under a distribution, from the draws of that
    distribution.
    """
    f = data.f[criterion][np.searchsorted(data.judged, draws.row)]
    if method == "simple":
        own = f[np.arange(draws.row.size), draws.owner]
        return _with_variance_floor(simple_precision(own, draws.owner, len(data.systems), ddof=1))
    return _with_variance_floor(joint_precision(draws.P, draws.owner, f, draws.overlap, ddof=1))


def bootstrap_intervals(
    data: Data, draws: Draws, wanted: Sequence[tuple[str, str]]
) -> dict[tuple[str, str], tuple[Floats, Floats]]:
    """Return (criterion, method) -> (m,) and (m,) the ends of the published 80 % interval of every
    system's precision: the basic bootstrap, with each system's labelled draws resampled separately
    (section 2.2.1). The interval may leave [0, 1], and has no width if all labels agree. NaN if the
    precision is undefined.
    """
    m = len(data.systems)
    parts: dict[bytes, list[tuple[tuple[str, str], Floats]]] = {}
    for criterion, method in wanted:
        labelled, terms = _draw_terms(data, draws, criterion, method)
        parts.setdefault(labelled.tobytes(), []).append(((criterion, method), terms))
    ends = {}
    for mask, of_mask in parts.items():  # estimates from the same draws use the same resamples
        owner = draws.owner[np.frombuffer(mask, dtype=np.bool_)]
        low = high = np.full(m * len(of_mask), np.nan)
        if owner.size:
            every = np.concatenate([terms for _, terms in of_mask], axis=1)
            resampled = bootstrap(
                lambda weights, every=every: weights @ every,  # type: ignore[misc]
                owner.size,
                rng=np.random.default_rng(SEED),
                n_resamples=RESAMPLES,
                stratum=owner,
            )
            low, high = (np.asarray(end) for end in resampled.confidence_interval(0.8))
        for number, (key, _) in enumerate(of_mask):
            mine = slice(m * number, m * (number + 1))
            value = np.asarray(published_precision(data, draws, *key).value)
            is_told = ~np.isnan(value)
            ends[key] = np.where(is_told, low[mine], np.nan), np.where(is_told, high[mine], np.nan)
    return ends


def _draw_terms(data: Data, draws: Draws, criterion: str, method: str) -> tuple[Bools, Floats]:
    """Return (n,) whether each draw has a label, and (k, m) the term of each labelled draw in the
    precision of every system.
    """
    f = data.f[criterion][np.searchsorted(data.judged, draws.row)]
    if method != "simple":
        labelled = np.asarray(~np.isnan(f).all(axis=1))
        return labelled, joint_terms(
            draws.P[labelled], draws.owner[labelled], f[labelled], draws.overlap
        )
    own = f[np.arange(draws.row.size), draws.owner]
    labelled = np.asarray(~np.isnan(own))
    is_own = draws.owner[labelled, None] == np.arange(len(data.systems))
    return labelled, is_own * own[labelled, None] / np.maximum(is_own.sum(axis=0), 1)


def published_recall(data: Data, criterion: str) -> Estimate | None:
    """Return the recall of every system: the annotators' share of the facts in the annotated
    documents, times the system's share of the true facts among all draws. None without two
    annotated documents.

    All draws of all distributions are used, each with its own probability: every (distribution,
    system) is a source. NaN for systems that have not entered.
    """
    read = facts_of_uniform_documents(data)
    if read is None or not data.draws:
        return None
    facts, uniform, n_annotated = read
    m, kinds = len(data.systems), list(data.draws)
    row = np.concatenate([data.draws[kind].row for kind in kinds])
    owner = np.concatenate([data.draws[kind].owner for kind in kinds])
    source = owner + m * np.repeat(range(len(kinds)), [data.draws[kind].row.size for kind in kinds])
    P = np.concatenate([data.pool.p[kind][row].toarray() for kind in kinds], axis=1)
    judged_row = np.searchsorted(data.judged, row)
    label = data.f[data.base][judged_row, 0]
    predicted = facts.predicted[row]
    if criterion in data.found_also:
        predicted = predicted & (data.f[data.found_also[criterion]][judged_row] == 1)
    estimate = joint_recall(
        P,
        source,
        label,
        np.zeros((P.shape[1], P.shape[1])),
        np.tile(predicted, (1, len(kinds))),
        facts.found[uniform],
        weight=facts.pool_weight[row],
        document=facts.document[uniform],
        n_annotated=n_annotated,
        n_documents=facts.n_documents,
        ddof=1,
    )
    of_columns = Estimate(
        value=np.asarray(estimate.value)[:m],
        variance=np.asarray(estimate.variance)[:m],
        n=np.asarray(estimate.n)[:m],
        influence=estimate.influence[:, :m],
        degrees_of_freedom=np.full(m, float(n_annotated - 1)),
        anticipated=np.asarray(estimate.anticipated)[:m],
    )
    return blank_unjudged(of_columns, has_entered(data))


def has_entered(data: Data) -> Bools:
    """Return (m,) whether all facts of each system are counted, so that joint recall includes its
    share of them.
    """
    assert data.facts is not None
    return ~Shares.get_or_compute(data.pool, data.facts, count_facts_once=True).has_uncounted_facts


def facts_of_uniform_documents(data: Data) -> tuple[Facts, Bools, int] | None:
    """Return the facts, which of them were found in uniformly drawn documents, as published (the
    first of two stages), and the number of these documents; None with fewer than two.
    """
    facts = data.facts
    if facts is None:
        return None
    uniform_documents = np.flatnonzero(np.isin(data.documents.documents, data.documents.first))
    uniform = np.isin(facts.document, uniform_documents)
    return (
        (facts, uniform, uniform_documents.size)
        if uniform_documents.size > 1 and uniform.any()
        else None
    )


def simple_recall(data: Data, criterion: str) -> Estimate | None:
    """Return the simple recall of every system: the share of the facts of the annotated documents
    that it predicts. None with fewer than two annotated documents.

    NaN if a mention's verdict is still open.
    """
    read = facts_of_uniform_documents(data)
    if read is None:
        return None
    facts, uniform, n_annotated = read
    predicted, decided = _predictions_of_facts(data, facts, uniform, criterion)
    each = [
        pool_recall(
            predicted[:, column],
            document=facts.document[uniform],
            n_annotated=n_annotated,
            n_documents=facts.n_documents,
        )
        for column in range(predicted.shape[1])
    ]
    estimates = _with_variance_floor(
        Estimate(
            value=np.array([estimate.value for estimate in each]),
            variance=np.array([estimate.variance for estimate in each]),
            n=np.array([estimate.n for estimate in each]),
            influence=np.stack([estimate.influence for estimate in each], axis=1),
            degrees_of_freedom=np.full(len(each), float(n_annotated - 1)),
        )
    )
    return blank_unjudged(estimates, decided)


def _predictions_of_facts(
    data: Data, facts: Facts, used: Bools, criterion: str
) -> tuple[Bools, Bools]:
    """Return (t, m) whether each system predicts each annotated fact, and (m,) whether that is
    known. If another criterion must hold too (`found_also`), one of its mentions must be right, and
    all of them need verdicts.
    """
    sought = facts.code[used]
    here = np.flatnonzero(np.isin(facts.fact, sought))
    predicted, decided = facts.predicted[here], np.ones(facts.predicted.shape[1], dtype=np.bool_)
    if criterion in data.found_also:
        verdict = np.full(predicted.shape, np.nan)
        judged = np.isin(here, data.judged)
        verdict[judged] = data.f[data.found_also[criterion]][
            np.searchsorted(data.judged, here[judged])
        ]
        own = (data.pool.member[here].toarray() > 0) & facts.in_scope[here, None]
        decided = ~(own & np.isnan(verdict)).any(axis=0)
        predicted = own & (verdict == 1)
    codes, place = np.unique(facts.fact[here], return_inverse=True)
    by_code = np.zeros((codes.size + 1, predicted.shape[1]), dtype=np.bool_)  # the last: nobody
    np.logical_or.at(by_code, place, predicted)
    row = np.searchsorted(codes, sought)
    is_there = row < codes.size
    is_there[is_there] = codes[row[is_there]] == sought[is_there]
    return np.asarray(by_code[np.where(is_there, row, codes.size)]), decided


def simple_f1_estimate(precision: Estimate, recall: Estimate) -> Estimate:
    """Return F1 of simple precision and simple recall, which are based on different samples: draws,
    and documents.
    """
    nothing = np.zeros_like(np.asarray(recall.value))
    a = np.vstack([np.sqrt(precision.variance), nothing])
    b = np.vstack([nothing, np.sqrt(recall.variance)])
    both = joint_f1(replace(precision, influence=a), replace(recall, influence=b))
    return f1_with_floors(both, precision, recall)


def f1_with_floors(both: Estimate, precision: Estimate, recall: Estimate) -> Estimate:
    """Return F1 with the additions of the variance floors of precision and recall."""
    by_precision, by_recall = f1_weights(precision, recall)
    floor = by_precision**2 * np.maximum(precision.anticipated - precision.variance, 0.0)
    floor = floor + by_recall**2 * np.maximum(recall.anticipated - recall.variance, 0.0)
    return replace(both, anticipated=np.nan_to_num(both.variance + floor))


def align_influence(data: Data, precision: Estimate, draws: Draws, recall: Estimate) -> Estimate:
    """Return the precision with its influence (each draw's term) in the rows of recall's influence:
    0 for draws of other distributions.
    """
    kinds = list(data.draws)
    before = sum(data.draws[kind].row.size for kind in kinds[: kinds.index(draws.kind)])
    influence: Floats = np.zeros((recall.influence.shape[0], len(data.systems)))
    influence[before : before + draws.row.size] = precision.influence
    return Estimate(precision.value, precision.variance, precision.n, influence)


def _with_variance_floor(estimate: Estimate) -> Estimate:
    """Return the estimate with a lower bound of its variance (`anticipated`) if all labels agree
    and the sample variance is therefore 0. The bound is p (1 − p)/n, with p at least half a label
    away from 0 and 1.
    """
    n = np.maximum(estimate.n, 1)
    p = np.clip(np.asarray(estimate.value), 0.5 / n, 1 - 0.5 / n)
    agree = np.asarray(estimate.variance) < ROUNDING
    return replace(estimate, anticipated=np.where(agree, p * (1 - p) / n, 0.0))
