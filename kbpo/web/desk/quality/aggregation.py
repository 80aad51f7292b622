"""The admins' page on how answers are added up: what another way would change on the board, and
switching to it.
"""

from __future__ import annotations

import time
from collections import defaultdict
from typing import Any, cast

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import path

from annotation.labels import revise
from annotation.quality import describe, gold
from kbpo.accounts.models import User
from kbpo.evaluation.studies.what_if import Change, what_if
from kbpo.tracks.base import Track as Kind
from kbpo.tracks.models import Track
from kbpo.tracks.registry import kind_of
from kbpo.web.access import for_admins

METHODS = {"majority": "Majority", "dawid_skene": "Dawid and Skene’s model"}
SHOWN = 100


@for_admins
def show(request: HttpRequest, slug: str) -> HttpResponse:
    """How a track's answers are added up; with `?method=` what that method would change. A POST
    switches.
    """
    track = get_object_or_404(Track.objects.select_related("corpus"), slug=slug)
    refusal = _switch(request, track) if request.method == "POST" else ""
    if request.method == "POST" and not refusal:
        return redirect("desk-adding-up", slug=slug)
    method = request.GET.get("method", "")
    context: dict[str, Any] = {
        "track": track,
        "policy": gold.policy_of(track),
        "methods": METHODS,
        "method": method,
        "refusal": refusal,
        "reader": revise.price_of_reader(track),
        "name": METHODS.get(method, ""),
        "current": METHODS[gold.policy_of(track).aggregation],
    }
    if method in METHODS:
        context |= _compared(track, method)
    return render(request, "desk/adding_up.html", context, status=422 if refusal else 200)


def _compared(track: Track, method: str) -> dict[str, Any]:
    began = time.monotonic()
    made = revise.revision(track, method, gold.policy_of(track).revision + 1)
    changes = what_if(track, [flip.label for flip in made.flips])
    flips = [
        {
            "title": _title(flip),
            "question": flip.question,
            "before": flip.before or ("nothing",),
            "after": flip.after or ("nothing",),
            "chances": sorted(flip.posterior.items()),
        }
        for flip in made.flips[:SHOWN]
    ]
    return {
        "revision": made,
        "flips": flips,
        "rows": _rows(kind_of(track), changes),
        "seconds": time.monotonic() - began,
    }


def _title(flip: Any) -> str:
    """What a judgment is about, in a line; of a document, which pair of its names."""
    return (
        f"{flip.names}, in {describe.title_of(flip.question)}"
        if flip.names
        else describe.title_of(flip.question)
    )


def _rows(kind: Kind, changes: list[Change]) -> list[dict[str, Any]]:
    """One row a system, the best first, with its numbers before and after."""
    found: dict[int, dict[str, Any]] = defaultdict(dict)
    for change in changes:
        found[change.submission.pk]["submission"] = change.submission
        found[change.submission.pk][change.quantity] = change
    rows = list(found.values())
    for row in rows:
        names = [quantity.name for quantity in kind.compared()]
        row["cells"] = [(name, row.get(name)) for name in names]
        first = next((row[name] for name in names if row.get(name)), None)
        row["rank"] = (first.rank_before, first.rank_after) if first else None
    return sorted(rows, key=lambda row: row["rank"] or (len(rows), 0))


def _switch(request: HttpRequest, track: Track) -> str:
    """Why nothing was switched, as a sentence; nothing if it was."""
    method, why = (
        request.POST.get("method", ""),
        request.POST.get("why", "").replace("\x00", "").strip()[:500],
    )
    if method not in METHODS:
        return "Say how answers are to be added up."
    if not why:
        return "Say why: it stands in the log."
    made = revise.switch(track, method, cast(User, request.user), why)
    messages.success(
        request, f"{METHODS[method]} from now on. {len(made.flips)} labels were written anew."
    )
    return ""


urlpatterns = [path("desk/tracks/<slug:slug>/adding-up/", show, name="desk-adding-up")]
