"""The pages of money (amounts by track, purpose, worker and state, also as a file; caps) and of
marketplaces (their balance compared with our books, bonuses and compensations).
"""

from __future__ import annotations

import secrets
from collections import defaultdict
from collections.abc import Iterable
from decimal import Decimal
from operator import attrgetter, itemgetter
from typing import Any

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import path, reverse

from annotation.budget import cents, halts
from annotation.budget.cents import STATES, Cents
from annotation.marketplace import books, give
from annotation.quality.hourly import ADVICE, FLOOR, hourly_rates
from kbpo.money.models import Price
from kbpo.money.spend import BadCap, balance, list_caps, set_cap
from kbpo.submissions.models import Submission
from kbpo.tracks.models import Track
from kbpo.web.components.figures import money_text
from kbpo.web.http import (
    current_admin,
    for_admins,
    form_reason,
    form_text,
    in_snapshot,
    parse_amount,
    run_action,
)
from kbpo.web.table import Column, Table, code_html, link_html

ZERO = Decimal("0.00")
CENTS = (
    Column("track", value=attrgetter("track_name")),
    Column("purpose"),
    Column("worker"),
    Column("state"),
    Column("amount"),
)
KINDS = {
    "tutorial": "Tutorials",
    "gold": "Gold questions",
    "bonus": "Bonuses and compensations",
    "documents": "Whole documents",
    "late": "Answers that came too late",
}
"""Purposes other than submissions -> their description"""
MOST_SHOWN = 500


@for_admins
@in_snapshot
def show_money(request: HttpRequest) -> HttpResponseBase:
    """Return all amounts by track, by purpose and by worker, and the caps. The file has the finest
    parts: the amounts of a purpose add up to its reservation. A POST sets a cap.
    """
    if request.method == "POST":
        return change_cap(request)
    chosen = request.GET.get("track", "")
    track = get_object_or_404(Track, slug=chosen) if chosen else None
    amounts = cents.money_by_state(track.pk if track else None)
    numbers = {part.purpose.number for part in amounts if part.purpose.kind == "submission"}
    submissions = Submission.objects.select_related("team").in_bulk(numbers)
    if "format" in request.GET:
        of = Column("for", value=lambda row: _purpose_name(row, submissions)[0])
        return Table("money", [*CENTS[:2], of, *CENTS[2:]], amounts).file(request)
    named = Track.objects.order_by("name").values_list("slug", "name")
    prices = Price.objects.all() if track is None else Price.objects.filter(track=track)
    priced, rates = set(prices.values_list("interface", flat=True)), hourly_rates(track=track)
    context = {
        "track": track,
        "tracks": [
            {"url": f"?track={slug}" if slug else "?", "text": name, "current": slug == chosen}
            for slug, name in [("", "All tracks"), *named]
        ],
        "states": STATES,
        "by_track": _sums_table("Track", amounts, lambda amount: (amount.track_name, "")),
        "by_purpose": _sums_table(
            "For", amounts, lambda amount: _purpose_name(amount, submissions)
        ),
        "by_worker": _sums_table(
            "Worker",
            [row for row in amounts if row.worker],
            lambda amount: (code_html(amount.worker[:8]), ""),
        ),
        "sums": balance(track=track) if track else balance(),
        "caps": list_caps(track) if track else [],
        "hourly": [rate for name, rate in rates.items() if name in priced or rate.answers],
        "floor": FLOOR,
        "advice": ADVICE,
    }
    return render(request, "desk/money.html", context)


def _purpose_name(amount: Cents, submissions: dict[int, Submission]) -> tuple[str, str]:
    """Return the display name of the purpose of an amount and the address of its page. The address
    is empty if the purpose has no page.
    """
    kind, number = amount.purpose
    if kind == "submission" and (row := submissions.get(number)) is not None:
        return f"{row.team.name} {row.name}", reverse("submission", args=[row.pk])
    return KINDS.get(kind, str(amount.purpose)), ""


def _sums_table(what: str, amounts: Iterable[Cents], name_of: Any) -> Table:
    """Return a table of sums by name and state, the largest first."""
    sums: dict[tuple[str, str], dict[str, Decimal]] = defaultdict(lambda: defaultdict(lambda: ZERO))
    for part in amounts:
        sums[name_of(part)][part.state] += part.amount
    rows: list[Any] = [
        ((name, url), sum(parts.values(), ZERO), parts) for (name, url), parts in sums.items()
    ]
    rows.sort(key=lambda row: (-row[1], row[0][0]))
    states = [state for state in STATES if any(state in parts for parts in sums.values())]
    total = "Reserved" if what != "Worker" else "In all"
    columns = [
        Column("name", what, itemgetter(0), lambda row: link_html(row[0][1], row[0][0])),
        Column("total", total, itemgetter(1), lambda row: money_text(row[1]), is_number=True),
        *map(_state_column, states),
    ]
    return Table("sums", columns, rows[:MOST_SHOWN])


def _state_column(state: str) -> Column:
    """Return the column of a state."""
    return Column(
        state, state.capitalize(), cell=lambda row: money_text(row[2][state]), is_number=True
    )


def change_cap(request: HttpRequest) -> HttpResponse:
    """Set, change or remove a cap."""
    sent = request.POST
    track = get_object_or_404(Track, slug=sent.get("track", ""))
    text = sent.get("cap", "").strip()
    try:
        value = parse_amount(text, 10**12)
        if text and value is None:
            raise BadCap(f"“{text[:40]}” is no amount in dollars.")
        row = set_cap(
            track,
            sent.get("scope", ""),
            value,
            who=current_admin(request),
            why=form_reason(request),
        )
    except BadCap as bad:
        messages.error(request, str(bad))
    else:
        messages.success(request, f"The cap is ${row.cap} now." if row else "The cap is removed.")
    return redirect(f"{reverse('desk-money')}?track={track.slug}")


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
    return render(request, "desk/platforms.html", _platforms_context())


def _platforms_context() -> dict[str, Any]:
    return {
        "platforms": books.platforms(),
        "halts": halts.current_halts(),
        "tracks": Track.objects.exclude(status="draft").order_by("name"),
        "bonuses": books.latest_bonuses(),
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
        notice = give.grant_bonus_by_identifier(
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
            _platforms_context()
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
            form_text(request, "worker"),
            current_admin(request),
            form_reason(request),
            has_qualification=held,
        )
    except ValueError as no:
        messages.error(request, str(no))
    else:
        messages.success(request, notice)
    return redirect("desk-platforms")


urlpatterns = [
    path("desk/money/", show_money, name="desk-money"),
    path("desk/platforms/", show_platforms, name="desk-platforms"),
]
