"""The default estimators on a track's targets: centred difference for precision, totals for recall.

There is one set of judged targets, each with its inclusion probability. Every number is a sum of
terms over them, so every variance and covariance is a quadratic form of one design.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from estimators import horvitz_thompson, misses
from estimators import recall as totals
from estimators.design import Design
from estimators.estimate import Estimate, replace_columns
from estimators.intervals import are_few_unjudged, half_label_step
from estimators.ratings import anticipated_rating_variance
from scoring.arrays import Bools, Floats, Ids
from scoring.data import Data
from scoring.documents import NEVER
from scoring.inclusion import response_rate
from scoring.pool import values_at_rows
from scoring.shares import Shares

SHARED = ("at", "row", "targets", "_is_predicted")
"""Cached values that do not depend on the criterion."""


@dataclass(frozen=True)
class Centred:
    """A track's data arranged for the default estimators. Rows are the judged instances whose
    targets are in the sample.
    """

    data: Data
    criterion: str = ""
    """The criterion whose response rate is in the probabilities; empty: the base criterion"""

    def __post_init__(self) -> None:
        object.__setattr__(self, "criterion", self.criterion or self.data.base)

    @cached_property
    def judged_positions(self) -> Ids:
        """Return (n,) positions in `data.judged` of the rows in use."""
        return np.flatnonzero(self.data.inclusion.drawn[self.data.pool.target[self.data.judged]])

    @cached_property
    def row(self) -> Ids:
        """Return (n,) the rows in the pool."""
        return self.data.judged[self.judged_positions]

    @cached_property
    def counted_targets(self) -> tuple[Ids, Ids]:
        """Return (t',) the targets in use, and (n,) the code of each row's target among them."""
        unique, code = np.unique(self.data.pool.target[self.row], return_inverse=True)
        return unique, code.astype(np.int64)

    def for_criterion(self, criterion: str) -> Centred:
        """Return the same data for another criterion, since a question may be answered for one and
        not for the other.
        """
        if criterion not in self._by_other_criterion:
            other = Centred(self.data, criterion)
            shared = {name: value for name, value in self.__dict__.items() if name in SHARED}
            other.__dict__.update(shared, _siblings=self._by_other_criterion)
            self._by_other_criterion[criterion] = other
        return self._by_other_criterion[criterion]

    @cached_property
    def _by_other_criterion(self) -> dict[str, Centred]:
        return {self.criterion: self}

    @cached_property
    def answered_share(self) -> Floats:
        """Return (t,) the response rate in the stratum of each target of the pool: the share of its
        questions that got an answer. A mark by a reader of the whole document is not an answer, and
        targets that only readers marked were not asked about.
        """
        mark = self._row_mark
        asked = ~((mark >= 0) & (mark < NEVER))
        known = ~np.isnan(self.data.f[self.criterion][self.judged_positions, 0]) & (mark < 0)
        return response_rate(
            self.data.pool.stratum_of_target, self._row_target[asked], known[asked]
        )

    @cached_property
    def _row_target(self) -> Ids:
        return self.data.pool.target[self.row]

    @cached_property
    def _row_mark(self) -> Floats:
        return self.data.mark[self._row_target]

    @cached_property
    def verdicts(self) -> Floats:
        """Return (n, m) the verdict f on each row as each system predicts it, under this criterion.

        A target that readers marked is always known, and true; an unmarked one is known if its
        question got an answer. To avoid an excess of true ones, a target that is known only by its
        mark is used at random, at the response rate of its stratum: always, unless some questions
        ended unanswered. A target whose question ended unanswered before it was marked is not used.
        """
        f = self.data.f[self.criterion][self.judged_positions]
        return (
            np.where(self._is_uncounted_mark[:, None], np.nan, f)
            if self._is_uncounted_mark.any()
            else f
        )

    @cached_property
    def _is_uncounted_mark(self) -> NDArray[np.bool_]:
        """Return (n,) whether the row's verdict comes from a mark by readers that is not used."""
        return np.asarray(self._row_mark >= self.answered_share[self._row_target])

    @cached_property
    def pi(self) -> Floats:
        """Return (u,) the probability that each instance is in a sample and its question was
        answered.
        """
        for other in self._by_other_criterion.values():  # if all was answered, they are equal
            if "pi" in other.__dict__ and np.array_equal(other.answered_share, self.answered_share):
                return other.pi
        return np.asarray((self.data.inclusion.asked * self.answered_share)[self.data.pool.target])

    @cached_property
    def row_pi(self) -> Floats:
        """Return (n,) the inclusion probability π of each judged row."""
        return self.pi[self.row]

    @cached_property
    def design(self) -> Design:
        """Return the design by which the targets in use were sampled."""
        return Design(self.values_by_target(self.row_pi))

    def precision(self, kind: str, criterion: str, *, floor: bool = True) -> Estimate:
        """Return the estimated precision of every system under a distribution. With `floor`, its
        intervals use at least the variance that the model expects.
        """
        if criterion != self.criterion:
            return self.for_criterion(criterion).precision(kind, criterion, floor=floor)
        data, p = self.data, self.data.pool.p[kind]
        g, f = data.g[criterion], self.verdicts
        total = np.asarray(g @ p).ravel()
        centred = horvitz_thompson.centred_difference_estimate(
            p[self.row].toarray(),
            self.row_pi,
            f,
            g[self.row],
            total,
            target=self.counted_targets[1],
            n_targets=self.counted_targets[0].size,
            design=self.design,
        )
        if floor:
            centred = replace(
                centred,
                anticipated=self._anticipated_variance(kind, range(p.shape[1]), self.pi),
                total_g=total,
            )
        steps = [self._continuity_correction(kind, column) for column in range(p.shape[1])]
        with_steps = replace(centred, half_step=np.array(steps))
        return blank_unjudged(with_steps, np.asarray(with_steps.n) > 0)

    def precision_where_settled(self, kind: str, criterion: str) -> Estimate:
        """Return the precision of every system as the board prints it: estimated, or exact and
        without sampling error for a system whose predictions are all judged. That is not unbiased
        over samples if it happens in some of them only, as with very few claims.
        """
        if criterion != self.criterion:
            return self.for_criterion(criterion).precision_where_settled(kind, criterion)
        estimate = self.precision(kind, criterion)
        if criterion in self.data.noise:
            return estimate  # ratings say more than what was drawn
        whole = {}
        for column in range(len(self.data.systems)):
            rows, p = self.data.pool.rows_and_probabilities(kind, column)
            judged = self.is_judged_for_system(column)
            if not 0 < np.count_nonzero(p) <= np.count_nonzero(judged):
                continue  # most systems have far more predictions than judgments
            if not np.isin(rows[p > 0], self.row[judged]).all():
                continue
            weight = values_at_rows(rows, p, self.row) * judged
            whole[column] = Estimate(
                value=float(weight @ np.nan_to_num(self.verdicts[:, column])),
                variance=0.0,
                n=int(np.asarray(estimate.n)[column]),
                influence=np.zeros(estimate.influence.shape[0]),
                total_g=float(np.asarray(estimate.total_g)[column]),
            )
        return replace_columns(estimate, whole)

    def is_judged_for_system(self, column: int) -> NDArray[np.bool_]:
        """Return (n,) whether the row is in use and has a verdict for a system."""
        return np.asarray(~np.isnan(self.verdicts[:, column]))

    def _continuity_correction(self, kind: str, column: int) -> float:
        """Return the continuity correction that widens a system's interval if nearly all of its
        predictions are judged; 0 for verdicts on a scale, which are not discrete.
        """
        if self.criterion in self.data.error:
            return 0.0
        rows, p = self.data.pool.rows_and_probabilities(kind, column)
        judged = self.row[self.is_judged_for_system(column)]
        if not are_few_unjudged(p, values_at_rows(rows, p, judged)):
            return 0.0
        return half_label_step(p, np.isin(rows, judged))

    def _anticipated_variance(self, kind: str, columns: Sequence[int], pi: Floats) -> Floats:
        """Return (k,) the variance that the model expects of some systems' precision."""
        pool, criterion = self.data.pool, self.criterion
        error = self.data.error.get(criterion)
        if error is not None:
            p = pool.columns(kind)[:, list(columns)]
            return np.asarray(anticipated_rating_variance(p, pi, error))
        g, f = self.data.g[criterion], self.verdicts
        return horvitz_thompson.anticipated_variances(
            [pool.weighted_rows(kind, column) for column in columns],
            pi,
            g,
            self.mean_verdict_of_row(f),
            g[self.row],
            correlation=self.data.rho[criterion],
        )

    @cached_property
    def _is_predicted(self) -> NDArray[np.bool_]:
        """Return (n, m) whether each system predicts the instance of each row."""
        is_member: NDArray[np.bool_] = self.data.pool.member[self.row].toarray() > 0
        return is_member

    def values_by_target(self, values: Floats) -> Floats:
        """Return one value for each target, given values that are equal on all of its rows."""
        of_target = np.ones(self.counted_targets[0].size)
        of_target[self.counted_targets[1]] = values
        return of_target

    def mean_verdict_of_row(self, f: Floats) -> Floats:
        """Return one verdict for each row: the mean over the systems that predict it."""
        member = self._is_predicted
        return np.asarray(np.where(member, f, 0.0).sum(axis=1) / np.maximum(member.sum(axis=1), 1))

    def recall(self, criterion: str, *, unit: str = "fact") -> totals.Recall | None:
        """Return the recall of every system before floors are applied, counting each fact once or
        each of its instances; None with fewer than two annotated documents.
        """
        facts = self.data.facts
        if facts is None or facts.n_annotated < 2:
            return None
        if criterion != self.criterion:
            return self.for_criterion(criterion).recall(criterion, unit=unit)
        share = self.fact_shares(unit)
        data, row = self.data, self.row
        base, g = self.for_criterion(data.base).verdicts[:, 0], data.g[data.base]
        own = self.verdicts if criterion != data.base else None
        own_g = data.g[criterion]
        total = share.totals_by_system(own_g)
        weight = share.shares_of_rows(row)
        missed = (
            np.bincount(facts.document[~facts.found], minlength=facts.n_annotated)
            if unit == "fact"
            else facts.missed
        )
        estimated = totals.estimate_recall(
            weight,
            self.row_pi,
            base if own is None else own,
            own_g[row],
            total,
            float(share.pool_shares @ g),
            missed,
            facts.n_documents,
            target=self.counted_targets[1],
            n_targets=self.counted_targets[0].size,
            pool_label=base,
            pool_g=g[row],
            pool_weight=self.pool_weight(unit),
            inclusion=data.documents.inclusion,
        )
        # A system without predictions in the scope has recall 0, without guess or judgment.
        has_recall = (np.asarray(estimated.totals.systems.n) > 0) | (total == 0)
        known = blank_unjudged(estimated.recall, has_recall)
        return replace(estimated, recall=cap_recall(known, share.has_uncounted_facts))

    def pool_weight(self, unit: str) -> Floats:
        """Return (n,) the share of a fact of the pool that each row represents. The share is scaled
        from the inclusion probability under the base criterion to that under this one.
        """
        return np.minimum(
            self.fact_shares(unit).pool_shares[self.row] * self._pi_ratio_to_base, 1.0
        )

    @cached_property
    def _pi_ratio_to_base(self) -> Floats:
        """Return (n,) each row's inclusion probability under this criterion, divided by that under
        the base criterion, whose labels give the pool's total.
        """
        return np.asarray(self.row_pi / self.for_criterion(self.data.base).row_pi)

    def marked_share(self, recall: totals.Recall) -> Estimate | None:
        """Return the share of true predictions in annotated documents that annotation had found, on
        the design of `recall`.

        Computed over drawn predictions: marked ones count as true, people were asked about the
        others. None if unmarked relations are false, so that nothing is missed.
        """
        facts, data = self.data.facts, self.data
        if facts is None or data.closed_documents:
            return None
        return misses.marked_share(
            self.for_criterion(data.base).verdicts[:, 0],
            facts.marked[self.row],
            self.fact_shares("fact").pool_shares[self.row],
            self.for_criterion(data.base).row_pi,
            facts.inside[self.row],
            recall.design,
            target=self.counted_targets[1],
        )

    def fact_shares(self, unit: str) -> Shares:
        """Return the share that each instance has of a fact, if each fact counts once (`fact`), or
        if each of its mentions counts (`mention`).
        """
        assert self.data.facts is not None
        return Shares.get_or_compute(
            self.data.pool, self.data.facts, count_facts_once=unit == "fact"
        )


def cap_recall(recall: Estimate, uncounted: Bools) -> Estimate:
    """Return recall, limited to 1 for systems whose facts are not counted yet: while few of them
    are judged, the model may expect more true ones than exist.
    """
    value = np.asarray(recall.value)
    return replace(recall, value=np.where(uncounted, np.minimum(value, 1.0), value))


def blank_unjudged(estimate: Estimate, known: NDArray[np.bool_]) -> Estimate:
    """Return the estimate with the value NaN for systems without a judged prediction, since the
    model's guess is not a score.

    The variance is kept, since it determines the number of questions.
    """
    return replace(estimate, value=np.where(known, estimate.value, np.nan))
