"""What the latest evaluation says of one submission, as far as anybody may be told: read once, for
all that a page or the API tells of it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from kbpo.corpus.remembered import each
from kbpo.evaluation.leaderboard import TOO_FEW_YET, Figure
from kbpo.evaluation.models import Estimate, Evaluation, InterimInterval
from kbpo.pool.visibility import is_answered
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
    """Those of slices, too; before its own sample is answered the guaranteed number's alone"""

    @classmethod
    def of(cls, submission: Submission) -> Latest:
        """Return what is stored now.

        Before a submission's own sample is answered, every number of it rests on what was judged
        for others: by a slice of one claim, or by several of them together, their verdicts could
        be read off for nothing, and the submission be taken back. Until then there is the
        guaranteed number alone, as its interim interval says it.
        """
        evaluation = submission.track.evaluations.order_by("-number").first()
        if evaluation is None:
            return cls(submission, None, ())
        mine = evaluation.estimates.filter(submission=submission)
        if is_answered(submission):
            return cls(submission, evaluation, tuple(mine))
        track = submission.track
        estimate = mine.filter(
            quantity=kind_of(track).mean,
            criterion=track.criterion,
            distribution=track.distribution,
            method=DEFAULT,
            slice="",
        ).first()
        return cls(submission, evaluation, () if estimate is None else (_interim(estimate),))

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


def _interim(estimate: Estimate) -> Estimate:
    """The estimate of a guaranteed number, not to be stored, with what its last interim interval
    says in the place of its own, as fine as it is printed.
    """
    looked = next(reversed(watched(estimate.submission_id)), None)
    for name in ("value", "low80", "high80", "low95", "high95"):
        setattr(estimate, name, None if looked is None else round(getattr(looked, name), PRINTED))
    estimate.variance = None
    estimate.note = TOO_FEW_YET if looked is None else ""
    return estimate
