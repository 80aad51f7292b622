"""The desk's page of money: every cent by track, submission, worker and state, also as a file;
caps; an estimate.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from decimal import Decimal, InvalidOperation
from operator import attrgetter, itemgetter
from typing import Any

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import path, reverse

from annotation.budget import cents
from annotation.budget.cents import STATES, Cents
from annotation.quality.hourly import ADVICE, FLOOR, Hourly, hourly_rates
from annotation.questions import share
from kbpo.money.caps import BadCap, caps_of, set_cap
from kbpo.money.models import Price
from kbpo.money.quote import Quote, quote
from kbpo.money.spend import balance
from kbpo.submissions.models import Submission
from kbpo.tracks.models import Track
from kbpo.web.components.figures import count_text, money_text
from kbpo.web.http import admin_of, at_one_moment, for_admins, why_of
from kbpo.web.table import Column, Table, code, link

ZERO = Decimal("0.00")
CENTS = (
    Column("track", value=attrgetter("track_name")),
    Column("purpose"),
    Column("worker"),
    Column("state"),
    Column("amount"),
)
SHARED = (
    Column("link", "Submission"),
    Column("own", "Asked itself", is_number=True),
    Column("others", "Asked by others", is_number=True),
    Column("lent", "Its own, used by others", is_number=True),
)
KINDS = {
    "tutorial": "Tutorials",
    "gold": "Gold questions",
    "bonus": "Bonuses and compensations",
    "documents": "Whole documents",
    "late": "Answers that came too late",
}
"""What a purpose that is no submission's is for, by its kind."""
MOST_SHOWN = 500


@for_admins
@at_one_moment
def show(request: HttpRequest) -> HttpResponseBase:
    """Return every cent: by track, by what it is for, by worker; caps; an estimate. As a file in
    its finest parts: the sum of the amounts of a purpose is what was reserved for it. A POST sets
    a cap.
    """
    if request.method == "POST":
        return cap(request)
    track = _track(request)
    amounts = cents.cents(track.pk if track else None)
    submissions = _submissions(amounts)
    if "format" in request.GET:
        of = Column("for", value=lambda row: _purpose(row, submissions)[0])
        return Table("money", [*CENTS[:2], of, *CENTS[2:]], amounts).file(request)
    context = {
        "track": track,
        "tracks": _switches(track),
        "states": STATES,
        "by_track": _table("Track", amounts, lambda amount: (amount.track_name, "")),
        "by_purpose": _table("For", amounts, lambda amount: _purpose(amount, submissions)),
        "by_worker": _table(
            "Worker",
            [row for row in amounts if row.worker],
            lambda amount: (code(amount.worker[:8]), ""),
        ),
        "sums": balance(track=track) if track else balance(),
        "caps": caps_of(track) if track else [],
        "shared": _shared(track) if track else None,
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


def _table(what: str, amounts: Iterable[Cents], name_of: Any) -> Table:
    """Return sums by name: what was reserved, and its parts by the states that occur; the largest
    first.
    """
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
        Column("name", what, itemgetter(0), lambda row: link(row[0][1], row[0][0])),
        Column("total", total, itemgetter(1), lambda row: money_text(row[1]), is_number=True),
        *(_of_state(state) for state in states),
    ]
    return Table("sums", columns, rows[:MOST_SHOWN])


def _of_state(state: str) -> Column:
    """Return the column of the money in a state."""
    return Column(
        state,
        state.capitalize(),
        cell=lambda row: money_text(row[2][state]),
        is_number=True,
    )


def _shared(track: Track) -> Table:
    """Return who pays for what several submissions want."""
    submissions = (
        track.submissions.exclude(confirmed_at=None)
        .select_related("team")
        .order_by("confirmed_at")[:50]
    )
    rows = []
    for row in submissions:
        shared = share.shared(row)
        counts = {name: count_text(getattr(shared, name)) for name in ("own", "others", "lent")}
        rows.append({"link": link(reverse("submission", args=[row.pk]), row.own_name)} | counts)
    return Table("shared", SHARED, rows)


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


def cap(request: HttpRequest) -> HttpResponse:
    """Set, change or remove a cap."""
    sent = request.POST
    track = get_object_or_404(Track, slug=sent.get("track", ""))
    text = sent.get("cap", "").strip().removeprefix("$")
    try:
        value = Decimal(text) if text else None
        row = set_cap(
            track,
            sent.get("scope", ""),
            value,
            who=admin_of(request),
            why=why_of(request),
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


urlpatterns = [path("desk/money/", show, name="desk-money")]
