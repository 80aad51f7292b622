"""The plan of a draft: made as if nothing had been judged.

A plan costs nothing and is made before anything is reserved. Were it a function of what others had
judged, drafts could be made up that read it. Others' judgments can only make the number of
questions smaller.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from estimators.poisson import water_fill
from kbpo.pool.probabilities import support
from kbpo.submissions.models import Submission
from scoring.arrays import Floats, Ids

NOBODY_KNOWS = 0.25
"""The expected squared error of a guess that says nothing"""


@dataclass(frozen=True)
class Draft:
    """A draft's statements under one distribution: n instances on t targets."""

    p: Floats
    """(n,)"""
    row: Ids
    """(n,) the code of each instance's target"""
    n_targets: int

    @classmethod
    def of(cls, submission: Submission, kind: str) -> Draft:
        """Return the statements of a draft."""
        _, target, p = support(submission, kind)
        target_id, row = np.unique(target, return_inverse=True)
        return cls(p, row.astype(np.int64), target_id.size)

    def thresholds(self, goal: float) -> Floats:
        """Return the thresholds (t,) that plan for a variance without a model."""
        pi = np.zeros(self.n_targets)
        pi[self.row] = water_fill(
            self.p, np.zeros(self.p.size), NOBODY_KNOWS, target_variance=goal, target=self.row
        )
        return pi

    def questions(self, pi: Floats, *, spread: float = 0.0) -> int:
        """Return how many questions thresholds are expected to ask, and so many standard
        deviations more.
        """
        more = spread * float(np.sqrt(pi @ (1 - pi)))
        return min(pi.size, int(np.ceil(pi.sum() + more - 1e-9)))
