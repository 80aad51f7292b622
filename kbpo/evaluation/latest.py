"""What the latest evaluation says of one submission, as far as anybody may be told: read once, for
all that a page or the API tells of it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from kbpo.corpus.remembered import each
from kbpo.evaluation.leaderboard import Figure
from kbpo.evaluation.models import Estimate, Evaluation, InterimInterval
from kbpo.submissions.models import Submission
from kbpo.tracks.registry import kind_of
from scoring.score import DEFAULT

PRINTED = 3
"""Digits of a share as pages print it"""


@dataclass(frozen=True)
class Latest:
    """The latest evaluation of a submission's track, and its numbers for the submission."""

    submission: Submission
    evaluation: Evaluation | None
    """None before the first"""
    estimates: tuple[Estimate, ...]
    """Those of slices, too"""

    @classmethod
    def of(cls, submission: Submission) -> Latest:
        """Return what is stored now."""
        evaluation = submission.track.evaluations.order_by("-number").first()
        if evaluation is None:
            return cls(submission, None, ())
        return cls(
            submission, evaluation, tuple(evaluation.estimates.filter(submission=submission))
        )

    @property
    def settings(self) -> dict[str, Any]:
        """What the evaluation keeps beside its estimates, of all submissions."""
        return self.evaluation.settings if self.evaluation else {}

    def figures(self) -> dict[tuple[str, str, str, str], Figure]:
        """Return (quantity, criterion, distribution, method) -> figure, of the whole submission."""
        return {
            (row.quantity, row.criterion, row.distribution, row.method): Figure.of(row)
            for row in self.estimates
            if not row.slice
        }

    def guaranteed(self, method: str = DEFAULT) -> Figure | None:
        """Return the number that decides how many are judged; as the crowd's judgments make it, or
        by another method.
        """
        track = self.submission.track
        mean = kind_of(track).mean
        return self.figures().get((mean, track.criterion, track.distribution, method))


def watched(submission: int) -> list[InterimInterval]:
    """Return what may be watched of a submission's guaranteed number, in the order of judging."""

    def read(missing: list[int]) -> dict[int, list[InterimInterval]]:
        shown = InterimInterval.objects.filter(submission__in=missing).telling()
        intervals_of: dict[int, list[InterimInterval]] = {
            submission_id: [] for submission_id in missing
        }
        for interval in shown.order_by("order", "n"):
            intervals_of[interval.submission_id].append(interval)
        return intervals_of

    return each("watched", [submission], read)[submission]
