"""Floors under the variances of recall and F1: what the model expects, so that labels which agree
by luck prove little.

Precision has its own in `centred`. A floor is made of the same rows with the same probabilities as
the estimate; what the annotated documents add to the variance is taken as it was realised.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from scipy import sparse

from estimators import recall as totals
from estimators.anticipated import Belief, beyond_targets, f1_weights, overconfidence
from estimators.estimate import Estimate
from estimators.intervals import half_step
from estimators.misses import with_misses
from scoring.arrays import Floats, Matrix
from scoring.default import Centred


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
        share, _ = self.arranged.shares
        part = by_recall / _truth(recall)
        own = _scaled(self.arranged.data.pool.p[kind], by_precision) + _scaled(share, part)
        taken = part * np.asarray(recall.recall.value)
        own = sparse.csr_array(own)
        told = replace(
            both,
            anticipated=self._floor(criterion, own, taken, both, recall),
            half_step=self._half_steps(criterion, own, taken, "fact"),
        )
        return totals.with_missed_floor(told, recall, by_recall)

    def _parts(self, found: totals.Recall, unit: str) -> tuple[sparse.csr_array, Floats]:
        """What a right prediction adds to each system's recall, and what a true fact of the pool
        takes from it: r/(T + M), also where r is not printed.
        """
        share, _ = self.arranged.shares_of(unit)
        truth = _truth(found)
        return sparse.csr_array(share / truth), (np.asarray(found.totals.systems.value) / truth**2)

    def _of_recall(self, criterion: str, found: totals.Recall, unit: str) -> Floats:
        own, taken = self._parts(found, unit)
        return self._floor(criterion, own, taken, found.recall, found, unit)

    def _half_steps(
        self, criterion: str, own: sparse.csr_array, taken: Floats, unit: str
    ) -> Floats:
        """(m,) what intervals are widened by where nearly all of the pool is judged: half of what
        one verdict more, of those that are open, moves a number by.
        """
        arranged, weight = self.arranged.under(criterion), self.arranged.shares_of(unit)[1]
        relation = self.arranged.under("relation").verdicts[:, 0]
        judged = np.zeros(weight.size, dtype=np.bool_)
        judged[arranged.row[arranged.counts & ~np.isnan(relation)]] = True
        steps = np.zeros(taken.size)
        if not judged.all() and half_step(weight, judged) == 0:
            return steps
        by_system = sparse.csc_array(own)
        for column in range(taken.size):
            moved = by_system[:, [column]].toarray().ravel()
            known = np.zeros(weight.size, dtype=np.bool_)
            known[arranged.row[arranged.judged_of(column)]] = True
            known = judged & (known | (moved == 0))
            each = np.nan_to_num(np.abs(moved - taken[column] * weight))  # of no number no step
            steps[column] = half_step(each, known)
        return steps

    def _floor(
        self,
        criterion: str,
        own: Matrix,
        taken: Floats,
        found: Estimate,
        recall: totals.Recall,
        unit: str = "fact",
    ) -> Floats:
        """Of `own` (u, m), what a right prediction adds to each system's number, and `taken` (m,),
        what a true fact of the pool takes from it.

        A system whose team had seen judgments has probabilities of its own for what it predicts.
        How that goes together with what the pool makes of the same targets would only make it less,
        and is left out.
        """
        believed = self._belief(criterion, unit)
        floor = believed.variance(own, taken)
        for column in self.arranged.data.disclosed:
            nothing = np.zeros_like(believed.pool_weight)
            alone = replace(
                believed, pi=self.arranged.under(criterion).pi_of(column), pool_weight=nothing
            )
            of_pool = believed.variance(sparse.csr_array((nothing.size, 1)), taken[[column]])
            floor[column] = (alone.variance(own[:, [column]], [0.0]) + of_pool)[0]
        n_targets = recall.totals.pool.influence.size
        return np.asarray(floor + beyond_targets(found.influence, recall.design, n_targets))

    def _belief(self, criterion: str, unit: str) -> Belief:
        arranged, data = self.arranged.under(criterion), self.arranged.data
        doubted = [(arranged.one_verdict(arranged.verdicts), data.g[criterion])]
        doubted.append((arranged.under("relation").verdicts[:, 0], data.g["relation"]))
        return Belief(
            pi=arranged.pi,
            g=data.g[criterion],
            pool_g=data.g["relation"],
            pool_weight=arranged.shares_of(unit)[1],
            target=data.pool.target,
            correlation=data.rho[criterion],
            overconfidence=max(overconfidence(label, g[arranged.row]) for label, g in doubted),
        )


def _scaled(table: Matrix, by: Floats) -> Matrix:
    """A table whose columns are multiplied."""
    found = table.data * np.asarray(by)[table.indices]
    return sparse.csr_array((found, table.indices, table.indptr), shape=table.shape)


def _truth(found: totals.Recall) -> float:
    """T + M."""
    return float(found.totals.pool.value) + float(found.unseen.value)
