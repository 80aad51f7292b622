"""The admins' page on how answers are aggregated: what another way would change on the board, and
switching to it.
"""

from __future__ import annotations

from collections import defaultdict
from typing import Any

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import path

from annotation.labels import revise
from annotation.quality import describe, gold
from kbpo.evaluation.models import Inquiry
from kbpo.evaluation.studies.what_if import Change, what_if
from kbpo.tracks.base import Track as Kind
from kbpo.tracks.models import Track
from kbpo.tracks.registry import kind_of
from kbpo.web.access import admin_of, for_admins, track_of_relations

WHAT = "adding_up"
METHODS = {"majority": "Majority", "dawid_skene": "Dawid and Skene’s model"}
SHOWN = 100


@for_admins
def show(request: HttpRequest, slug: str) -> HttpResponse:
    """How a track's answers are aggregated, and what another method would change, as it was worked
    out last. A POST asks for that, or switches.
    """
    track = track_of_relations(slug)
    refusal = _move(request, track) if request.method == "POST" else ""
    if request.method == "POST" and not refusal:
        return redirect("desk-adding-up", slug=slug)
    inquiry = Inquiry.objects.filter(track=track, what=WHAT).first()
    compared = inquiry.answer if inquiry else None
    policy = gold.policy_of(track)
    context: dict[str, Any] = {
        "track": track,
        "policy": policy,
        "methods": METHODS,
        "inquiry": inquiry,
        "compared": compared,
        "refusal": refusal,
        "reader": revise.price_of_reader(track),
        "name": METHODS[compared["method"]] if compared else "",
        "current": METHODS[policy.aggregation],
    }
    return render(request, "desk/aggregation.html", context, status=422 if refusal else 200)


def answer(inquiry: Inquiry) -> dict[str, Any]:
    """What the method of an inquiry would change on its track, as it is stored."""
    track, method = inquiry.track, inquiry.terms["method"]
    made = revise.revision(track, method, gold.policy_of(track).revision + 1)
    changes = what_if(track, [flip.label for flip in made.flips])
    flips = [
        {
            "title": _title(flip),
            "question": flip.question.pk,
            "before": flip.before or ("nothing",),
            "after": flip.after or ("nothing",),
            "chances": sorted(flip.posterior.items()),
        }
        for flip in made.flips[:SHOWN]
    ]
    return {
        "method": method,
        "judgments": made.judgments,
        "changed": len(made.flips),
        "unsure": made.unsure,
        "reasons": made.reasons,
        "flips": flips,
        "rows": _rows(kind_of(track), changes),
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
    by_system: dict[int, dict[str, Change]] = defaultdict(dict)
    for change in changes:
        by_system[change.submission.pk][change.quantity] = change
    rows = []
    for system, changed in by_system.items():
        names = [quantity.name for quantity in kind.compared() if quantity.name in changed]
        leading = changed[names[0]]
        cells = {name: _cell(changed[name]) for name in names}
        rows.append(
            {
                "submission": system,
                "title": f"{leading.submission.team.name} {leading.submission.name}",
                "cells": [
                    (quantity.name, cells.get(quantity.name)) for quantity in kind.compared()
                ],
                "rank": (leading.rank_before, leading.rank_after),
            }
        )
    return sorted(rows, key=lambda row: row["rank"])


def _cell(change: Change) -> dict[str, float | None]:
    return {name: getattr(change, name) for name in ("before", "after", "low80", "high80")}


def _move(request: HttpRequest, track: Track) -> str:
    """Why nothing was asked or switched, as a sentence; nothing if it was."""
    method, why = (
        request.POST.get("method", ""),
        request.POST.get("why", "").replace("\x00", "").strip()[:500],
    )
    if method not in METHODS:
        return "Say how answers are to be aggregated."
    if request.POST.get("verb") == "compare":
        Inquiry.ask(track, WHAT, admin_of(request), method=method)
        return ""
    if not why:
        return "Say why: it stands in the log."
    made = revise.switch(track, method, admin_of(request), why)
    messages.success(
        request, f"{METHODS[method]} from now on. {len(made.flips)} labels were written anew."
    )
    return ""


urlpatterns = [path("desk/tracks/<slug:slug>/adding-up/", show, name="desk-adding-up")]
