"""Parses the switches in the address of a board, for its page, its files and the API."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any
from urllib.parse import urlencode

from django.db.models import Case, Exists, F, OuterRef, Subquery, When
from django.http import Http404, HttpRequest
from django.shortcuts import get_object_or_404
from django.urls import reverse
from django.utils.html import escape

from kbpo.accounts.models import Team
from kbpo.evaluation.judges import judges_of
from kbpo.evaluation.leaderboard import (
    Board,
    NoBoard,
    Row,
    board,
    default_sort,
    evaluation_of,
    sort_names,
)
from kbpo.evaluation.models import Evaluation
from kbpo.submissions.models import Submission
from kbpo.tracks.models import Track
from kbpo.tracks.recall import recall_of
from kbpo.tracks.registry import kind_of
from kbpo.web.public.judges import judges_as_json as judges_json
from kbpo.web.public.judges import reliability_for_board
from scoring.report import ENDS, Figure, Report, as_dict

LEVELS = {"80": "80 %", "95": "95 %"}
SWITCHES = (
    *("distribution", "criterion", "population", "level"),
    *("sort", "helped", "all", "evaluation"),
)
"""What an address of a board may say"""
PEOPLE, ALL = "0", "all"


@dataclass(frozen=True)
class View:
    """The switches that an address selects."""

    distribution: str
    criterion: str
    level: int
    sort: str
    all: bool
    helped: str = ALL
    """What makes the first column: `PEOPLE` alone, or `ALL` metrics and judges with them"""
    unsaid: str = ALL
    """What narrows it where the URL does not say"""
    number: int | None = None
    """The evaluation whose board is asked for"""
    population: str = ""
    """What numbers are about; empty: what there is, of a kind that has nothing else"""

    def url(self, address: str, **changes: str) -> str:
        """Return the address with the switches of this view, after some changes."""
        switches = {
            "distribution": self.distribution,
            "criterion": self.criterion,
            "level": str(self.level),
        }
        switches |= {"population": self.population} if self.population else {}
        switches |= {"sort": self.sort} | ({"all": "1"} if self.all else {})
        switches["helped"] = self.helped
        switches |= changes
        if switches["helped"] == self.unsaid:
            del switches["helped"]
        return f"{address}?{urlencode(switches)}"


class NoView(ValueError):
    """An unknown value of a switch; the text is a sentence."""

    def __init__(self, name: str, text: str) -> None:
        super().__init__(text)
        self.name = name


def parse_view(asked: Mapping[str, str], track: Track) -> View:
    """Return the view that query parameters select; defaults are the guaranteed figures of the
    track. Raises NoView.
    """
    kind = kind_of(track)
    criterion = _option_in(asked, "criterion", kind.measures.criterion_names(), track.criterion)
    populations = kind.words.populations if kind.measures.population else {}
    number = asked.get("evaluation", "")
    if number and not (number.isascii() and number.isdecimal() and 0 < len(number) < 10):
        raise NoView("evaluation", f"“{number[:20]}” is not the number of an evaluation.")
    return View(
        distribution=_option_in(asked, "distribution", track.distributions, track.distribution),
        criterion=criterion,
        level=int(_option_in(asked, "level", list(LEVELS), "80")),
        sort=_option_in(asked, "sort", sort_names(track), default_sort(track, criterion)),
        all="all" in asked,
        helped=_option_in(asked, "helped", [ALL, PEOPLE], ALL),
        number=int(number) if number else None,
        population=_option_in(
            asked, "population", list(populations) or [""], kind.measures.population
        ),
    )


def view_or_404(request: HttpRequest, track: Track) -> View:
    """Return the view that the address of a page selects. Raises Http404 with a sentence."""
    try:
        return parse_view(request.GET, track)
    except NoView as problem:
        raise Http404(str(problem)) from problem


def _option_in(asked: Mapping[str, str], name: str, options: Sequence[str], fallback: str) -> str:
    fallback = fallback if fallback in options else options[0]
    value = asked.get(name, fallback)
    if value not in options:
        there = ", ".join(options)
        raise NoView(name, f"This board has no {name} “{value[:40]}”; it has {there}.")
    return value


def find_track(slug: str) -> Track | None:
    """Return the track of that slug; without one, the default: tracks with systems come first, then
    open tracks, then the newest score. None without any track. Raises Http404 for an unknown slug.
    """
    tracks = Track.objects.exclude(status="draft")
    if slug:
        return get_object_or_404(tracks, slug=slug)
    on_board = Submission.objects.on_board().filter(track=OuterRef("pk")).order_by("-scored_at")
    listed = tracks.annotate(
        has_systems=Exists(on_board), scored_at=Subquery(on_board.values("scored_at")[:1])
    )
    return listed.order_by(
        "-has_systems",
        Case(When(status="open", then=0), default=1),
        F("scored_at").desc(nulls_last=True),
        "-pk",
    ).first()


def board_for_view(track: Track, view: View) -> Board:
    """Return the board of a view. Raises NoBoard for an evaluation without one."""
    evaluation = None if view.number is None else evaluation_of(track, view.number)
    return board(
        track,
        distribution=view.distribution,
        criterion=view.criterion,
        sort=view.sort,
        evaluation=evaluation,
        population=view.population,
    )


def board_or_404(track: Track, view: View) -> Board:
    """Return the board of a view. Raises Http404."""
    try:
        return board_for_view(track, view)
    except NoBoard as problem:
        raise Http404(str(problem)) from problem


def with_default_helpers(request: HttpRequest, shown: Board, view: View) -> View:
    """Return the view with its default for `helped`: people alone if a metric or judge was added
    after the judgments.
    """
    unsaid = PEOPLE if shown.report.late_scorers else ALL
    helped = view.helped if "helped" in request.GET else unsaid
    return replace(view, helped=helped, unsaid=unsaid)


def switches(
    view: View, track: Track, report: Report, url: Callable[..., str]
) -> list[dict[str, Any]]:
    """Return the switches of a page that shows a report, limited to options with figures. `url`
    returns the page's address with changed switches.
    """
    kind = kind_of(track)
    distributions = {
        name: distribution.label
        for name, distribution in kind.measures.distributions.items()
        if name in track.distributions
        and (name == view.distribution or report.has(kind.measures.mean, view.criterion, name))
    }
    criteria = {
        criterion.name: criterion.label
        for criterion in kind.measures.criteria
        if criterion.name == view.criterion
        or any(report.has(kind.measures.mean, criterion.name, name) for name in track.distributions)
    }
    populations = kind.words.populations if kind.measures.population else {}
    groups = [
        ("What counts the same", "distribution", distributions),
        ("What is judged", "criterion", criteria),
        ("Intervals hold for", "population", populations),
        ("Interval written out", "level", LEVELS),
    ]
    return [
        {
            "name": name,
            "of": key,
            "options": [
                {
                    "url": url(**{key: value}),
                    "text": text,
                    "current": str(getattr(view, key)) == value,
                }
                for value, text in options.items()
            ],
        }
        for name, key, options in groups
        if len(options) > 1  # else there is nothing to choose
    ]


def helper_switch(shown: Board, view: View, address: str) -> list[dict[str, Any]]:
    """Return the switch between people alone and people with all metrics and judges."""
    if all(row.saved is None for row in shown.rows) and not shown.report.late_scorers:
        return []
    words = {PEOPLE: "People alone", ALL: "All metrics and judges"}
    options = [
        {
            "url": view.url(address, helped=value),
            "text": text,
            "current": view.helped == value,
        }
        for value, text in words.items()
    ]
    return [{"name": "Helped by", "options": options, "key": "m", "verb": "metrics and judges"}]


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
"""What is told of an evaluation's report: nothing that speaks of single systems, for some are
not public"""


def board_table(shown: Board) -> tuple[list[str], list[list[Any]]]:
    """Return the header and the rows of the CSV file, one row for each system."""
    blank = Row(Submission(track=shown.track, team=Team()), "")
    rows = [list(_csv_record(shown, row).values()) for row in shown.rows]
    return list(_csv_record(shown, blank)), rows


def _csv_record(shown: Board, row: Row) -> dict[str, Any]:
    kind, submission = kind_of(shown.track), row.submission
    best, worst = row.rank or (None, None)
    record: dict[str, Any] = {
        "team": submission.public_team,
        "system": submission.public_name,
        "rank_best": best,
        "rank_worst": worst,
        "labels": row.n_labels,
        **_judges_as_json(shown, row),
        "note": row.note,
    }
    if recall_of(shown.track) is not None:
        record["documents"] = row.n_documents
    for column in kind.measures.columns:
        record |= _figure_cells(column.name, row.figure(column.name))
    for criterion in kind.measures.criteria_beside(shown.criterion):
        drawn, beside = kind.measures.headline(criterion.name), row.beside.get(criterion.name)
        figure = beside.figure(kind.measures.column_of(drawn).name) if beside is not None else None
        record |= _figure_cells(f"beside_{criterion.name}", figure)
    for column in kind.measures.columns:
        if any(column.name in other.bootstrap for other in shown.rows):
            low, high = row.bootstrap.get(column.name, (None, None))
            record |= {
                f"{column.name}_bootstrap_low80": low,
                f"{column.name}_bootstrap_high80": high,
            }
    if any(other.saved is not None for other in shown.rows):
        record["saved"] = row.saved
    if shown.population:
        record["population"] = shown.population
    links = submission.public_links
    record |= {"submission": submission.pk, "role": submission.role}
    return record | {"paper": links.get("Paper"), "code": links.get("Code")}


def _figure_cells(name: str, figure: Figure | None) -> dict[str, float | None]:
    cells = (figure or Figure()).cells()
    return {f"{name}_{end}": cell for end, cell in zip(ENDS, cells, strict=True)}


def board_as_json(shown: Board) -> dict[str, Any]:
    """Return a board as JSON: the same figures as on the page, unrounded."""
    kind = kind_of(shown.track)
    return {
        "track": track_as_json(shown.track),
        "evaluation": _evaluation_as_json(shown),
        "distribution": shown.distribution,
        "criterion": shown.criterion,
        "population": shown.population,
        "level": shown.level,
        "columns": [
            {
                "name": column.name,
                "label": kind.measures.printed(column.quantity, shown.criterion).label,
            }
            for column in kind.measures.columns
            if column.place in ("first", "second")
            and kind.measures.quantity(column.quantity).of(shown.criterion)
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
                "judges": _judges_as_json(shown, row),
                **{
                    column.name: _figure_as_json(row, column.name)
                    for column in kind.measures.columns
                },
            }
            for row in shown.rows
        ],
        "cannot_be_told_apart": [
            [shown.rows[index].submission.pk for index in group] for group in shown.groups
        ],
        "strengths": _strengths_as_json(shown),
        "being_judged": [
            {"team": submission.public_team, "name": submission.public_name}
            for submission in shown.being_judged
        ],
    }


def _judges_as_json(shown: Board, row: Row) -> dict[str, Any]:
    """Return the quality of the judgments of a system: number of answers and their agreement,
    difference of ratings, Fleiss’ κ of the track, errors on known questions, and the number of
    judgments that experts checked.
    """
    judges = judges_of(shown.evaluation, row.submission)
    return judges_json(judges, reliability_for_board(shown)) | {"checked": row.n_checked}


def _evaluation_as_json(shown: Board) -> dict[str, Any] | None:
    row = shown.evaluation
    if row is None:
        return None
    return {
        "number": row.number,
        "made_at": row.made_at,
        "page": reverse("evaluation", args=[row.track.slug, row.number]),
        "judges": judges_json(judges_of(row), reliability_for_board(shown)),
    } | {name: as_dict(getattr(row.report, name)) for name in REPORTED}


def _figure_as_json(row: Row, column: str) -> dict[str, Any] | None:
    """Return a figure as JSON, with its published 80 % interval if there is one."""
    figure, ends = row.figure(column), row.bootstrap.get(column)
    if figure is None:
        return None
    return figure.as_json() | ({"bootstrap": ends} if ends is not None else {})


def board_strengths(shown: Board) -> dict[str, Any]:
    """Return the strengths of an evaluation under the board's criterion, with their systems; empty
    unless systems are compared in pairs.
    """
    stored = shown.report.strengths.get(shown.criterion)
    if stored is None:
        return {}
    standing = {row.submission.pk: row.submission for row in shown.rows}
    rows = [
        as_dict(strength) | {"submission": standing[strength.system]}
        for strength in stored.rows
        if strength.system in standing
    ]
    told: dict[str, Any] = as_dict(stored)
    return told | {"rows": rows}


def _strengths_as_json(shown: Board) -> dict[str, Any] | None:
    """Return the strengths of systems that are compared in pairs; None if they are judged one by
    one.
    """
    strengths = board_strengths(shown)
    for row in strengths.get("rows", ()):
        del row["submission"]
    return strengths or None


def track_as_json(row: Track) -> dict[str, Any]:
    """Return the public data of a track. Under a criterion whose `single` is “mean” people rate:
    nothing is right or wrong.
    """
    kind = kind_of(row)
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
    return {key: getattr(row, key) for key in keys} | {
        "target_half_width": str(row.target_half_width),
        "confidence_level": str(row.confidence_level),
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


def cite_board(request: HttpRequest, shown: Board) -> dict[str, str]:
    """Return the citation of a board and its frame; empty before the first evaluation."""
    if shown.evaluation is None:
        return {}
    slug, evaluation = shown.track.slug, shown.evaluation
    permalink = request.build_absolute_uri(reverse("evaluation", args=[slug, evaluation.number]))
    frame = request.build_absolute_uri(reverse("board-embed", args=[slug]))
    title = f"Leaderboard of {shown.track.name}"
    return {
        "permalink": permalink,
        "bibtex": bibtex(f"{slug}-{evaluation.number}", title, "", evaluation, permalink),
        "embed": (
            f'<iframe src="{escape(frame)}" title="{escape(title)}" width="640" height="420">'
            "</iframe>"
        ),
    }
