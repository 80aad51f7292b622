"""The desk's pages of money: every cent by track, submission, worker and state; caps; an estimate;
CSV of all of it.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from decimal import Decimal, InvalidOperation
from typing import Any, cast

from django.contrib import messages
from django.db.models import CharField, Value
from django.db.models.functions import Cast, Concat
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import path, reverse
from django.views.decorators.http import require_POST

from annotation.budget import cents
from annotation.budget.cents import STATES, Cents
from annotation.quality.hourly import ADVICE, FLOOR, Hourly, hourly_rates
from annotation.questions import share
from kbpo.accounts.models import User
from kbpo.money.caps import BadCap, caps_of, set_cap
from kbpo.money.models import Ledger, Price
from kbpo.money.quote import Quote, quote
from kbpo.money.spend import balance
from kbpo.submissions.models import Submission
from kbpo.tracks.models import Track
from kbpo.web.expensive import export
from kbpo.web.http import at_one_moment, for_admins
from kbpo.web.table import csv_response

ZERO = Decimal("0.00")
KINDS = {
    "tutorial": "Tutorials",
    "gold": "Gold questions",
    "bonus": "Bonuses and compensations",
    "documents": "Whole documents",
    "late": "Answers that came too late",
}
"""What a purpose that is no submission's is for, by its kind."""
MOST_SHOWN = 500
TEXT: CharField[str, str] = CharField()


@for_admins
@at_one_moment
def show(request: HttpRequest) -> HttpResponse:
    """Return every cent: by track, by what it is for, by worker; caps; an estimate."""
    track = _track(request)
    amounts = cents.cents(track.pk if track else None)
    submissions = _submissions(amounts)
    context = {
        "track": track,
        "tracks": _switches(track),
        "states": STATES,
        "by_track": _table(amounts, lambda amount: (amount.track_name, "")),
        "by_purpose": _table(amounts, lambda amount: _purpose(amount, submissions)),
        "by_worker": _table(
            [row for row in amounts if row.worker], lambda amount: (amount.worker[:8], "")
        ),
        "sums": balance(track=track) if track else balance(),
        "caps": caps_of(track) if track else [],
        "shared": _shared(track) if track else [],
        "interfaces": Price.objects.filter(track=track).order_by("interface") if track else [],
        "said": request.GET,
        "hourly": _hourly(track),
        "floor": FLOOR,
        "advice": ADVICE,
        **_quoted(request, track),
    }
    return render(request, "desk/money.html", context)


def _track(request: HttpRequest) -> Track | None:
    slug = request.GET.get("track", "")
    return get_object_or_404(Track, slug=slug) if slug else None


def _hourly(track: Track | None) -> list[Hourly]:
    """Return what an hour pays, of the kinds of questions that a track has prices for or that were
    answered.
    """
    prices = Price.objects.all() if track is None else Price.objects.filter(track=track)
    priced = set(prices.values_list("interface", flat=True))
    rates = hourly_rates(track=track)
    return [rate for name, rate in rates.items() if name in priced or rate.answers]


def _switches(chosen: Track | None) -> list[dict[str, Any]]:
    address = reverse("desk-money")
    tracks = Track.objects.order_by("name").values_list("slug", "name")
    return [
        {"url": address, "text": "All tracks", "current": chosen is None},
        *(
            {
                "url": f"{address}?track={slug}",
                "text": name,
                "current": chosen is not None and chosen.slug == slug,
            }
            for slug, name in tracks
        ),
    ]


def _submissions(amounts: Iterable[Cents]) -> dict[int, Submission]:
    numbers = {cents.purpose.number for cents in amounts if cents.purpose.kind == "submission"}
    return Submission.objects.select_related("team").in_bulk(numbers)


def _purpose(amount: Cents, submissions: dict[int, Submission]) -> tuple[str, str]:
    """Return what money is for, in words, and the address of its page."""
    kind, number = amount.purpose
    if kind == "submission" and (row := submissions.get(number)) is not None:
        return f"{row.team.name} {row.name}", reverse("submission", args=[row.pk])
    if kind == "pilot":
        return f"Pilot {number}", reverse("desk-batch", args=[amount.purpose])
    return KINDS.get(kind, str(amount.purpose)), ""


def _table(amounts: Iterable[Cents], name_of: Any) -> dict[str, Any]:
    """Sums by name: what was reserved, and its parts by the states that occur; the largest
    first.
    """
    sums: dict[tuple[str, str], dict[str, Decimal]] = defaultdict(lambda: defaultdict(lambda: ZERO))
    for part in amounts:
        sums[name_of(part)][part.state] += part.amount
    states = [state for state in STATES if any(state in parts for parts in sums.values())]
    lines: list[dict[str, Any]] = [
        {
            "name": name,
            "url": url,
            "total": sum(parts.values(), ZERO),
            "cells": [(state, parts[state]) for state in states],
        }
        for (name, url), parts in sums.items()
    ]
    return {
        "states": states,
        "rows": sorted(lines, key=lambda row: (-row["total"], row["name"]))[:MOST_SHOWN],
    }


def _shared(track: Track) -> list[dict[str, Any]]:
    submissions = (
        track.submissions.exclude(confirmed_at=None)
        .select_related("team")
        .order_by("confirmed_at")[:50]
    )
    return [{"row": row, "shared": share.shared(row)} for row in submissions]


def _quoted(request: HttpRequest, track: Track | None) -> dict[str, Any]:
    """Return the estimate that was asked for, or why there is none."""
    estimate: Quote | None = None
    refusal = ""
    asked = request.GET.get("questions", "")
    if track is not None and asked:
        people = request.GET.get("people", "") or str(track.workers_per_question)
        price = Price.objects.filter(
            track=track, interface=request.GET.get("interface", "")
        ).first()
        if price is None:
            refusal = "This track has no price for that kind of question."
        elif not asked.isdecimal() or not people.isdecimal() or len(asked) > 9 or len(people) > 3:
            refusal = "Give whole numbers of questions and people."
        else:
            try:
                estimate = quote(price, int(asked), int(people))
            except ValueError as wrong:
                refusal = str(wrong)
    return {"quote": estimate, "refusal": refusal}


@for_admins
@require_POST
def cap(request: HttpRequest) -> HttpResponse:
    """Sets, changes or removes a cap."""
    sent = request.POST
    track = get_object_or_404(Track, slug=sent.get("track", ""))
    text = sent.get("cap", "").strip().removeprefix("$")
    try:
        value = Decimal(text) if text else None
        row = set_cap(
            track,
            sent.get("scope", ""),
            value,
            who=cast(User, request.user),
            why=sent.get("why", "").replace("\x00", "")[:500],
        )
    except InvalidOperation:
        messages.error(request, f"“{text[:40]}” is no amount in dollars.")
    except BadCap as bad:
        messages.error(request, str(bad))
    else:
        messages.success(
            request, f"The cap is ${row.cap} now." if row else "There is no such cap any more."
        )
    return redirect(f"{reverse('desk-money')}?track={track.slug}")


@for_admins
@export
def cents_csv(request: HttpRequest) -> HttpResponse:
    """Return every cent in its finest parts; the sum of the amounts of a purpose is what was
    reserved for it.
    """
    track = _track(request)
    amounts = cents.cents(track.pk if track else None)
    submissions = _submissions(amounts)
    header = ["track", "purpose", "for", "worker", "state", "amount"]
    parts = []
    for row in amounts:
        name, _ = _purpose(row, submissions)
        parts.append([row.track_name, row.purpose, name, row.worker, row.state, row.amount])
    return csv_response("money.csv", header, parts)


@for_admins
@export
def ledger_csv(request: HttpRequest) -> HttpResponse:
    """Return every movement of the ledger, as it stands there."""
    track = _track(request)
    movements = Ledger.objects.select_related("track", "team").order_by("pk")
    if track is not None:
        movements = movements.filter(track=track)
    header = ["id", "at", "track", "team", "purpose", "kind", "state", "amount", "key", "why"]
    columns = (
        "pk",
        "created_at",
        "track__name",
        "team__name",
        Concat("purpose_kind", Value(":"), Cast("purpose_number", TEXT), output_field=TEXT),
        "kind",
        "state",
        "amount",
        "key",
        "why",
    )
    return csv_response("ledger.csv", header, movements.values_list(*columns).iterator())


urlpatterns = [
    path("desk/money/", show, name="desk-money"),
    path("desk/money/cap/", cap, name="desk-cap"),
    path("desk/money/money.csv", cents_csv, name="desk-money-csv"),
    path("desk/money/ledger.csv", ledger_csv, name="desk-ledger-csv"),
]
