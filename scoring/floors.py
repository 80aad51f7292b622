"""Variances of recall and F1: the model's expected variance, corrected by the realised one
according to its degrees of freedom, so that unanimous labels do not give narrow intervals by
chance.

Precision has its own lower bound in `scoring.default.Centred`. The expectation uses the same rows
and probabilities as the estimate; for the contribution of annotated documents the realised variance
is used.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np

from estimators import recall as totals
from estimators.anticipated import (
    Belief,
    combine_variances,
    f1_weights,
    overconfidence_factor,
    variance_beyond_targets,
)
from estimators.estimate import Estimate
from estimators.intervals import are_few_unjudged, half_label_step
from estimators.misses import correct_recall_for_misses
from estimators.sums import Support
from scoring.arrays import Floats
from scoring.default import Centred, cap_recall
from scoring.pool import Pool
from scoring.shares import Shares


@dataclass(frozen=True)
class Floors:
    """Recall, F1 and corrected recall of a track, each with the variance of its intervals."""

    arranged: Centred

    def recall(self, criterion: str, *, unit: str = "fact") -> totals.Recall | None:
        """Return the recall of every system, counting each fact once or each of its instances; None
        with fewer than two annotated documents.
        """
        estimated = self.arranged.recall(criterion, unit=unit)
        if estimated is None or not _estimated_true_facts(estimated) > 0:
            return estimated
        own, taken = self._contributions_and_derivative(estimated, unit)
        widened = self._replace_variance(criterion, estimated.recall, own, taken, estimated, unit)
        return replace(estimated, recall=totals.add_missed_fact_floor(widened, estimated))

    def recall_with_misses(
        self, criterion: str, recall: totals.Recall, share: Estimate
    ) -> Estimate:
        """Return recall corrected for the facts that annotators are estimated to have missed, given
        the `share` of facts that they find.
        """
        with_missed = correct_recall_for_misses(recall, share)
        uncounted = self.arranged.fact_shares("fact").has_uncounted_facts
        with_missed = replace(with_missed, recall=cap_recall(with_missed.recall, uncounted))
        if not _estimated_true_facts(with_missed) > 0:
            return with_missed.recall
        own, taken = self._contributions_and_derivative(with_missed, "fact")
        widened = self._replace_variance(criterion, with_missed.recall, own, taken, with_missed)
        # The share uses judged targets too; the model does not know its own errors.
        n = recall.totals.pool.influence.size
        by_share = (
            np.asarray(with_missed.totals.systems.value)
            / _estimated_true_facts(with_missed) ** 2
            * float(with_missed.unseen.value)
            / float(share.value)
        )
        moved = np.outer(share.influence[:n], by_share)
        of_share = np.einsum("t,tm,tm->m", 1 - recall.design.pi[:n], moved, moved)
        floored = replace(with_missed.recall, anticipated=widened.anticipated + of_share)
        return totals.add_missed_fact_floor(floored, with_missed)

    def f1(self, kind: str, criterion: str, precision: Estimate, recall: totals.Recall) -> Estimate:
        """Return the harmonic mean of precision and recall, with their joint covariance."""
        both = totals.f1_of_recall(precision, recall.recall, recall.design)
        if not _estimated_true_facts(recall) > 0:
            return both
        by_precision, by_recall = f1_weights(precision, recall.recall)
        part = by_recall / _estimated_true_facts(recall)
        own = _Own(
            self.arranged.data.pool, self.arranged.fact_shares("fact"), part, kind, by_precision
        )
        taken = part * np.asarray(recall.totals.systems.value) / _estimated_true_facts(recall)
        widened = self._replace_variance(criterion, both, own, taken, recall)
        return totals.add_missed_fact_floor(widened, recall, by_recall)

    def _contributions_and_derivative(
        self, recall: totals.Recall, unit: str
    ) -> tuple[_Own, Floats]:
        """Return what a right prediction adds to each system's recall r, and the derivative of
        recall with respect to the true facts of the pool. The derivative is r/(T + M) for T + M
        true facts, also if r is not printed.
        """
        truth, values = _estimated_true_facts(recall), np.asarray(recall.totals.systems.value)
        by_share = np.full(values.size, 1 / truth)
        own = _Own(self.arranged.data.pool, self.arranged.fact_shares(unit), by_share)
        return own, values / truth**2

    def _continuity_corrections(
        self, criterion: str, contributions: _Own, losses: Floats, unit: str
    ) -> Floats:
        """Return (m,) the continuity correction that widens each interval if nearly all of the pool
        is judged (`half_step`). It is half of the change of the number by one more right verdict on
        an unjudged row; 0 otherwise.
        """
        arranged, weight = (
            self.arranged.for_criterion(criterion),
            self.arranged.fact_shares(unit).pool_shares,
        )
        base = self.arranged.for_criterion(self.arranged.data.base).verdicts[:, 0]
        steps = np.zeros(losses.size)
        rows = arranged.row[~np.isnan(base)]
        if not are_few_unjudged(weight, weight[rows]):
            return steps
        judged = np.zeros(weight.size, dtype=np.bool_)
        judged[rows] = True
        if not judged.all() and half_label_step(weight, judged) == 0:
            return steps
        for column in range(losses.size):
            moved = np.zeros(weight.size)
            support, u = contributions.support_and_contributions(column)
            moved[support.row] = u
            judged_there = np.zeros(weight.size, dtype=np.bool_)
            judged_there[arranged.row[arranged.is_judged_for_system(column)]] = True
            judged_there = judged & (judged_there | (moved == 0))
            each = np.nan_to_num(
                np.abs(moved - losses[column] * weight)
            )  # no step without a number
            steps[column] = half_label_step(each, judged_there)
        return steps

    def _replace_variance(
        self,
        criterion: str,
        estimate: Estimate,
        contributions: _Own,
        losses: Floats,
        recall: totals.Recall,
        unit: str = "fact",
    ) -> Estimate:
        """Return an estimate with the variance and the degrees of freedom that its intervals use.
        `contributions` tells what a right prediction adds to each system's number, and `losses`
        (m,) what a true fact of the pool takes away from it.
        """
        believed = self._cached_belief(criterion, unit)
        expected = believed.variances_of_systems(
            (contributions.support_and_contributions(column) for column in range(losses.size)),
            losses,
        )
        n_targets = recall.totals.pool.influence.size
        of_targets = combine_variances(
            expected, estimate.influence[:n_targets], recall.design.pi[:n_targets]
        )
        of_documents = variance_beyond_targets(estimate.influence, recall.design, n_targets)
        variance = np.asarray(of_targets + of_documents)
        # Only the part of the documents is learnt from few of them (Satterthwaite).
        ratio = np.full(variance.size, np.inf)
        np.divide(variance, of_documents, out=ratio, where=of_documents > 0)
        return replace(
            estimate,
            variance=np.minimum(estimate.variance, variance),
            anticipated=variance,
            degrees_of_freedom=recall.unseen.degrees_of_freedom * ratio**2,
            half_step=self._continuity_corrections(criterion, contributions, losses, unit),
        )

    def _cached_belief(self, criterion: str, unit: str) -> Belief:
        if (criterion, unit) not in self._belief_cache:
            self._belief_cache.clear()  # one at a time: each holds numbers of all that is predicted
            self._belief_cache[criterion, unit] = self._compute_belief(criterion, unit)
        return self._belief_cache[criterion, unit]

    @cached_property
    def _belief_cache(self) -> dict[tuple[str, str], Belief]:
        return {}

    def _compute_belief(self, criterion: str, unit: str) -> Belief:
        arranged, data = self.arranged.for_criterion(criterion), self.arranged.data
        doubted = [(arranged.mean_verdict_of_row(arranged.verdicts), data.g[criterion])]
        doubted.append((arranged.for_criterion(data.base).verdicts[:, 0], data.g[data.base]))
        return Belief(
            pi=arranged.pi,
            g=data.g[criterion],
            pool_g=data.g[data.base],
            pool_weight=arranged.fact_shares(unit).pool_shares,
            target=data.pool.target,
            correlation=data.rho[criterion],
            overconfidence=max(
                overconfidence_factor(label, g[arranged.row]) for label, g in doubted
            ),
        )


@dataclass(frozen=True)
class _Own:
    """What a right prediction adds to the number of its system, from its share of a fact and its
    probability under a distribution.
    """

    pool: Pool
    shares: Shares
    by_share: Floats
    """(m,) contribution by the share of a fact"""
    kind: str = ""
    """The distribution; empty: none"""
    by_weight: Floats = field(default_factory=lambda: np.zeros(0))
    """(m,) contribution by probability"""

    def support_and_contributions(self, column: int) -> tuple[Support, Floats]:
        """Return the rows that a system predicts (its support), and (n,) what each of them adds to
        the system's number if it is right.
        """
        added = self.shares.shares_of_system(column)
        added *= self.by_share[column]
        if self.kind:
            added += self.by_weight[column] * self.pool.weight(self.kind, column)
        return self.pool.support(column), added


def _estimated_true_facts(recall: totals.Recall) -> float:
    """Return the estimated number of true facts: T that systems predict, plus M that none
    predicts.
    """
    return float(recall.totals.pool.value) + float(recall.unseen.value)
