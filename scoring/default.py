"""The default estimators on a track's targets: centred difference for precision, totals for recall.

One set of judged targets, each with the probability that it counts; every number is a sum of terms
over them, so that every variance and covariance is a quadratic form of one design. A submission
whose team had seen judgments when it uploaded has probabilities of its own; its terms are so scaled
that the common design gives their variance.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from estimators import horvitz_thompson, misses
from estimators import recall as totals
from estimators.design import Design
from estimators.estimate import Estimate, with_columns
from estimators.intervals import few_left, half_step
from estimators.ratings import anticipated_rating_variance
from estimators.seen import on_common_design
from estimators.sums import by_code
from scoring.arrays import Bools, Floats, Ids
from scoring.combine import Response, combine
from scoring.data import Data, FollowedUp
from scoring.documents import NEVER, NO_MARK, Facts
from scoring.pool import spread
from scoring.response import Answers, of_follow_ups, of_samples
from scoring.shares import Shares

SHARED = ("at", "row", "counts", "targets", "_member", "_most")
"""What does not depend on the criterion."""


@dataclass(frozen=True)
class Centred:
    """A track's data arranged for the default estimators: rows are the instances of targets that
    count.
    """

    data: Data
    criterion: str = ""
    """Whose answers the probabilities allow for; without one, those of the base criterion"""

    def __post_init__(self) -> None:
        object.__setattr__(self, "criterion", self.criterion or self.data.base)

    @cached_property
    def at(self) -> Ids:
        """(n,) positions in `data.judged` of the rows that count for anybody."""
        counted = self.data.inclusion.counts.copy()
        for column, disclosed in self.data.disclosed.items():
            counted |= disclosed.certainty | self.data.own[column].counts
        return np.flatnonzero(counted[self.data.pool.target[self.data.judged]])

    @cached_property
    def row(self) -> Ids:
        """(n,) their rows in the pool."""
        return self.data.judged[self.at]

    @cached_property
    def counts(self) -> NDArray[np.bool_]:
        """(n,) whether they count for everybody, with the probability of the design."""
        return self.data.inclusion.counts[self.data.pool.target[self.row]]

    @cached_property
    def targets(self) -> tuple[Ids, Ids]:
        """(t',) the targets that count, and (n,) the code of each row's target among them."""
        unique, code = np.unique(self.data.pool.target[self.row], return_inverse=True)
        return unique, code.astype(np.int64)

    def under(self, criterion: str) -> Centred:
        """The same data for another criterion: a question may be answered for one and not for the
        other.
        """
        if criterion not in self._siblings:
            other = Centred(self.data, criterion)
            shared = {name: value for name, value in self.__dict__.items() if name in SHARED}
            other.__dict__.update(shared, _siblings=self._siblings)
            self._siblings[criterion] = other
        return self._siblings[criterion]

    @cached_property
    def _siblings(self) -> dict[str, Centred]:
        return {self.criterion: self}

    @cached_property
    def answered(self) -> Floats:
        """(t,) the share of questions that got an answer, in the stratum of each target of the
        pool.

        Those that were answered stand for those of their own stratum that were given up, so that it
        does no harm if some relations are harder to answer than others. A stratum is the relation
        that is said of a target (the first of several); those of which too little was asked to
        tell, or of which nothing was answered, are one together.
        """
        return of_samples(self._answers)

    @cached_property
    def answered_inside(self) -> Floats:
        """(t,) the same of what follow-ups asked: in their documents nothing else is asked any
        more.
        """
        return of_follow_ups(self._answers, self.data.fold.answered)

    @cached_property
    def response(self) -> Response:
        """What samples and follow-ups got answers to."""
        inside = self.data.in_documents
        return Response(
            self.answered,
            self.answered_inside,
            closed=self.data.fold.closed,
            covered=None if inside is None else inside.covered,
        )

    @cached_property
    def given_document(self) -> Floats:
        """(t,) probability that a target is judged if its document is annotated, and brings it
        in.
        """
        return self.response.in_document(self.data.inclusion.chances.before)

    @cached_property
    def _row_target(self) -> Ids:
        return self.data.pool.target[self.row]

    @cached_property
    def _row_followed_up(self) -> NDArray[np.bool_]:
        inside = self.data.in_documents
        return (
            np.zeros(self.row.size, dtype=np.bool_)
            if inside is None
            else inside.asked[self._row_target]
        )

    @cached_property
    def _row_cluster(self) -> Ids:
        return self.data.inclusion.cluster[self._row_target]

    @cached_property
    def _row_mark(self) -> Floats:
        inside = self.data.in_documents
        return np.full(self.row.size, NO_MARK) if inside is None else inside.mark[self._row_target]

    @cached_property
    def verdicts(self) -> Floats:
        """(n, m) f of each row under this criterion.

        What readers marked is always known, and it is true; what they did not is known if its
        question got an answer. So that the known are not too often true, what is known by its mark
        alone counts by chance, as often as a question beside it was answered: always, unless some
        were given up. What was asked in vain before it was marked does not count at all.
        """
        f = self.data.f[self.criterion][self.at]
        return np.where(self._lost[:, None], np.nan, f) if self._lost.any() else f

    def verdicts_of(self, column: int) -> Floats:
        """(n,) the same of a system whose team had seen judgments: of those, which are no chance,
        none is left out.
        """
        saw = self.data.disclosed_drawn.get(column, self.data.disclosed[column])
        certainty = saw.certainty[self._row_target]
        return np.where(
            self._lost & ~certainty, np.nan, self.data.f[self.criterion][self.at, column]
        )

    def said_of(self, column: int) -> Floats:
        """(n,) f of each row for one system, whatever its team had seen."""
        return (
            self.verdicts_of(column) if column in self.data.disclosed else self.verdicts[:, column]
        )

    @cached_property
    def _lost(self) -> NDArray[np.bool_]:
        """(n,) marks that do not count."""
        if self.data.in_documents is None:
            return np.zeros(self.row.size, dtype=np.bool_)
        share = np.where(self.data.in_documents.covered, self.answered_inside, self.answered)
        return self._row_mark >= share[self._row_target]

    @cached_property
    def _answers(self) -> Answers:
        """Which rows were asked about, and which of these got an answer: a mark is none."""
        answered = ~np.isnan(self.data.f[self.criterion][self.at, 0])
        asked = self.counts & (self._row_cluster < 0) & ~self._row_followed_up
        if self.data.pending is not None:
            asked &= answered | ~self.data.pending[self.at]
        return Answers(
            stratum=self.data.pool.stratum_of_target,
            target=self._row_target,
            known=answered & (self._row_mark < 0),
            not_asked=(self._row_mark >= 0) & (self._row_mark < NEVER),
            sampled=asked,
            followed_up=self._row_followed_up,
        )

    @cached_property
    def pi(self) -> Floats:
        """(u,) probability that each instance counts: that of being asked, or of coming in by an
        annotated document, each times the share of its questions that got an answer.
        """
        for other in self._siblings.values():  # where all was answered, they are the same
            if "pi" in other.__dict__ and other.response.is_like(self.response):
                return other.pi
        return combine(self.data.inclusion.chances, self.response)[self.data.pool.target]

    @cached_property
    def row_pi(self) -> Floats:
        """(n,) the same of each row. One that does not count for everybody has a term only for who
        it was asked for, and any probability will do: the term is scaled to its own.
        """
        return np.where(self.counts, self.pi[self.row], 0.5)

    @cached_property
    def design(self) -> Design:
        """How the targets that count came in."""
        unique, _ = self.targets
        pi = self.by_target(self.row_pi)
        chance = self.data.inclusion
        if not chance.n_clusters:
            return Design(pi)
        return Design(
            pi,
            cluster=chance.cluster[unique],
            beta=chance.of_document,
            n_clusters=chance.n_clusters,
            answered=self.given_document[unique],
        )

    def precision(self, kind: str, criterion: str, *, floor: bool = True) -> Estimate:
        """The precision of every system under a distribution; without a floor if nothing is to be
        expected of g.
        """
        if criterion != self.criterion:
            return self.under(criterion).precision(kind, criterion, floor=floor)
        data, p = self.data, self.data.pool.p[kind]
        g, f = data.g[criterion], self.verdicts
        total = np.asarray(g @ p).ravel()
        weight = p[self.row].toarray()
        centred = horvitz_thompson.centred(
            weight * self.counts[:, None],
            self.row_pi,
            f,
            g[self.row],
            total,
            target=self.targets[1],
            n_targets=self.targets[0].size,
            design=self.design,
        )
        own = {}
        for column in data.disclosed:
            label = self.verdicts_of(column)
            alone = self._alone(
                horvitz_thompson.centred, column, weight[:, column], label, g, total[column]
            )
            if floor:
                [expected] = self._anticipated(kind, [column], self.pi_of(column), alone)
                alone = replace(alone, anticipated=float(expected))
            own[column] = alone
        if floor:
            centred = replace(
                centred,
                anticipated=self._anticipated(kind, range(p.shape[1]), self.pi, centred),
                total_g=total,
            )
        steps = [self._half_step(kind, column) for column in range(p.shape[1])]
        with_steps = replace(with_columns(centred, own), half_step=np.array(steps))
        return where_known(with_steps, np.asarray(with_steps.n) > 0)

    def settled(self, kind: str, criterion: str) -> Estimate:
        """The precision of every system; of one all of whose predictions are judged the truth
        itself, of which nothing is left to chance, whatever the probability that they were. That is
        not unbiased over samples where it happens in some of them only, as with a handful of
        claims.
        """
        if criterion != self.criterion:
            return self.under(criterion).settled(kind, criterion)
        estimate = self.precision(kind, criterion)
        if criterion in self.data.noise:
            return estimate  # ratings say more than what was drawn
        whole = {}
        for column in range(len(self.data.systems)):
            rows, p = self.data.pool.of(kind, column)
            judged = self.judged_of(column)
            if not 0 < np.count_nonzero(p) <= np.count_nonzero(judged):
                continue  # of most systems far more is predicted than judged
            if not np.isin(rows[p > 0], self.row[judged]).all():
                continue
            weight = spread(rows, p, self.row) * judged
            whole[column] = Estimate(
                value=float(weight @ np.nan_to_num(self.said_of(column))),
                variance=0.0,
                n=int(np.asarray(estimate.n)[column]),
                influence=np.zeros(estimate.influence.shape[0]),
                total_g=float(np.asarray(estimate.total_g)[column]),
            )
        return with_columns(estimate, whole)

    def judged_of(self, column: int) -> NDArray[np.bool_]:
        """(n,) rows that count for a system and have a verdict."""
        used = self.own(column)[0] if column in self.data.disclosed else self.counts
        return np.asarray(used & ~np.isnan(self.said_of(column)))

    def _half_step(self, kind: str, column: int) -> float:
        """What a system's interval is widened by where all but few of its predictions are judged.
        Verdicts of a scale are no steps.
        """
        if self.criterion in self.data.error:
            return 0.0
        rows, p = self.data.pool.of(kind, column)
        judged = self.row[self.judged_of(column)]
        if not few_left(p, spread(rows, p, judged)):
            return 0.0
        return half_step(p, np.isin(rows, judged))

    def _anticipated(
        self, kind: str, columns: Sequence[int], pi: Floats, estimate: Estimate
    ) -> Floats:
        """(k,) the variance that the model expects of some systems' precision."""
        pool, criterion = self.data.pool, self.criterion
        error = self.data.error.get(criterion)
        if error is not None:
            p = pool.columns(kind)[:, list(columns)]
            return np.asarray(anticipated_rating_variance(p, pi, error))
        g, f = self.data.g[criterion], self.verdicts
        influence = np.reshape(estimate.influence, (-1, len(columns)))
        term = self.design.document_term(influence) if self.data.inclusion.n_clusters else 0.0
        return horvitz_thompson.anticipated_of_systems(
            [pool.weighed(kind, column) for column in columns],
            pi,
            g,
            self.one_verdict(f),
            g[self.row],
            document_term=term,
            correlation=self.data.rho[criterion],
        )

    def pi_of(self, column: int) -> Floats:
        """(u,) the probabilities of a system whose team had seen judgments: 1 for those.

        Of what it had seen given up nothing is known: others stand for it, and what that may err by
        is one term of variance p² f (1 − f), as if it were known with one half.
        """
        disclosed, now = self.data.disclosed[column], self.data.own[column]
        own = combine(disclosed.given(now.chances), self.response, disclosed.certainty)
        probability = own[self.data.pool.target]
        certain = self._member[:, column] & disclosed.certainty[self._row_target]
        lost = certain & np.isnan(self.said_of(column))
        if lost.any():  # of a target all rows have one probability
            probability[np.isin(self.data.pool.target, self._row_target[lost])] = 0.5
        return probability

    @cached_property
    def _member(self) -> NDArray[np.bool_]:
        """(n, m) whether each system predicts each row."""
        is_member: NDArray[np.bool_] = self.data.pool.member[self.row].toarray() > 0
        return is_member

    def of_one(self, kind: str, column: int) -> Estimate:
        """The precision of one system under a distribution and this criterion, without a floor: all
        that is read of it are its own rows.
        """
        rows, p = self.data.pool.of(kind, column)
        weight, guess = spread(rows, p, self.row), self.data.g[self.criterion]
        # A guess that is the same of everything is not looked up a million times.
        total = float(p.sum() * guess[0] if guess.strides == (0,) else p @ guess[rows])
        f, g = self.said_of(column), self.data.g[self.criterion][self.row]
        used, pi, certainty = self.counts, self.row_pi, np.zeros(self.row.size, dtype=np.bool_)
        if column in self.data.disclosed:
            used, pi = self.own(column)
            certainty = self.data.disclosed[column].certainty[self._row_target]
        return horvitz_thompson.centred(
            weight * used,
            pi,
            f,
            g,
            total,
            target=self.targets[1],
            n_targets=self.targets[0].size,
            certainty=certainty,
        )

    def labels_of_one(self, kind: str, column: int) -> float:
        """How many labels drawn with equal chances what is known of one system is worth to its
        mean, (Σ a)² / Σ (1 − π) a²: infinite where all is known for certain, 0 where nothing is.

        Never more than what its whole support is worth with these chances: heavy claims that were
        hardly ever to be asked are missed where none happened to be.
        """
        if (kind, column) not in self._worth:
            disclosed = column in self.data.disclosed
            used, pi = self.own(column) if disclosed else (self.counts, self.row_pi)
            rows, p = self.data.pool.of(kind, column)
            weight = spread(rows, p, self.row)
            a = np.where(used & ~np.isnan(self.said_of(column)), weight / pi, 0.0)
            together = by_code(a[:, None], self.targets[1], self.targets[0].size)[:, 0]
            whole = self.pi_of(column) if disclosed else self.pi
            most = self._at_most(column, whole)[kind]
            self._worth[kind, column] = min(effective(together, self.by_target(pi)), most)
        return self._worth[kind, column]

    @cached_property
    def _worth(self) -> dict[tuple[str, int], float]:
        """What `labels_of_one` has reckoned."""
        return {}

    def _at_most(self, column: int, pi: Floats) -> dict[str, float]:
        """Distribution -> what a system's whole support is worth, with these chances (u,)."""
        kept = self._most.get(column)
        if kept is None or kept[0] is not pi:
            kept = self._most[column] = pi, dict[str, float]()
            pool, p_of = self.data.pool, kept[1]
            support, odds = None, np.zeros(0)
            for kind in pool.p:
                own, p = pool.weighed(kind, column)
                if own is not support:
                    support, odds = own, odds_of(pi[own.row])
                spread_of = float((p * odds) @ p)
                spread_of += own.shared(p, odds[own.several]) if np.isfinite(spread_of) else 0.0
                p_of[kind] = worth_of(float(p.sum()), spread_of)
        return kept[1]

    @cached_property
    def _most(self) -> dict[int, tuple[Floats, dict[str, float]]]:
        """What `_at_most` has reckoned last of each system, and of which chances."""
        return {}

    def _alone(
        self,
        estimator: Callable[..., Estimate],
        column: int,
        weight: Floats,
        f: Floats,
        g: Floats,
        total: float,
    ) -> Estimate:
        """The estimate of a system whose team had seen judgments: what it saw counts for itself
        alone, the rest with its own probabilities; its influence is that on the design of all.
        """
        used, pi = self.own(column)
        certainty = self.data.disclosed[column].certainty[self.data.pool.target[self.row]]
        estimate = estimator(
            weight * used,
            pi,
            f,
            g[self.row],
            total,
            target=self.targets[1],
            n_targets=self.targets[0].size,
            certainty=certainty,
        )
        influence = on_common_design(estimate.influence, self.by_target(pi), self.design.pi)
        return replace(estimate, influence=influence, variance=self.design.variance(influence))

    def own(self, column: int) -> tuple[NDArray[np.bool_], Floats]:
        """(n,) rows that count for a system whose team had seen judgments, and their probabilities
        for it.
        """
        target = self.data.pool.target[self.row]
        own = self.pi_of(column)[self.row]
        disclosed, now = self.data.disclosed[column], self.data.own[column]
        came_in = now.drawn | (now.counts & ~disclosed.inside)
        used = disclosed.certainty[target] | (came_in[target] & (own > 0))
        return used, np.where(used, own, 1.0)

    def by_target(self, values: Floats) -> Floats:
        """One value a target, of values that are the same on all of its rows."""
        of_target = np.ones(self.targets[0].size)
        of_target[self.targets[1]] = values
        return of_target

    def one_verdict(self, f: Floats) -> Floats:
        """One verdict a row: the mean over the systems that predict it."""
        member = self._member
        return np.asarray(np.where(member, f, 0.0).sum(axis=1) / np.maximum(member.sum(axis=1), 1))

    def recall(self, criterion: str, *, unit: str = "fact") -> totals.Recall | None:
        """The recall of every system, a fact counted once, or each instance of it, as yet without a
        floor; None without two annotated documents.
        """
        facts = self.data.facts
        if facts is None or facts.n_annotated < 2:
            return None
        if criterion != self.criterion:
            return self.under(criterion).recall(criterion, unit=unit)
        share = self.shares_of(unit)
        data, row = self.data, self.row
        base, g = self.under(data.base).verdicts[:, 0], data.g[data.base]
        own = self.verdicts if criterion != data.base else None
        own_g = data.g[criterion]
        total = share.total(own_g)
        weight = share.at(row)
        alone = {
            column: self._alone(
                horvitz_thompson.difference,
                column,
                weight[:, column],
                self.verdicts_of(column),
                own_g,
                total[column],
            )
            for column in data.disclosed
        }
        missed = (
            np.bincount(facts.document[~facts.found], minlength=facts.n_annotated)
            if unit == "fact"
            else facts.missed
        )
        chance = data.inclusion
        estimated = totals.recall(
            weight * self.counts[:, None],
            self.row_pi,
            base if own is None else own,
            own_g[row],
            total,
            float(share.pool @ g),
            missed,
            facts.n_documents,
            target=self.targets[1],
            n_targets=self.targets[0].size,
            pool_label=base,
            pool_g=g[row],
            pool_weight=self.pool_weight(unit),
            document=chance.cluster[data.pool.target[row]] if chance.n_clusters else None,
            inclusion=data.documents.inclusion,
            own=alone,
            answered=self.given_document[data.pool.target[row]],
        )
        # What predicts nothing in the scope finds nothing, without a guess and without a judgment.
        has_recall = (np.asarray(estimated.totals.systems.n) > 0) | (total == 0)
        known = where_known(estimated.recall, has_recall)
        return replace(estimated, recall=at_most_all(known, share.uncounted))

    def pool_weight(self, unit: str) -> Floats:
        """(n,) the share of a fact of the pool that each row stands for, with π of this
        criterion.
        """
        return (
            np.minimum(self.shares_of(unit).pool[self.row] * self._of_relation, 1.0) * self.counts
        )

    @cached_property
    def _of_relation(self) -> Floats:
        """(n,) π of each row under this criterion over that under the base one, whose labels the
        pool's total takes.
        """
        return np.asarray(self.row_pi / self.under(self.data.base).row_pi)

    def found_share(self, found: totals.Recall) -> Estimate | None:
        """The share of true predictions in annotated documents that annotation had found, on the
        design of `found`.

        Where a follow-up covers the documents, of all that systems predict in them; else of what
        was drawn. What was marked is taken for true, what was not was asked. None where what is not
        marked is false: there nobody misses anything.
        """
        facts, data = self.data.facts, self.data
        if facts is None or data.fold.closed:
            return None
        if data.followed_up is not None:
            return self._of_all_followed_up(found, facts, data.followed_up)
        base = np.where(self.counts, self.under(data.base).verdicts[:, 0], np.nan)
        return misses.found_share(
            base,
            facts.marked[self.row],
            self.shares_of("fact").pool[self.row],
            self.under(data.base).row_pi,
            facts.inside[self.row],
            found.design,
            target=self.targets[1],
        )

    def _of_all_followed_up(
        self, estimated: totals.Recall, facts: Facts, followed_up: FollowedUp
    ) -> Estimate:
        """The same of all predictions in followed up documents: those that were answered stand for
        those given up.
        """
        row, target = followed_up.row, self.data.pool.target[followed_up.row]
        assert self.data.in_documents is not None
        asked, answered_rows = ~self.data.in_documents.marked[target], ~np.isnan(followed_up.true)
        answered = float(answered_rows[asked].mean()) if answered_rows[asked].any() else 1.0
        weight = self.shares_of("fact").pool[row] / np.where(asked, answered, 1.0)
        return misses.found_share(
            followed_up.true,
            facts.marked[row],
            weight,
            np.ones(row.size),
            facts.inside[row],
            estimated.design,
            target=target,
        )

    def shares_of(self, unit: str) -> Shares:
        """What each instance stands for where a `fact` counts once, or each `mention` of it."""
        assert self.data.facts is not None
        return Shares.of_facts(self.data.pool, self.data.facts, once=unit == "fact")


def effective(a: Floats, pi: Floats) -> float:
    """How many labels drawn with equal chances a weighted mean of labels is worth, from the weight
    and the probability of each target: (Σ a)² / Σ (1 − π) a².
    """
    total, spread = float(a.sum()), float((1 - pi) @ a**2)
    return total**2 / spread if spread > 0 else float("inf" if total > 0 else 0)


def worth_of_all(p: Floats, pi: Floats, target: Ids) -> float:
    """How many labels drawn with equal chances a sample is worth to a mean of all that has weight:
    (Σ p)² / Σ_τ p_τ² (1/π − 1), whatever was drawn; 0 where something cannot be.
    """
    odds = np.where(p > 0, odds_of(pi), 0.0)
    if not np.isfinite(odds).all():
        return 0.0
    sums = by_code(p * np.sqrt(odds), target, int(target.max(initial=-1)) + 1)
    return worth_of(float(p.sum()), float(sums @ sums))


def odds_of(pi: Floats) -> Floats:
    """1/π − 1; infinite where π is 0."""
    odds: Floats = np.divide(1 - pi, pi, out=np.full(pi.size, np.inf), where=pi > 0)
    return odds


def worth_of(total: float, spread_of: float) -> float:
    """How many labels drawn with equal chances a mean is worth, from the sum of its weights and the
    spread that is left to it; 0 where that is infinite.
    """
    if not total or np.isinf(spread_of):
        return 0.0
    return total**2 / spread_of if spread_of > 0 else float("inf")


def at_most_all(recall: Estimate, uncounted: Bools) -> Estimate:
    """The recall, at most 1 where a system's own facts are not among those that are counted: as
    long as few of them are judged, the model may take more for true than there are.
    """
    value = np.asarray(recall.value)
    return replace(recall, value=np.where(uncounted, np.minimum(value, 1.0), value))


def where_known(estimate: Estimate, known: NDArray[np.bool_]) -> Estimate:
    """The estimate, its value NaN where nothing that a system predicts has been judged: the model's
    guess is no score.

    Its variance stays: it says how much is to be asked.
    """
    return replace(estimate, value=np.where(known, estimate.value, np.nan))
