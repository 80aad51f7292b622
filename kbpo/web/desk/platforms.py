"""The page of marketplaces: their balance beside our books, bonuses and compensations."""

from __future__ import annotations

import secrets
from typing import Any

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import path

from annotation.budget import halts
from annotation.marketplace import books, give
from kbpo.tracks.models import Track
from kbpo.web.http import (
    current_admin,
    for_admins,
    form_reason,
    form_text,
    parse_amount,
    run_action,
)


@for_admins
def show_platforms(request: HttpRequest) -> HttpResponse:
    """Return the marketplaces with their balance, HITs and disagreements with our books. A POST
    runs the action of its form.
    """
    if request.method == "POST":
        return run_action(
            request,
            {"explain": accept_balance, "grant": grant_payment, "admit": set_worker_qualification},
        )
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


def accept_balance(request: HttpRequest) -> HttpResponse:
    """Accept the current balance as right, with a reason."""
    why = form_reason(request)
    if not why or not books.accept_balance(form_text(request, "name"), current_admin(request), why):
        messages.error(request, "Nothing was changed: explain the difference.")
    else:
        messages.success(request, "Saved. The balance is compared with today’s from now on.")
    return redirect("desk-platforms")


def grant_payment(request: HttpRequest) -> HttpResponse:
    """Grant a bonus for an answer, or a compensation."""
    sent = {
        name: request.POST.get(name, "").strip()
        for name in ("worker", "track", "amount", "why", "answer", "key")
    }
    track = Track.objects.filter(slug=sent["track"]).first()
    try:
        if track is None:
            raise ValueError("Choose the track that pays.")
        amount = parse_amount(sent["amount"])
        if amount is None or not 0 < amount <= 1000:
            raise ValueError("An amount lies between one cent and a thousand dollars.")
        notice = give.grant_to(
            sent["worker"],
            track,
            amount,
            sent["why"][:900],
            current_admin(request),
            answer=sent["answer"],
            key=sent["key"][:64],
        )
    except ValueError as no:
        return render(
            request,
            "desk/platforms.html",
            _context()
            | {"refusal": str(no), "sent": sent, "key": sent["key"] or secrets.token_hex(16)},
            status=422,
        )
    messages.success(request, notice)
    return redirect("desk-platforms")


def set_worker_qualification(request: HttpRequest) -> HttpResponse:
    """Give a worker the qualification for HITs, or revoke it."""
    held = request.POST.get("held") == "yes"
    try:
        notice = give.set_qualification(
            form_text(request, "worker"), current_admin(request), form_reason(request), held=held
        )
    except ValueError as no:
        messages.error(request, str(no))
    else:
        messages.success(request, notice)
    return redirect("desk-platforms")


urlpatterns = [path("desk/platforms/", show_platforms, name="desk-platforms")]
