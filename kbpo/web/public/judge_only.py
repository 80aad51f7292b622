"""What a metric or judge alone says of the systems of a board:
against people, and in which order.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from urllib.parse import urlencode

from django.urls import reverse
from django.utils.safestring import SafeString, mark_safe

from kbpo.evaluation.leaderboard import Board, Row
from kbpo.tracks.registry import kind_of
from kbpo.web.components import drawing, plots
from kbpo.web.components.figures import count_text, number_text
from scoring.report import Scorer, Worth

FEWEST = 2
"""Systems of which an order tells something"""


@dataclass(frozen=True)
class Alone:
    """A metric by itself, brought to the mean and the spread of what people say."""

    label: str
    between: float | None
    """How it goes with people, system by system"""
    lower_is_better: bool
    scatter: SafeString
    orders: SafeString
    finding: str
    came_late: bool
    statement: str
    """Who stated that it was not tuned on the judgments; empty where nobody did"""
    csv: str


def judge_only_scores(shown: Board) -> Alone | None:
    """The metric or judge that is worth most, by itself; None where none has scored enough systems
    whole.
    """
    worth = shown.report.worth.get(shown.criterion, Worth())
    scorers = sorted(worth.scorers, key=lambda scorer: -(scorer.worth or 0.0))
    for scorer in scorers:
        rows = [row for row in shown.rows if _is_drawn(row, scorer)]
        if len(rows) >= FEWEST:
            return _drawn(shown, scorer, rows)
    return None


def _is_drawn(row: Row, scorer: Scorer) -> bool:
    return row.submission.pk in scorer.alone and row.value(row.mean) is not None


def _drawn(shown: Board, scorer: Scorer, rows: Sequence[Row]) -> Alone:
    kind = kind_of(shown.track)
    sign = 1.0 if kind.measures.higher_is_better(kind.measures.mean, shown.criterion) else -1.0
    alone = {row.submission.pk: scorer.alone[row.submission.pk] for row in rows}
    by_metric = sorted(rows, key=lambda row: -sign * alone[row.submission.pk])
    by_people = sorted(rows, key=lambda row: -sign * _value(row))
    called = kind.measures.printed(kind.measures.mean, shown.criterion).in_text
    finding = _finding(scorer.label, called, by_people, by_metric)
    address = reverse("metrics-csv", args=[shown.track.slug, "bias"])
    return Alone(
        scorer.label,
        scorer.between,
        sign < 0,
        _scatter(scorer.label, rows, alone, kind.measures.criterion(shown.criterion).label),
        mark_safe(
            plots.draw_orders(
                [r.submission.full_name for r in by_people],
                [r.submission.full_name for r in by_metric],
                finding,
            )
        ),
        finding,
        scorer.came_late,
        scorer.statement,
        f"{address}?{urlencode({'criterion': shown.criterion})}",
    )


def _scatter(
    label: str, rows: Sequence[Row], alone: dict[int, float], criterion: str
) -> SafeString:
    """People against the metric: a dot a system, with the 80 % interval of people's score."""
    intervals, dots = [], []
    for row in rows:
        figure = row.figure(row.mean)
        assert figure is not None and figure.value is not None
        low, high = figure.low80, figure.high80
        ends = None if low is None or high is None else (low, high)
        x = min(1.0, max(0.0, alone[row.submission.pk]))
        dots.append(plots.Dot(row.submission.full_name, x, figure.value, True, ends))
        intervals += [drawing.Interval(figure.value, low, high), drawing.Interval(x)]
    axis = drawing.axis_over(intervals, ticks=6)
    return against_people(dots, axis, label, criterion, "system")


def against_people(
    dots: Sequence[plots.Dot], axis: drawing.Axis, label: str, criterion: str, thing: str
) -> SafeString:
    """A metric across, brought to people's mean and spread, and people above it, a dot for each
    `thing`; on the line they say the same.
    """
    steps = [axis.low + (axis.high - axis.low) * step / 20 for step in range(21)]
    return mark_safe(
        plots.draw_curves(
            [plots.Curve("", [(share, share) for share in steps], "equal")],
            dots,
            axis,
            axis,
            f"What {label} says of each {thing} against what people say.",
            x_name=f"{label} alone, at people’s mean and spread",
            y_name=f"People, {criterion.lower()}",
            x_written=lambda share: number_text(share, decimals=0),
            y_written=lambda share: number_text(share, decimals=0),
        )
    )


def _finding(label: str, by: str, by_people: Sequence[Row], by_metric: Sequence[Row]) -> str:
    """What its order by that quantity would do to people's, in words."""
    sentence = f"Alone {label} would put {by_metric[0].submission.full_name} first by {by}"
    if by_metric[0] is by_people[0]:
        sentence += ", as people do"
    reference = next((row for row in by_people if row.submission.is_reference), None)
    if reference is not None:
        above = by_metric.index(reference)
        systems = f"{count_text(above)} system{'' if above == 1 else 's'}"
        sentence += f", and {systems if above else 'no system'} above the reference"
    moved = sum(by_metric.index(row) != rank for rank, row in enumerate(by_people))
    return (
        f"{sentence}. {count_text(moved)} of {count_text(len(by_people))} rows change their place."
    )


def _value(row: Row) -> float:
    return row.value(row.mean) or 0.0
