"""How far a submission is judged, and how sure its guaranteed number is: the one source of these
numbers. Pages, files and the API count nothing by themselves.
"""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal

import numpy as np

from kbpo.evaluation.latest import Latest
from kbpo.sampling.models import Sample
from kbpo.submissions.models import Prediction, Submission
from kbpo.tracks.models import Track
from kbpo.tracks.registry import kind_of
from scoring.report import Figure


@dataclass(frozen=True)
class Extent:
    """Counts of the targets in a submission's own sample, and the precision of its guaranteed
    number.
    """

    sample: int
    judged: int
    """have a verdict under the track's criterion"""
    open: int
    """have none yet, and are not given up"""
    unanswered: int
    """found no answer, and nobody is asked any more"""
    labels: int
    """Judged in all, of whatever it predicts: for its own sample, for others', in documents"""
    half_width: float | None
    """Half of the interval that is printed of its guaranteed number; None where it has none"""


def extent_of(submission: Submission, latest: Latest | None = None) -> Extent:
    """Return how far a submission is judged; zeros before its sample is drawn. Pass `latest` where
    the latest evaluation was read already.
    """
    targets = set(
        Sample.objects.filter(batch__submission=submission).values_list("target_id", flat=True)
    )
    waiting, judged = set[int](), set[int]()
    if targets:
        waiting = kind_of(submission.track).unanswered({submission.pk: targets})[submission.pk]
        judged = _is_judged(submission, targets) - waiting
    figure = (latest or Latest.of(submission)).guaranteed()
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


def _is_judged(submission: Submission, targets: set[int]) -> set[int]:
    """Return the targets for which some prediction has a verdict."""
    predictions = Prediction.objects.filter(submission=submission, instance__target__in=targets)
    pairs = np.array(
        list(predictions.values_list("instance_id", "instance__target_id")), dtype=np.int64
    )
    if not pairs.size:
        return set()
    verdicts = kind_of(submission.track).judge(pairs[:, 0], [submission.pk])
    has_verdict = ~np.isnan(verdicts[submission.track.criterion][:, 0])
    return set(pairs[has_verdict, 1].tolist())
