"""The leaderboard: public, the home page too; every switch is in the URL."""

from __future__ import annotations

import gzip
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from hashlib import sha256
from typing import Any
from urllib.parse import urlencode

from django.conf import settings
from django.contrib.messages import get_messages
from django.core.cache import cache
from django.core.paginator import Paginator
from django.db.models import Case, Count, Exists, F, OuterRef, Q, QuerySet, Subquery, When
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, render
from django.urls import path, reverse
from django.utils.cache import patch_vary_headers
from django.utils.html import escape
from django.views.decorators.cache import cache_control
from django.views.decorators.clickjacking import xframe_options_exempt
from django.views.decorators.gzip import gzip_page
from django.views.decorators.http import conditional_page
from django.views.decorators.vary import vary_on_cookie
from rest_framework.renderers import JSONRenderer

from annotation.models import Question
from kbpo.accounts.models import User
from kbpo.evaluation.compare.part import soonest
from kbpo.evaluation.judges import judges_of
from kbpo.evaluation.leaderboard import (
    Board,
    Figure,
    NoBoard,
    Row,
    board,
    default_sort,
    evaluation_of,
    evaluation_on,
    sorts,
)
from kbpo.evaluation.models import Evaluation
from kbpo.evaluation.saved import late_scorers, saved_on
from kbpo.instances.models import Label
from kbpo.money.spend import balance
from kbpo.sampling.models import DocumentSample
from kbpo.submissions.models import Submission
from kbpo.tracks.base import Column
from kbpo.tracks.base import Track as Kind
from kbpo.tracks.models import Track
from kbpo.tracks.recall import recall_of
from kbpo.tracks.registry import kind_of
from kbpo.tracks.stamps import cached_with_stamps, stamps_of
from kbpo.web.api.tracks import JUDGES, as_json, judges_as_json
from kbpo.web.components import drawing, plots
from kbpo.web.components.figures import percent_text
from kbpo.web.expensive import expensive
from kbpo.web.http import at_one_moment
from kbpo.web.public import cite
from kbpo.web.public.judge_only import judge_only_scores
from kbpo.web.public.judges import of_board
from kbpo.web.public.strengths import strengths_of
from kbpo.web.table import csv_response
from scoring.data import LIKE, THESE
from scoring.saved import UNAIDED

ACCEPTS_GZIP = re.compile(r"\bgzip\b(?!\s*;\s*q=0(\.0*)?\s*(,|$))")
LEVELS = {"80": "80 %", "95": "95 %"}
SWITCHES = (
    *("distribution", "criterion", "population", "level"),
    *("sort", "helped", "all", "on", "evaluation"),
)
"""What an address of a board may say"""
LEADERBOARD = "Leaderboard of {}"
"""How a board is called where it is cited"""
EMBEDDED = 10
"""Rows on another site's page"""
SHORT = 14
"""Rows that are shown before 'Show the others'."""
PEOPLE, ALL = "0", "all"
SAYS_NOTHING = 0.5
"""Width from which an interval small under a figure is not printed, as a share of the range: of
two people who rate, say, nobody knows how much people differ."""


CSV_ENDS = ("value", "low80", "high80", "low95", "high95")
"""What a CSV file has of a figure"""
CsvPart = tuple[Sequence[str], Callable[[Row], Sequence[Any]]]
"""The heads of some columns of a CSV file, and what a system has in them"""


@dataclass(frozen=True)
class View:
    """What the URL asks for."""

    distribution: str
    criterion: str
    level: int
    sort: str
    all: bool
    helped: str = ALL
    """What makes the first column: `PEOPLE` alone, or `ALL` metrics and judges with them"""
    unsaid: str = ALL
    """What narrows it where the URL does not say"""
    on: str = ""
    """The day whose board is asked for; empty: as it stands now"""
    number: int | None = None
    """The evaluation whose board is asked for"""
    population: str = ""
    """What numbers are about; empty: what there is, of a kind that has nothing else"""

    def url(self, address: str, **changes: str) -> str:
        """The address with this view's switches, some of them changed."""
        switches = {
            "distribution": self.distribution,
            "criterion": self.criterion,
            "level": str(self.level),
        }
        switches |= {"population": self.population} if self.population else {}
        switches |= {"sort": self.sort} | ({"all": "1"} if self.all else {})
        switches["helped"] = self.helped
        switches |= ({"on": self.on} if self.on else {}) | changes
        if switches["helped"] == self.unsaid:
            del switches["helped"]
        return f"{address}?{urlencode(switches)}"


@gzip_page
@cache_control(no_cache=True)
@vary_on_cookie
@conditional_page
def show(request: HttpRequest, slug: str = "", number: int | None = None) -> HttpResponse:
    """A track's board; with a number, as that evaluation left it; without a slug that which has
    most to show. It carries an ETag, so that a reader who comes back is answered
    without a page; and who is nobody in particular shares one with everybody else.
    """
    if request.COOKIES.get(settings.SESSION_COOKIE_NAME) or get_messages(request):
        return _page(request, slug, number)
    return _shared(request, slug, lambda slug: _page(request, slug, number))


def _shared(request: HttpRequest, slug: str, draw: Callable[[str], HttpResponse]) -> HttpResponse:
    """A page that is the same for everybody, drawn by `draw` where none is kept."""
    if not settings.PAGES_KEPT_SECONDS:
        return draw(slug)
    key = _key(request)
    page, stamps = _kept(key, slug)
    if page is None or page.stamps != stamps:
        track = _track(slug)
        if track is None:
            return draw(slug)
        stamps = stamps_of(track.pk)  # before anything of it is read
        page = _Shared.of(draw(track.slug), track.pk, stamps)
        cache.set(key, page, timeout=settings.PAGES_KEPT_SECONDS)
        _TRACKS[slug] = track.pk
    return page.answer(request)


_TRACKS: dict[str, int] = {}
"""Slug of an address -> the track that this process drew last for it"""


def _kept(key: str, slug: str) -> tuple[_Shared | None, tuple[str, ...]]:
    """Return the page that is kept, and the stamps that its track has now. Redis is asked once,
    where the track is the one that this process knows of that address.
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
class _Shared:
    """A board's page for readers who are nobody in particular, compressed once. It holds as long as
    the stamps of its track are those that it was drawn under; what else it tells (labels that wait,
    names of teams, money) is PAGES_KEPT_SECONDS old at most.
    """

    track: int
    stamps: tuple[str, ...]
    etag: str
    packed: bytes

    @classmethod
    def of(cls, drawn: HttpResponse, track: int, stamps: tuple[str, ...]) -> _Shared:
        """The page that was drawn under these stamps."""
        etag = f'W/"{sha256(drawn.content).hexdigest()[:32]}"'
        return cls(track, stamps, etag, gzip.compress(drawn.content, 6))

    def answer(self, request: HttpRequest) -> HttpResponse:
        """The page; whole for the rare reader who cannot unpack it."""
        headers = {"ETag": self.etag}
        if ACCEPTS_GZIP.search(request.headers.get("Accept-Encoding", "")):
            headers["Content-Encoding"] = "gzip"
            answer = HttpResponse(self.packed, headers=headers)
        else:
            answer = HttpResponse(gzip.decompress(self.packed), headers=headers)
        patch_vary_headers(answer, ["Accept-Encoding"])
        return answer


def _key(request: HttpRequest) -> str:
    """Return what a shared page is kept under: its address, with the switches alone, so that nobody
    fills the cache by asking.
    """
    asked = [(name, request.GET[name][:20]) for name in SWITCHES if name in request.GET]
    parts = [settings.VERSION, request.build_absolute_uri(request.path), asked]
    return f"board:{sha256(repr(parts).encode()).hexdigest()}"


def _track(slug: str) -> Track | None:
    """The track of that name; without one, that which has most to show: an empty board comes last,
    a track that takes submissions before others, the newest score first. None where there is no
    track at all. Raises Http404 for a name that none has.
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


@at_one_moment
def _page(request: HttpRequest, slug: str, number: int | None) -> HttpResponse:
    """The page as it is drawn for whoever asks."""
    track = _track(slug)
    if track is None:
        return render(request, "leaderboard.html", {"track": None})
    view = read(request, track)
    if number is not None:
        view = replace(view, number=number)
    shown = of_view(track, view)
    view = _opened(request, shown, view)
    return render(request, "leaderboard.html", context(request, track, view, shown))


def _opened(request: HttpRequest, shown: Board, view: View) -> View:
    """A view as its board can tell it. Where a metric or judge came after the judgments, people
    alone stand first.
    """
    unsaid = PEOPLE if late_scorers(shown.evaluation) else ALL
    helped = view.helped if "helped" in request.GET else unsaid
    return replace(view, helped=helped, unsaid=unsaid)


def of_view(track: Track, view: View) -> Board:
    """The board that a view asks for. Raises Http404 for a day or a number without one."""
    evaluation = None
    try:
        if view.number is not None:
            evaluation = evaluation_of(track, view.number)
        elif view.on:
            evaluation = evaluation_on(track, view.on)
    except NoBoard as problem:
        raise Http404(str(problem)) from problem
    return board(
        track,
        distribution=view.distribution,
        criterion=view.criterion,
        sort=view.sort,
        evaluation=evaluation,
        population=view.population,
    )


def read(request: HttpRequest, track: Track) -> View:
    """The view that a URL asks for; what the track guarantees where it asks for nothing.

    Raises Http404 with a sentence for a switch that does not exist.
    """
    criteria = kind_of(track).criterion_names()
    distribution = _choice(request, "distribution", track.distributions, track.distribution)
    criterion = _choice(request, "criterion", criteria, track.criterion)
    level = _choice(request, "level", list(LEVELS), "80")
    sort = _choice(request, "sort", sorts(track), default_sort(track, criterion))
    helped = _choice(request, "helped", [ALL, PEOPLE], ALL)
    day, number = request.GET.get("on", "")[:20], request.GET.get("evaluation", "")
    if number and not (number.isascii() and number.isdecimal() and len(number) < 10):
        raise Http404(f"“{number[:20]}” is not the number of an evaluation.")
    asked = int(number) if number else None
    every = "all" in request.GET
    about = kind_of(track).population
    population = _choice(request, "population", [LIKE, THESE], about) if about else ""
    return View(
        *(distribution, criterion, int(level), sort, every, helped),
        on=day,
        number=asked,
        population=population,
    )


def _choice(request: HttpRequest, name: str, options: Sequence[str], fallback: str) -> str:
    fallback = fallback if fallback in options else options[0]
    value = request.GET.get(name, fallback)
    if value not in options:
        raise Http404(f"This board has no {name} “{value[:40]}”; it has {', '.join(options)}.")
    return value


def context(request: HttpRequest, track: Track, view: View, shown: Board) -> dict[str, Any]:
    address = reverse("board", args=[track.slug])
    if view.number is not None:
        address = reverse("evaluation", args=[track.slug, view.number])
    asked = {} if view.number is None else {"evaluation": str(view.number)}
    mine = (
        set(request.user.teams.values_list("pk", flat=True))
        if isinstance(request.user, User)
        else set()
    )
    kind = kind_of(track)
    rows = shown.rows if view.all else shown.rows[:SHORT]
    lanes, parts = drawing.pack_ties(_ties_among(shown.groups, len(rows)), len(rows))
    heads = _heads(kind, view, address, shown.rows)
    sorted_by = {
        name: {"url": view.url(address, sort=name), "current": view.sort == name}
        for name in ("name", "labels")
    }
    drawn = [
        _row(shown, heads, row, mine, view) | {"parts": part}
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
        "has_few": _has_few(drawn),
        "lanes": lanes,
        "level": f"{shown.level:.0%}".replace("%", " %") if shown.level else "",
        "others": 0 if view.all else max(0, len(shown.rows) - SHORT),
        "heads": sorted_by,
        "switches": [*_switches(view, track, address), *_helped(shown, view, address)],
        "alone": judge_only_scores(shown),
        "next": soonest(shown),
        "strengths": strengths_of(shown),
        "facts": facts(track, shown),
        "judges": of_board(shown),
        "has_published": any(column.place == "published" for column in kind.columns),
        "has_expert": _has_expert(kind, shown.rows),
        "has_saved": any(row.saved is not None for row in shown.rows),
        "shows_alone": view.helped != PEOPLE,
        "helped_by": _helped_by(shown, view),
        "cite": _cite(request, shown),
        "has_headline": kind.quantities[0].of(view.criterion),
        "all_url": view.url(address, all="1"),
        "downloads": {
            kind: view.url(reverse(f"board-{kind}", args=[track.slug]), **asked)
            for kind in ("csv", "json")
        },
        "points": _points(kind, shown.rows),
        "finding": _finding(shown.rows) if kind.plotted else "",
        "other_tracks": Track.objects.exclude(status="draft").exclude(pk=track.pk).order_by("name"),
    }


def _ties_among(groups: Sequence[Sequence[int]], n: int) -> list[list[int]]:
    """Return the groups of systems that cannot be told apart, of those among the first n."""
    ties = []
    for group in groups:
        shown = [index for index in group if index < n]
        if len(shown) > 1:
            ties.append(shown)
    return ties


def _has_expert(kind: Kind, rows: Iterable[Row]) -> bool:
    """Whether a mean that experts corrected stands small under the mean of any row."""
    mean = kind.column_of(kind.mean).name
    corrected = []
    for column in kind.columns:
        if (column.place, column.under, column.method) == ("beneath", mean, "expert"):
            corrected.append(column.name)
    return any(_value(row, name) is not None for row in rows for name in corrected)


def _helped(shown: Board, view: View, address: str) -> list[dict[str, Any]]:
    """The switch between people alone, and all metrics and judges with them, where they help."""
    if all(row.saved is None for row in shown.rows) and not late_scorers(shown.evaluation):
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


def citation(request: HttpRequest, slug: str, number: int) -> HttpResponse:
    """How the board of an evaluation is cited, as CITATION.cff."""
    track = get_object_or_404(Track.objects.exclude(status="draft"), slug=slug)
    try:
        evaluation = evaluation_of(track, number)
    except NoBoard as problem:
        raise Http404(str(problem)) from problem
    permalink = request.build_absolute_uri(reverse("evaluation", args=[slug, number]))
    text = cite.cff(LEADERBOARD.format(track.name), evaluation, permalink)
    headers = {"Content-Disposition": 'attachment; filename="CITATION.cff"'}
    return HttpResponse(f"{text}\n", content_type="application/yaml", headers=headers)


def _cite(request: HttpRequest, shown: Board) -> dict[str, str]:
    """How a board is cited and shown elsewhere; empty before there is one."""
    if shown.evaluation is None:
        return {}
    slug, evaluation = shown.track.slug, shown.evaluation
    permalink = request.build_absolute_uri(reverse("evaluation", args=[slug, evaluation.number]))
    frame = request.build_absolute_uri(reverse("board-embed", args=[slug]))
    title = LEADERBOARD.format(shown.track.name)
    return {
        "permalink": permalink,
        "cff": reverse("evaluation-cff", args=[slug, evaluation.number]),
        "bibtex": cite.bibtex(f"{slug}-{evaluation.number}", title, "", evaluation, permalink),
        "embed": (
            f'<iframe src="{escape(frame)}" title="{escape(title)}" width="640" height="420">'
            "</iframe>"
        ),
    }


def _helped_by(shown: Board, view: View) -> dict[str, Any]:
    """How many metrics and judges the model could learn from, which goes best with people, and how
    many judgments are saved in all.
    """
    scorers = shown.evaluation.settings.get("scorers", {}) if shown.evaluation else {}
    return {
        "n": len(scorers.get("used", ())),
        "best": scorers.get("best", {}).get(view.criterion, ""),
        "saved": saved_on(shown),
        "late": late_scorers(shown.evaluation),
    }


def _saved_text(share: float | None) -> str:
    """“12.3 % saved”; “none saved” where that is what it rounds to, or people alone need fewer."""
    if share is None:
        return ""
    text = percent_text(max(share, 0.0))
    return f"{'none' if text == percent_text(0.0) else text} saved"


def _drawn(kind: Kind) -> list[Column]:
    """The columns that have a place of their own on the page."""
    return [column for column in kind.columns if column.place in ("first", "second")]


def _head(
    kind: Kind, column: Column, view: View, address: str, rows: Sequence[Row]
) -> dict[str, Any]:
    """The head of a drawn column; `has` says whether the criterion has such a number at all."""
    quantity = kind.printed(column.quantity, view.criterion)
    ticks = 5 if column.place == "first" else 3
    return {
        "name": column.name,
        "label": quantity.label,
        "short": quantity.short,
        "first": column.place == "first",
        "has": quantity.of(view.criterion),
        "url": view.url(address, sort=column.name),
        "current": view.sort == column.name,
        "axis": drawing.axis_over([interval(row.figure(column.name)) for row in rows], ticks=ticks),
        "direction": _direction(kind, quantity.name, view.criterion),
    }


def _heads(kind: Kind, view: View, address: str, rows: Sequence[Row]) -> list[dict[str, Any]]:
    """The heads of all that is drawn: the columns, then other criteria, each of which leads to the
    board that is of it.
    """
    heads = [_head(kind, column, view, address, rows) for column in _drawn(kind)]
    for criterion in kind.criteria_beside(view.criterion):
        column = kind.column_of(kind.headline(criterion.name))
        rows_beside = [row.beside.get(criterion.name) for row in rows]
        drawn = [interval(row.figure(column.name)) for row in rows_beside if row is not None]
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
                "direction": _direction(kind, column.quantity, criterion.name),
            }
        )
    return heads


def _direction(kind: Kind, quantity: str, criterion: str) -> str:
    """What a head says where less is better."""
    return "" if kind.higher_is_better(quantity, criterion) else "lower is better"


def facts(track: Track, shown: Board) -> dict[str, Any]:
    """The four facts beside the one sentence. What is judged of these texts counts for every track
    of theirs; people were asked about a part of it for other tracks alone (`judged_elsewhere`).
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
    return {
        "systems": len(shown.rows),
        "teams": len({row.submission.public_team for row in shown.rows}),
        "inputs": kind.n_inputs(),
        "read_in_full": _read_in_full(track, shown.evaluation) if recall_of(track) else None,
        "judged": counted["judged"],
        "judged_here": counted["here"],
        "judged_elsewhere": counted["judged"] - counted["here"],
        "has_imported": counted["imported"] > 0,
        "imported_alone": counted["judged"] == 0 and imports.exists(),
        "spent": money.spent,
    }


def _read_in_full(track: Track, evaluation: Evaluation | None) -> int:
    """How many documents' annotations the board rests on; before there is one, how many are read:
    some may count only once others are read that were drawn before them.
    """
    told = evaluation.settings.get("documents") if evaluation is not None else None
    settled = DocumentSample.objects.filter(track=track, settled_at__isnull=False)
    return settled.count() if told is None else int(told)


def interval(figure: Figure | None) -> drawing.Interval:
    """A figure as it is drawn."""
    if figure is None:
        return drawing.Interval(None)
    return drawing.Interval(figure.value, figure.low80, figure.high80, figure.low95, figure.high95)


def _row(
    shown: Board, heads: list[dict[str, Any]], row: Row, mine: set[int], view: View
) -> dict[str, Any]:
    kind, evaluation = kind_of(shown.track), shown.evaluation
    published = [_published(kind, row, column) for column in _published_columns(kind, view)]
    compared = [figure for figure in published if figure["quantity"] == kind.mean]
    return {
        "submission": row.submission,
        "mine": row.submission.team_id in mine,
        "rank": rank_text(row),
        "judged": row.n_labels,
        "saved": _saved_text(row.saved),
        "figures": {column.name: interval(row.figure(column.name)) for column in kind.columns},
        "cells": [_cell(shown, row, head, view) for head in heads],
        "published": published,
        "no_published": all(figure["interval"].estimate is None for figure in compared),
        "kind": kind_of_bars(row, shown.past),
        "judges": judges_of(evaluation, row.submission),
        "url": (
            reverse("submission", args=[row.submission.pk]) if row.submission.is_on_board else ""
        ),
    }


def _cell(shown: Board, row: Row, head: dict[str, Any], view: View) -> dict[str, Any]:
    """A drawn figure, with what stands small under it: what was counted, what was corrected; and
    the same by people alone, where metrics and judges narrow it. Of a criterion that is drawn
    beside the board's own the figure alone: what narrows it there narrows it here.
    """
    kind, criterion = kind_of(shown.track), head.get("criterion", view.criterion)
    is_own = criterion == view.criterion
    drawn_row = row if is_own else row.beside.get(criterion)
    if drawn_row is None:
        drawn_row = Row(row.submission, row.mean)
    figure, alone, beneath = drawn_row.figure(head["name"]), None, []
    for column in _beneath(kind, head["name"]):
        if column.method == UNAIDED:
            alone = drawn_row.figure(column.name)
        elif is_own:
            drawn = interval(drawn_row.figure(column.name))
            if drawn.estimate is not None:
                too_wide = _says_nothing(drawn)
                beneath.append({"label": column.label, "interval": drawn, "too_wide": too_wide})
    if alone is not None and view.helped == PEOPLE:
        figure, alone = alone, None
    counted = []
    for count in kind.counted:
        share = drawn_row.counted.get(count.name)
        if share is not None and (count.under, count.criterion) == (head["name"], criterion):
            counted.append({"label": count.label, "share": share})
    return {
        "head": head,
        "interval": interval(figure),
        "n": drawn_row.n_labels,
        "kind": kind_of_bars(drawn_row, shown.past, figure),
        "alone": interval(alone) if alone is not None else None,
        "exact": figure is not None and figure.exact,
        "too_few": figure is not None and figure.too_few,
        "counted": counted,
        "beneath": beneath,
    }


def _beneath(kind: Kind, column: str) -> list[Column]:
    """The columns that stand small under another one."""
    return [small for small in kind.columns if (small.place, small.under) == ("beneath", column)]


def _says_nothing(drawn: drawing.Interval) -> bool:
    """Whether an interval covers half of all that a number could be, or more."""
    if drawn.low80 is None or drawn.high80 is None:
        return False
    return drawn.high80 - drawn.low80 >= SAYS_NOTHING


def _published_columns(kind: Kind, view: View) -> list[Column]:
    """The columns for comparison that the criterion has, in the order of the quantities."""
    order = [quantity.name for quantity in kind.quantities]
    columns = [
        column
        for column in kind.columns
        if column.place == "published" and kind.quantity(column.quantity).of(view.criterion)
    ]
    return sorted(columns, key=lambda column: order.index(column.quantity))


def _published(kind: Kind, row: Row, column: Column) -> dict[str, Any]:
    figure = row.figure(column.name)
    return {
        "quantity": column.quantity,
        "label": column.label,
        "interval": interval(figure),
        "n": figure.n_labels if figure is not None else None,
    }


def _value(row: Row, column: str) -> float | None:
    figure = row.figure(column)
    return None if figure is None else figure.value


def kind_of_bars(row: Row, past: bool, figure: Figure | None = None) -> str:
    """How its bars are drawn: outlined while more is judged that was ordered, grey where few
    judgments stand behind the figure; without one, behind the mean.
    """
    mean = row.figure(row.mean)
    if (mean and mean.kind != "final") if past else row.submission.status != "scored":
        return "moment"
    behind = figure or mean
    return "few" if behind and behind.few else "final"


def _has_few(rows: list[dict[str, Any]]) -> bool:
    """Whether a bar of a board is grey since few judgments stand behind it."""
    return any(
        cell["kind"] == "few" and cell["head"]["has"] and cell["interval"].estimate is not None
        for row in rows
        for cell in row["cells"]
    )


def rank_text(row: Row) -> str:
    """“3”, or the range “1–4”; “–” of the reference, which takes no place among systems."""
    if row.submission.is_reference:
        return "–"
    if (rank := row.rank) is None:
        return ""
    return str(rank[0]) if rank[0] == rank[1] else f"{rank[0]}–{rank[1]}"


def _switches(view: View, track: Track, address: str) -> list[dict[str, Any]]:
    kind = kind_of(track)
    groups = [
        (
            "What counts the same",
            "distribution",
            {
                name: distribution.label
                for name, distribution in kind.distributions.items()
                if name in track.distributions
            },
        ),
        (
            "What is judged",
            "criterion",
            {criterion.name: criterion.label for criterion in kind.criteria},
        ),
        ("Intervals hold for", "population", kind.populations()),
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
        if len(options) > 1  # else there is nothing to choose
    ]


def _points(kind: Kind, rows: Iterable[Row]) -> list[plots.Point]:
    """What is drawn of each row where two columns are drawn against each other."""
    if kind.plotted is None:
        return []
    across, up = kind.plotted
    return [
        plots.Point(
            row.submission.full_name,
            interval(row.figure(up)),
            interval(row.figure(across)),
            first=index == 0,
        )
        for index, row in enumerate(rows)
        if _value(row, up) is not None and _value(row, across) is not None
    ]


def _finding(rows: Sequence[Row]) -> str:
    scored = [row for row in rows if _value(row, row.mean) is not None]
    if not scored:
        return "No system has both numbers yet."
    precise = max(scored, key=lambda row: _value(row, row.mean) or 0.0)
    leader, most = (row.submission.full_name for row in (rows[0], precise))
    return f"{leader} stands first; {most} is the most precise."


@expensive
@at_one_moment
def as_csv(request: HttpRequest, slug: str) -> HttpResponse:
    """The board as CSV: the figures of the page, unrounded, one row a system."""
    track = get_object_or_404(Track.objects.exclude(status="draft"), slug=slug)
    view = read(request, track)
    shown = of_view(track, view)
    parts = list(_csv_parts(track, view, shown))
    header: list[str] = []
    for heads, _ in parts:
        header.extend(heads)
    rows: list[list[Any]] = []
    for row in shown.rows:
        cells: list[Any] = []
        for _, cells_of in parts:
            cells.extend(cells_of(row))
        rows.append(cells)
    day = f"-{shown.evaluation.number}" if shown.past and shown.evaluation else ""
    filename = f"{track.slug}-{view.distribution}-{view.criterion}{day}.csv"
    return csv_response(filename, header, rows)


def _csv_parts(track: Track, view: View, shown: Board) -> Iterator[CsvPart]:
    """Yields the columns of the CSV file, a few at a time."""
    kind = kind_of(track)
    yield ("team", "system"), lambda row: (row.submission.public_team, row.submission.public_name)
    yield ("rank_best", "rank_worst"), lambda row: row.rank or (None, None)
    yield ("labels",), lambda row: (row.n_labels,)
    yield JUDGES, lambda row: tuple(judges_as_json(shown, row).values())
    yield ("note",), lambda row: (row.note,)
    if recall_of(track) is not None:
        yield ("documents",), lambda row: (row.n_documents,)
    counted = [count.name for count in kind.counted]
    yield counted, lambda row: [row.counted.get(name) for name in counted]
    for column in kind.columns:
        heads = [f"{column.name}_{end}" for end in CSV_ENDS]
        yield heads, partial(_csv_figure, column.name, "")
    for criterion in kind.criteria_beside(view.criterion):
        heads = [f"beside_{criterion.name}_{end}" for end in CSV_ENDS]
        drawn = kind.column_of(kind.headline(criterion.name)).name
        yield heads, partial(_csv_figure, drawn, criterion.name)
    for column in kind.columns:
        if any(column.name in row.bootstrap for row in shown.rows):
            heads = [f"{column.name}_bootstrap_low80", f"{column.name}_bootstrap_high80"]
            yield heads, partial(_csv_bootstrap, column.name)
    if any(row.saved is not None for row in shown.rows):
        yield ("saved",), lambda row: (row.saved,)
    if shown.population:
        yield ("population",), lambda row: (shown.population,)
    yield ("submission", "role"), lambda row: (row.submission.pk, row.submission.role)
    yield ("paper",), lambda row: (row.submission.public_links.get("Paper"),)
    yield ("code",), lambda row: (row.submission.public_links.get("Code"),)


def _csv_figure(column: str, beside: str, row: Row) -> list[Any]:
    """Return a figure with its ends: of a criterion beside the board's own, if one is named."""
    drawn = row.beside.get(beside) if beside else row
    figure = drawn.figure(column) if drawn is not None else None
    return [getattr(figure, end, None) for end in CSV_ENDS]


def _csv_bootstrap(column: str, row: Row) -> tuple[float | None, float | None]:
    return row.bootstrap.get(column, (None, None))


@expensive
@at_one_moment
def json(request: HttpRequest, slug: str) -> HttpResponse:
    """The board as JSON, the same as the API's."""
    track = get_object_or_404(Track.objects.exclude(status="draft"), slug=slug)
    body = JSONRenderer().render(as_json(of_view(track, read(request, track))))
    return HttpResponse(body, content_type="application/json")


def history(request: HttpRequest, slug: str) -> HttpResponse:
    """The evaluations of a track that everybody is told of, and the runs that were withdrawn."""
    track = get_object_or_404(Track.objects.exclude(status="draft"), slug=slug)
    listed = track.evaluations.listed().order_by("-number")
    page = Paginator(listed, 50).get_page(request.GET.get("page"))
    context = {
        "track": track,
        "page": page,
        "evaluations": [(evaluation, len(evaluation.standing)) for evaluation in page],
        "withdrawn": withdrawn_from(track),
    }
    return render(request, "evaluations.html", context)


def withdrawn_from(track: Track) -> QuerySet[Submission]:
    """The runs that everybody has seen scored and that are withdrawn, the last one first; 200 at
    most.
    """
    gone = Submission.objects.filter(
        track=track, status="withdrawn", scored_at__isnull=False, is_private=False
    )
    return gone.select_related("team").order_by("-withdrawn_at")[:200]


@gzip_page
@xframe_options_exempt
@cache_control(public=True, max_age=300)
def embed(request: HttpRequest, slug: str) -> HttpResponse:
    """The first rows of the board for a frame on any other site, the same for everybody: with what
    is ranked by, or, where that is undefined of all, with the mean.
    """
    response = _shared(request, slug, lambda slug: _embedded(request, slug))
    response["Content-Security-Policy"] = "frame-ancestors *; form-action 'none'"
    return response


@at_one_moment
def _embedded(request: HttpRequest, slug: str) -> HttpResponse:
    track = get_object_or_404(Track.objects.exclude(status="draft"), slug=slug)
    view = read(request, track)
    shown = of_view(track, view)
    view = _opened(request, shown, view)
    heads = [_head(kind_of(track), shown.headline, view, "", shown.rows)]
    rows = [_row(shown, heads, row, set(), view) for row in shown.rows[:EMBEDDED]]
    context = {"track": track, "board": shown, "head": heads[0], "rows": rows, "view": view}
    context |= {"has_few": _has_few(rows), "words": kind_of(track).words}
    return render(request, "embed.html", context)


urlpatterns = [
    path("", show, name="home"),
    path("tracks/<slug:slug>/", show, name="board"),
    path("tracks/<slug:slug>/board.csv", as_csv, name="board-csv"),
    path("tracks/<slug:slug>/board.json", json, name="board-json"),
    path("tracks/<slug:slug>/evaluations/", history, name="evaluations"),
    path("tracks/<slug:slug>/evaluations/<int:number>/", show, name="evaluation"),
    path(
        "tracks/<slug:slug>/evaluations/<int:number>/CITATION.cff",
        citation,
        name="evaluation-cff",
    ),
    path("tracks/<slug:slug>/embed/", embed, name="board-embed"),
]
