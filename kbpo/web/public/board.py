"""The leaderboard page of a track, its CSV file, and the list of its evaluations."""

from __future__ import annotations

import gzip
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from hashlib import sha256
from typing import Any
from urllib.parse import urlencode

from django.conf import settings
from django.contrib.messages import get_messages
from django.core.cache import cache
from django.core.paginator import Paginator
from django.db.models import Count, Q, QuerySet
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, render
from django.urls import path, reverse
from django.utils.cache import patch_vary_headers
from django.views.decorators.cache import cache_control
from django.views.decorators.clickjacking import xframe_options_exempt
from django.views.decorators.gzip import gzip_page
from django.views.decorators.http import conditional_page
from django.views.decorators.vary import vary_on_cookie

from annotation.models import Question
from kbpo.evaluation.judges import judges_of
from kbpo.evaluation.leaderboard import Board, Row, saved_share
from kbpo.instances.models import Label
from kbpo.money.spend import balance
from kbpo.sampling.models import DocumentSample
from kbpo.submissions.models import Submission
from kbpo.tracks.base import Track as Kind
from kbpo.tracks.measures import Column
from kbpo.tracks.models import Track
from kbpo.tracks.recall import recall_of
from kbpo.tracks.registry import kind_of, n_inputs
from kbpo.tracks.stamps import cached_with_stamps, stamps_of
from kbpo.web.components import drawing, plots
from kbpo.web.components.drawing import Interval
from kbpo.web.components.figures import percent_text, range_text
from kbpo.web.expensive import expensive
from kbpo.web.http import in_snapshot
from kbpo.web.public.board_view import (
    PEOPLE,
    SWITCHES,
    View,
    board_or_404,
    board_strengths,
    board_table,
    cite_board,
    find_track,
    helper_switch,
    switches,
    view_or_404,
    with_default_helpers,
)
from kbpo.web.public.judges import sentences_on_board
from kbpo.web.table import csv_response
from scoring.report import Figure
from scoring.saved import UNAIDED

EMBEDDED_ROWS = 10
ROWS_AT_FIRST = 14
"""Rows that are shown before 'Show the others'."""
ACCEPTS_GZIP = re.compile(r"\bgzip\b(?!\s*;\s*q=0(\.0*)?\s*(,|$))")
_TRACKS: dict[str, int] = {}
"""Slug of an address -> the track that this process drew last for it"""


@gzip_page
@cache_control(no_cache=True)
@vary_on_cookie
@conditional_page
def show_board(request: HttpRequest, slug: str = "", number: int | None = None) -> HttpResponse:
    """Show the board of a track, or of the busiest track without a slug; with a number, the board
    of that evaluation.

    The page has an ETag, and anonymous visitors share a cached copy.
    """
    if request.COOKIES.get(settings.SESSION_COOKIE_NAME) or get_messages(request):
        return _draw_page(request, slug, number)
    return cached_page(request, slug, lambda slug: _draw_page(request, slug, number))


def cached_page(
    request: HttpRequest, slug: str, draw: Callable[[str], HttpResponse]
) -> HttpResponse:
    """Return the cached page for anonymous visitors; `draw` renders it if it is not cached or out
    of date.
    """
    if not settings.PAGES_KEPT_SECONDS:
        return draw(slug)
    key = _cache_key(request)
    page, stamps = _read_cached_page(key, slug)
    if page is None or page.stamps != stamps:
        track = find_track(slug)
        if track is None:
            return draw(slug)
        stamps = stamps_of(track.pk)  # before anything of it is read
        page = _CachedPage.of(draw(track.slug), track.pk, stamps)
        cache.set(key, page, timeout=settings.PAGES_KEPT_SECONDS)
        _TRACKS[slug] = track.pk
    return page.answer(request)


def _read_cached_page(key: str, slug: str) -> tuple[_CachedPage | None, tuple[str, ...]]:
    """Return the cached page and the current stamps of its track. One request to Redis is enough if
    this process knows the track of the address.
    """
    guess = _TRACKS.get(slug)
    page, stamps = (cache.get(key), ()) if guess is None else cached_with_stamps(key, guess)
    if page is None:
        return None, ()
    if page.track != guess:
        _TRACKS[slug] = page.track
        stamps = stamps_of(page.track)
    return page, stamps


@dataclass(frozen=True)
class _CachedPage:
    """A compressed board page for anonymous visitors. It is valid while the stamps of its track are
    unchanged; everything else on it (open questions, team names, money) is at most
    PAGES_KEPT_SECONDS old.
    """

    track: int
    stamps: tuple[str, ...]
    etag: str
    packed: bytes

    @classmethod
    def of(cls, drawn: HttpResponse, track: int, stamps: tuple[str, ...]) -> _CachedPage:
        """Return the page that was rendered under these stamps."""
        etag = f'W/"{sha256(drawn.content).hexdigest()[:32]}"'
        return cls(track, stamps, etag, gzip.compress(drawn.content, 6))

    def answer(self, request: HttpRequest) -> HttpResponse:
        """Return the response, uncompressed for the rare client without gzip."""
        headers = {"ETag": self.etag}
        if ACCEPTS_GZIP.search(request.headers.get("Accept-Encoding", "")):
            headers["Content-Encoding"] = "gzip"
            answer = HttpResponse(self.packed, headers=headers)
        else:
            answer = HttpResponse(gzip.decompress(self.packed), headers=headers)
        patch_vary_headers(answer, ["Accept-Encoding"])
        return answer


def _cache_key(request: HttpRequest) -> str:
    """Return the cache key of a page: its address with the known switches only, so that nobody can
    fill the cache.
    """
    asked = [(name, request.GET[name][:20]) for name in SWITCHES if name in request.GET]
    parts = [settings.VERSION, request.build_absolute_uri(request.path), asked]
    return f"board:{sha256(repr(parts).encode()).hexdigest()}"


@in_snapshot
def _draw_page(request: HttpRequest, slug: str, number: int | None) -> HttpResponse:
    track = find_track(slug)
    if track is None:
        return render(request, "leaderboard.html", {"track": None})
    view = view_or_404(request, track)
    if number is not None:
        view = replace(view, number=number)
    shown = board_or_404(track, view)
    view = with_default_helpers(request, shown, view)
    return render(request, "leaderboard.html", board_context(request, track, view, shown))


def board_context(request: HttpRequest, track: Track, view: View, shown: Board) -> dict[str, Any]:
    address = reverse("board", args=[track.slug])
    if view.number is not None:
        address = reverse("evaluation", args=[track.slug, view.number])
    asked = {} if view.number is None else {"evaluation": str(view.number)}
    mine = set(getattr(request.user, "team_keys", ()))
    kind = kind_of(track)
    rows = shown.rows if view.all else shown.rows[:ROWS_AT_FIRST]
    ties = [[place for place in group if place < len(rows)] for group in shown.groups]
    lanes, parts = drawing.pack_ties([tie for tie in ties if len(tie) > 1], len(rows))
    heads = column_heads(kind, view, address, shown.rows)
    sorted_by = {
        name: {"url": view.url(address, sort=name), "current": view.sort == name}
        for name in ("name", "labels")
    }
    drawn = [
        row_cells(shown, heads, row, mine, view) | {"parts": part}
        for row, part in zip(rows, parts, strict=True)
    ]
    return {
        "track": track,
        "kind": kind,
        "words": kind.words,
        "board": shown,
        "view": view,
        "columns": heads,
        "rows": drawn,
        "has_few": has_few(drawn),
        "lanes": lanes,
        "level": f"{shown.level:.0%}".replace("%", " %") if shown.level else "",
        "others": 0 if view.all else max(0, len(shown.rows) - ROWS_AT_FIRST),
        "heads": sorted_by,
        "switches": [
            *switches(view, track, shown.report, partial(view.url, address)),
            *helper_switch(shown, view, address),
        ],
        "strengths": board_strengths(shown),
        "facts": board_facts(track, shown),
        "judges": sentences_on_board(shown),
        "has_published": has_published(kind, shown.rows),
        "has_expert": has_expert(kind, shown.rows),
        "has_saved": any(row.saved is not None for row in shown.rows),
        "shows_alone": view.helped != PEOPLE,
        "helped_by": {
            "n": len(shown.report.used_scorers),
            "best": shown.report.best_scorer.get(view.criterion, ""),
            "saved": saved_share(shown),
            "late": shown.report.late_scorers,
        },
        "cite": cite_board(request, shown),
        "has_headline": kind.measures.quantities[0].of(view.criterion),
        "all_url": view.url(address, all="1"),
        "downloads": {
            "csv": view.url(reverse("board-csv", args=[track.slug]), **asked),
            "json": _json_address(track, view),
        },
        "points": _plot_points(kind, shown.rows),
        "finding": _plot_sentence(shown.rows) if kind.measures.plotted else "",
        "other_tracks": Track.objects.exclude(status="draft").exclude(pk=track.pk).order_by("name"),
    }


def _json_address(track: Track, view: View) -> str:
    """Return the address of the same board in the API."""
    switches = {"distribution": view.distribution, "criterion": view.criterion, "sort": view.sort}
    switches |= {"population": view.population}
    switches["evaluation"] = "" if view.number is None else str(view.number)
    chosen = urlencode({name: value for name, value in switches.items() if value})
    return f"{reverse('api-board', args=[track.slug])}?{chosen}"


def _plot_points(kind: Kind, rows: Iterable[Row]) -> list[plots.Point]:
    """Return the points of the plot of two columns against each other."""
    if kind.measures.plotted is None:
        return []
    across, up = kind.measures.plotted
    return [
        plots.Point(
            row.submission.full_name,
            Interval.of(row.figure(up)),
            Interval.of(row.figure(across)),
            first=index == 0,
        )
        for index, row in enumerate(rows)
        if row.value(up) is not None and row.value(across) is not None
    ]


def _plot_sentence(rows: Sequence[Row]) -> str:
    scored = [row for row in rows if row.value(row.mean) is not None]
    if not scored:
        return "No system has both numbers yet."
    precise = max(scored, key=lambda row: row.value(row.mean) or 0.0)
    leader, most = (row.submission.full_name for row in (rows[0], precise))
    return f"{leader} is first; {most} is the most precise."


@expensive
@in_snapshot
def board_csv(request: HttpRequest, slug: str) -> HttpResponse:
    """Return the board as CSV: one row for each system, with unrounded figures."""
    track = get_object_or_404(Track.objects.exclude(status="draft"), slug=slug)
    view = view_or_404(request, track)
    shown = board_or_404(track, view)
    header, rows = board_table(shown)
    past = f"-{shown.evaluation.number}" if shown.past and shown.evaluation else ""
    filename = f"{track.slug}-{view.distribution}-{view.criterion}{past}.csv"
    return csv_response(filename, header, rows)


def list_evaluations(request: HttpRequest, slug: str) -> HttpResponse:
    """Show the public evaluations of a track and its withdrawn runs."""
    track = get_object_or_404(Track.objects.exclude(status="draft"), slug=slug)
    listed = track.evaluations.listed().order_by("-number")
    page = Paginator(listed, 50).get_page(request.GET.get("page"))
    context = {
        "track": track,
        "page": page,
        "evaluations": [(evaluation, len(evaluation.standing)) for evaluation in page],
        "withdrawn": withdrawn_runs(track),
    }
    return render(request, "evaluations.html", context)


def withdrawn_runs(track: Track) -> QuerySet[Submission]:
    """Return at most 200 withdrawn runs that were on the board, the latest first."""
    gone = Submission.objects.filter(
        track=track, status="withdrawn", scored_at__isnull=False, is_private=False
    )
    return gone.select_related("team").order_by("-withdrawn_at")[:200]


@gzip_page
@xframe_options_exempt
@cache_control(public=True, max_age=300)
def embedded_board(request: HttpRequest, slug: str) -> HttpResponse:
    """Return the first rows of the board for a frame on any other site, the same for everybody."""
    response = cached_page(request, slug, lambda slug: _draw_embedded(request, slug))
    response["Content-Security-Policy"] = "frame-ancestors *; form-action 'none'"
    return response


@in_snapshot
def _draw_embedded(request: HttpRequest, slug: str) -> HttpResponse:
    track = get_object_or_404(Track.objects.exclude(status="draft"), slug=slug)
    view = view_or_404(request, track)
    shown = board_or_404(track, view)
    view = with_default_helpers(request, shown, view)
    heads = [column_head(kind_of(track), shown.headline, view, "", shown.rows)]
    rows = [row_cells(shown, heads, row, set(), view) for row in shown.rows[:EMBEDDED_ROWS]]
    context = {"track": track, "board": shown, "head": heads[0], "rows": rows, "view": view}
    context |= {"has_few": has_few(rows), "words": kind_of(track).words}
    return render(request, "embed.html", context)


SAYS_NOTHING = 0.5
"""Width from which an interval small under a figure is not printed, as a share of the range: of
two people who rate, say, nobody knows how much people differ."""


def column_head(
    kind: Kind, column: Column, view: View, address: str, rows: Sequence[Row]
) -> dict[str, Any]:
    """Return the header of a plotted column; `has` tells whether the criterion has this
    quantity.
    """
    quantity = kind.measures.printed(column.quantity, view.criterion)
    ticks = 5 if column.place == "first" else 3
    return {
        "name": column.name,
        "label": quantity.label,
        "short": quantity.short,
        "first": column.place == "first",
        "has": quantity.of(view.criterion),
        "url": view.url(address, sort=column.name),
        "current": view.sort == column.name,
        "axis": drawing.axis_over(
            [Interval.of(row.figure(column.name)) for row in rows], ticks=ticks
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
    for criterion in kind.measures.criteria_beside(view.criterion):
        column = kind.measures.column_of(kind.measures.headline(criterion.name))
        rows_beside = [row.beside.get(criterion.name) for row in rows]
        drawn = [Interval.of(row.figure(column.name)) for row in rows_beside if row is not None]
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
    shown: Board, heads: list[dict[str, Any]], row: Row, mine: set[int], view: View
) -> dict[str, Any]:
    """Return the cells of a row under these headers; `mine` are the teams of the visitor."""
    kind, evaluation = kind_of(shown.track), shown.evaluation
    published = _published_figures(kind, row, view.criterion)
    compared = [figure for figure in published if figure["quantity"] == kind.measures.mean]
    return {
        "submission": row.submission,
        "mine": row.submission.team_id in mine,
        "rank": rank_text(row),
        "judged": row.n_labels,
        "saved": savings_text(row.saved),
        "figures": {
            column.name: Interval.of(row.figure(column.name)) for column in kind.measures.columns
        },
        "cells": [_figure_cell(shown, row, head, view) for head in heads],
        "published": published,
        "no_published": all(figure["interval"].estimate is None for figure in compared),
        "kind": bar_kind(row, shown.past),
        "judges": judges_of(evaluation, row.submission),
        "url": (
            reverse("submission", args=[row.submission.pk]) if row.submission.is_on_board else ""
        ),
    }


def _figure_cell(shown: Board, row: Row, head: dict[str, Any], view: View) -> dict[str, Any]:
    """Return one plotted figure with the notes beneath it (corrected figures) and
    the interval from people alone if metrics narrow it. For another criterion only the figure is
    returned.
    """
    kind, criterion = kind_of(shown.track), head.get("criterion", view.criterion)
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
            drawn = Interval.of(drawn_row.figure(column.name))
            if drawn.estimate is not None:
                low, high = drawn.low80, drawn.high80
                too_wide = low is not None and high is not None and high - low >= SAYS_NOTHING
                beneath.append({"label": column.label, "interval": drawn, "too_wide": too_wide})
    if alone is not None and view.helped == PEOPLE:
        figure, alone = alone, None
    return {
        "head": head,
        "interval": Interval.of(figure),
        "n": drawn_row.n_labels,
        "kind": bar_kind(drawn_row, shown.past, figure),
        "alone": Interval.of(alone) if alone is not None else None,
        "exact": figure is not None and figure.is_exact,
        "too_few": figure is not None and figure.is_withheld,
        "beneath": beneath,
    }


def _published_figures(kind: Kind, row: Row, criterion: str) -> list[dict[str, Any]]:
    """Return the figures of the published estimators under a criterion, in the order of the
    quantities.
    """
    order = [quantity.name for quantity in kind.measures.quantities if quantity.of(criterion)]
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
                "interval": Interval.of(figure),
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
    the mean) has few judgments.
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


def board_facts(track: Track, shown: Board) -> dict[str, Any]:
    """Return the four facts beside the board: systems and teams, inputs (and those read in full),
    judgments, and money spent. Judgments of the texts are shared by all tracks of the corpus;
    `judged_elsewhere` counts those that were ordered on other tracks only.
    """
    money = balance(track=track)
    kind = kind_of(track)
    labels_of = Label.objects.filter(target__corpus=track.corpus_id, target__kind=kind.target_kind)
    labels = labels_of.filter(
        source__in=("crowd",) if recall_of(track) else ("crowd", "import")
    ).exclude(value={})
    ours = Question.objects.filter(track=track).values("pk")  # looked up once, not for each label
    here = Q(question=None) | Q(question__in=ours)
    counted = labels.aggregate(
        judged=Count("target", distinct=True),
        here=Count("target", distinct=True, filter=here),
        imported=Count("pk", filter=Q(source="import")),
    )
    imports = labels_of.filter(source="import")
    if shown.evaluation is not None:
        read_in_full = shown.evaluation.report.documents
    else:
        read_in_full = DocumentSample.objects.filter(track=track, settled_at__isnull=False).count()
    return {
        "systems": len(shown.rows),
        "teams": len({row.submission.public_team for row in shown.rows}),
        "inputs": n_inputs(track),
        "read_in_full": read_in_full if recall_of(track) else None,
        "judged": counted["judged"],
        "judged_here": counted["here"],
        "judged_elsewhere": counted["judged"] - counted["here"],
        "has_imported": counted["imported"] > 0,
        "imported_alone": counted["judged"] == 0 and imports.exists(),
        "spent": money.spent,
    }


urlpatterns = [
    path("", show_board, name="home"),
    path("tracks/<slug:slug>/", show_board, name="board"),
    path("tracks/<slug:slug>/board.csv", board_csv, name="board-csv"),
    path("tracks/<slug:slug>/evaluations/", list_evaluations, name="evaluations"),
    path("tracks/<slug:slug>/evaluations/<int:number>/", show_board, name="evaluation"),
    path("tracks/<slug:slug>/embed/", embedded_board, name="board-embed"),
]
