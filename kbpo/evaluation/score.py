"""Turns a track's data into numbers with intervals. Pure but for its types: the same data give the same scores."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from estimators.estimate import Estimate
from estimators.joint import f1, joint_precision, joint_recall, simple_precision
from kbpo.evaluation.data import Data, Draws
from kbpo.sampling.probabilities import Floats

LEVELS = (0.80, 0.95)
METHODS = ("simple", "joint")


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
    low80: float
    high80: float
    low95: float
    high95: float
    n_labels: int
    n_missing: int
    n_documents: int


def scores(data: Data, criteria: tuple[str, ...], recall_criteria: tuple[str, ...]) -> Iterator[Score]:
    """Every score of every system that was sampled."""
    if not data.systems or not data.instance.size:
        return
    recalls = {criterion: recall(data, criterion) for criterion in recall_criteria}
    for kind, draws in data.draws.items():
        if not draws.row.size:
            continue
        for criterion in criteria:
            for method in METHODS:
                precision = precisions(data, draws, criterion, method)
                yield from _rows(data, precision, "precision", criterion, kind, method, "wilson")
                found = recalls.get(criterion)
                if found is not None and method == "joint":
                    both = f1(_embed(data, precision, draws, found), found)
                    yield from _rows(data, both, "f1", criterion, kind, method, "wilson")
    for criterion, found in recalls.items():
        if found is not None:
            yield from _rows(data, found, "recall", criterion, "instance", "joint", "wilson")


def precisions(data: Data, draws: Draws, criterion: str, method: str) -> Estimate:
    """The precision of every system under a distribution, from the draws of that distribution."""
    f = data.f[criterion][draws.row]
    if method == "simple":
        own = f[np.arange(draws.row.size), draws.owner]
        return _floored(simple_precision(own, draws.owner, len(data.systems), ddof=1))
    return _floored(joint_precision(draws.P, draws.owner, f, draws.overlap, ddof=1))


def _floored(estimate: Estimate) -> Estimate:
    """The estimate; where all labels agree, so that no variance is seen, that of one label more that disagrees."""
    p = np.clip(np.asarray(estimate.value), 0.5 / np.maximum(estimate.n, 1), 1 - 0.5 / np.maximum(estimate.n, 1))
    unseen = np.asarray(estimate.variance) == 0
    return replace(estimate, anticipated=np.where(unseen, p * (1 - p) / np.maximum(estimate.n, 1), 0.0))


def recall(data: Data, criterion: str) -> Estimate | None:
    """The recall of every system: what share of the facts of the annotated documents anybody found, times each
    system's share of the true facts among all draws. None without an annotated document.

    All draws of all distributions count, each with its own probability: every (distribution, system) is a source.
    """
    facts = data.facts
    if facts is None or facts.n_annotated < 2 or not facts.found.size:
        return None
    m, kinds = len(data.systems), list(data.draws)
    row = np.concatenate([data.draws[kind].row for kind in kinds])
    source = np.concatenate([data.draws[kind].owner + at * m for at, kind in enumerate(kinds)])
    P = np.concatenate([data.everything[kind][row] for kind in kinds], axis=1)
    stated = facts.stated & (data.f["linking"] == 1) if criterion == "correct" else facts.stated
    label = data.f["relation"][row, 0]
    found = joint_recall(
        P,
        source,
        label,
        np.zeros((P.shape[1], P.shape[1])),
        np.tile(stated[row], (1, len(kinds))),
        facts.found,
        weight=facts.pool_weight[row],
        document=facts.document,
        n_annotated=facts.n_annotated,
        n_documents=facts.n_documents,
        ddof=1,
    )
    return Estimate(
        value=np.asarray(found.value)[:m],
        variance=np.asarray(found.variance)[:m],
        n=np.asarray(found.n)[:m],
        influence=found.influence[:, :m],
        degrees_of_freedom=np.full(m, float(facts.n_annotated - 1)),
    )


def _embed(data: Data, precision: Estimate, draws: Draws, found: Estimate) -> Estimate:
    """The precision with its influence among the rows of recall's: 0 for draws of other distributions."""
    kinds = list(data.draws)
    before = sum(data.draws[kind].row.size for kind in kinds[: kinds.index(draws.kind)])
    influence = np.zeros((found.influence.shape[0], len(data.systems)))
    influence[before : before + draws.row.size] = precision.influence
    return Estimate(precision.value, precision.variance, precision.n, influence)


def _rows(
    data: Data, estimate: Estimate, quantity: str, criterion: str, kind: str, method: str, interval: str
) -> Iterator[Score]:
    low80, high80 = (np.asarray(end) for end in estimate.confidence_interval(0.80, method=interval))
    low95, high95 = (np.asarray(end) for end in estimate.confidence_interval(0.95, method=interval))
    labelled, missing = counts(data, criterion)
    for column in range(len(data.systems)):
        yield Score(
            column, quantity, criterion, kind, method,
            float(np.asarray(estimate.value)[column]), float(np.asarray(estimate.variance)[column]),
            float(low80[column]), float(high80[column]), float(low95[column]), float(high95[column]),
            int(labelled[column]), int(missing[column]),
            data.facts.n_annotated if data.facts and quantity != "precision" else 0,
        )  # fmt: skip


def counts(data: Data, criterion: str) -> tuple[Floats, Floats]:
    """Targets that each system states, and that were drawn for anybody: labelled, and without a label."""
    known = ~np.isnan(data.f[criterion])
    totals = []
    for mask in (data.member & known, data.member & ~known):
        pairs = [np.unique(data.target[mask[:, column]]).size for column in range(mask.shape[1])]
        totals.append(np.array(pairs, dtype=np.float64))
    return totals[0], totals[1]
