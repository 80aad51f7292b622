"""The admins' page of pilots: see the price of one, launch it, and read what it says beside the
published values.
"""

from __future__ import annotations

import secrets
from decimal import Decimal
from typing import Any

from django.contrib import messages
from django.http import Http404, HttpRequest, HttpResponse, QueryDict
from django.shortcuts import redirect, render
from django.urls import path

from annotation.questions.pilot import (
    ITEMS,
    WORKERS,
    CannotPilot,
    cost_of_as_many,
    default_items,
    is_of_documents,
    launch_pilot,
    pilot_of,
    pilot_report,
    pilotable,
    pilots_of,
    plan_pilot,
    seed_of,
)
from kbpo.money.purpose import Purpose
from kbpo.money.spend import OverBudget, allowance
from kbpo.tracks.models import Track
from kbpo.tracks.registry import class_of
from kbpo.web.components.drawing import axis_over
from kbpo.web.desk.quality.agreement import agreement_lines, name_of, published_of
from kbpo.web.http import admin_of, for_admins, track_of_relations, why_of


def unit_of(track: Track, interface: str) -> str:
    """Return what an item of a pilot is called."""
    return "document" if is_of_documents(interface) else class_of(track.kind).target_kind


@for_admins
def pilots(request: HttpRequest, slug: str, pk: int | None = None) -> HttpResponse:
    """Return a pilot's report, or that of the whole track. Numbers in a GET show a price; a POST
    with it launches.
    """
    track = track_of_relations(slug)
    refusal = ""
    if request.method == "POST":
        refusal = _launch(request, track)
        if not refusal:
            return redirect("desk-pilots", slug=slug)
    asked = request.POST if request.method == "POST" else request.GET
    pilot = pilot_of(track, pk) if pk is not None else None
    if pk is not None and pilot is None:
        raise Http404("There is no such pilot.")
    report = pilot_report(track, pilot)
    lines = agreement_lines(report.agreement)
    for line in lines:
        line["published"] = published_of(line["told"])
    context = {
        "fewer": [
            {
                "name": name_of(few.interface, few.what),
                "told": few,
                "published": published_of(few) if few.workers == 3 else None,
            }
            for few in report.fewer
        ],
        "track": track,
        "pilot": pilot,
        "unit": unit_of(track, pilot.interface) if pilot else "",
        "pilots": [(launched, unit_of(track, launched.interface)) for launched in pilots_of(track)],
        "found": report,
        "lines": lines,
        "axis": axis_over([line["interval"] for line in lines], bounds=(-1.0, 1.0), ticks=3),
        "kinds": [_kind(track, asked, interface) for interface in pilotable(track)],
        "left": allowance(track, None, Purpose("pilot")).left,
        "refusal": refusal,
    }
    return render(request, "desk/pilots.html", context, status=422 if refusal else 200)


def _kind(track: Track, asked: QueryDict, interface: str) -> dict[str, Any]:
    """Return the form of one kind of pilot: what was said in it and, if that was something, its
    price or, as a sentence, why there is none.
    """
    mine = asked if asked.get("interface") == interface else {}
    key = secrets.token_hex(16)  # a form's own: sent twice, it launches once
    plan, refusal = None, ""
    if "workers" in mine:
        try:
            workers, items = _numbers(asked)
            plan = plan_pilot(
                track, workers=workers, items=items, interface=interface, seed=seed_of(key)
            )
        except CannotPilot as cannot:
            refusal = str(cannot)
    return {
        "interface": interface,
        "unit": unit_of(track, interface),
        "key": key,
        "said_workers": mine.get("workers", WORKERS),
        "why": mine.get("why", ""),
        "said_items": mine.get("items", default_items(interface)),
        "plan": plan,
        "refusal": refusal,
        "default": default_items(interface),
        "as_many": (WORKERS, ITEMS),
        "large": cost_of_as_many(track) if is_of_documents(interface) else None,
    }


def _numbers(asked: QueryDict) -> tuple[int, int]:
    """Return how many workers and items. Raises CannotPilot."""
    numbers = [asked.get(name, "") for name in ("workers", "items")]
    if not all(number.isdecimal() and number.isascii() and len(number) < 6 for number in numbers):
        raise CannotPilot("Say how many workers and how many items.")
    return int(numbers[0]), int(numbers[1])


def _launch(request: HttpRequest, track: Track) -> str:
    """Return why no pilot was launched, as a sentence; nothing if one was."""
    known = pilotable(track)
    interface, key = request.POST.get("interface", known[0]), request.POST.get("key", "")[:40]
    if interface not in known:
        return "A pilot is of pairs or of documents."
    try:
        shown = Decimal(request.POST.get("at_most", ""))
    except ArithmeticError:
        shown = Decimal("NaN")
    if not shown.is_finite() or not key:
        return "Look at the price first, then launch."
    try:
        workers, items = _numbers(request.POST)
        made = launch_pilot(
            track,
            admin_of(request),
            workers=workers,
            items=items,
            key=key,
            interface=interface,
            seed=seed_of(key),
            at_most=shown,
            why=why_of(request),
        )
    except (CannotPilot, OverBudget) as refusal:
        return str(refusal)
    extent = f"{made.items} {unit_of(track, made.interface)}s"
    messages.success(request, f"Pilot {made.pk}: {made.workers} people are asked about {extent}.")
    return ""


urlpatterns = [
    path("desk/tracks/<slug:slug>/pilots/", pilots, name="desk-pilots"),
    path("desk/tracks/<slug:slug>/pilots/<int:pk>/", pilots, name="desk-pilot"),
]
