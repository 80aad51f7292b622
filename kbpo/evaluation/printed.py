"""Keeps what the board printed of an evaluation that a later one of its day replaces.

While people judge there is an evaluation every few seconds, each of thousands of estimates. Whoever
has read a board may have noted its address: that stays, and so does all that stood on the page.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from datetime import datetime

from kbpo.evaluation.models import Estimate, Evaluation
from kbpo.tracks.models import Track
from kbpo.tracks.registry import kind_of
from scoring.data import ABOUT_THESE

NAMES = (
    "submission_id",
    "quantity",
    "criterion",
    "distribution",
    "method",
    "value",
    "low80",
    "high80",
    "low95",
    "high95",
    "n_labels",
    "n_missing",
    "n_documents",
    "n_checked",
    "kind",
    "note",
)
RANKS = ("systems", "best", "worst", "groups", "level")


def replace_since(track: Track, moment: datetime) -> None:
    """Reduce the evaluations since a moment that ended no stage to what the board printed."""
    for evaluation in track.evaluations.whole().filter(stage_end=False, made_at__gte=moment):
        reduce(evaluation)
        evaluation.save(update_fields=["printed", "comparisons"])
        evaluation.estimates.all().delete()


def reduce(evaluation: Evaluation) -> None:
    """Reduce a complete evaluation to what the board printed, without saving it."""
    kind = kind_of(evaluation.track)
    columns = {
        (column.quantity, f"{column.method}{population}")
        for column in kind.columns
        for population in ("", ABOUT_THESE)
    }
    estimates = evaluation.estimates.filter(slice="", submission__in=evaluation.standing)
    rows = estimates.order_by("pk").values_list(*NAMES)
    values = [dict(zip(NAMES, row, strict=True)) for row in rows]
    evaluation.printed = [
        list(row.values()) for row in values if (row["quantity"], row["method"]) in columns
    ]
    evaluation.comparisons = {
        key: {name: comparison[name] for name in RANKS}
        for key, comparison in evaluation.comparisons.items()
        if "best" in comparison
    }


def printed(
    evaluation: Evaluation, criterion: str, submissions: Collection[int]
) -> Iterator[Estimate]:
    """Yields what the board printed of some submissions, as estimates that are not stored."""
    for row in evaluation.printed or ():
        estimate = Estimate(evaluation=evaluation, **dict(zip(NAMES, row, strict=True)))
        if estimate.criterion == criterion and estimate.submission_id in submissions:
            yield estimate
