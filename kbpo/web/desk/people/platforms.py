"""The platforms' desk: whether money is real, their books beside ours, bonuses and
compensations.
"""

from __future__ import annotations

import secrets
from decimal import Decimal, InvalidOperation
from typing import Any, cast

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import path
from django.views.decorators.http import require_POST

from annotation.budget import halts
from annotation.marketplace import books, give
from kbpo.accounts.models import User
from kbpo.tracks.models import Track
from kbpo.web.http import for_admins


@for_admins
def show(request: HttpRequest) -> HttpResponse:
    """Return every platform that is not our own pages: its balance, its HITs, and where its books
    and ours disagree.
    """
    return render(request, "desk/platforms.html", _context())


def _context() -> dict[str, Any]:
    return {
        "platforms": books.platforms(),
        "halts": halts.current_halts(),
        "tracks": Track.objects.exclude(status="draft").order_by("name"),
        "bonuses": books.bonuses(),
        "everything": True,  # the stop box, which is the desk's, begins with the wider stop here
        "back": "desk-platforms",
        "key": secrets.token_hex(16),  # a form's own: sent twice, it grants once
    }


@for_admins
@require_POST
def explain(request: HttpRequest, name: str) -> HttpResponse:
    """Somebody paid in or took out: the balance as it is now is right."""
    why = request.POST.get("why", "").strip()
    if not why or not books.explain_balance(name, cast(User, request.user), why[:500]):
        messages.error(request, "Nothing was changed. Say where the difference comes from.")
    else:
        messages.success(
            request, "Noted. From now on the balance is compared with what it is today."
        )
    return redirect("desk-platforms")


@for_admins
@require_POST
def grant(request: HttpRequest) -> HttpResponse:
    """Money for a worker of a platform besides rewards: a bonus for an answer, or a
    compensation.
    """
    sent = {
        name: request.POST.get(name, "").strip()
        for name in ("worker", "track", "amount", "why", "answer", "key")
    }
    track = Track.objects.filter(slug=sent["track"]).first()
    try:
        if track is None:
            raise ValueError("Choose the track that pays.")
        notice = give.grant_to(
            sent["worker"],
            track,
            _dollars(sent["amount"]),
            sent["why"][:900],
            cast(User, request.user),
            answer=sent["answer"],
            key=sent["key"][:64],
        )
    except ValueError as no:
        return render(
            request,
            "desk/platforms.html",
            _context()
            | {"refusal": str(no), "said": sent, "key": sent["key"] or secrets.token_hex(16)},
            status=422,
        )
    messages.success(request, notice)
    return redirect("desk-platforms")


@for_admins
@require_POST
def admit(request: HttpRequest) -> HttpResponse:
    """Gives a worker the qualification that HITs can ask for, or takes it back."""
    held, why = (
        request.POST.get("held") == "yes",
        request.POST.get("why", "").replace("\x00", "")[:500],
    )
    try:
        notice = give.admit(
            request.POST.get("worker", "").strip(), cast(User, request.user), why, held=held
        )
    except ValueError as no:
        messages.error(request, str(no))
    else:
        messages.success(request, notice)
    return redirect("desk-platforms")


def _dollars(text: str) -> Decimal:
    """Return the amount. Raises ValueError with a sentence."""
    try:
        amount = Decimal(text)
    except InvalidOperation as bad:
        raise ValueError(f"“{text[:20]}” is no amount in dollars.") from bad
    if not amount.is_finite() or not 0 < amount <= 1000:
        raise ValueError("An amount lies between one cent and a thousand dollars.")
    return amount


urlpatterns = [
    path("desk/platforms/", show, name="desk-platforms"),
    path("desk/platforms/admit/", admit, name="desk-platforms-admit"),
    path("desk/platforms/grant/", grant, name="desk-platforms-grant"),
    path("desk/platforms/<slug:name>/explain/", explain, name="desk-platforms-explain"),
]
