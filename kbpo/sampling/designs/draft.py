"""What the plan of a draft may know: its own file, the track, and what its team was shown.

A plan costs nothing and is made before anything is reserved. Were it a function of what others had
judged, drafts could be made up that read it. So a draft is planned as if nobody had judged anything
but what its team can look up: a number of questions that others' judgments can only make smaller.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from estimators.poisson import water_fill
from kbpo.corpus.fetch import fetch
from kbpo.inclusion.disclosure import earlier, earlier_of_its_people
from kbpo.pool.probabilities import support
from kbpo.submissions.models import Submission
from kbpo.tracks.registry import kind_of
from scoring.arrays import Floats, Ids

NOBODY_KNOWS = 0.25
"""The expected squared error of a guess that says nothing"""
SHOWN = """
    SELECT DISTINCT p.instance_id FROM submissions_prediction p
    JOIN submissions_submission s ON s.id = p.submission_id
    JOIN instances_instance i ON i.id = p.instance_id
    WHERE p.submission_id = ANY(%s) AND EXISTS (
        SELECT 1 FROM instances_label l WHERE l.target_id = i.target_id
        AND l.value <> '{}'::jsonb AND (
            l.public_at <= statement_timestamp()
            OR (s.scored_at IS NOT NULL AND s.id = ANY(%s))))
"""
"""What earlier runs predict and has a judgment that the team can look up: of its own runs that are
answered, and what everybody may see"""


@dataclass(frozen=True)
class Draft:
    """A draft's statements under one distribution: n instances on t targets."""

    p: Floats
    """(n,)"""
    row: Ids
    """(n,) the code of each instance's target"""
    target_id: Ids
    """(t,)"""
    shown: NDArray[np.bool_]
    """(t,) the team can look up the judgment of all that the draft predicts of it"""

    @classmethod
    def of(cls, submission: Submission, kind: str) -> Draft:
        """Return the draft as its plan may see it."""
        instance, target, p = support(submission, kind)
        target_id, row = np.unique(target, return_inverse=True)
        shown = np.ones(target_id.size, dtype=np.bool_)
        shown[row[~np.isin(instance, _shown(submission))]] = False
        mine = submission.pk
        ask = kind_of(submission.track).unanswered({mine: target_id[shown].tolist()})[mine]
        shown &= ~np.isin(target_id, list(ask))
        return cls(p, row.astype(np.int64), target_id, shown)

    def thresholds(self, goal: float) -> Floats:
        """Return the thresholds (t,) that plan for a variance, without a model; 1 for what was
        shown.
        """
        sure = self.shown.astype(np.float64)
        pi = np.zeros(self.target_id.size)
        pi[self.row] = water_fill(
            self.p, sure[self.row], NOBODY_KNOWS, target_variance=goal, target=self.row
        )
        return pi

    def questions(self, pi: Floats, *, spread: float = 0.0) -> int:
        """Return how many questions thresholds are expected to ask, and so many standard
        deviations more.
        """
        unknown = pi[~self.shown]
        more = spread * float(np.sqrt(unknown @ (1 - unknown)))
        return min(unknown.size, int(np.ceil(unknown.sum() + more - 1e-9)))


def _shown(submission: Submission) -> Ids:
    """Instances whose judgments the team can look up now."""
    shown_instances = fetch(SHOWN, [earlier(submission), earlier_of_its_people(submission)])
    return np.array([row[0] for row in shown_instances], dtype=np.int64)
