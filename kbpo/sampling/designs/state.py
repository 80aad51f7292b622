"""The starting point of a plan: a submission's targets with their weights, their current
probabilities, and the model's expected error.
"""

from __future__ import annotations

from collections.abc import Collection

import numpy as np
from django.db.models import Q

from estimators.model import expected_error
from estimators.poisson import (
    next_planned_variance,
    planned_variance,
    water_fill,
    water_fill_multiplier,
)
from kbpo.corpus.sql import fetch_rows
from kbpo.inclusion.read import Thresholds, read_inclusion
from kbpo.pool.pool import read_pool
from kbpo.sampling.designs.base import Realised
from kbpo.sampling.draft import LEAST_LEFT
from kbpo.sampling.guess import Lesson, guess_under_criterion, mean_verdict_over_systems
from kbpo.sampling.models import Sample
from kbpo.submissions.models import Submission
from kbpo.tracks.models import Track
from kbpo.tracks.registry import kind_of
from scoring.arrays import Floats, Ids
from scoring.data import LIKE
from scoring.inputs import variance_once_all_judged
from scoring.pool import Pool

BOLD = 1e9
"""How much an order of more judgments plans at once; larger, since the model was tested in earlier
stages.
"""


class State:
    """The data from which a stage of sampling is planned: the submission's targets with p,
    thresholds, random numbers, and the model's expected error.
    """

    def __init__(self, submission: Submission) -> None:
        self.track = submission.track
        sampled = Submission.objects.filter(track=self.track, sampled_at__isnull=False).exclude(
            pk=submission.pk
        )
        # In the order that scoring reads them in, so that both find the same arrays.
        systems = sorted([*sampled.values_list("pk", flat=True), submission.pk])
        me = systems.index(submission.pk)
        pool = read_pool(self.track, systems)
        mine = np.flatnonzero(np.asarray(pool.member[:, [me]].toarray()).ravel())
        kind, criterion = kind_of(self.track), self.track.criterion
        judgeable = _judgeable_rows(self.track, pool)
        verdicts = kind.judge(pool.instance[judgeable], pool.systems)[criterion]
        label = np.full(pool.instance.size, np.nan)
        label[judgeable] = mean_verdict_over_systems(type(kind), verdicts, pool.member[judgeable])
        lesson = Lesson(pool, self.track.corpus.hash_key)
        self.guess = guess_under_criterion(type(kind), criterion, lesson, label)
        own, self.row = np.unique(pool.target[mine], return_inverse=True)
        self.target_id: Ids = pool.target_id[own]
        self.u: Floats = pool.u[own]
        self.chance: Floats = read_inclusion(self.track, pool).asked[own]
        """(t,) current inclusion probability"""
        nothing_waits = np.zeros(pool.target_id.size, dtype=np.bool_)
        self.settled: Floats = Thresholds(self.track, pool, nothing_waits).settled[own]
        self.p: Floats = pool.p[self.track.distribution][:, [me]].toarray().ravel()[mine]
        g = self.guess.g[mine]
        self.total = float(self.p @ g)
        self.v: Floats = np.full(mine.size, 0.25)
        if self.guess.error is not None:
            self.v = self.guess.error[mine]
        elif self.guess.labels:
            self.v = expected_error(self.p, g, self.row, correlation=self.guess.rho)
        has_inputs = kind.measures.population == LIKE
        # What is left once everything is judged, due to the choice of inputs and to disagreement
        # between people: no threshold reduces it.
        self.noise = variance_once_all_judged(self.p, g, self.v) if has_inputs else 0.0
        self.submission = submission
        self._is_new: dict[int, bool] = {}

    def variance_to_control(self, goal: float) -> float:
        """Return the part of a planned variance that depends on thresholds."""
        return max(goal - self.noise, LEAST_LEFT * goal)

    def reachable_variance(self, goal: float) -> float:
        """Return the planned variance if thresholds are raised for a goal: at least the variance
        that remains when all targets are judged.
        """
        return self.noise + self.variance_to_control(goal) if self.noise else goal

    def thresholds_for(self, goal: float) -> Floats:
        """Return the thresholds (t,) that plan for a variance."""
        pi = water_fill(
            self.p,
            self.chance[self.row],
            self.v,
            target_variance=self.variance_to_control(goal),
            target=self.row,
        )
        by_target = self.chance.copy()
        by_target[self.row] = pi
        return by_target

    @property
    def target_sizes(self) -> Floats:
        """Return the size s of each target, its weight in the variance: s² = Σ p² v with the
        expected squared error v.
        """
        return np.asarray(np.sqrt(np.bincount(self.row, weights=self.p**2 * self.v)))

    def threshold_multiplier(self, goal: float) -> float:
        """Return the multiplier λ of the thresholds that reach the variance `goal`: a target's
        probability is raised to min(1, λ s), s² = Σ p² v. 0 if none is raised.
        """
        left = self.variance_to_control(goal)
        return water_fill_multiplier(
            self.p, self.chance[self.row], self.v, target_variance=left, target=self.row
        )

    @property
    def planned_variance(self) -> float:
        """Return the variance of the estimate that the current thresholds are expected to give."""
        return self.noise + planned_variance(self.p, self.chance[self.row], self.v, target=self.row)

    def variance_to_plan(
        self, target: float, realised: Realised | None, *, most: float = BOLD
    ) -> float:
        """Return the variance to plan for, so that the model's expected variance reaches the
        target, given its expectation after the judgments so far.
        """
        planned = self.planned_variance
        if realised is None or not 0 < planned < np.inf:
            return target
        return next_planned_variance(
            planned, realised.anticipated, target_variance=target, most=most
        )

    def targets_below(self, pi: Floats) -> Ids:
        """Return the targets whose random numbers lie below their thresholds."""
        return np.asarray(self.target_id[self.u < pi])

    def unpaid_targets(self, targets: Ids) -> set[int]:
        """Return those of these targets that have no answer and that no submission pays for.

        What was found for a target is kept: the search for affordable thresholds asks repeatedly.
        """
        wanted = targets.tolist()
        if missing := [target for target in wanted if target not in self._is_new]:
            unanswered = targets_to_pay(self.submission, missing)
            self._is_new.update({target: target in unanswered for target in missing})
        return {target for target in wanted if self._is_new[target]}


def targets_to_pay(submission: Submission, targets: Collection[int]) -> set[int]:
    """Return the targets without an answer that no submission is paying for already."""
    mine = submission.pk
    open_ones = kind_of(submission.track).find_unanswered({mine: list(targets)})[mine]
    ordered = Sample.objects.filter(target__in=open_ones).filter(
        Q(batch__submission__status__in=["confirmed", "judging"]) | Q(batch__submission=submission)
    )
    return open_ones - set(ordered.values_list("target_id", flat=True))


def _judgeable_rows(track: Track, pool: Pool) -> Ids:
    """Return the rows of a pool that a label can affect: a label of their target, of their
    document, or of another target in the document.
    """
    own_kind = kind_of(track).target_kind
    labelled = fetch_rows(
        "SELECT DISTINCT t.id, CASE WHEN t.kind <> %s THEN t.document_id END"
        " FROM instances_label l JOIN instances_target t ON t.id = l.target_id"
        " WHERE t.corpus_id = %s",
        [own_kind, track.corpus_id],
    )
    targets = np.isin(pool.target_id, [target for target, _ in labelled])
    documents = {document for _, document in labelled if document is not None}
    return np.flatnonzero(targets[pool.target] | np.isin(pool.document, sorted(documents)))
