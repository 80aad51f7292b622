"""The admins' page of pilots: launch one, and read what it says beside the published values."""

from __future__ import annotations

import secrets
from typing import Any, cast

from django.contrib import messages
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import path

from annotation import report
from kbpo.accounts.models import User
from kbpo.money.spend import OverBudget
from kbpo.tracks.models import Track
from kbpo.web.agreement import agreement_lines
from kbpo.web.desk import for_admins
from kbpo.web.drawing import axis_over

ITEMS = {"relation": report.PILOT_ITEMS, "entities": report.PILOT_DOCUMENTS}
"""What can be piloted, and on how many items if nobody says"""


@for_admins
def pilots(request: HttpRequest, slug: str, pk: int | None = None) -> HttpResponse:
    """A pilot's report, or that of the whole track. A POST launches a pilot."""
    track = get_object_or_404(Track, slug=slug)
    refusal = ""
    if request.method == "POST":
        refusal = _launch(request, track)
        if not refusal:
            return redirect("desk-pilots", slug=slug)
    pilot = report.pilot_of(track, pk) if pk is not None else None
    if pk is not None and pilot is None:
        raise Http404("There is no such pilot.")
    found = report.pilot_report(track, pilot)
    lines = agreement_lines(found.agreement)
    for line in lines:
        line["published"] = report.PUBLISHED_AGREEMENT.get((line["told"].interface, line["told"].what))
    context = {
        "track": track,
        "pilot": pilot,
        "pilots": report.pilots(track),
        "found": found,
        "lines": lines,
        "axis": axis_over([line["interval"] for line in lines], bounds=(-1.0, 1.0), ticks=3),
        "kinds": [_kind(track, request, interface) for interface in ITEMS],
        "refusal": refusal,
    }
    return render(request, "desk/pilots.html", context, status=422 if refusal else 200)


def _kind(track: Track, request: HttpRequest, interface: str) -> dict[str, Any]:
    """The form of one kind of pilot: what it costs as proposed, and what was said in it."""
    said = request.POST if request.POST.get("interface", "relation") == interface else {}
    return {
        "interface": interface,
        "key": secrets.token_hex(16),  # a form's own: sent twice, it launches once
        "items": ITEMS[interface],
        "cost": report.cost_of_pilot(track, report.PILOT_WORKERS, ITEMS[interface], interface),
        "said_workers": said.get("workers", report.PILOT_WORKERS),
        "said_items": said.get("items", ITEMS[interface]),
    }


def _launch(request: HttpRequest, track: Track) -> str:
    """Why no pilot was launched, as a sentence; nothing if one was."""
    numbers = [request.POST.get(name, "") for name in ("workers", "items")]
    if not all(one.isdecimal() and one.isascii() and len(one) < 6 for one in numbers):
        return "Say how many workers and how many items."
    interface = request.POST.get("interface", "relation")
    if interface not in ITEMS:
        return "A pilot is of pairs or of documents."
    try:
        made = report.launch_pilot(track, cast(User, request.user), workers=int(numbers[0]), items=int(numbers[1]),
                                   key=request.POST.get("key", "")[:40], interface=interface)  # fmt: skip
    except (report.CannotPilot, OverBudget) as refusal:
        return str(refusal)
    told = f"{made.items} {'documents' if made.interface == 'entities' else 'items'}"
    messages.success(request, f"Pilot {made.pk}: {made.workers} people are asked about {told}.")
    return ""


urlpatterns = [
    path("desk/tracks/<slug:slug>/pilots/", pilots, name="desk-pilots"),
    path("desk/tracks/<slug:slug>/pilots/<int:pk>/", pilots, name="desk-pilot"),
]
