"""The search of every page’s head: into the texts that the page is about; elsewhere for tracks, and
for runs that whoever asks may see.
"""

from __future__ import annotations

from contextlib import suppress
from functools import reduce
from itertools import islice
from operator import or_
from typing import Any
from urllib.parse import urlencode

from django.db.models import Q
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import path, reverse
from django.views.decorators.http import require_safe

from kbpo.accounts.models import User
from kbpo.submissions.models import Submission
from kbpo.tracks.models import Track
from kbpo.web.public.documents import LONGEST_WORDS, may_read, readable
from kbpo.web.research.explore import explored
from kbpo.web.research.submissions import find, is_own, name_for

MOST = 20
"""Tracks and runs that are listed, of each"""
MOST_WORDS = 10
"""Words that are looked for"""


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
        asked = " ".join(words.split()[:MOST_WORDS])
        tracks = Track.objects.select_related("corpus").order_by("-pk")
        if not getattr(request.user, "is_staff", False):
            tracks = tracks.exclude(status="draft")
        with_texts = (one for one in tracks if one.corpus.n_documents and may_read(request, one))
        context |= {
            "tracks": tracks.filter(_has(asked, "name", "slug", "description"))[:MOST],
            "runs": _runs(request, asked),
            "readable": list(islice(with_texts, MOST)),
            "most_words": MOST_WORDS if len(words.split()) > MOST_WORDS else None,
        }
    return render(request, "search.html", context)


def _within(request: HttpRequest) -> str:
    """Return where the texts are searched that the page was about; nothing where it was about none
    that whoever asks may read.
    """
    slug, run = request.GET.get("track", "").replace("\0", ""), request.GET.get("run", "")
    try:
        if run.isascii() and run.isdecimal() and len(run) < 18:
            slug = find(request, int(run)).track.slug
            with suppress(Http404):
                if explored(request, int(run)).kind.words.entity:
                    return reverse("submission-explore", args=[int(run)])
        return reverse("track-documents", args=[readable(request, slug).slug]) if slug else ""
    except Http404:
        return ""


def _has(words: str, *fields: str) -> Q:
    """Return that each word stands in one of these fields."""
    in_each = Q()
    for word in words.split():
        in_each &= reduce(or_, (Q((f"{name}__icontains", word)) for name in fields))
    return in_each


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


urlpatterns = [path("search/", show, name="search")]
