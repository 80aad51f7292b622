"""The leaderboard as CSV and JSON, and how to cite it."""

from __future__ import annotations

from typing import Any

from django.http import HttpRequest
from django.urls import reverse
from django.utils.html import escape

from kbpo.accounts.models import Team
from kbpo.evaluation.judges import judge_statistics
from kbpo.evaluation.leaderboard import Board, Row
from kbpo.evaluation.models import Evaluation
from kbpo.submissions.models import Submission
from kbpo.tracks.models import Track
from kbpo.tracks.recall import kind_with_recall_or_none
from kbpo.tracks.registry import kind_of
from kbpo.web.public.judges import judges_as_json as judges_json
from kbpo.web.public.judges import reliability_for_board
from scoring.report import ENDS, Figure, report_as_dict

REPORTED = (
    "scope",
    "documents",
    "of_documents",
    "misses",
    "targets",
    "labels",
    "expert",
    "late_scorers",
    "model",
    "version",
)
"""Published fields of an evaluation's report; none about single systems, since some are not
public"""


def board_table(board: Board) -> tuple[list[str], list[list[Any]]]:
    """Return the header and the rows of the CSV file, one row for each system."""
    blank = Row(Submission(track=board.track, team=Team()), "")
    rows = [list(_csv_record(board, row).values()) for row in board.rows]
    return list(_csv_record(board, blank)), rows


def _csv_record(board: Board, row: Row) -> dict[str, Any]:
    kind, submission = kind_of(board.track), row.submission
    best, worst = row.rank or (None, None)
    record: dict[str, Any] = {
        "team": submission.public_team,
        "system": submission.public_name,
        "rank_best": best,
        "rank_worst": worst,
        "labels": row.n_labels,
        **_judges_as_json(board, row),
        "note": row.note,
    }
    if kind_with_recall_or_none(board.track) is not None:
        record["documents"] = row.n_documents
    for column in kind.measures.columns:
        record |= _figure_cells(column.name, row.figure(column.name))
    for criterion in kind.measures.other_shown_criteria(board.criterion):
        drawn, beside = kind.measures.headline(criterion.name), row.beside.get(criterion.name)
        figure = beside.figure(kind.measures.column_of(drawn).name) if beside is not None else None
        record |= _figure_cells(f"beside_{criterion.name}", figure)
    for column in kind.measures.columns:
        if any(column.name in other.bootstrap for other in board.rows):
            low, high = row.bootstrap.get(column.name, (None, None))
            record |= {
                f"{column.name}_bootstrap_low80": low,
                f"{column.name}_bootstrap_high80": high,
            }
    if any(other.saved is not None for other in board.rows):
        record["saved"] = row.saved
    if board.population:
        record["population"] = board.population
    links = submission.public_links
    record |= {"submission": submission.pk, "role": submission.role}
    return record | {"paper": links.get("Paper"), "code": links.get("Code")}


def _figure_cells(name: str, figure: Figure | None) -> dict[str, float | None]:
    cells = (figure or Figure()).csv_cells()
    return {f"{name}_{end}": cell for end, cell in zip(ENDS, cells, strict=True)}


def board_as_json(board: Board) -> dict[str, Any]:
    """Return a board as JSON: the same figures as on the page, unrounded."""
    kind = kind_of(board.track)
    return {
        "track": track_as_json(board.track),
        "evaluation": _evaluation_as_json(board),
        "distribution": board.distribution,
        "criterion": board.criterion,
        "population": board.population,
        "level": board.level,
        "columns": [
            {
                "name": column.name,
                "label": kind.measures.quantity_as_printed(column.quantity, board.criterion).label,
            }
            for column in kind.measures.columns
            if column.place in ("first", "second")
            and kind.measures.quantity(column.quantity).applies_to(board.criterion)
        ],
        "systems": [
            {
                "submission": row.submission.pk,
                "team": row.submission.public_team,
                "name": row.submission.public_name,
                "description": row.submission.public_description,
                "paper": row.submission.public_links.get("Paper"),
                "code": row.submission.public_links.get("Code"),
                "role": row.submission.role,
                "rank": row.rank,
                "saved": row.saved,
                "judges": _judges_as_json(board, row),
                **{
                    column.name: _figure_as_json(row, column.name)
                    for column in kind.measures.columns
                },
            }
            for row in board.rows
        ],
        "cannot_be_told_apart": [
            [board.rows[index].submission.pk for index in group] for group in board.groups
        ],
        "strengths": _strengths_as_json(board),
        "being_judged": [
            {"team": submission.public_team, "name": submission.public_name}
            for submission in board.being_judged
        ],
    }


def _judges_as_json(board: Board, row: Row) -> dict[str, Any]:
    """Return the quality of the judgments of a system: number of answers and their agreement,
    difference of ratings, Fleiss’ κ of the track, errors on known questions, and the number of
    judgments that experts checked.
    """
    judges = judge_statistics(board.evaluation, row.submission)
    return judges_json(judges, reliability_for_board(board)) | {"checked": row.n_checked}


def _evaluation_as_json(board: Board) -> dict[str, Any] | None:
    row = board.evaluation
    if row is None:
        return None
    return {
        "number": row.number,
        "made_at": row.made_at,
        "page": reverse("evaluation", args=[row.track.slug, row.number]),
        "judges": judges_json(judge_statistics(row), reliability_for_board(board)),
    } | {name: report_as_dict(getattr(row.report, name)) for name in REPORTED}


def _figure_as_json(row: Row, column: str) -> dict[str, Any] | None:
    """Return a figure as JSON, with its published 80 % interval if there is one."""
    figure, ends = row.figure(column), row.bootstrap.get(column)
    if figure is None:
        return None
    return figure.as_json() | ({"bootstrap": ends} if ends is not None else {})


def board_strengths(board: Board) -> dict[str, Any]:
    """Return the strengths of an evaluation under the board's criterion, with their systems; empty
    unless systems are compared in pairs.
    """
    stored = board.report.strengths.get(board.criterion)
    if stored is None:
        return {}
    standing = {row.submission.pk: row.submission for row in board.rows}
    rows = [
        report_as_dict(strength) | {"submission": standing[strength.system]}
        for strength in stored.rows
        if strength.system in standing
    ]
    told: dict[str, Any] = report_as_dict(stored)
    return told | {"rows": rows}


def _strengths_as_json(board: Board) -> dict[str, Any] | None:
    """Return the strengths of systems that are compared in pairs; None if they are judged one by
    one.
    """
    strengths = board_strengths(board)
    for row in strengths.get("rows", ()):
        del row["submission"]
    return strengths or None


def track_as_json(track: Track) -> dict[str, Any]:
    """Return the public data of a track. Under a criterion whose `single` is “mean” people rate:
    nothing is right or wrong.
    """
    kind = kind_of(track)
    criteria = kind.measures.criteria
    of_criterion = ("name", "label", "single", "higher_is_better")
    keys = (
        "slug",
        "name",
        "status",
        "kind",
        "design",
        "distribution",
        "criterion",
        "distributions",
        "scope",
        "description",
    )
    return {key: getattr(track, key) for key in keys} | {
        "target_half_width": str(track.target_half_width),
        "confidence_level": str(track.confidence_level),
        "criteria": [
            {key: getattr(criterion, key) for key in of_criterion} for criterion in criteria
        ],
    }


SERVICE = "KBP Online"
_IN_LATEX = {letter: f"\\{letter}" for letter in "&%$#_{}"} | {
    "\\": r"\textbackslash{}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
}


def bibtex(
    key: str, title: str, author: str, evaluation: Evaluation, url: str, figure: str = ""
) -> str:
    """Return a BibTeX entry with the evaluation, its day and its address, and the cited figure if
    one is given.
    """
    made = evaluation.made_at
    note = f"Evaluation {evaluation.number} of {made:%Y-%m-%d}"
    fields = {
        "title": f"{{{_latex(title)}}}",
        "author": f"{{{_latex(author or SERVICE)}}}",
        "howpublished": _latex(SERVICE),
        "year": f"{made:%Y}",
        "note": _latex(f"{note}: {figure}" if figure else note),
        "url": url,
    }
    lines = [f"  {name:<12} = {{{value}}}" for name, value in fields.items()]
    return f"@misc{{{key},\n" + ",\n".join(lines) + "\n}"


def _latex(text: str) -> str:
    """Return a text with LaTeX's special characters escaped."""
    return "".join(_IN_LATEX.get(letter, letter) for letter in text)


def cite_board(request: HttpRequest, board: Board) -> dict[str, str]:
    """Return the citation of a board and its frame; empty before the first evaluation."""
    if board.evaluation is None:
        return {}
    slug, evaluation = board.track.slug, board.evaluation
    permalink = request.build_absolute_uri(reverse("evaluation", args=[slug, evaluation.number]))
    frame = request.build_absolute_uri(reverse("board-embed", args=[slug]))
    title = f"Leaderboard of {board.track.name}"
    return {
        "permalink": permalink,
        "bibtex": bibtex(f"{slug}-{evaluation.number}", title, "", evaluation, permalink),
        "embed": (
            f'<iframe src="{escape(frame)}" title="{escape(title)}" width="640" height="420">'
            "</iframe>"
        ),
    }
