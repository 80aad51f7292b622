"""The plan of a draft: made of what everybody is told, as if no target had been judged.

A plan costs nothing and is made before anything is reserved. Were it a function of what others had
judged, drafts could be made up that read it. Others' judgments can only make the number of
questions smaller.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from estimators.poisson import water_fill
from kbpo.pool.probabilities import support
from kbpo.sampling.study import Study, study_of_track
from kbpo.submissions.models import Submission
from kbpo.tracks.registry import kind_of
from scoring.arrays import Floats, Ids
from scoring.data import LIKE

NOBODY_KNOWS = 0.25
"""The expected squared error of a guess that says nothing"""


LEAST_LEFT = 0.01
"""Share of a planned variance that thresholds are never asked to go below, however much of it is
left once all is judged: then all is asked
"""


@dataclass(frozen=True)
class Draft:
    """A draft's statements under one distribution: n instances on t targets."""

    p: Floats
    """(n,)"""
    row: Ids
    """(n,) the code of each instance's target"""
    n_targets: int
    error: float = NOBODY_KNOWS
    """The squared error that is expected of the model"""
    left: float = 0.0
    """The variance that is left once all is judged: of other inputs, and of what people say"""

    @classmethod
    def of(cls, submission: Submission, kind: str) -> Draft:
        """Return the statements of a draft."""
        _, target, p = support(submission, kind)
        target_id, row = np.unique(target, return_inverse=True)
        draft, track = cls(p, row.astype(np.int64), target_id.size), submission.track
        if kind_of(track).measures.population != LIKE:
            return draft
        study, people = study_of_track(track), track.workers_per_question
        if study is None:
            return replace(draft, left=NOBODY_KNOWS * float(p @ p))
        return draft.by(study, people=people)

    @classmethod
    def even(cls, n: int) -> Draft:
        """Return a draft of one output for each of n inputs, which all count the same."""
        return cls(np.full(n, 1 / n), np.arange(n), n)

    def by(self, study: Study, *, people: int = 1, aided: bool = True) -> Draft:
        """Return the draft with the error and the remaining variance that a study predicts for
        inputs like these.
        """
        return replace(
            self,
            error=study.error(people=people, rho=None if aided else 0.0),
            left=study.spread(people=people) * float(self.p @ self.p),
        )

    def thresholds(self, goal: float) -> Floats:
        """Return the inclusion probabilities (t,) of the targets that give the planned variance
        `goal`.
        """
        pi, left = np.zeros(self.n_targets), max(goal - self.left, LEAST_LEFT * goal)
        pi[self.row] = water_fill(
            self.p, np.zeros(self.p.size), self.error, target_variance=left, target=self.row
        )
        return pi

    def variance(self, n: int) -> float:
        """Return the variance once n of the targets are judged, drawn with equal chances."""
        return self.left + self.error * float(self.p @ self.p) * (self.n_targets / n - 1)

    def questions(self, pi: Floats, *, spread: float = 0.0) -> int:
        """Return how many questions thresholds are expected to ask, and so many standard
        deviations more.
        """
        more = spread * float(np.sqrt(pi @ (1 - pi)))
        return min(pi.size, int(np.ceil(pi.sum() + more - 1e-9)))
