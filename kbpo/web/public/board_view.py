"""Parses the switches in the address of a board, for its page, its files and the API."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any
from urllib.parse import urlencode

from django.db.models import Case, Exists, F, OuterRef, Subquery, When
from django.http import Http404, HttpRequest
from django.shortcuts import get_object_or_404

from kbpo.evaluation.leaderboard import (
    Board,
    NoBoard,
    default_sort,
    evaluation_by_number,
    read_board,
    sort_names,
)
from kbpo.submissions.models import Submission
from kbpo.tracks.models import Track
from kbpo.tracks.registry import kind_of
from scoring.report import Report

LEVELS = {"80": "80 %", "95": "95 %"}
SWITCHES = (
    *("distribution", "criterion", "population", "level"),
    *("sort", "helped", "all", "evaluation"),
)
"""Parameters in the address of a board"""
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
    """The source of the first column: `PEOPLE` alone, or `ALL` metrics and judges too"""
    unsaid: str = ALL
    """Default of `helped`, if the address does not state it"""
    number: int | None = None
    """Number of the evaluation whose board is selected"""
    population: str = ""
    """Population of the numbers; empty for kinds with a single population"""

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
    """Raised for an unknown value of a switch; the text is a sentence."""

    def __init__(self, name: str, text: str) -> None:
        super().__init__(text)
        self.name = name


def parse_view(parameters: Mapping[str, str], track: Track) -> View:
    """Return the view that query parameters select; defaults are the guaranteed figures of the
    track. Raises NoView.
    """
    kind = kind_of(track)
    criterion = _option_in(
        parameters, "criterion", kind.measures.criterion_names(), track.criterion
    )
    populations = kind.words.populations if kind.measures.population else {}
    number = parameters.get("evaluation", "")
    if number and not (number.isascii() and number.isdecimal() and 0 < len(number) < 10):
        raise NoView("evaluation", f"“{number[:20]}” is not the number of an evaluation.")
    return View(
        distribution=_option_in(
            parameters, "distribution", track.distributions, track.distribution
        ),
        criterion=criterion,
        level=int(_option_in(parameters, "level", list(LEVELS), "80")),
        sort=_option_in(parameters, "sort", sort_names(track), default_sort(track, criterion)),
        all="all" in parameters,
        helped=_option_in(parameters, "helped", [ALL, PEOPLE], ALL),
        number=int(number) if number else None,
        population=_option_in(
            parameters, "population", list(populations) or [""], kind.measures.population
        ),
    )


def view_or_404(request: HttpRequest, track: Track) -> View:
    """Return the view that the address of a page selects. Raises Http404 with a sentence."""
    try:
        return parse_view(request.GET, track)
    except NoView as problem:
        raise Http404(str(problem)) from problem


def _option_in(
    parameters: Mapping[str, str], name: str, options: Sequence[str], fallback: str
) -> str:
    fallback = fallback if fallback in options else options[0]
    value = parameters.get(name, fallback)
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
    evaluation = None if view.number is None else evaluation_by_number(track, view.number)
    return read_board(
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


def with_default_helpers(request: HttpRequest, board: Board, view: View) -> View:
    """Return the view with its default for `helped`: intervals from people alone if a metric or
    judge was added after the judgments.
    """
    unsaid = PEOPLE if board.report.late_scorers else ALL
    helped = view.helped if "helped" in request.GET else unsaid
    return replace(view, helped=helped, unsaid=unsaid)


def view_switches(
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
        and (
            name == view.distribution
            or report.has_quantity(kind.measures.mean, view.criterion, name)
        )
    }
    criteria = {
        criterion.name: criterion.label
        for criterion in kind.measures.criteria
        if criterion.name == view.criterion
        or any(
            report.has_quantity(kind.measures.mean, criterion.name, name)
            for name in track.distributions
        )
    }
    populations = kind.words.populations if kind.measures.population else {}
    groups = [
        ("Equal weight for", "distribution", distributions),
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


def helper_switch(board: Board, view: View, address: str) -> list[dict[str, Any]]:
    """Return the switch between intervals from people alone and intervals from people with all
    metrics and judges.
    """
    if all(row.saved is None for row in board.rows) and not board.report.late_scorers:
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
