"""Corrects the crowd's judgments by an expert's answers about a random part of them.

The crowd's verdicts c are kept. The expert's verdicts f* are drawn with recorded probability e, and
the sum of (f* − c) over the checked ones, weighted by 1/e, estimates the effect of the crowd's
errors (`estimators.noise`). Where nobody was asked because readers of the document had marked it,
their mark is what the crowd says. What an expert says is no label: it would take the place of the
crowd's, and nobody could measure the errors any more.

A round r could check the targets that were judged then, u < π_r, and chose those with v < e_r. Of a
target that counts now, u < π, the chance of having been checked is therefore the area of the union
of the rectangles (π_r, e_r), divided by π: a judgment that came later is corrected by those that
could be checked.

Where single ratings count, c is their mean, and what people differ by is in (f* − c) already: it is
drawn with the checks, so that no term of its own is added. What another expert would say is in no
interval: the one who was asked is taken for right.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, TypeAlias

import numpy as np

from estimators.design import rescale_to_design
from estimators.estimate import Estimate
from estimators.horvitz_thompson import hajek_estimate
from estimators.noise import correct_by_expert_checks
from estimators.sums import sum_by_code
from scoring.arrays import Bools, Floats, Ids
from scoring.data import Data
from scoring.default import Centred
from scoring.report import Confusion, Share

SAME = 1e-9
"""Ratings that differ by less count as equal"""
LEAST = 10
"""Number of checked judgments of a system below which its number is not corrected, since the
correction would be mostly chance"""


Terms: TypeAlias = tuple[Floats, Floats, Floats, Floats]
"""Weight, π and e of each row (n,) for one number, and the scale of its influence (t,)"""


@dataclass(frozen=True, eq=False)
class Checks:
    """Experts' answers about the judged targets of a pool: t targets, r rounds."""

    target: Ids
    """(t,) codes of the targets of all judged rows, ascending"""
    rounds: Ids
    """(r,) numbers of the rounds in use"""
    pi: Floats
    """(r, t) inclusion probability of each target when the round was drawn; 0 if the round could
    not draw it"""
    e: Floats
    """(r, t) probability that the round chose the target and its answer is known"""
    checked: Bools
    """(t,) whether an answer is used"""
    by_crowd: Bools
    """(t,) whether the label comes from the crowd, imported ratings, or readers of the document"""
    imported: Bools
    """(t,) whether all ratings were imported"""
    f: dict[str, Floats]
    """criterion -> (k, m) f* for the rows of `Data.judged`, NaN if not checked or not answered"""
    since: Bools
    """(m,) whether a stage of each system's sample was judged before the last round was drawn, so
    that all of its predictions could be drawn"""


def probability_of_check(pi: Floats, e: Floats, inclusion: Floats) -> Floats:
    """Return (t,) the probability that at least one round drew a check of each target, given that
    the target is in the sample: P(u < π_r and v < e_r for some round r | u < π).
    """
    order = np.argsort(pi, axis=0)
    widths = np.take_along_axis(np.minimum(pi, inclusion), order, axis=0)
    heights = np.take_along_axis(e, order, axis=0)
    # of the rounds with at least this π
    tallest = np.maximum.accumulate(heights[::-1], axis=0)[::-1]
    area = (np.diff(widths, axis=0, prepend=0.0) * tallest).sum(axis=0)
    chance: Floats = np.divide(area, inclusion, out=np.zeros(area.shape), where=inclusion > 0)
    return chance


@dataclass(frozen=True)
class Repaired:
    """An estimate of every system (m) that was corrected by expert checks of t targets."""

    estimate: Estimate
    """The estimate; NaN if it cannot be corrected. Influences have a row for each target, then one
    for each check, all on one design."""
    checked: Ids
    """(m,) number of targets that an expert has checked"""
    reach: Floats
    """(t, m) increase of the standard error if a check contradicted the crowd"""


@dataclass(frozen=True)
class Corrected:
    """A track's data with experts' answers, for correcting estimates. Rows are those of
    `arranged`.
    """

    arranged: Centred
    checks: Checks

    @classmethod
    def from_data(cls, data: Data, checks: Checks | None) -> Corrected | None:
        """Return the data for correcting estimates by experts' answers; None if no answer
        is used.
        """
        if checks is None or not data.judged.size:
            return None
        corrected_numbers = cls(Centred(data), checks)
        return corrected_numbers if corrected_numbers.is_checked.any() else None

    @property
    def data(self) -> Data:
        return self.arranged.data

    @cached_property
    def _check_positions(self) -> Ids:
        """Return (t,) the position of each target among those of the checks."""
        return np.searchsorted(self.checks.target, self.arranged.counted_targets[0])

    @cached_property
    def is_checked(self) -> Bools:
        """Return (t,) whether an expert's answer is used."""
        return self.checks.checked[self._check_positions]

    @cached_property
    def chance(self) -> Floats:
        """Return (t,) the probability of `checked` for a target whose label is public; 0
        otherwise.
        """
        asked = self.data.inclusion.asked[self.arranged.counted_targets[0]]
        return probability_of_check(
            self.checks.pi[:, self._check_positions], self.checks.e[:, self._check_positions], asked
        )

    @cached_property
    def could_be_drawn(self) -> Bools:
        """Return (t,) whether a used round of expert checks could have drawn the target."""
        return np.asarray(self.checks.e[:, self._check_positions].max(axis=0) > 0)

    @cached_property
    def is_labelled_by_crowd(self) -> Bools:
        """Return (t,) whether the label comes from the crowd, or from readers of the whole
        document.
        """
        return self.checks.by_crowd[self._check_positions]

    @cached_property
    def rows(self) -> Bools:
        """Return (n,) whether an expert has checked the row's target."""
        return np.asarray(self.is_checked[self.arranged.counted_targets[1]])

    @cached_property
    def expert_verdicts(self) -> dict[str, Floats]:
        """Return criterion -> (n, m) the expert's verdict f* on each row; NaN if not checked or not
        answered.
        """
        return {
            criterion: f[self.arranged.judged_positions] for criterion, f in self.checks.f.items()
        }

    def crowd_verdicts(self, criterion: str) -> Floats:
        """Return (n, m) the crowd's verdict on each row; NaN if it is missing, or if readers marked
        the row and the mark is not used.
        """
        return self.arranged.for_criterion(criterion).verdicts

    @cached_property
    def member(self) -> Bools:
        """Return (n, m) whether the system predicts the row."""
        return np.asarray(self.data.pool.member[self.arranged.row].toarray() > 0)

    def answered_share(self, criterion: str) -> float:
        """Return the share of the checked verdicts for which the expert gave an answer instead of a
        flag.
        """
        asked = self.member & self.rows[:, None] & ~np.isnan(self.crowd_verdicts(criterion))
        is_answered = ~np.isnan(self.expert_verdicts[criterion])[asked]
        return float(is_answered.mean()) if is_answered.any() else 1.0

    def error(self, criterion: str) -> float:
        """Return the rate at which the expert contradicts the crowd, with half a contradiction
        added; for ratings, the mean squared difference.
        """
        both = ((self.expert_verdicts[criterion] - self.crowd_verdicts(criterion)) ** 2)[
            self.member
        ]
        both, n = both[~np.isnan(both)], int(self.is_checked.sum())
        return float(((both.mean() if both.size else 0.0) * n + 0.5) / (n + 1))

    def count_checked_targets(self, column: int) -> int:
        """Return the number of targets of a system's predictions that an expert has checked."""
        return int(
            np.unique(self.arranged.counted_targets[1][self.member[:, column] & self.rows]).size
        )

    def check_probability(self, criterion: str) -> Floats:
        """Return (t,) the probability of a usable expert check, in the common design of all
        influences; arbitrary for targets that no round could draw.
        """
        e = np.where(self.is_checked & (self.chance > 0), self.chance, 0.5)
        return np.asarray(e * self.answered_share(criterion))

    def has_undrawable_predictions(self, column: int, criterion: str) -> bool:
        """Return whether a system has judged predictions that no round of checks could draw."""
        weight = np.ones(self.rows.size) * self.member[:, column]
        return self._weighted_terms(column, weight, criterion) is None

    def correct_estimate(
        self, criterion: str, crowd_estimate: Estimate, weight: Floats
    ) -> Repaired:
        """Return an estimate of every system that is corrected by the experts' answers where
        possible. `crowd_estimate` is the estimate from the crowd's verdicts; its terms are `weight`
        (n, m) times verdict over inclusion probability.
        """
        m, n = len(self.data.systems), self.arranged.counted_targets[0].size
        value, variance, influence = np.full(m, np.nan), np.full(m, np.nan), np.zeros((2 * n, m))
        checked, reach = np.zeros(m, dtype=np.int64), np.zeros((n, m))
        agreed = np.full(m, np.nan)
        crowd, expert = self.crowd_verdicts(criterion), self.expert_verdicts[criterion]
        for column in range(m):
            terms = self._weighted_terms(column, weight[:, column], criterion)
            if terms is None:
                continue
            checkable = (terms[0] > 0) & ~np.isnan(crowd[:, column] + expert[:, column])
            checked[column] = np.unique(self.arranged.counted_targets[1][checkable]).size
            if checked[column] < LEAST:
                continue
            repaired, reach[:, column] = self._add_correction(
                _estimate_of_column(crowd_estimate, column),
                terms,
                crowd[:, column],
                expert[:, column],
                criterion,
                criterion,
            )
            value[column], variance[column], influence[:, column] = (
                repaired.value,
                repaired.variance,
                repaired.influence,
            )
            agreed[column] = repaired.agreed
        repaired_all = replace(
            crowd_estimate, value=value, variance=variance, influence=influence, agreed=agreed
        )
        return Repaired(repaired_all, checked, reach)

    def correct_pool_total(
        self, criterion: str, crowd_estimate: Estimate, weight: Floats
    ) -> tuple[Estimate, Floats]:
        """Return the number of true relations of the pool, corrected by the experts' answers.

        Also return, as (t,), by how much the standard error of that number would grow with each
        target if an expert contradicted the crowd on it.
        """
        e, base = self.chance[self.arranged.counted_targets[1]], self.arranged.data.base
        used = e > 0
        pi, scale = (
            self.arranged.for_criterion(criterion).row_pi,
            np.ones(self.arranged.counted_targets[0].size),
        )
        terms = weight * used, pi, np.where(used, e, 1.0), scale
        crowd, expert = (
            self.arranged.for_criterion(base).verdicts[:, 0],
            self.expert_verdicts[base][:, 0],
        )
        return self._add_correction(crowd_estimate, terms, crowd, expert, base, criterion)

    def _add_correction(
        self,
        crowd_estimate: Estimate,
        terms: Terms,
        crowd: Floats,
        expert: Floats,
        criterion: str,
        design: str,
    ) -> tuple[Estimate, Floats]:
        """Return an estimate corrected by the experts' answers, on the design of a criterion. Also
        return (t,) how much a check of each target that contradicts the crowd would add to its
        standard error.
        """
        p, pi, e, scale = terms
        code, n = self.arranged.counted_targets[1], self.arranged.counted_targets[0].size
        e = np.where(self.rows, e * self.answered_share(criterion), 1.0)
        repaired = correct_by_expert_checks(
            crowd_estimate,
            self.arranged.for_criterion(design).design,
            p,
            pi,
            crowd,
            expert,
            e,
            target=code,
            scale=scale,
        )
        checks = rescale_to_design(
            repaired.influence[n:],
            self.arranged.values_by_target(e),
            self.check_probability(design),
        )
        checked_rows = (p > 0) & ~np.isnan(crowd + expert)
        reach = sum_by_code(
            np.where(checked_rows, p / pi * np.sqrt(1 - e) / e, 0.0)[:, None], code, n
        )[:, 0]
        return replace(repaired, influence=np.concatenate([repaired.influence[:n], checks])), reach

    def covers_pool(self) -> bool:
        """Return whether every used round of expert checks could draw all predictions of all
        systems in the scope of recall.

        Predictions of a system whose sample was judged after the last round could not be drawn.
        Predictions of withdrawn systems only could be drawn if these participated at that time, or
        if recall had a weight.
        """
        facts, pool = self.data.facts, self.data.pool
        if facts is None:
            return False
        inside = facts.counted
        judged = (
            np.asarray(pool.member[:, np.flatnonzero(self.checks.since)].sum(axis=1)).ravel() > 0
        )
        if (inside & ~judged).any():
            return False
        standing = (
            np.asarray(
                pool.member[:, np.flatnonzero(self.checks.since & self.data.shown)].sum(axis=1)
            ).ravel()
            > 0
        )
        row, code = self.arranged.row, self.arranged.counted_targets[1]
        left = inside[row] & ~standing[row] & ~self.could_be_drawn[code]
        return not np.any(left & self.is_labelled_by_crowd[code])

    def _weighted_terms(self, column: int, weight: Floats, criterion: str) -> Terms | None:
        """Return the weight p, inclusion probability π and check probability e of each row for a
        system, and the scale of its influence; None if the checks do not cover the system.
        """
        arranged, target = self.arranged.for_criterion(criterion), self.arranged.counted_targets[1]
        if not self.data.shown[column]:
            return None
        judged = (weight > 0) & ~self.could_be_drawn[target]
        if criterion in self.data.noise:  # who rated a text need not have rated this of it
            judged &= ~np.isnan(self.crowd_verdicts(criterion)[:, column])
        e = self.chance[target]
        used = e > 0
        # The checks measure errors of people here. Errors of imported raters, and their
        # disagreement, are not included until a round could draw their ratings.
        late = self.checks.imported[self._check_positions][target]
        if not self.checks.since[column] or np.any(late & judged):
            return None
        return (
            weight * used,
            arranged.row_pi,
            np.where(used, e, 1.0),
            np.ones(arranged.counted_targets[0].size),
        )

    def confusion(self, criterion: str) -> Confusion:
        """Return the counts of checked judgments by the crowd's and the expert's answer, and the
        estimated counts for all judgments. For single ratings return the mean difference between
        experts' and the crowd's ratings.

        A relation counts once, as the first system predicts it.
        """
        first_system = self.member.argmax(axis=1)
        row = np.arange(first_system.size)
        crowd, expert = (
            self.crowd_verdicts(criterion)[row, first_system],
            self.expert_verdicts[criterion][row, first_system],
        )
        e = self.chance[self.arranged.counted_targets[1]] * self.answered_share(criterion)
        kept = self.rows & (e > 0) & ~np.isnan(crowd + expert)
        crowd, expert, e = crowd[kept], expert[kept], e[kept]
        code = np.unique(self.arranged.counted_targets[1][kept], return_inverse=True)[1]
        n = int(np.unique(code).size)
        if criterion in self.data.noise:
            same = np.abs(crowd - expert) < SAME
            above = _mean_difference(expert - crowd, e, code)
            return Confusion(n, _estimate_share(same, e, code), above)
        crowd, expert = crowd > 0.5, expert > 0.5
        counts = [
            [int(((crowd == c) & (expert == f)).sum()) for f in (True, False)]
            for c in (True, False)
        ]
        return Confusion(
            checked=n,
            agree=_estimate_share(crowd == expert, e, code),
            counts=counts,
            right_of_right=_estimate_share(expert[crowd], e[crowd], code[crowd]),
            wrong_of_wrong=_estimate_share(~expert[~crowd], e[~crowd], code[~crowd]),
        )


def _estimate_of_column(estimate: Estimate, column: int) -> Estimate:
    def value_of_column(values: Any) -> float:
        return float(np.broadcast_to(values, np.shape(estimate.value))[column])

    return Estimate(
        value=value_of_column(estimate.value),
        variance=value_of_column(estimate.variance),
        n=int(value_of_column(estimate.n)),
        influence=estimate.influence[:, column],
        anticipated=value_of_column(estimate.anticipated),
        total_g=value_of_column(estimate.total_g),
        half_step=value_of_column(estimate.half_step),
        agreed=value_of_column(estimate.agreed),
    )


def _estimate_share(holds: Bools, e: Floats, code: Ids) -> Share:
    """Estimate a share of all judgments from the checked ones, with its 80 % interval."""
    if not holds.size:
        return Share()
    target = np.unique(code, return_inverse=True)[1]
    estimate = hajek_estimate(
        np.full(e.size, 1 / (1 / e).sum()), e, holds.astype(np.float64), target=target
    )
    low, high = estimate.confidence_interval(0.8, method="wilson")
    return Share(float(estimate.value), float(low), float(high))


def _mean_difference(distances: Floats, e: Floats, code: Ids) -> Share:
    """Estimate the mean over all judgments of a difference in [−1, 1] that is known for the checked
    ones. Its 80 % interval includes one more judgment that was half wrong.
    """
    if not distances.size:
        return Share()
    weight = 1 / e / (1 / e).sum()
    estimate = hajek_estimate(
        np.full(e.size, 1 / (1 / e).sum()), e, (distances + 1) / 2, target=code
    )
    n = int(code.max()) + 1
    spread = (float(sum_by_code(distances**2, code, n).sum()) + 0.5) / (n + 1)
    floor = float(((1 - e) * weight * sum_by_code(weight, code, n)[code]).sum()) * spread / 4
    safe = replace(estimate, variance=max(float(estimate.variance), floor))
    low, high = (2 * float(end) - 1 for end in safe.confidence_interval(0.8))
    return Share(2 * float(estimate.value) - 1, max(-1.0, low), min(1.0, high))
