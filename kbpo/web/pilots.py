"""The admins' page of pilots: launch one, and read what it says beside the published values."""

from __future__ import annotations

import secrets
from typing import cast

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
        "cost": report.cost_of_pilot(track, 5, 200),
        "refusal": refusal,
        "key": secrets.token_hex(16),  # a form's own: sent twice, it launches once
        "said": request.POST,
    }
    return render(request, "desk/pilots.html", context, status=422 if refusal else 200)


def _launch(request: HttpRequest, track: Track) -> str:
    """Why no pilot was launched, as a sentence; nothing if one was."""
    numbers = [request.POST.get(name, "") for name in ("workers", "items")]
    if not all(one.isdecimal() and one.isascii() and len(one) < 6 for one in numbers):
        return "Say how many workers and how many items."
    try:
        made = report.launch_pilot(track, cast(User, request.user), workers=int(numbers[0]), items=int(numbers[1]),
                                   key=request.POST.get("key", "")[:40])  # fmt: skip
    except (report.CannotPilot, OverBudget) as refusal:
        return str(refusal)
    messages.success(request, f"Pilot {made.pk}: {made.workers} people are asked about {made.items} items.")
    return ""


urlpatterns = [
    path("desk/tracks/<slug:slug>/pilots/", pilots, name="desk-pilots"),
    path("desk/tracks/<slug:slug>/pilots/<int:pk>/", pilots, name="desk-pilot"),
]
