"""Column heads, cells of the rows and facts of a leaderboard page."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from django.db.models import Count, Q
from django.urls import reverse

from annotation.models import Question
from kbpo.evaluation.judges import judge_statistics
from kbpo.evaluation.leaderboard import Board, Row
from kbpo.instances.models import Label
from kbpo.money.spend import balance
from kbpo.sampling.models import DocumentSample
from kbpo.tracks.base import Track as Kind
from kbpo.tracks.measures import Column
from kbpo.tracks.models import Track
from kbpo.tracks.recall import kind_with_recall_or_none
from kbpo.tracks.registry import count_inputs, kind_of
from kbpo.web.components import drawing, plots
from kbpo.web.components.drawing import Interval
from kbpo.web.components.figures import percent_text, range_text
from kbpo.web.public.board_view import PEOPLE, View
from scoring.report import Figure
from scoring.saved import UNAIDED

SAYS_NOTHING = 0.5
"""Share of the range from which on a small interval below a figure is not printed, as it is
uninformative, e.g. annotator noise from two people"""


def column_head(
    kind: Kind, column: Column, view: View, address: str, rows: Sequence[Row]
) -> dict[str, Any]:
    """Return the header of a plotted column; `has` is whether the criterion has this quantity."""
    quantity = kind.measures.quantity_as_printed(column.quantity, view.criterion)
    ticks = 5 if column.place == "first" else 3
    return {
        "name": column.name,
        "label": quantity.label,
        "short": quantity.short,
        "first": column.place == "first",
        "has": quantity.applies_to(view.criterion),
        "url": view.url(address, sort=column.name),
        "current": view.sort == column.name,
        "axis": drawing.axis_over(
            [Interval.from_figure(row.figure(column.name)) for row in rows], ticks=ticks
        ),
        "direction": _direction_text(kind, quantity.name, view.criterion),
    }


def column_heads(kind: Kind, view: View, address: str, rows: Sequence[Row]) -> list[dict[str, Any]]:
    """Return the headers of all plotted columns: the quantities, then the other criteria, which
    link to their own boards.
    """
    heads = [
        column_head(kind, column, view, address, rows)
        for column in kind.measures.columns
        if column.place in ("first", "second")
    ]
    for criterion in kind.measures.other_shown_criteria(view.criterion):
        column = kind.measures.column_of(kind.measures.headline(criterion.name))
        rows_beside = [row.beside.get(criterion.name) for row in rows]
        drawn = [
            Interval.from_figure(row.figure(column.name)) for row in rows_beside if row is not None
        ]
        heads.append(
            {
                "name": column.name,
                "criterion": criterion.name,
                "label": criterion.label,
                "short": criterion.label,
                "first": False,
                "has": True,
                "url": view.url(address, criterion=criterion.name, sort=column.name),
                "current": False,
                "axis": drawing.axis_over(drawn, ticks=3),
                "direction": _direction_text(kind, column.quantity, criterion.name),
            }
        )
    return heads


def _direction_text(kind: Kind, quantity: str, criterion: str) -> str:
    return "" if kind.measures.higher_is_better(quantity, criterion) else "lower is better"


def row_cells(
    board: Board, heads: list[dict[str, Any]], row: Row, mine: set[int], view: View
) -> dict[str, Any]:
    """Return the cells of a row under these headers; `mine` are the teams of the visitor."""
    kind, evaluation = kind_of(board.track), board.evaluation
    published = _published_figures(kind, row, view.criterion)
    compared = [figure for figure in published if figure["quantity"] == kind.measures.mean]
    return {
        "submission": row.submission,
        "mine": row.submission.team_id in mine,
        "rank": rank_text(row),
        "judged": row.n_labels,
        "saved": savings_text(row.saved),
        "figures": {
            column.name: Interval.from_figure(row.figure(column.name))
            for column in kind.measures.columns
        },
        "cells": [_figure_cell(board, row, head, view) for head in heads],
        "published": published,
        "no_published": all(figure["interval"].estimate is None for figure in compared),
        "kind": bar_kind(row, board.past),
        "judges": judge_statistics(evaluation, row.submission),
        "url": (
            reverse("submission", args=[row.submission.pk]) if row.submission.is_on_board else ""
        ),
    }


def _figure_cell(board: Board, row: Row, head: dict[str, Any], view: View) -> dict[str, Any]:
    """Return one plotted figure with its notes (corrected figures) and the interval from people
    alone, if metrics narrow it. For another criterion only the figure is returned.
    """
    kind, criterion = kind_of(board.track), head.get("criterion", view.criterion)
    is_own = criterion == view.criterion
    drawn_row = row if is_own else row.beside.get(criterion)
    if drawn_row is None:
        drawn_row = Row(row.submission, row.mean)
    figure, alone, beneath = drawn_row.figure(head["name"]), None, []
    for column in kind.measures.columns:
        if (column.place, column.under) != ("beneath", head["name"]):
            continue
        if column.method == UNAIDED:
            alone = drawn_row.figure(column.name)
        elif is_own:
            drawn = Interval.from_figure(drawn_row.figure(column.name))
            if drawn.estimate is not None:
                low, high = drawn.low80, drawn.high80
                too_wide = low is not None and high is not None and high - low >= SAYS_NOTHING
                beneath.append({"label": column.label, "interval": drawn, "too_wide": too_wide})
    if alone is not None and view.helped == PEOPLE:
        figure, alone = alone, None
    return {
        "head": head,
        "interval": Interval.from_figure(figure),
        "n": drawn_row.n_labels,
        "kind": bar_kind(drawn_row, board.past, figure),
        "alone": Interval.from_figure(alone) if alone is not None else None,
        "exact": figure is not None and figure.is_exact,
        "too_few": figure is not None and figure.is_withheld,
        "beneath": beneath,
    }


def _published_figures(kind: Kind, row: Row, criterion: str) -> list[dict[str, Any]]:
    """Return the figures of the published estimators under a criterion, in the order of the
    quantities.
    """
    order = [
        quantity.name for quantity in kind.measures.quantities if quantity.applies_to(criterion)
    ]
    columns = [
        one for one in kind.measures.columns if one.place == "published" and one.quantity in order
    ]
    found = []
    for column in sorted(columns, key=lambda column: order.index(column.quantity)):
        figure = row.figure(column.name)
        found.append(
            {
                "quantity": column.quantity,
                "label": column.label,
                "interval": Interval.from_figure(figure),
                "n": figure.n_labels if figure is not None else None,
            }
        )
    return found


def has_published(kind: Kind, rows: Iterable[Row]) -> bool:
    """Return whether any row has a figure of a published estimator."""
    names = [column.name for column in kind.measures.columns if column.place == "published"]
    return any(row.value(name) is not None for row in rows for name in names)


def bar_kind(row: Row, past: bool, figure: Figure | None = None) -> str:
    """Return the style of a row's bars: outlined while judging continues, grey if the figure (else
    the mean) is based on few judgments.
    """
    mean = row.figure(row.mean)
    if (mean and mean.kind != "final") if past else row.submission.status != "scored":
        return "moment"
    behind = figure or mean
    return "few" if behind and behind.has_few_judgments else "final"


def has_few(rows: list[dict[str, Any]]) -> bool:
    """Return whether any bar of a board is grey."""
    return any(
        cell["kind"] == "few" and cell["head"]["has"] and cell["interval"].estimate is not None
        for row in rows
        for cell in row["cells"]
    )


def rank_text(row: Row) -> str:
    """Return a rank as “3” or “1–4”; “–” for the reference, which has no rank."""
    if row.submission.is_reference:
        return "–"
    return range_text(*row.rank) if row.rank is not None else ""


def savings_text(share: float | None) -> str:
    """Return “12.3 % saved”, or “none saved” if the share rounds to zero or below."""
    if share is None:
        return ""
    text = percent_text(max(share, 0.0))
    return f"{'none' if text == percent_text(0.0) else text} saved"


def has_expert(kind: Kind, rows: Iterable[Row]) -> bool:
    """Return whether any row has a mean that is corrected by expert checks."""
    mean = kind.measures.column_of(kind.measures.mean).name
    corrected = [
        column.name
        for column in kind.measures.columns
        if (column.place, column.under, column.method) == ("beneath", mean, "expert")
    ]
    return any(row.value(name) is not None for row in rows for name in corrected)


def plot_points(kind: Kind, rows: Iterable[Row]) -> list[plots.Point]:
    """Return the points of the plot of two columns against each other."""
    if kind.measures.plotted is None:
        return []
    across, up = kind.measures.plotted
    return [
        plots.Point(
            row.submission.full_name,
            Interval.from_figure(row.figure(up)),
            Interval.from_figure(row.figure(across)),
            first=index == 0,
        )
        for index, row in enumerate(rows)
        if row.value(up) is not None and row.value(across) is not None
    ]


def plot_sentence(rows: Sequence[Row]) -> str:
    scored = [row for row in rows if row.value(row.mean) is not None]
    if not scored:
        return "No system has both numbers yet."
    precise = max(scored, key=lambda row: row.value(row.mean) or 0.0)
    leader, most = (row.submission.full_name for row in (rows[0], precise))
    return f"{leader} is first; {most} is the most precise."


def board_facts(track: Track, board: Board) -> dict[str, Any]:
    """Return the four facts next to the board: systems and teams, inputs (and those read in full),
    judgments, and money spent. Judgments of the texts are shared by all tracks of the corpus;
    `judged_elsewhere` counts those that were ordered on other tracks only.
    """
    money = balance(track=track)
    kind = kind_of(track)
    labels_of = Label.objects.filter(target__corpus=track.corpus_id, target__kind=kind.target_kind)
    labels = labels_of.filter(
        source__in=("crowd",) if kind_with_recall_or_none(track) else ("crowd", "import")
    ).exclude(value={})
    ours = Question.objects.filter(track=track).values("pk")  # looked up once, not for each label
    here = Q(question=None) | Q(question__in=ours)
    counted = labels.aggregate(
        judged=Count("target", distinct=True),
        here=Count("target", distinct=True, filter=here),
        imported=Count("pk", filter=Q(source="import")),
    )
    imports = labels_of.filter(source="import")
    if board.evaluation is not None:
        read_in_full = board.evaluation.report.documents
    else:
        read_in_full = DocumentSample.objects.filter(track=track, settled_at__isnull=False).count()
    return {
        "systems": len(board.rows),
        "teams": len({row.submission.public_team for row in board.rows}),
        "inputs": count_inputs(track),
        "read_in_full": read_in_full if kind_with_recall_or_none(track) else None,
        "judged": counted["judged"],
        "judged_here": counted["here"],
        "judged_elsewhere": counted["judged"] - counted["here"],
        "has_imported": counted["imported"] > 0,
        "imported_alone": counted["judged"] == 0 and imports.exists(),
        "spent": money.spent,
    }
