"""Reads the latest evaluation of a submission, and how far the submission is judged. Pages, files
and the API read these numbers here.
"""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from functools import cached_property

import numpy as np

from kbpo.corpus.cache import read_cached
from kbpo.evaluation.models import Evaluation, InterimInterval
from kbpo.sampling.models import Sample
from kbpo.submissions.models import Prediction, Submission
from kbpo.tracks.models import Track
from kbpo.tracks.registry import kind_of
from scoring.report import Figure, Key, Report
from scoring.score import DEFAULT


@dataclass(frozen=True)
class Latest:
    """The latest evaluation of a submission's track, and its numbers for the submission."""

    submission: Submission
    evaluation: Evaluation | None
    """None before the first evaluation"""

    @classmethod
    def read_latest(cls, submission: Submission) -> Latest:
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
        return self.report.figures_of_submission(self.submission.pk)

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

    def read_intervals(missing: list[int]) -> dict[int, list[InterimInterval]]:
        shown = InterimInterval.objects.filter(submission__in=missing).excluding_some_values()
        intervals_of: dict[int, list[InterimInterval]] = {
            submission_id: [] for submission_id in missing
        }
        for interval in shown.order_by("order", "n"):
            intervals_of[interval.submission_id].append(interval)
        return intervals_of

    return read_cached("watched", [submission], read_intervals)[submission]


@dataclass(frozen=True)
class Extent:
    """How far a submission is judged: counts of the targets in its own sample, and the half-width
    of its guaranteed number.
    """

    sample: int
    judged: int
    """Targets with a verdict under the track's criterion"""
    open: int
    """Targets without a verdict that can still get one"""
    unanswered: int
    """Targets without an answer that nobody is asked about any more"""
    labels: int
    """Number of judged targets among all its predictions, whether from its own sample, others'
    samples or documents
    """
    half_width: float | None
    """Half-width of the printed interval of its guaranteed number; None without one"""


def judging_extent(submission: Submission, latest: Latest | None = None) -> Extent:
    """Return counts of the judged targets in a submission's own sample; zeros before its sample is
    drawn. Callers that have read the latest evaluation pass it as `latest`.
    """
    targets = set(
        Sample.objects.filter(batch__submission=submission).values_list("target_id", flat=True)
    )
    waiting, judged = set[int](), set[int]()
    if targets:
        waiting = kind_of(submission.track).find_unanswered({submission.pk: targets})[submission.pk]
        judged = _judged_targets(submission, targets) - waiting
    figure = (latest or Latest.read_latest(submission)).guaranteed()
    return Extent(
        sample=len(targets),
        judged=len(judged),
        open=len(waiting),
        unanswered=len(targets) - len(judged) - len(waiting),
        labels=figure.n_labels if figure else 0,
        half_width=half_width(figure, submission.track) if figure else None,
    )


def half_width(figure: Figure, track: Track) -> float | None:
    """Return half the width of a printed interval at the confidence level of its track."""
    return figure.half_width(95 if track.confidence_level > Decimal("0.9") else 80)


def _judged_targets(submission: Submission, targets: set[int]) -> set[int]:
    """Return the targets with a verdict on at least one prediction."""
    predictions = Prediction.objects.filter(submission=submission, instance__target__in=targets)
    pairs = np.array(
        list(predictions.values_list("instance_id", "instance__target_id")), dtype=np.int64
    )
    if not pairs.size:
        return set()
    verdicts = kind_of(submission.track).judge(pairs[:, 0], [submission.pk])
    has_verdict = ~np.isnan(verdicts[submission.track.criterion][:, 0])
    return set(pairs[has_verdict, 1].tolist())
