"""The desk's page where admins define slices."""

from __future__ import annotations

import json
from typing import Any

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import path

from kbpo.evaluation.models import Slice
from kbpo.evaluation.slices.estimate import read_for, rule_of
from kbpo.evaluation.slices.rule import BadRule, example, parse, table_example
from kbpo.tracks.models import Track
from kbpo.tracks.registry import kind_of
from kbpo.web.http import for_admins, track_of_relations


@for_admins
def listing(request: HttpRequest, slug: str) -> HttpResponse:
    """Return the slices of a track. A POST defines or removes one."""
    track = track_of_relations(slug)
    refusal = _change(track, request) if request.method == "POST" else ""
    if request.method == "POST" and not refusal:
        return redirect("desk-slices", slug=slug)
    traits = kind_of(track).cut_by()
    whole = {"same_sentence": True, "weight": track.distributions[0]}
    context = {
        "track": track,
        "slices": [
            _slice_row(row)
            for row in Slice.objects.filter(track=track).select_related("track__corpus")
        ],
        "refusal": refusal,
        "said": request.POST,
        "example": json.dumps(example(traits) | whole),
        "traits": traits,
        "table": json.dumps(table_example(traits)),
    }
    return render(request, "desk/slices.html", context, status=422 if refusal else 200)


def _slice_row(row: Slice) -> dict[str, Any]:
    try:
        rule_of(row)
        wrong = ""
    except BadRule as problem:
        wrong = str(problem)
    return {"row": row, "rule": json.dumps(row.rule, ensure_ascii=False), "wrong": wrong}


def _change(track: Track, request: HttpRequest) -> str:
    """Define or remove a slice, and return why not, as a sentence; empty if it was done."""
    remove = request.POST.get("remove", "")
    if remove:
        row = Slice.objects.filter(track=track, name=remove).first()
        if row is None:
            return "There is no such slice any more."
        row.delete()
        messages.success(request, f"{remove} is removed. Its figures go with the next scores.")
        return ""
    name = " ".join(request.POST.get("name", "").replace("\x00", "").split())
    if not 1 <= len(name) <= 80:
        return "A slice needs a name of 1 to 80 characters."
    if Slice.objects.filter(track=track, name=name).exists():
        return f"There is a slice {name} already."
    try:
        rule = read_for(track, parse(request.POST.get("rule", "")))
    except BadRule as problem:
        return str(problem)
    Slice.objects.create(track=track, name=name, rule=rule.as_json())
    messages.success(
        request,
        f"{name} is defined. Its figures come with the next scores, from labels that exist.",
    )
    return ""


urlpatterns = [
    path("desk/tracks/<slug:slug>/slices/", listing, name="desk-slices"),
]
