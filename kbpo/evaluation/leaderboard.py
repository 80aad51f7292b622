"""Reads the board: the latest Evaluation of a track as rows with figures. A query, not a table."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Any

from django.utils import timezone

from kbpo.evaluation.models import Estimate, Evaluation, Rescoring
from kbpo.instances.models import Label
from kbpo.submissions.models import Submission
from kbpo.tracks.models import Track

SORTS = ("f1", "precision", "recall", "name", "labels")
RECALLS = ("recall", "instance_recall", "recall_corrected")
"""Quantities that are the same under every distribution of the precision"""
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
        """The figure of a stored estimate: an unbiased one of few judgments may leave [0, 1], its
        figure never does.
        """
        value = None if row.value is None else min(1.0, max(0.0, row.value))
        return cls(
            value,
            row.low80,
            row.high80,
            row.low95,
            row.high95,
            row.n_labels,
            row.n_missing,
            row.n_documents,
            row.kind,
            row.note,
        )

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
    recall_corrected: Figure | None
    """The same with the facts put in that annotators of whole documents are reckoned to have
    missed"""
    simple: Figure | None
    joint: Figure | None
    instance_recall: Figure | None = None
    """Recall that counts a fact once for every pair of mentions that states it"""
    joint_f1: Figure | None = None
    joint_recall: Figure | None = None
    expert: Figure | None = None
    """Precision corrected by expert checks, where there are any"""
    expert_recall: Figure | None = None
    expert_f1: Figure | None = None
    self_claims: float | None = None
    """Share of its mentions of entities that it claims to be their own canonical ones"""
    rank: tuple[int, int] | None = None
    """Best and worst place that agree with the judgments, all systems taken together"""

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
    """Since when judgments wait to be counted; None if none does for long"""
    stale_why: str = ""
    """Why the scores could not be made again, as a sentence, if it was tried"""
    groups: list[list[int]] = field(default_factory=list)
    """Maximal groups of neighbouring rows that cannot be told apart (row numbers); empty unless
    sorted by the score"""
    level: float | None = None
    """Level of all comparisons together"""


def board(
    track: Track,
    *,
    distribution: str,
    criterion: str,
    sort: str = "f1",
    evaluation: Evaluation | None = None,
) -> Board:
    """The board; sorted from best to worst (by name: from A to Z), undefined figures last."""
    latest = evaluation or track.evaluations.order_by("-number").first()
    rows = sorted(
        _rows(latest, distribution, criterion) if latest else [], key=lambda row: _key(row, sort)
    )
    judging = Submission.objects.filter(
        track=track, status__in=["confirmed", "judging"]
    ).select_related("team")
    ranked = _ranking(latest, distribution, criterion)
    stale = _stale_since(track, latest)
    return Board(
        track=track,
        evaluation=latest,
        distribution=distribution,
        criterion=criterion,
        rows=[replace(row, rank=ranked["ranks"].get(row.submission.pk)) for row in rows],
        being_judged=list(judging.order_by("pk")),
        stale_since=stale,
        stale_why=_why(track) if stale else "",
        groups=_groups(rows, ranked["groups"]) if _sorted_by(rows, sort) == ranked["by"] else [],
        level=ranked["level"],
    )


def _ranking(evaluation: Evaluation | None, distribution: str, criterion: str) -> dict[str, Any]:
    """Rank ranges and tie groups as the evaluation stored them, by F1 or, where there is none, by
    precision.
    """
    stored = evaluation.comparisons if evaluation else {}
    for quantity in ("f1", "precision"):
        found = stored.get(f"{quantity}|{criterion}|{distribution}")
        if found:
            ranks = zip(found["systems"], found["best"], found["worst"], strict=True)
            return {
                "by": quantity,
                "ranks": {system: (best, worst) for system, best, worst in ranks},
                "groups": found["groups"],
                "level": found["level"],
            }
    return {"by": "f1", "ranks": {}, "groups": [], "level": None}


def _sorted_by(rows: list[Row], sort: str) -> str:
    """What the rows really stand in the order of: sorted by F1 where no system has one, they stand
    by precision.
    """
    without = sort == "f1" and not any(row.f1 and row.f1.value is not None for row in rows)
    return "precision" if without else sort


def _groups(rows: list[Row], groups: list[list[int]]) -> list[list[int]]:
    """Tie groups as row numbers; a group of one joins nobody."""
    place = {row.submission.pk: at for at, row in enumerate(rows)}
    found = [sorted(place[one] for one in group if one in place) for group in groups]
    return [group for group in found if len(group) > 1]


def _stale_since(track: Track, evaluation: Evaluation | None) -> datetime | None:
    """Since when judgments wait to be counted, if that is longer than the debounce would
    explain.
    """
    if evaluation is None:
        return None
    label = Label.objects.filter(
        target__corpus=track.corpus_id, created_at__gt=evaluation.made_at
    ).order_by("created_at")
    first = label.values_list("created_at", flat=True).first()
    return first if first and first < timezone.now() - timedelta(minutes=5) else None


def _why(track: Track) -> str:
    row = Rescoring.objects.filter(track=track).first()
    return row.reason if row is not None else ""


def figures(submission: Submission, **where: Any) -> dict[tuple[str, str, str, str], Figure]:
    """All figures of one submission in the latest evaluation: (quantity, criterion, distribution,
    method) -> figure.
    """
    latest = submission.track.evaluations.order_by("-number").first()
    rows = Estimate.objects.filter(evaluation=latest, submission=submission, slice="", **where)
    return {
        (row.quantity, row.criterion, row.distribution, row.method): Figure.of(row) for row in rows
    }


def _rows(evaluation: Evaluation, distribution: str, criterion: str) -> list[Row]:
    found: dict[int, dict[tuple[str, str], Figure]] = {}
    standing = Submission.objects.filter(track=evaluation.track_id).on_board()
    estimates = evaluation.estimates.filter(criterion=criterion, slice="", submission__in=standing)
    for row in estimates:
        if row.distribution == distribution or row.quantity in RECALLS:
            found.setdefault(row.submission_id, {})[row.quantity, row.method] = Figure.of(row)
    submissions = Submission.objects.filter(pk__in=found).select_related("team").in_bulk()
    self_claims = evaluation.settings.get("self_claims", {})
    return [
        Row(
            submission=submissions[pk],
            f1=some.get(("f1", "centred")),
            precision=some.get(("precision", "centred")),
            recall=some.get(("recall", "centred")),
            recall_corrected=some.get(("recall_corrected", "centred")),
            instance_recall=some.get(("instance_recall", "centred")),
            simple=some.get(("precision", "simple")),
            joint=some.get(("precision", "joint")),
            joint_f1=some.get(("f1", "joint")),
            joint_recall=some.get(("recall", "joint")),
            expert=some.get(("precision", "expert")),
            expert_recall=some.get(("recall", "expert")),
            expert_f1=some.get(("f1", "expert")),
            self_claims=self_claims.get(str(pk)),
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
    return (
        -(figure.value if figure and figure.value is not None else -1.0),
        -fallback,
        row.submission.pk,
    )
