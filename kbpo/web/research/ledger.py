"""A team's ledger: what was set aside for each of its runs,
spent on answers and given back, by day.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from typing import Any
from urllib.parse import urlencode

from django.core.paginator import Paginator
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import render
from django.urls import path
from django.views.decorators.cache import never_cache

from kbpo.accounts.models import Team
from kbpo.money.spend import balance, by_day
from kbpo.submissions.models import Submission
from kbpo.web.http import at_one_moment
from kbpo.web.research.teams import own_cap
from kbpo.web.research.upload import for_researchers, team_of

PAGE = 100
WORDS = {"reserve": "Set aside", "release": "Given back", "spend": "Spent"}


@dataclass(frozen=True)
class Line:
    """What moved in one day for one run, in one direction."""

    on: date
    submission: Submission
    kind: str
    words: str
    amount: Decimal
    n: int
    """How many movements these are: of what is spent, answers"""


def lines_of(rows: list[dict[str, Any]]) -> list[Line]:
    """Return the lines of a page of these movements."""
    submissions = Submission.objects.select_related("track", "team").in_bulk(
        {row["purpose_number"] for row in rows}
    )
    return [
        Line(
            row["on"],
            submissions[row["purpose_number"]],
            row["kind"],
            WORDS[row["kind"]],
            row["amount"],
            row["n"],
        )
        for row in rows
    ]


@never_cache
@for_researchers
@at_one_moment
def show(request: HttpRequest) -> HttpResponse:
    """Return the ledger of a team, of all its runs or of one, and who pays for it."""
    team = team_of(request, looks=True)
    if team is None:  # an admin who belongs to no team
        return render(request, "upload_not_yet.html", {"researcher": True}, status=403)
    run = _run(request, team)
    moved = by_day("submission", team, run.purpose if run else None)
    page = Paginator(moved, PAGE).get_page(request.GET.get("page"))
    query = {"team": team.slug} | ({"run": str(run.pk)} if run else {})
    context = {
        "team": team,
        "run": run,
        "cap": own_cap(run.track, team) if run else None,
        "sums": balance(purpose=run.purpose, team=team) if run else balance(team=team),
        "page": page,
        "lines": lines_of(list(page)),
        "query": urlencode(query),
    }
    return render(request, "ledger.html", context)


def _run(request: HttpRequest, team: Team) -> Submission | None:
    """Return the run of the team that the address names; None if it names none. Raises Http404."""
    number = request.GET.get("run", "")
    if not number:
        return None
    row = None
    if number.isascii() and number.isdecimal() and len(number) < 10:
        runs = Submission.objects.filter(team=team, deleted_at=None)
        row = runs.select_related("track", "team").filter(pk=int(number)).first()
    if row is None:
        raise Http404("The team has no such run.")
    return row


urlpatterns = [path("runs/ledger/", show, name="runs-ledger")]
