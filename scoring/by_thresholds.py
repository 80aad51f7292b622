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

from estimators.anticipated import f1_weights
from estimators.estimate import Estimate
from estimators.joint import f1, pool_recall
from estimators.pool import recall_by_inclusion
from scoring.arrays import Floats
from scoring.data import Data
from scoring.default import Centred, effective, where_known, worth_of_all
from scoring.inclusion import Inclusion
from scoring.published import has_entered, read_uniformly

NOBODY_KNOWS = 0.5
"""A guess that says nothing: with it the centred difference is Hájek's estimator"""
SHARED = ("answered", "answered_inside")
CARRIED = 0.5
"""Where what was drawn is worth less than this share of all that is known, annotated documents
carry it, and nothing is printed of the draws alone."""
LEAST = 10
"""A mean of labels that is worth fewer than this is not printed."""


@dataclass(frozen=True)
class ByThresholds:
    """The published estimates of a track that draws by thresholds."""

    data: Data

    @cached_property
    def arranged(self) -> Centred:
        """What was drawn, for anybody, with a guess that says nothing."""
        return Centred(_guessing(self.data.without_documents(), NOBODY_KNOWS))

    @cached_property
    def everything(self) -> Centred:
        """What is known besides because its document was read."""
        return Centred(self.data)

    def precision(self, kind: str, criterion: str, method: str) -> Estimate:
        """The precision of every system, simple or joint; its influence is scaled to a plain sum of
        squares.
        """
        if method == "joint":
            estimate = self.arranged.precision(kind, criterion, floor=False)
            of_all = self.arranged.under(criterion)
            scale = np.sqrt(1 - of_all.design.pi)
            estimate = replace(estimate, influence=estimate.influence * scale[:, None])
            columns = range(len(self.data.systems))
            of_each = np.array([of_all.labels_of_one(kind, column) for column in columns])
            return self._floored(estimate, of_each, kind, criterion)
        m = len(self.data.systems)
        value, variance, n = np.full(m, np.nan), np.full(m, np.nan), np.zeros(m, dtype=np.int64)
        worth = np.zeros(m)
        for column in self.data.alone:
            own, labels = self._alone[column][kind, criterion]
            if own.n:
                value[column], variance[column], n[column] = own.value, own.variance, int(own.n)
                worth[column] = labels
        return self._floored(Estimate(value, variance, n, np.zeros((0, m))), worth, kind, criterion)

    def _floored(
        self, estimate: Estimate, n_effective: Floats, kind: str, criterion: str
    ) -> Estimate:
        """The estimate with its floor; none where annotated documents carry what is known."""
        if self.data.fold.documents:
            everything = self.everything.under(criterion)
            for column in range(n_effective.size):
                all_labels = everything.labels_of_one(kind, column)
                if n_effective[column] < CARRIED * all_labels:
                    n_effective[column] = 0.0
        return floored(estimate, n_effective)

    @cached_property
    def _alone(self) -> dict[int, dict[tuple[str, str], tuple[Estimate, float]]]:
        """Column -> by distribution and criterion what a system's own sample says of it, and how
        many labels that is worth: one system after the other, each with chances of its own for all
        targets. The share that was answered is told by all that were asked.
        """
        return {column: self._of_sample(column) for column in self.data.alone}

    def _of_sample(self, column: int) -> dict[tuple[str, str], tuple[Estimate, float]]:
        data = self.arranged.data
        sample, estimates = Centred(own_sample(data, column, data.alone[column])), {}
        for criterion in data.f:
            of_all, of_sample = self.arranged.under(criterion), sample.under(criterion)
            of_sample.__dict__.update({name: getattr(of_all, name) for name in SHARED})
            for kind in data.pool.p:
                mean = of_sample.of_one(kind, column)
                labels = of_sample.labels_of_one(kind, column) if mean.n else 0.0
                estimates[kind, criterion] = mean, labels
        return estimates

    def recall(self, criterion: str) -> Estimate | None:
        """The recall of every system: what share of the facts of the annotated documents anybody
        found, times each system's share of the true facts that were judged, each over its chance.
        None without two annotated documents. NaN of systems that have not entered.
        """
        read = read_uniformly(self.data)
        if read is None:
            return None
        facts, uniform, n_annotated = read
        drawn = Centred(_guessing(self.arranged.data, 0.0))
        recall_of_drawn = drawn.recall(criterion)
        assert recall_of_drawn is not None
        theta = pool_recall(
            facts.found[uniform],
            document=facts.document[uniform],
            n_annotated=n_annotated,
            n_documents=facts.n_documents,
        )
        true = np.asarray(recall_of_drawn.totals.pool.influence)
        pi = recall_of_drawn.design.pi[: true.size]
        worth = min(effective(true, pi), _worth_of_pool(drawn, criterion))
        if self.data.fold.documents:
            with_known = Centred(_guessing(self.data, 0.0))
            everything = with_known.recall(criterion)
            assert everything is not None
            of_pool = np.asarray(everything.totals.pool.influence)
            of_all = effective(of_pool, everything.design.pi[: of_pool.size])
            if worth < CARRIED * min(of_all, _worth_of_pool(with_known, criterion)):
                worth = 0.0
        m = len(self.data.systems)
        recall = replace(
            recall_by_inclusion(theta, recall_of_drawn.totals, pi),
            degrees_of_freedom=np.full(m, float(n_annotated - 1)),
        )
        return where_known(recall_floored(recall, theta, worth), has_entered(self.data))

    def f1(self, precision: Estimate, recall: Estimate) -> Estimate:
        """F1 of the joint precision and recall, with the floors of both."""
        by_precision, by_recall = f1_weights(precision, recall)
        floor = by_precision**2 * np.asarray(precision.anticipated)
        floor = floor + by_recall**2 * np.asarray(recall.anticipated)
        both = f1(precision, recall)
        return replace(
            both, anticipated=floor, degrees_of_freedom=np.asarray(recall.degrees_of_freedom)
        )


def _worth_of_pool(arranged: Centred, criterion: str) -> float:
    """How many labels drawn with equal chances the facts that anybody predicts are worth, whatever
    was drawn.
    """
    under = arranged.under(criterion)
    return worth_of_all(under.shares_of("fact").pool, under.pi, under.data.pool.target)


def floored(estimate: Estimate, n_effective: Floats) -> Estimate:
    """The estimate of one or more means of labels, worth so many labels each, with a floor under
    its variance; none where they are too few to tell it.

    Hájek's variance is near 0 where one heavy judgment dominates, and 0 where all labels agree: so
    it never counts for less than that of a share of n_eff labels, one half of a label more of
    either kind among them. What is known of everything has none.
    """
    n = np.maximum(n_effective, 1.0)
    right = np.clip(np.nan_to_num(np.asarray(estimate.value)), 0.0, 1.0)
    bounded = np.minimum(n, 1e300)  # of infinitely many the share is the value itself
    p = (right * bounded + 0.5) / (bounded + 1)
    values = np.where(n_effective >= LEAST, estimate.value, np.nan)
    return replace(estimate, value=values, anticipated=p * (1 - p) / n)


def recall_floored(recall: Estimate, theta: Estimate, n_effective: float) -> Estimate:
    """Recall θ ν with a floor under the variance of θ, and of ν, which is a mean over judged true
    facts that is worth so many; none where these are too few.
    """
    with np.errstate(invalid="ignore"):  # of a θ of nothing there is none
        nu = replace(recall, value=np.asarray(recall.value) / float(theta.value))
    with_floor = floored(nu, np.full(np.shape(nu.value), n_effective))
    of_nu = np.asarray(with_floor.anticipated)
    of_theta = float(np.maximum(theta.variance, theta.anticipated))
    floor = float(theta.value) ** 2 * of_nu + np.asarray(nu.value) ** 2 * of_theta
    defined = ~np.isnan(np.asarray(with_floor.value))
    return replace(
        recall,
        value=np.where(defined, recall.value, np.nan),
        anticipated=np.nan_to_num(floor + of_nu * of_theta),
    )


def own_sample(data: Data, column: int, threshold: Floats) -> Data:
    """The data of a track if only one system's own sample had been drawn: what lies below its
    thresholds (t,).
    """

    def only(now: Inclusion) -> Inclusion:
        inside = data.pool.u < threshold  # nothing of it waits
        return replace(
            now,
            chances=replace(
                now.chances,
                threshold=threshold,
                draw=np.zeros(threshold.size),
                before=np.minimum(now.chances.before, threshold),
            ),
            drawn=inside,
            counts=inside,
            threshold=threshold,
        )

    disclosed = {column: data.disclosed[column]} if column in data.disclosed else {}
    own = {column: only(data.own[column])} if column in data.disclosed else {}
    return replace(
        data,
        inclusion=only(data.inclusion),
        disclosed=disclosed,
        disclosed_drawn=disclosed,
        own=own,
    )


def _guessing(data: Data, guess: float) -> Data:
    return replace(
        data,
        g={
            criterion: np.broadcast_to(guess, guesses.shape)
            for criterion, guesses in data.g.items()
        },
    )
