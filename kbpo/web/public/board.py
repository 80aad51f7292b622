"""The leaderboard: public, the home page too; every switch is in the URL."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlencode

from django.http import Http404, HttpRequest, HttpResponse, JsonResponse
from django.shortcuts import get_object_or_404, render
from django.urls import path, reverse
from django.views.decorators.cache import cache_control
from django.views.decorators.http import conditional_page

from kbpo.accounts.models import User
from kbpo.evaluation.leaderboard import SORTS, Board, Figure, Row, board
from kbpo.instances.models import Label
from kbpo.money.spend import balance
from kbpo.sampling.models import DocumentSample
from kbpo.tracks.models import Track
from kbpo.tracks.registry import kind_of
from kbpo.web.api.tracks import CORRECTED, PARTS, PUBLISHED, as_json
from kbpo.web.components import drawing, plots
from kbpo.web.csv import csv_response

DISTRIBUTIONS = {
    "instance": "Every prediction",
    "relation": "Every relation",
    "entity": "Every entity",
    "entity_relation": "Entity × relation",
}
CRITERIA = {"correct": "All of it", "relation": "Relation", "linking": "Linking"}
LEVELS = {"80": "80 %", "95": "95 %"}
SHORT = 14
"""Rows that are shown before 'Show the others'."""


@dataclass(frozen=True)
class View:
    """What the URL asks for."""

    distribution: str
    criterion: str
    level: int
    sort: str
    all: bool

    def url(self, address: str, **changes: str) -> str:
        """The address with this view's switches, some of them changed."""
        said = {
            "distribution": self.distribution,
            "criterion": self.criterion,
            "level": str(self.level),
        }
        said |= {"sort": self.sort} | ({"all": "1"} if self.all else {}) | changes
        return f"{address}?{urlencode(said)}"


def home(request: HttpRequest) -> HttpResponse:
    """The board of the newest track that takes submissions; a welcome if there is none."""
    tracks = Track.objects.exclude(status="draft").order_by("status", "-pk")
    track = next((one for one in tracks if one.status == "open"), tracks.first())
    return (
        show(request, track.slug) if track else render(request, "leaderboard.html", {"track": None})
    )


@cache_control(no_cache=True)
@conditional_page
def show(request: HttpRequest, slug: str) -> HttpResponse:
    """A track's board. It carries an ETag, so that a reader who comes back is answered without a
    page.
    """
    track = get_object_or_404(Track.objects.exclude(status="draft"), slug=slug)
    view = read(request, track)
    shown = board(track, distribution=view.distribution, criterion=view.criterion, sort=view.sort)
    return render(request, "leaderboard.html", context(request, track, view, shown))


def read(request: HttpRequest, track: Track) -> View:
    """The view that a URL asks for; what the track guarantees where it asks for nothing.

    Raises Http404 with a sentence for a switch that does not exist.
    """
    criteria = [name for name in CRITERIA if name in kind_of(track).criteria]
    distribution = _choice(request, "distribution", track.distributions, track.distribution)
    criterion = _choice(request, "criterion", criteria, track.criterion)
    level = _choice(request, "level", list(LEVELS), "80")
    sort = _choice(request, "sort", SORTS, "precision" if criterion == "linking" else "f1")
    return View(distribution, criterion, int(level), sort, "all" in request.GET)


def _choice(request: HttpRequest, name: str, options: Sequence[str], fallback: str) -> str:
    fallback = fallback if fallback in options else options[0]
    value = request.GET.get(name, fallback)
    if value not in options:
        raise Http404(f"This board has no {name} “{value[:40]}”; it has {', '.join(options)}.")
    return value


def context(request: HttpRequest, track: Track, view: View, shown: Board) -> dict[str, Any]:
    address = reverse("board", args=[track.slug])
    mine = (
        set(request.user.teams.values_list("pk", flat=True))
        if isinstance(request.user, User)
        else set()
    )
    rows = shown.rows if view.all else shown.rows[:SHORT]
    groups = [
        kept for group in shown.groups if len(kept := [at for at in group if at < len(rows)]) > 1
    ]
    lanes, parts = drawing.pack_ties(groups, len(rows))
    intervals = {
        part: [interval(getattr(row, part)) for row in shown.rows]
        for part in ("f1", "precision", "recall")
    }
    return {
        "track": track,
        "board": shown,
        "view": view,
        "rows": [_row(row, mine) | {"parts": part} for row, part in zip(rows, parts, strict=True)],
        "lanes": lanes,
        "level": f"{shown.level:.0%}".replace("%", " %") if shown.level else "",
        "others": 0 if view.all else max(0, len(shown.rows) - SHORT),
        "axes": {
            "f1": drawing.axis_over(intervals["f1"]),
            "precision": drawing.axis_over(intervals["precision"], ticks=3),
            "recall": drawing.axis_over(intervals["recall"], ticks=3),
        },
        "heads": {
            name: {"url": view.url(address, sort=name), "current": view.sort == name}
            for name in SORTS
        },
        "switches": _switches(view, track, address),
        "facts": facts(track, shown),
        "has_expert": any(row.expert and row.expert.value is not None for row in shown.rows),
        "has_f1": view.criterion != "linking",
        "is_linking": view.criterion == "linking",
        "all_url": view.url(address, all="1"),
        "downloads": {
            kind: view.url(reverse(f"board-{kind}", args=[track.slug])) for kind in ("csv", "json")
        },
        "points": _points(shown.rows),
        "finding": _finding(shown.rows),
        "other_tracks": Track.objects.exclude(status="draft").exclude(pk=track.pk).order_by("name"),
    }


def facts(track: Track, shown: Board) -> dict[str, Any]:
    """The four facts beside the one sentence."""
    money = balance(track=track)
    labels = Label.objects.filter(
        target__corpus=track.corpus_id, target__kind="pair", source="crowd"
    ).exclude(value={})
    return {
        "systems": len(shown.rows),
        "teams": len({row.submission.team_id for row in shown.rows}),
        "documents": track.corpus.n_documents,
        "read_in_full": DocumentSample.objects.filter(
            track=track, settled_at__isnull=False
        ).count(),
        "judged": labels.values("target").distinct().count(),
        "spent": money.spent,
    }


def interval(figure: Figure | None) -> drawing.Interval:
    """A figure as it is drawn."""
    if figure is None:
        return drawing.Interval(None)
    return drawing.Interval(figure.value, figure.low80, figure.high80, figure.low95, figure.high95)


def _row(row: Row, mine: set[int]) -> dict[str, Any]:
    shown = ("f1", "precision", "recall", *CORRECTED, *PUBLISHED)
    parts: dict[str, Any] = {part: interval(getattr(row, part)) for part in shown}
    return parts | {
        "submission": row.submission,
        "mine": row.submission.team_id in mine,
        "rank": _rank(row.rank),
        "judged": row.n_labels,
        "n": {
            part: figure.n_labels
            for part in PUBLISHED
            if (figure := getattr(row, part)) is not None
        },
        "kind": _kind(row),
        "self_claims": row.self_claims,
        "url": reverse("submission", args=[row.submission.pk]),
    }


def _kind(row: Row) -> str:
    """How its bars are drawn: outlined while more is judged that was ordered, grey where judgments
    are few.
    """
    if row.submission.status != "scored":
        return "moment"
    return "few" if row.precision and row.precision.few else "final"


def _rank(rank: tuple[int, int] | None) -> str:
    """“3”, or the range “1–4”."""
    if rank is None:
        return ""
    return str(rank[0]) if rank[0] == rank[1] else f"{rank[0]}–{rank[1]}"


def _switches(view: View, track: Track, address: str) -> list[dict[str, Any]]:
    criteria = kind_of(track).criteria
    groups = [
        (
            "What counts the same",
            "distribution",
            {k: v for k, v in DISTRIBUTIONS.items() if k in track.distributions},
        ),
        ("What is judged", "criterion", {k: v for k, v in CRITERIA.items() if k in criteria}),
        ("Interval written out", "level", LEVELS),
    ]
    return [
        {
            "name": name,
            "options": [
                {
                    "url": view.url(address, **{key: value}),
                    "text": text,
                    "current": str(getattr(view, key)) == value,
                }
                for value, text in options.items()
            ],
        }
        for name, key, options in groups
    ]


def _points(rows: Iterable[Row]) -> list[plots.Point]:
    return [
        plots.Point(
            f"{row.submission.team.name} {row.submission.name}",
            interval(row.precision),
            interval(row.recall),
            first=at == 0,
        )
        for at, row in enumerate(rows)
        if row.precision
        and row.recall
        and row.precision.value is not None
        and row.recall.value is not None
    ]


def _finding(rows: Sequence[Row]) -> str:
    scored = [row for row in rows if row.precision and row.precision.value is not None]
    if not scored:
        return "No system has both numbers yet."
    precise = max(
        scored,
        key=lambda row: row.precision.value if row.precision and row.precision.value else 0.0,
    )
    first, most = (
        f"{one.submission.team.name} {one.submission.name}" for one in (rows[0], precise)
    )
    return f"{first} stands first; {most} is the most precise."


def as_csv(request: HttpRequest, slug: str) -> HttpResponse:
    """The board as CSV: the figures of the page, unrounded, one row a system."""
    track = get_object_or_404(Track.objects.exclude(status="draft"), slug=slug)
    view = read(request, track)
    shown = board(track, distribution=view.distribution, criterion=view.criterion, sort=view.sort)
    ends = ("value", "low80", "high80", "low95", "high95")
    header = ["team", "system", "rank_best", "rank_worst", "labels", "documents", "self_claims"]
    header += [f"{part}_{end}" for part in PARTS for end in ends]
    rows = []
    for row in shown.rows:
        figures = [getattr(getattr(row, part), end, None) for part in PARTS for end in ends]
        documents = row.recall.n_documents if row.recall else 0
        names = [row.submission.team.name, row.submission.name]
        told = [*(row.rank or (None, None)), row.n_labels, documents, row.self_claims, *figures]
        rows.append([*names, *told])
    filename = f"{track.slug}-{view.distribution}-{view.criterion}.csv"
    return csv_response(filename, header, rows)


def json(request: HttpRequest, slug: str) -> HttpResponse:
    """The board as JSON, the same as the API's."""
    track = get_object_or_404(Track.objects.exclude(status="draft"), slug=slug)
    view = read(request, track)
    return JsonResponse(
        as_json(
            board(track, distribution=view.distribution, criterion=view.criterion, sort=view.sort)
        )
    )


urlpatterns = [
    path("", home, name="home"),
    path("tracks/<slug:slug>/", show, name="board"),
    path("tracks/<slug:slug>/board.csv", as_csv, name="board-csv"),
    path("tracks/<slug:slug>/board.json", json, name="board-json"),
]
