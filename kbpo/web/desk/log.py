"""The audit log: who changed which state and who moved which money, with the reason; a page and a
CSV file.
"""

from __future__ import annotations

from typing import Any

from django.core.paginator import Paginator
from django.db.models import CharField, F, QuerySet, Value
from django.db.models.functions import Cast, Coalesce, Concat
from django.http import HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from django.shortcuts import render
from django.urls import path

from kbpo.accounts.models import Audit
from kbpo.money.models import Ledger
from kbpo.money.purpose import Purpose
from kbpo.tracks.models import Track
from kbpo.web.expensive import export
from kbpo.web.http import for_admins
from kbpo.web.table import csv_stream

PAGE = 100
COLUMNS = ("at", "what", "about", "who", "before", "after", "why", "track", "book")
TEXT: CharField[str, str] = CharField()
NOBODY = "the service"


def entries(*, book: str = "", about: str = "", track: str = "", who: str = "") -> Any:
    """Return the entries of both books, states and money, newest first, as mappings of COLUMNS."""
    states = Audit.objects.all()
    money = Ledger.objects.all()
    if about:
        states, money = states.filter(about=about), _for(about, money)
    if track:
        states, money = states.filter(track=track), money.filter(track__slug=track)
    if who:
        person: dict[str, Any] = {"who": None} if who == NOBODY else {"who__username": who}
        states, money = states.filter(**person), money.filter(**person)
    books = [_states(states), _money(money)]
    if book in ("states", "money"):
        return books[0 if book == "states" else 1].order_by("-at_")
    return books[0].union(books[1], all=True).order_by("-at_")


def _for(about: str, movements: QuerySet[Ledger]) -> QuerySet[Ledger]:
    """Return the movements of the purpose that this names; none if it names none."""
    try:
        return movements.filter(**Purpose.read(about).at("purpose"))
    except ValueError:
        return movements.none()


def _states(audits: QuerySet[Audit]) -> Any:
    return audits.order_by().values(
        at_=F("at"),
        what_=F("what"),
        about_=F("about"),
        who_=Coalesce("who__username", Value(NOBODY)),
        before_=F("before"),
        after_=F("after"),
        why_=F("why"),
        track_=F("track"),
        book_=Value("states", output_field=TEXT),
    )


def _money(movements: QuerySet[Ledger]) -> Any:
    return movements.order_by().values(
        at_=F("created_at"),
        what_=F("kind"),
        about_=Concat("purpose_kind", Value(":"), Cast("purpose_number", TEXT), output_field=TEXT),
        who_=Coalesce("who__username", Value(NOBODY)),
        before_=Value("", output_field=TEXT),
        after_=Concat(Value("$"), Cast("amount", TEXT), output_field=TEXT),
        why_=F("why"),
        track_=F("track__slug"),
        book_=Value("money", output_field=TEXT),
    )


def _asked(request: HttpRequest) -> dict[str, str]:
    asked = {
        name: request.GET.get(name, "").replace("\x00", "")[:120]
        for name in ("book", "about", "track", "who")
    }
    return asked | {"book": asked["book"] if asked["book"] in ("states", "money") else ""}


@for_admins
def show(request: HttpRequest) -> HttpResponse:
    """Return the log, a hundred entries a page."""
    asked = _asked(request)
    page = Paginator(entries(**asked), PAGE).get_page(request.GET.get("page"))
    shown = [{name: row[f"{name}_"] for name in COLUMNS} for row in page]
    query = request.GET.copy()
    query.pop("page", None)
    tracks = Track.objects.order_by("name")
    context = {
        "page": page,
        "rows": shown,
        "asked": asked,
        "tracks": tracks,
        "query": query.urlencode(),
    }
    return render(request, "desk/log.html", context)


@for_admins
@export
def as_csv(request: HttpRequest) -> HttpResponseBase:
    """Return the same entries, all of them, as CSV."""
    rows = ([row[f"{name}_"] for name in COLUMNS] for row in entries(**_asked(request)).iterator())
    return csv_stream("log.csv", COLUMNS, rows)


urlpatterns = [
    path("desk/log/", show, name="desk-log"),
    path("desk/log.csv", as_csv, name="desk-log-csv"),
]
