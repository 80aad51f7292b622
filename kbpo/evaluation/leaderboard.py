"""Reads the board: the latest Evaluation of a track as rows with figures. A query, not a table."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from kbpo.evaluation.models import Estimate, Evaluation
from kbpo.submissions.models import Submission
from kbpo.tracks.models import Track

SORTS = ("f1", "precision", "recall", "name", "labels")
FEW = 50
"""Below this number of judgments an interval is drawn grey, and figures have no decimals."""


@dataclass(frozen=True)
class Figure:
    """One number as it is shown. Everything is a share in [0, 1], or None where it is undefined."""

    value: float | None
    low80: float | None
    high80: float | None
    low95: float | None
    high95: float | None
    n_labels: int
    n_missing: int
    n_documents: int
    kind: str
    note: str

    @classmethod
    def of(cls, row: Estimate) -> Figure:
        """The figure of a stored estimate."""
        return cls(
            row.value, row.low80, row.high80, row.low95, row.high95,
            row.n_labels, row.n_missing, row.n_documents, row.kind, row.note,
        )  # fmt: skip

    @property
    def few(self) -> bool:
        """Too few judgments to say much."""
        return self.n_labels < FEW

    def half_width(self, level: int = 80) -> float | None:
        """Half of the interval at 80 or 95."""
        low, high = (self.low80, self.high80) if level == 80 else (self.low95, self.high95)
        return None if low is None or high is None else (high - low) / 2


@dataclass(frozen=True)
class Row:
    """One system on the board."""

    submission: Submission
    f1: Figure | None
    precision: Figure | None
    recall: Figure | None
    simple: Figure | None
    joint: Figure | None

    @property
    def n_labels(self) -> int:
        """Judgments behind its precision."""
        return self.precision.n_labels if self.precision else 0


@dataclass(frozen=True)
class Board:
    """A track's board under one distribution and criterion."""

    track: Track
    evaluation: Evaluation | None
    distribution: str
    criterion: str
    rows: list[Row]
    being_judged: list[Submission]
    stale_since: datetime | None


def board(
    track: Track, *, distribution: str, criterion: str, sort: str = "f1", evaluation: Evaluation | None = None
) -> Board:
    """The board; sorted from best to worst (by name: from A to Z), undefined figures last."""
    latest = evaluation or track.evaluations.order_by("-number").first()
    rows = _rows(latest, distribution, criterion) if latest else []
    judging = Submission.objects.filter(track=track, status__in=["confirmed", "judging"]).select_related("team")
    return Board(
        track=track,
        evaluation=latest,
        distribution=distribution,
        criterion=criterion,
        rows=sorted(rows, key=lambda row: _key(row, sort)),
        being_judged=list(judging.order_by("pk")),
        stale_since=None,
    )


def figures(submission: Submission, **where: Any) -> dict[tuple[str, str, str, str], Figure]:
    """All figures of one submission in the latest evaluation: (quantity, criterion, distribution, method) -> figure."""
    latest = submission.track.evaluations.order_by("-number").first()
    rows = Estimate.objects.filter(evaluation=latest, submission=submission, slice="", **where).defer("influence")
    return {(row.quantity, row.criterion, row.distribution, row.method): Figure.of(row) for row in rows}


def _rows(evaluation: Evaluation, distribution: str, criterion: str) -> list[Row]:
    found: dict[int, dict[tuple[str, str], Figure]] = {}
    estimates = evaluation.estimates.filter(criterion=criterion, slice="", submission__status="scored").defer(
        "influence"
    )
    for row in estimates:
        if row.distribution == distribution or row.quantity == "recall":
            found.setdefault(row.submission_id, {})[row.quantity, row.method] = Figure.of(row)
    submissions = Submission.objects.filter(pk__in=found).select_related("team").in_bulk()
    return [
        Row(
            submission=submissions[pk],
            f1=some.get(("f1", "centred")),
            precision=some.get(("precision", "centred")),
            recall=some.get(("recall", "centred")),
            simple=some.get(("precision", "simple")),
            joint=some.get(("precision", "joint")),
        )
        for pk, some in found.items()
    ]


def _key(row: Row, sort: str) -> tuple[Any, ...]:
    if sort == "name":
        return (row.submission.team.name.casefold(), row.submission.name.casefold())
    if sort == "labels":
        return (-row.n_labels, row.submission.pk)
    figure = getattr(row, sort)
    fallback = row.precision.value if row.precision and row.precision.value is not None else -1.0
    return (-(figure.value if figure and figure.value is not None else -1.0), -fallback, row.submission.pk)
