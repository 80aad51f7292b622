"""The audit log of state changes and money movements."""

from __future__ import annotations

from operator import itemgetter
from typing import Any

from django.db.models import CharField, F, Value
from django.db.models.functions import Cast, Coalesce, Concat
from django.http import HttpRequest
from django.http.response import HttpResponseBase
from django.shortcuts import render
from django.urls import path
from django.utils.html import format_html
from django.utils.text import Truncator

from kbpo.accounts.models import Audit
from kbpo.money.models import Ledger, Purpose
from kbpo.tracks.models import Track
from kbpo.web.components.figures import time_text
from kbpo.web.http import for_admins
from kbpo.web.table import Column, Table, code_html, tag_html

PAGE = 100
COLUMNS = (
    Column("at", "When", itemgetter("at_"), lambda row: time_text(row["at_"])),
    Column(
        "what",
        "What",
        itemgetter("what_"),
        lambda row: format_html(
            "<span>{} {}</span>",
            row["what_"],
            tag_html("money", "info") if row["book_"] == "money" else "",
        ),
    ),
    Column(
        "about",
        "About",
        itemgetter("about_"),
        lambda row: code_html(Truncator(row["about_"]).chars(28)),
    ),
    Column("who", "Who", itemgetter("who_")),
    Column("before", value=itemgetter("before_")),
    Column(
        "after",
        "From, to",
        itemgetter("after_"),
        lambda row: " → ".join(filter(None, [row["before_"], row["after_"]])),
    ),
    Column("why", "Why", itemgetter("why_")),
    Column("track", value=itemgetter("track_")),
    Column("book", value=itemgetter("book_")),
)
TEXT: CharField[str, str] = CharField()
NOBODY = "the service"


def log_entries(*, book: str = "", about: str = "", track: str = "", who: str = "") -> Any:
    """Return the entries of both logs, newest first, as mappings of COLUMNS. `about` names a row,
    for money a purpose (kind:number).
    """
    states, money = Audit.objects.order_by(), Ledger.objects.order_by()
    if about:
        states = states.filter(about=about)
        try:
            money = money.filter(**Purpose.parse(about).filter_condition("purpose"))
        except ValueError:
            money = money.none()
    if track:
        states, money = states.filter(track=track), money.filter(track__slug=track)
    if who:
        person: dict[str, Any] = {"who": None} if who == NOBODY else {"who__username": who}
        states, money = states.filter(**person), money.filter(**person)
    state_changes: Any = states.values(
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
    movements: Any = money.values(
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
    if book in ("states", "money"):
        return (state_changes if book == "states" else movements).order_by("-at_")
    return state_changes.union(movements, all=True).order_by("-at_")


@for_admins
def show_log(request: HttpRequest) -> HttpResponseBase:
    """Return the log, a hundred entries a page, or all of them as a file."""
    asked = {
        name: request.GET.get(name, "").replace("\x00", "")[:120]
        for name in ("book", "about", "track", "who")
    }
    asked["book"] = asked["book"] if asked["book"] in ("states", "money") else ""
    table = Table("log", COLUMNS, log_entries(**asked), request, PAGE)
    if "format" in request.GET:
        return table.file(request)
    context = {"table": table, "asked": asked, "tracks": Track.objects.order_by("name")}
    return render(request, "desk/log.html", context)


urlpatterns = [path("desk/log/", show_log, name="desk-log")]
