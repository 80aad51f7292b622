"""Floors under the variances of recall and F1: what the model expects, so that labels which agree
by luck prove little.

Precision has its own in `centred`. A floor is made of the same rows with the same probabilities as
the estimate; what the annotated documents add to the variance is taken as it was realised.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np

from estimators import recall as totals
from estimators.anticipated import Belief, beyond_targets, f1_weights, overconfidence
from estimators.estimate import Estimate
from estimators.intervals import few_left, half_step
from estimators.misses import with_misses
from estimators.sums import Support
from scoring.arrays import Floats
from scoring.data import BASE
from scoring.default import Centred
from scoring.pool import Pool
from scoring.shares import Shares


@dataclass(frozen=True)
class Floors:
    """Recall, F1 and corrected recall of a track, each with what the model expects of its
    variance.
    """

    arranged: Centred

    def recall(self, criterion: str, *, unit: str = "fact") -> totals.Recall | None:
        """The recall of every system, a fact counted once or each instance of it; None without two
        annotated documents.
        """
        found = self.arranged.recall(criterion, unit=unit)
        if found is None or not _truth(found) > 0:
            return found
        floor = self._of_recall(criterion, found, unit)
        step = self._half_steps(criterion, *self._parts(found, unit), unit)
        told = replace(found.recall, anticipated=floor, half_step=step)
        return replace(found, recall=totals.with_missed_floor(told, found))

    def corrected(self, criterion: str, recall: totals.Recall, share: Estimate) -> Estimate:
        """Recall with the facts put in that annotators are reckoned to have missed: `share` is what
        they find.
        """
        found = with_misses(recall, share)
        if not _truth(found) > 0:
            return found.recall
        floor = self._of_recall(criterion, found, "fact")
        # The share rests on judged targets too; of its own errors the model knows nothing.
        n = recall.totals.pool.influence.size
        by_share = (
            np.asarray(found.totals.systems.value)
            / _truth(found) ** 2
            * float(found.unseen.value)
            / float(share.value)
        )
        own = np.outer(share.influence[:n], by_share)
        floor = floor + np.einsum("t,tm,tm->m", 1 - recall.design.pi[:n], own, own)
        return totals.with_missed_floor(replace(found.recall, anticipated=floor), found)

    def f1(self, kind: str, criterion: str, precision: Estimate, recall: totals.Recall) -> Estimate:
        """The harmonic mean of the two, from their joint covariance."""
        both = totals.f1(precision, recall.recall, recall.design)
        if not _truth(recall) > 0:
            return both
        by_precision, by_recall = f1_weights(precision, recall.recall)
        part = by_recall / _truth(recall)
        own = _Own(
            self.arranged.data.pool, self.arranged.shares_of("fact"), part, kind, by_precision
        )
        taken = part * np.asarray(recall.recall.value)
        told = replace(
            both,
            anticipated=self._floor(criterion, own, taken, both, recall),
            half_step=self._half_steps(criterion, own, taken, "fact"),
        )
        return totals.with_missed_floor(told, recall, by_recall)

    def _parts(self, found: totals.Recall, unit: str) -> tuple[_Own, Floats]:
        """What a right prediction adds to each system's recall, and what a true fact of the pool
        takes from it: r/(T + M), also where r is not printed.
        """
        truth, values = _truth(found), np.asarray(found.totals.systems.value)
        by_share = np.full(values.size, 1 / truth)
        own = _Own(self.arranged.data.pool, self.arranged.shares_of(unit), by_share)
        return own, values / truth**2

    def _of_recall(self, criterion: str, found: totals.Recall, unit: str) -> Floats:
        own, taken = self._parts(found, unit)
        return self._floor(criterion, own, taken, found.recall, found, unit)

    def _half_steps(self, criterion: str, own: _Own, taken: Floats, unit: str) -> Floats:
        """(m,) what intervals are widened by where nearly all of the pool is judged: half of what
        one verdict more, of those that are open, moves a number by.
        """
        arranged, weight = self.arranged.under(criterion), self.arranged.shares_of(unit).pool
        base = self.arranged.under(BASE).verdicts[:, 0]
        steps = np.zeros(taken.size)
        rows = arranged.row[arranged.counts & ~np.isnan(base)]
        if not few_left(weight, weight[rows]):
            return steps
        judged = np.zeros(weight.size, dtype=np.bool_)
        judged[rows] = True
        if not judged.all() and half_step(weight, judged) == 0:
            return steps
        for column in range(taken.size):
            moved = np.zeros(weight.size)
            support, u = own.of(column)
            moved[support.row] = u
            known = np.zeros(weight.size, dtype=np.bool_)
            known[arranged.row[arranged.judged_of(column)]] = True
            known = judged & (known | (moved == 0))
            each = np.nan_to_num(np.abs(moved - taken[column] * weight))  # of no number no step
            steps[column] = half_step(each, known)
        return steps

    def _floor(
        self,
        criterion: str,
        own: _Own,
        taken: Floats,
        found: Estimate,
        recall: totals.Recall,
        unit: str = "fact",
    ) -> Floats:
        """Of `own`, what a right prediction adds to each system's number, and `taken` (m,),
        what a true fact of the pool takes from it.

        A system whose team had seen judgments has probabilities of its own for what it predicts.
        How that goes together with what the pool makes of the same targets would only make it less,
        and is left out.
        """
        believed = self._belief(criterion, unit)
        floor = believed.of_systems((own.of(column) for column in range(taken.size)), taken)
        for column in self.arranged.data.disclosed:
            nothing, nobody = np.zeros_like(believed.pool_weight), np.zeros(0, dtype=np.int64)
            alone = replace(
                believed, pi=self.arranged.under(criterion).pi_of(column), pool_weight=nothing
            )
            none = (Support(nobody, nobody, nobody), np.zeros(0))
            of_pool = believed.of_systems([none], taken[[column]])
            floor[column] = (alone.of_systems([own.of(column)], [0.0]) + of_pool)[0]
        n_targets = recall.totals.pool.influence.size
        return np.asarray(floor + beyond_targets(found.influence, recall.design, n_targets))

    def _belief(self, criterion: str, unit: str) -> Belief:
        if (criterion, unit) not in self._beliefs:
            self._beliefs.clear()  # one at a time: each holds numbers of all that is predicted
            self._beliefs[criterion, unit] = self._believed(criterion, unit)
        return self._beliefs[criterion, unit]

    @cached_property
    def _beliefs(self) -> dict[tuple[str, str], Belief]:
        return {}

    def _believed(self, criterion: str, unit: str) -> Belief:
        arranged, data = self.arranged.under(criterion), self.arranged.data
        doubted = [(arranged.one_verdict(arranged.verdicts), data.g[criterion])]
        doubted.append((arranged.under(BASE).verdicts[:, 0], data.g[BASE]))
        return Belief(
            pi=arranged.pi,
            g=data.g[criterion],
            pool_g=data.g[BASE],
            pool_weight=arranged.shares_of(unit).pool,
            target=data.pool.target,
            correlation=data.rho[criterion],
            overconfidence=max(overconfidence(label, g[arranged.row]) for label, g in doubted),
        )


@dataclass(frozen=True)
class _Own:
    """What a right prediction adds to the number of its system: so much of its share of a fact, and
    of its probability under a distribution.
    """

    pool: Pool
    shares: Shares
    by_share: Floats
    """(m,)"""
    kind: str = ""
    """No distribution where empty"""
    by_weight: Floats = field(default_factory=lambda: np.zeros(0))
    """(m,)"""

    def of(self, column: int) -> tuple[Support, Floats]:
        """A system's support, and what each of its rows (n,) adds."""
        found = self.shares.of(column)
        found *= self.by_share[column]
        if self.kind:
            found += self.by_weight[column] * self.pool.weight(self.kind, column)
        return self.pool.support(column), found


def _truth(found: totals.Recall) -> float:
    """T + M."""
    return float(found.totals.pool.value) + float(found.unseen.value)
