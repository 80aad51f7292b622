"""Computes scores with intervals from a track's data; the same data give the same scores."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from estimators.design import Design
from estimators.estimate import Estimate
from estimators.joint import joint_f1
from scoring import published
from scoring.arrays import Bools, Ids
from scoring.data import LIKE, Data, method_suffix
from scoring.default import Centred, blank_unjudged
from scoring.floors import Floors
from scoring.rated import add_judge_effects, add_rating_noise_variance

DEFAULT = "centred"
PUBLISHED = ("simple", "joint")
CORRECTED = "recall_corrected"
"""Recall corrected for the facts that annotators are estimated to have missed"""
OF_INSTANCES = "instance_recall"
"""Recall that counts a fact once for each pair of mentions that predicts it"""
ENOUGH_TRUE = 5
"""Number of true predictions in annotated documents below which the share that annotation finds is
not estimated"""


@dataclass(frozen=True)
class Score:
    """One number of one system (its column in the data), ready to be stored."""

    column: int
    quantity: str
    criterion: str
    distribution: str
    method: str
    value: float
    variance: float
    """The variance of the interval: the larger of the realised and the anticipated one"""
    low80: float
    high80: float
    low95: float
    high95: float
    n_labels: int
    n_missing: int
    n_documents: int
    n_checked: int = 0
    """Number of its judgments that an expert has checked (method expert)"""


Key = tuple[str, str, str]
"""(quantity, criterion, distribution)"""


def iterate_scores(
    data: Data,
    estimates: dict[Key, tuple[Estimate, Design]],
    like: dict[Key, tuple[Estimate, Design]],
    criteria: tuple[str, ...],
    recall_criteria: tuple[str, ...],
    published: tuple[str, ...] = PUBLISHED,
) -> Iterator[Score]:
    """Yield every score of every sampled system: the default estimates, those for inputs like these
    (`like`), with annotators as a second cluster; and the published estimators of the kind.
    """
    if data.judged.size:
        yield from scores_of_populations(data, estimates, like, DEFAULT)
        if published:
            yield from published_scores(data, criteria, recall_criteria, published)


def scores_of_populations(
    data: Data,
    estimates: dict[Key, tuple[Estimate, Design]],
    like: dict[Key, tuple[Estimate, Design]],
    method: str,
) -> Iterator[Score]:
    """Yield the scores for the population that the board shows first, and then for the other one
    (`ENDINGS`); for a track without inputs there is only one.
    """
    printed = like if like and data.population == LIKE else estimates
    beside = estimates if printed is like else like
    for name, about in ((method, printed), (f"{method}{method_suffix(data)}", beside)):
        crossed = add_judge_effects(data, about)
        for key, (estimate, _) in about.items():
            yield from scores_of_systems(data, crossed.get(key, estimate), *key, name)


def default_estimates(
    data: Data, criteria: tuple[str, ...], recall_criteria: tuple[str, ...]
) -> dict[Key, tuple[Estimate, Design]]:
    """Return the default estimates: centred differences for precision, totals for recall, and F1
    from their joint covariance, each with the design of its terms.
    """
    arranged = Centred(data)
    floors = Floors(arranged)
    recalls = {criterion: floors.recall(criterion) for criterion in recall_criteria}
    kinds, f1s = list(data.pool.p), dict[Key, tuple[Estimate, Design]]()
    precisions = {
        (kind, criterion): arranged.precision_where_settled(kind, criterion)
        for kind in kinds
        for criterion in criteria
    }
    for criterion, recall in recalls.items():  # floors of one criterion after the other
        if recall is None or criterion not in criteria:
            continue
        for kind in kinds:
            both = floors.f1(kind, criterion, precisions[kind, criterion], recall)
            f1s["f1", criterion, kind] = both, recall.design
    estimates: dict[Key, tuple[Estimate, Design]] = {}
    for (kind, criterion), precision in precisions.items():
        estimates[data.mean, criterion, kind] = add_rating_noise_variance(
            arranged, kind, criterion, precision
        )
        key = ("f1", criterion, kind)
        if key in f1s:
            estimates[key] = f1s[key]
    for criterion, recall in recalls.items():
        if recall is not None:
            estimates["recall", criterion, data.unweighed] = recall.recall, recall.design
            each = floors.recall(criterion, unit="mention")
            if each is not None:
                estimates[OF_INSTANCES, criterion, data.unweighed] = each.recall, each.design
            share = arranged.marked_share(recall)
            if share is not None and share.n >= ENOUGH_TRUE:
                repaired = floors.recall_with_misses(criterion, recall, share)
                defined = ~np.isnan(np.asarray(recall.recall.value))
                estimates[CORRECTED, criterion, data.unweighed] = (
                    blank_unjudged(repaired, defined),
                    recall.design,
                )
    return estimates


def marked_share(data: Data) -> Estimate | None:
    """Return the share of directly verified true predictions in annotated documents that their
    annotation had found.
    """
    arranged = Centred(data)
    recall = arranged.recall(data.base) if data.judged.size else None
    return arranged.marked_share(recall) if recall is not None else None


def published_scores(
    data: Data,
    criteria: tuple[str, ...],
    recall_criteria: tuple[str, ...],
    methods: tuple[str, ...] = PUBLISHED,
) -> Iterator[Score]:
    """Yield the simple and joint estimates from draws with replacement. Yield none on tracks that
    draw by thresholds, or for systems without judgments.
    """
    if not data.draws:
        return
    judged = {
        criterion: count_targets(data, criterion)[0] > 0
        for criterion in {*criteria, *recall_criteria}
    }
    recalls = {
        criterion: blank_unjudged(published_recall, judged[criterion])
        for criterion in recall_criteria
        if (published_recall := published.published_recall(data, criterion)) is not None
    }
    alone = _simple_recalls(data, recall_criteria, judged)
    for kind, draws in data.draws.items():
        for criterion in criteria:
            for method in methods:
                precision = blank_unjudged(
                    published.published_precision(data, draws, criterion, method), judged[criterion]
                )
                yield from scores_of_systems(
                    data, precision, data.mean, criterion, kind, method, count_own_labels=True
                )
                if criterion in recalls and method == "joint":
                    recall = recalls[criterion]
                    both = joint_f1(
                        published.align_influence(data, precision, draws, recall), recall
                    )
                    both = published.f1_with_floors(both, precision, recall)
                    yield from scores_of_systems(data, both, "f1", criterion, kind, method)
                if criterion in alone and method == "simple":
                    both = published.simple_f1_estimate(precision, alone[criterion])
                    yield from scores_of_systems(data, both, "f1", criterion, kind, method)
    for method, of_method in (("joint", recalls), ("simple", alone)):
        for criterion, recall in of_method.items():
            yield from scores_of_systems(data, recall, "recall", criterion, data.unweighed, method)


def _simple_recalls(
    data: Data, criteria: tuple[str, ...], judged: dict[str, Bools]
) -> dict[str, Estimate]:
    """Return criterion -> simple recall; empty without annotated documents."""
    recalls = {criterion: published.simple_recall(data, criterion) for criterion in criteria}
    return {
        criterion: blank_unjudged(recall, judged[criterion])
        for criterion, recall in recalls.items()
        if recall is not None
    }


def scores_of_systems(
    data: Data,
    estimate: Estimate,
    quantity: str,
    criterion: str,
    kind: str,
    method: str,
    *,
    count_own_labels: bool = False,
) -> Iterator[Score]:
    """Yield the numbers of one estimate, one for each system; if the value is undefined, all
    numbers are NaN. With `count_own_labels`, the label count is that of the estimate, else that of
    all predictions of the system.
    """
    low80, high80 = (np.asarray(end) for end in estimate.confidence_interval(0.80, method="wilson"))
    low95, high95 = (np.asarray(end) for end in estimate.confidence_interval(0.95, method="wilson"))
    labelled, missing = count_targets(data, criterion)
    value = np.asarray(estimate.value)
    if count_own_labels:
        labelled = np.where(np.isnan(value), labelled, estimate.n)
    variance = np.where(
        np.isnan(value), np.nan, np.maximum(estimate.variance, estimate.anticipated)
    )
    for column in range(len(data.systems)):
        yield Score(
            column,
            quantity,
            criterion,
            kind,
            method,
            float(value[column]),
            float(variance[column]),
            float(low80[column]),
            float(high80[column]),
            float(low95[column]),
            float(high95[column]),
            int(labelled[column]),
            int(missing[column]),
            data.facts.n_annotated if data.facts and quantity != data.mean else 0,
        )


def count_targets(data: Data, criterion: str) -> tuple[Ids, Ids]:
    """Return, for each system, the number of its targets with a judgment, and of those that were
    drawn for any system but have none.
    """
    if criterion not in data.counted:
        data.counted[criterion] = _count_targets_uncached(data, criterion)
    return data.counted[criterion]


def _count_targets_uncached(data: Data, criterion: str) -> tuple[Ids, Ids]:
    has_verdict = ~np.isnan(data.f[criterion])
    member = data.pool.member[data.judged].toarray() > 0
    codes, code = np.unique(data.pool.target[data.judged], return_inverse=True)
    counts = []
    for mask in (member & has_verdict, member & ~has_verdict):
        predicted = np.zeros((codes.size, mask.shape[1]), dtype=np.bool_)
        row, column = np.nonzero(mask)
        predicted[code[row], column] = True
        counts.append(predicted.sum(axis=0))
    return counts[0], counts[1]
