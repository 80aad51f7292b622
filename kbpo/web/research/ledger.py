"""The ledger of a team: money reserved, spent and released for its runs, by day."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any
from urllib.parse import urlencode

from django.http import Http404, HttpRequest
from django.http.response import HttpResponseBase
from django.shortcuts import render
from django.urls import path
from django.views.decorators.cache import never_cache

from kbpo.accounts.models import Team
from kbpo.money.spend import balance, by_day
from kbpo.submissions.models import Submission
from kbpo.web.components.figures import count_text, money_text
from kbpo.web.http import at_one_moment
from kbpo.web.research.teams import team_cap
from kbpo.web.research.upload import for_researchers, requested_team
from kbpo.web.table import Column, Table, link

WORDS = {"reserve": "Set aside", "release": "Given back", "spend": "Spent"}


def team_ledger(team: Team, run: Submission | None, request: HttpRequest) -> Table:
    """Return the movements for the runs of a team, or one run: one row for each day, run and
    direction.
    """
    moved = by_day("submission", team, run.purpose if run else None)
    columns = [
        Column("on", "Day", cell=lambda row: f"{row['on'].day} {row['on']:%B %Y}"),
        Column("submission", "" if run else "Run", lambda row: row["purpose_number"], _link),
        Column("track", "" if run else "Track", lambda row: row["run"].track.name, in_files=False),
        Column("kind", "What", cell=_direction_text),
        Column("amount", "Amount", lambda row: str(row["amount"]), _amount_text, is_number=True),
        Column("movements", value=lambda row: row["n"]),
    ]
    return Table(f"ledger-{team.slug}", columns, moved, request, prepare=_with_runs)


def _with_runs(rows: list[dict[str, Any]]) -> Sequence[dict[str, Any]]:
    runs = Submission.objects.select_related("track", "team").in_bulk(
        {row["purpose_number"] for row in rows}
    )
    return [row | {"run": runs[row["purpose_number"]]} for row in rows]


def _link(row: dict[str, Any]) -> str:
    run = row["run"]
    return link(f"?{urlencode({'team': run.team.slug, 'run': run.pk})}", run.name)


def _direction_text(row: dict[str, Any]) -> str:
    """Return the direction of a movement; for spending, with the number of answers."""
    if row["kind"] != "spend":
        return WORDS[row["kind"]]
    return f"Spent on {count_text(row['n'])} answer{'' if row['n'] == 1 else 's'}"


def _amount_text(row: dict[str, Any]) -> str:
    return money_text(row["amount"])


@never_cache
@for_researchers
@at_one_moment
def show_ledger(request: HttpRequest) -> HttpResponseBase:
    """Show the ledger of a team or one of its runs; with `?format=` return it as a file."""
    team = requested_team(request)
    if team is None:  # an admin who belongs to no team
        return render(request, "upload_not_yet.html", {"researcher": True}, status=403)
    number = request.GET.get("run", "")
    run = find_run(team, number) if number else None
    table = team_ledger(team, run, request)
    if "format" in request.GET:
        return table.file(request)
    context = {
        "team": team,
        "run": run,
        "cap": team_cap(run.track, team) if run else None,
        "sums": balance(purpose=run.purpose, team=team) if run else balance(team=team),
        "table": table,
    }
    return render(request, "ledger.html", context)


def find_run(team: Team, number: str) -> Submission:
    """Return the team's run of this number. Raises Http404."""
    row = None
    if number.isascii() and number.isdecimal() and len(number) < 10:
        runs = Submission.objects.filter(team=team, deleted_at=None)
        row = runs.select_related("track", "team").filter(pk=int(number)).first()
    if row is None:
        raise Http404("The team has no such run.")
    return row


urlpatterns = [path("runs/ledger/", show_ledger, name="runs-ledger")]
