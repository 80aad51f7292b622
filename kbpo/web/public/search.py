"""The search of every page’s head: into the texts that the page is about; elsewhere for tracks, for
runs that whoever asks may see, and for what the help pages say.
"""

from __future__ import annotations

import re
import time
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache, reduce
from html import unescape
from itertools import islice
from operator import and_, or_
from typing import Any
from urllib.parse import urlencode

from django.contrib.auth.models import AnonymousUser
from django.db.models import Q
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import path, resolve, reverse
from django.views.decorators.http import require_safe

from kbpo.accounts.models import User
from kbpo.submissions.models import Submission
from kbpo.tracks.models import Track
from kbpo.web.public.documents import LONGEST_WORDS, may_read, readable
from kbpo.web.research.explore import explored
from kbpo.web.research.submissions import find, is_own, name_for

MOST = 20
"""Tracks, runs and sections that are listed, of each"""
MOST_WORDS = 10
"""Words that are looked for"""
PAGES = {"help": "Help", "methods": "Methods", "api": "API", "about": "About"}
"""Pages to read that are searched, by the names of their addresses"""
READ_ANEW = 600
"""Seconds after which what is filled in may be other: prices, limits"""
HEADING = re.compile(r'<h[23] id="([\w-]+)">(.*?)</h[23]>', re.S)
MAIN = re.compile(r"<main\b[^>]*>(.*)</main>", re.S)
MARKUP = re.compile(r"<(svg|style|script)\b.*?</\1>|<[^>]*>", re.S)
FUNCTIONS = re.compile(r"\s*\(<code>\w+\.\w+</code>(?:,\s+<code>\w+\.\w+</code>)*\)")
"""Which functions of the source reckon it, in brackets: they stand on the page alone"""
BEFORE, AFTER = 60, 120
"""Characters that are shown around the first word that was found"""


@require_safe
def show(request: HttpRequest) -> HttpResponse:
    """Return what has the words; on its way from a page about texts to where these are searched."""
    words = request.GET.get("q", "").replace("\0", "").strip()[:LONGEST_WORDS]
    if address := _within(request):
        return redirect(f"{address}?{urlencode({'q': words})}" if words else address)
    context: dict[str, Any] = {
        "q": words,
        "fell_through": request.GET.get("track") or request.GET.get("run"),
    }
    if words:
        context |= _found(request, words.split())
    return render(request, "search.html", context)


def _found(request: HttpRequest, words: list[str]) -> dict[str, Any]:
    """Return what has the first of these words, by what it is, and tracks whose texts may have
    them.
    """
    asked, tracks = " ".join(words[:MOST_WORDS]), _public_tracks(request)
    searchable = (
        track for track in tracks if track.corpus.n_documents and may_read(request, track)
    )
    return {
        "tracks": tracks.filter(_has(asked, "name", "slug", "description"))[:MOST],
        "runs": _runs(request, asked),
        "sections": [section.around(asked) for section in _sections(asked)],
        "readable": list(islice(searchable, MOST)),
        "most_words": MOST_WORDS if len(words) > MOST_WORDS else None,
    }


def _within(request: HttpRequest) -> str:
    """Return where the texts are searched that the page was about; nothing where it was about none
    that whoever asks may read.
    """
    slug, run = request.GET.get("track", "").replace("\0", ""), request.GET.get("run", "")
    try:
        if run.isascii() and run.isdecimal() and len(run) < 18:
            slug = find(request, int(run)).track.slug
            return _of_run(request, int(run)) or _of_track(request, slug)
        return _of_track(request, slug) if slug else ""
    except Http404:
        return ""


def _of_run(request: HttpRequest, pk: int) -> str:
    try:
        searched = explored(request, pk).kind.words.entity
    except Http404:
        return ""
    return reverse("submission-explore", args=[pk]) if searched else ""


def _of_track(request: HttpRequest, slug: str) -> str:
    return reverse("track-documents", args=[readable(request, slug).slug])


def _public_tracks(request: HttpRequest) -> Any:
    tracks = Track.objects.select_related("corpus").order_by("-pk")
    return tracks if getattr(request.user, "is_staff", False) else tracks.exclude(status="draft")


def _has(words: str, *fields: str) -> Q:
    """That each word stands in one of these fields."""
    return reduce(and_, (_in_one_of(fields, word) for word in words.split()))


def _in_one_of(fields: tuple[str, ...], word: str) -> Q:
    return reduce(or_, (Q((f"{name}__icontains", word)) for name in fields))


def _runs(request: HttpRequest, words: str) -> list[dict[str, Any]]:
    """Runs that are called or described by these words, under the names that whoever asks knows."""
    user, rows = request.user, Submission.objects.filter(deleted_at=None)
    if not getattr(user, "is_staff", False):
        board = Submission.objects.on_board().filter(is_anonymous=False)
        teams = user.team_keys if isinstance(user, User) else ()
        rows = rows.filter(Q(pk__in=board.values("pk")) | Q(team__in=teams))
    rows = rows.filter(_has(words, "name", "team__name", "description"))
    rows = rows.select_related("team", "track").order_by("-pk")[:MOST]
    return [
        {"submission": row, "name": name_for(row, mine), "mine": mine}
        for row, mine in ((row, is_own(request, row)) for row in rows)
    ]


def _sections(words: str) -> list[Section]:
    """Sections with these words, those first whose heading has them."""
    with_words = [section for section in sections() if section.has(words)]
    return sorted(with_words, key=lambda section: not _all_in(words, section.heading))[:MOST]


def _all_in(words: str, text: str) -> bool:
    return all(word in text.casefold() for word in words.casefold().split())


@dataclass(frozen=True)
class Section:
    """A part of a page to read."""

    page: str
    anchor: str
    heading: str
    text: str

    def has(self, words: str) -> bool:
        """Return whether each word stands in it."""
        return _all_in(words, f"{self.heading} {self.text}")

    def around(self, words: str) -> dict[str, str]:
        """Return where it is, and what it says around the first of the words that its text has."""
        match = re.search("|".join(map(re.escape, words.split())), self.text, re.I)
        begin = match.start() - BEFORE if match else 0
        begin = self.text.find(" ", begin) + 1 if begin > 0 else 0
        end = begin + BEFORE + AFTER
        excerpt = self.text[begin:end]
        if end < len(self.text):
            excerpt = f"{excerpt.rpartition(' ')[0] or excerpt} …"
        return {
            "url": f"{reverse(self.page)}#{self.anchor}",
            "page": PAGES[self.page],
            "heading": self.heading,
            "excerpt": f"{'… ' if begin else ''}{excerpt}",
        }


def sections() -> tuple[Section, ...]:
    """Return every section of the pages to read, with the words that a stranger reads there."""
    return _read(int(time.monotonic() // READ_ANEW))


@lru_cache(maxsize=1)
def _read(_: int) -> tuple[Section, ...]:
    """Return the sections as they are now, kept for one turn of the clock."""
    return tuple(section for page in PAGES for section in _sections_of(page))


def _sections_of(page: str) -> Iterator[Section]:
    stranger = HttpRequest()
    stranger.method, stranger.path, stranger.user = "GET", reverse(page), AnonymousUser()
    stranger.META |= {"SERVER_NAME": "localhost", "SERVER_PORT": "80"}
    main = MAIN.search(resolve(stranger.path).func(stranger).content.decode())
    _, *parts = HEADING.split(main[1] if main else "")
    for anchor, heading, text in zip(*[iter(parts)] * 3, strict=True):
        yield Section(page, anchor, _plain(heading), _plain(text))


def _plain(source: str) -> str:
    text = " ".join(unescape(MARKUP.sub(" ", FUNCTIONS.sub("", source))).split())
    return re.sub(r" (?=[,.;:)”])|(?<=[(“]) ", "", text)  # a tag may end or begin there


urlpatterns = [path("search/", show, name="search")]
