"""The leaderboard page of a track, its CSV file, and the list of its evaluations."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Any
from urllib.parse import urlencode

from django.conf import settings
from django.contrib.messages import get_messages
from django.core.paginator import Paginator
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, render
from django.urls import path, reverse
from django.views.decorators.cache import cache_control
from django.views.decorators.clickjacking import xframe_options_exempt
from django.views.decorators.gzip import gzip_page
from django.views.decorators.http import conditional_page
from django.views.decorators.vary import vary_on_cookie

from kbpo.evaluation.leaderboard import Board, saved_share
from kbpo.submissions.models import Submission
from kbpo.tracks.models import Track
from kbpo.tracks.registry import kind_of
from kbpo.web.components import drawing
from kbpo.web.expensive import limit_concurrency
from kbpo.web.http import in_snapshot
from kbpo.web.kept import cached_page
from kbpo.web.public.board_files import board_strengths, board_table, cite_board
from kbpo.web.public.board_rows import (
    board_facts,
    column_head,
    column_heads,
    has_expert,
    has_few,
    has_published,
    plot_points,
    plot_sentence,
    row_cells,
)
from kbpo.web.public.board_view import (
    PEOPLE,
    SWITCHES,
    View,
    board_or_404,
    find_track,
    helper_switch,
    view_or_404,
    view_switches,
    with_default_helpers,
)
from kbpo.web.public.judges import board_reliability_sentences
from kbpo.web.table import csv_download

EMBEDDED_ROWS = 10
ROWS_AT_FIRST = 14
"""Number of rows that are shown before 'Show the others'"""


@gzip_page
@cache_control(no_cache=True)
@vary_on_cookie
@conditional_page
def show_board(request: HttpRequest, slug: str = "", number: int | None = None) -> HttpResponse:
    """Return the board of a track, or of the busiest track without a slug; with a number, the board
    of that evaluation.

    The page has an ETag, and anonymous visitors share a cached copy.
    """
    if request.COOKIES.get(settings.SESSION_COOKIE_NAME) or get_messages(request):
        return _draw_page(request, slug, number)
    return cached_page(
        request, slug, SWITCHES, find_track, lambda slug: _draw_page(request, slug, number)
    )


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


def board_context(request: HttpRequest, track: Track, view: View, board: Board) -> dict[str, Any]:
    address = reverse("board", args=[track.slug])
    if view.number is not None:
        address = reverse("evaluation", args=[track.slug, view.number])
    asked = {} if view.number is None else {"evaluation": str(view.number)}
    mine = set(getattr(request.user, "team_keys", ()))
    kind = kind_of(track)
    rows = board.rows if view.all else board.rows[:ROWS_AT_FIRST]
    ties = [[place for place in group if place < len(rows)] for group in board.groups]
    lanes, parts = drawing.pack_ties([tie for tie in ties if len(tie) > 1], len(rows))
    heads = column_heads(kind, view, address, board.rows)
    sorted_by = {
        name: {"url": view.url(address, sort=name), "current": view.sort == name}
        for name in ("name", "labels")
    }
    drawn = [
        row_cells(board, heads, row, mine, view) | {"parts": part}
        for row, part in zip(rows, parts, strict=True)
    ]
    return {
        "track": track,
        "kind": kind,
        "words": kind.words,
        "board": board,
        "view": view,
        "columns": heads,
        "rows": drawn,
        "has_few": has_few(drawn),
        "lanes": lanes,
        "level": f"{board.level:.0%}".replace("%", " %") if board.level else "",
        "others": 0 if view.all else max(0, len(board.rows) - ROWS_AT_FIRST),
        "heads": sorted_by,
        "switches": [
            *view_switches(view, track, board.report, partial(view.url, address)),
            *helper_switch(board, view, address),
        ],
        "strengths": board_strengths(board),
        "facts": board_facts(track, board),
        "judges": board_reliability_sentences(board),
        "has_published": has_published(kind, board.rows),
        "has_expert": has_expert(kind, board.rows),
        "has_saved": any(row.saved is not None for row in board.rows),
        "shows_alone": view.helped != PEOPLE,
        "helped_by": {
            "n": len(board.report.used_scorers),
            "best": board.report.best_scorer.get(view.criterion, ""),
            "saved": saved_share(board),
            "late": board.report.late_scorers,
        },
        "cite": cite_board(request, board),
        "has_headline": kind.measures.quantities[0].applies_to(view.criterion),
        "all_url": view.url(address, all="1"),
        "downloads": {
            "csv": view.url(reverse("board-csv", args=[track.slug]), **asked),
            "json": _json_address(track, view),
        },
        "points": plot_points(kind, board.rows),
        "finding": plot_sentence(board.rows) if kind.measures.plotted else "",
        "other_tracks": Track.objects.exclude(status="draft").exclude(pk=track.pk).order_by("name"),
    }


def _json_address(track: Track, view: View) -> str:
    """Return the address of the same board in the API."""
    switches = {"distribution": view.distribution, "criterion": view.criterion, "sort": view.sort}
    switches |= {"population": view.population}
    switches["evaluation"] = "" if view.number is None else str(view.number)
    chosen = urlencode({name: value for name, value in switches.items() if value})
    return f"{reverse('api-board', args=[track.slug])}?{chosen}"


@limit_concurrency
@in_snapshot
def board_csv(request: HttpRequest, slug: str) -> HttpResponse:
    """Return the board as CSV: one row for each system, with unrounded figures."""
    track = get_object_or_404(Track.objects.exclude(status="draft"), slug=slug)
    view = view_or_404(request, track)
    shown = board_or_404(track, view)
    header, rows = board_table(shown)
    past = f"-{shown.evaluation.number}" if shown.past and shown.evaluation else ""
    filename = f"{track.slug}-{view.distribution}-{view.criterion}{past}.csv"
    return csv_download(filename, header, rows)


def list_evaluations(request: HttpRequest, slug: str) -> HttpResponse:
    """Return the public evaluations of a track and its withdrawn runs."""
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
    """Return the first rows of the board for a frame on another site; the same for all visitors."""
    response = cached_page(
        request, slug, SWITCHES, find_track, lambda slug: _draw_embedded(request, slug)
    )
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


urlpatterns = [
    path("", show_board, name="home"),
    path("tracks/<slug:slug>/", show_board, name="board"),
    path("tracks/<slug:slug>/board.csv", board_csv, name="board-csv"),
    path("tracks/<slug:slug>/evaluations/", list_evaluations, name="evaluations"),
    path("tracks/<slug:slug>/evaluations/<int:number>/", show_board, name="evaluation"),
    path("tracks/<slug:slug>/embed/", embedded_board, name="board-embed"),
]
