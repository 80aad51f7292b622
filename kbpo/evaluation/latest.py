"""What the latest evaluation says of one submission, as far as anybody may be told: read once, for
all that a page or the API tells of it.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from kbpo.corpus.remembered import read_cached
from kbpo.evaluation.models import Evaluation, InterimInterval
from kbpo.submissions.models import Submission
from kbpo.tracks.registry import kind_of
from scoring.report import Figure, Key, Report
from scoring.score import DEFAULT


@dataclass(frozen=True)
class Latest:
    """The latest evaluation of a submission's track, and its numbers for the submission."""

    submission: Submission
    evaluation: Evaluation | None
    """None before the first"""

    @classmethod
    def of(cls, submission: Submission) -> Latest:
        """Read the latest evaluation of the submission's track and return it."""
        evaluations = submission.track.evaluations.with_report()
        return cls(submission, evaluations.order_by("-number").first())

    @property
    def report(self) -> Report:
        """Return the report of the evaluation; an empty report before the first."""
        return self.evaluation.report if self.evaluation else Report()

    @cached_property
    def figures(self) -> dict[tuple[str, str, str, str], Figure]:
        """Return the figures of the whole submission, by (quantity, criterion, distribution,
        method).
        """
        return self.report.of(self.submission.pk)

    @cached_property
    def slices(self) -> dict[Key, Figure]:
        """Return the figures of the submission's slices."""
        if self.evaluation is None:
            return {}
        found = self.evaluation.details.figures.items()
        return {key: figure for key, figure in found if key.submission == self.submission.pk}

    def guaranteed(self, method: str = DEFAULT) -> Figure | None:
        """Return the figure of the guaranteed number, by the default method or another one."""
        track = self.submission.track
        mean = kind_of(track).measures.mean
        return self.figures.get((mean, track.criterion, track.distribution, method))


def interim_intervals(submission: int) -> list[InterimInterval]:
    """Return the interim intervals of a submission's guaranteed number, in the order of judging."""

    def read(missing: list[int]) -> dict[int, list[InterimInterval]]:
        shown = InterimInterval.objects.filter(submission__in=missing).telling()
        intervals_of: dict[int, list[InterimInterval]] = {
            submission_id: [] for submission_id in missing
        }
        for interval in shown.order_by("order", "n"):
            intervals_of[interval.submission_id].append(interval)
        return intervals_of

    return read_cached("watched", [submission], read)[submission]
