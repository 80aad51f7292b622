"""Simple and joint where each target is asked at most once, with a known chance: counterparts of
what was published.

The published joint estimator weighs a judgment with one over the chance that anybody's draws hold
the relation; under thresholds that chance is π, and what results is Hájek's estimator: all
judgments that were drawn, no model. Simple is the same with the system's own sample alone: the
targets whose u lies below what the system would have asked by itself. Recall is θ ν, as published,
ν made of totals over π. What counts because its document was read has no part in any of them.
Questions that were given up, and what a team had seen, are allowed for as in the default estimates.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from estimators.estimate import Estimate
from estimators.joint import pool_recall
from estimators.pool import recall_by_inclusion
from kbpo.evaluation.data import Data
from kbpo.evaluation.default import Centred
from kbpo.evaluation.published import ROUNDING
from kbpo.sampling.inclusion import Inclusion
from kbpo.sampling.probabilities import Floats

NOBODY_KNOWS = 0.5
"""A guess that says nothing: with it the centred difference is Hájek's estimator"""
SHARED = ("answered", "answered_inside")


@dataclass(frozen=True)
class ByThresholds:
    """The published estimates of a track that draws by thresholds."""

    data: Data

    @cached_property
    def arranged(self) -> Centred:
        """What was drawn, for anybody, with a guess that says nothing."""
        return Centred(_guessing(self.data.without_documents(), NOBODY_KNOWS))

    def precision(self, kind: str, criterion: str, method: str) -> Estimate:
        """The precision of every system, simple or joint; its influence is scaled to a plain sum of
        squares.
        """
        if method == "joint":
            found = self.arranged.precision(kind, criterion, floor=False)
            of_all = self.arranged.under(criterion)
            scale = np.sqrt(1 - of_all.design.pi)
            found = replace(found, influence=found.influence * scale[:, None])
            return _floored(found, kind, dict.fromkeys(range(len(self.data.systems)), of_all))
        m = len(self.data.systems)
        value, variance, n = np.full(m, np.nan), np.full(m, np.nan), np.zeros(m, dtype=np.int64)
        for column in self.data.alone:
            one = self._samples[column].under(criterion).of_one(kind, column)
            if one.n:
                value[column], variance[column], n[column] = one.value, one.variance, int(one.n)
        own = {column: self._samples[column].under(criterion) for column in self.data.alone}
        return _floored(Estimate(value, variance, n, np.zeros((0, m))), kind, own)

    @cached_property
    def _samples(self) -> dict[int, Centred]:
        """Each system's own sample; the share that was answered is told by all that were asked."""
        found = {}
        for column, threshold in self.data.alone.items():
            one = Centred(own_sample(self.arranged.data, column, threshold))
            for criterion in self.arranged.data.f:
                of_all = self.arranged.under(criterion)
                one.under(criterion).__dict__.update(
                    {name: getattr(of_all, name) for name in SHARED}
                )
            found[column] = one
        return found

    def recall(self, criterion: str) -> Estimate | None:
        """The recall of every system: what share of the facts of the annotated documents anybody
        found, times each system's share of the true facts that were judged, each over its chance.
        None without two annotated documents.
        """
        facts, documents = self.data.facts, self.data.documents
        if facts is None:
            return None
        first = np.flatnonzero(
            np.isin(documents.documents, documents.first)
        )  # drawn uniformly, as published
        uniform = np.isin(facts.document, first)
        if first.size < 2 or not uniform.any():
            return None
        found = Centred(_guessing(self.arranged.data, 0.0)).recall(criterion)
        assert found is not None
        theta = pool_recall(
            facts.found[uniform],
            document=facts.document[uniform],
            n_annotated=first.size,
            n_documents=facts.n_documents,
        )
        pi = found.design.pi[: found.totals.pool.influence.size]
        m = len(self.data.systems)
        return replace(
            recall_by_inclusion(theta, found.totals, pi),
            degrees_of_freedom=np.full(m, float(first.size - 1)),
        )


def _floored(estimate: Estimate, kind: str, samples: dict[int, Centred]) -> Estimate:
    """The estimate; where all labels agree, so that no variance is seen, that of one label more
    that disagrees. What is known of everything has none.
    """
    n = np.maximum(estimate.n, 1)
    p = np.clip(np.asarray(estimate.value), 0.5 / n, 1 - 0.5 / n)
    floor = np.zeros(p.size)
    for column in np.flatnonzero(np.asarray(estimate.variance) < ROUNDING).tolist():
        floor[column] = p[column] * (1 - p[column]) * samples[column].chance_of_one(kind, column)
    return replace(estimate, anticipated=floor)


def own_sample(data: Data, column: int, threshold: Floats) -> Data:
    """The data of a track if only one system's own sample had been drawn: what lies below its
    thresholds (t,).
    """

    def only(now: Inclusion) -> Inclusion:
        inside = data.pool.u < threshold  # nothing of it waits
        return replace(
            now,
            pi=threshold,
            by_threshold=threshold,
            by_draw=np.zeros(threshold.size),
            drawn=inside,
            counts=inside,
            threshold=threshold,
            before=np.minimum(now.before, threshold),
        )

    seen = {column: data.seen[column]} if column in data.seen else {}
    own = {column: only(data.own[column])} if column in data.seen else {}
    return replace(data, inclusion=only(data.inclusion), seen=seen, seen_drawn=seen, own=own)


def _guessing(data: Data, guess: float) -> Data:
    return replace(
        data, g={criterion: np.full(one.size, guess) for criterion, one in data.g.items()}
    )
