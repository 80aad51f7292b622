"""The start page of researchers: unconfirmed uploads, runs with scores, and money of a team."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from operator import attrgetter
from typing import Any, cast
from urllib.parse import urlencode

from django.contrib import messages
from django.core.paginator import Page, Paginator
from django.db.models import F, QuerySet
from django.http import Http404, HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import path, reverse
from django.views.decorators.cache import never_cache

from kbpo import clock
from kbpo.accounts.models import Team, User
from kbpo.accounts.teams import member_roles
from kbpo.evaluation.latest import Extent, judging_extent
from kbpo.evaluation.leaderboard import headline_figures, rank_ranges
from kbpo.evaluation.models import InterimInterval
from kbpo.money.spend import Balance, balance, balances, ledger_by_day
from kbpo.sampling.confirm import add_deadline
from kbpo.submissions.limits import no_run_left_reason, runs_left
from kbpo.submissions.models import Submission
from kbpo.submissions.withdraw import delete_discarded
from kbpo.tracks.models import Track
from kbpo.tracks.registry import kind_of
from kbpo.web.components import drawing
from kbpo.web.components.figures import count_text, money_text, plural, range_text
from kbpo.web.http import form_pk, in_snapshot, run_action
from kbpo.web.research.follow import time_left
from kbpo.web.research.quote import find_quote
from kbpo.web.research.teams import UNDER_WAY, open_invitations, team_cap, team_purses
from kbpo.web.research.upload import for_researchers, requested_team, team_drafts
from kbpo.web.table import Column, Table, link_html

PAGE = 50
STATES = {"all": "All", "under-way": "In progress", "scored": "Scored", "private": "Private"}
NO_INTERVAL = drawing.Interval(None)
LEGENDS: tuple[drawing.Kind, ...] = ("live", "moment", "few")
"""Styles of bars that the legend explains if they occur"""


@dataclass(frozen=True)
class Run:
    """One row of the table of runs."""

    submission: Submission
    interval: drawing.Interval
    label: str
    """Label of its score"""
    n_labels: int
    kind: drawing.Kind
    rank: tuple[int, int] | None
    of_ranked: int
    money: Balance | None
    extent: Extent | None
    """How far it is judged, while judging continues"""
    left: Any
    """Expected remaining time; None if unknown"""

    @property
    def rank_text(self) -> str:
        """Return the rank as “3” or “1–4”."""
        return range_text(*self.rank) if self.rank else ""

    @property
    def is_rated(self) -> bool:
        """Return whether people rate the run's predictions instead of judging them right."""
        return kind_of(self.submission.track).rates

    def is_drawn_as(self, kind: drawing.Kind) -> bool:
        """Return whether its bar has this style."""
        return self.interval.estimate is not None and self.kind == kind

    @property
    def share(self) -> str:
        """Return the judged share of its sample, as a CSS width."""
        sample = self.extent.sample if self.extent else 0
        return f"{100 * (1 - self.extent.open / sample):.3g}%" if self.extent and sample else "0%"


COLUMNS = (
    Column("id", value=attrgetter("submission.pk")),
    Column("name", value=attrgetter("submission.name")),
    Column("track", value=attrgetter("submission.track.slug")),
    Column("state", value=attrgetter("submission.status")),
    Column("private", value=attrgetter("submission.is_private")),
    Column("number", value=attrgetter("label")),
    *(
        Column(end, value=attrgetter(f"interval.{end}"))
        for end in ("estimate", "low80", "high80", "low95", "high95")
    ),
    Column("judged", value=lambda run: run.n_labels or None),
    Column("rank_best", value=lambda run: run.rank and run.rank[0]),
    Column("rank_worst", value=lambda run: run.rank and run.rank[1]),
    Column("spent", value=lambda run: run.money.spent if run.money else 0),
    Column("reserved", value=lambda run: run.money.open if run.money else 0),
    Column("confirmed_at", value=attrgetter("submission.confirmed_at")),
    Column("scored_at", value=attrgetter("submission.scored_at")),
)
"""All runs of a team with the figures of the page, unrounded"""


@never_cache
@for_researchers
@in_snapshot
def show_runs(request: HttpRequest) -> HttpResponseBase:
    """Return the runs of a team; with `?format=` all of them as a file. A POST deletes a discarded
    upload.
    """
    if request.method == "POST":
        return run_action(request, {"delete": delete_discard})
    team = requested_team(request)
    if team is None:  # an admin who belongs to no team
        return render(request, "upload_not_yet.html", {"researcher": True}, status=403)
    if "format" in request.GET:
        lines = run_lines(_runs_in_state(team, "all")[0])
        return Table(f"runs-{team.slug}", COLUMNS, lines).file(request)
    user, now = cast(User, request.user), clock.now()
    state = request.GET.get("state", "all")
    chosen, counts = _runs_in_state(team, state)
    page = Paginator(chosen, PAGE).get_page(request.GET.get("page"))
    listed = run_lines(page)
    discards = Submission.objects.filter(team=team).unconfirmed_ended().order_by("-pk")
    open_tracks = Track.objects.filter(status="open")
    context = {
        "team": team,
        "teams": [
            {
                "url": f"?{urlencode({'team': own_team.slug})}",
                "text": own_team.name,
                "current": own_team == team,
            }
            for own_team in user.teams.order_by("pk")
        ],
        "now": now,
        "waiting": _waiting_uploads(team),
        "states": [
            {"url": _runs_url(team, state=name), "text": f"{text} {n}", "current": name == state}
            for (name, text), n in zip(STATES.items(), counts, strict=True)
        ],
        "state": state,
        "page": page,
        "query": urlencode({"team": team.slug, "state": state}),
        "rows": listed,
        "axis": drawing.axis_over([row.interval for row in listed]),
        "legends": [kind for kind in LEGENDS if any(row.is_drawn_as(kind) for row in listed)],
        "csv": _runs_url(team, format="csv"),
        "discards": discards[:200],
        "money": balance(team=team),
        "purses": team_purses(team),
        "members": member_roles(team),
        "invited": open_invitations(team).count(),
        "left": [
            (track, left)
            for track in open_tracks.order_by("name")
            if (left := runs_left(track, team)) is not None
        ],
        "open_tracks": open_tracks.order_by("-pk"),
        "tokens": user.tokens.filter(revoked_at=None).count(),
    }
    return render(request, "runs.html", context)


def _runs_url(team: Team, **changes: str) -> str:
    return f"?{urlencode({'team': team.slug} | changes)}"


def _runs_in_state(team: Team, state: str) -> tuple[QuerySet[Submission], list[int]]:
    """Return the runs in a state, and the number of runs in each state. Raises Http404 for an
    unknown state.
    """
    submissions = Submission.objects.filter(team=team).runs().select_related("track", "team")
    of_state = {
        "all": submissions,
        "under-way": submissions.filter(status__in=UNDER_WAY),
        "scored": submissions.filter(status="scored"),
        "private": submissions.filter(is_private=True),
    }
    if state not in of_state:
        raise Http404(f"Runs are shown by {', '.join(STATES)}; there is no “{state[:40]}”.")
    return of_state[state].order_by("-pk"), [
        runs_of_state.count() for runs_of_state in of_state.values()
    ]


def _waiting_uploads(team: Team) -> list[dict[str, Any]]:
    """Return the unconfirmed uploads of a team, each with its quote."""
    limited = cache(lambda track: no_run_left_reason(track, team))
    waiting = []
    for row in team_drafts(team):
        is_planned = row.status == "planned" and not row.track.refusal
        parts = [f"{count_text(row.n_items or 0)} {kind_of(row.track).words.items}"]
        for word in ("error", "warning"):
            n = row.counts.get(f"{word}s", 0)
            parts += [plural(n, word)] if n else []
        limit = Submission.DEADLINES["planned"][0]
        waiting.append(
            {
                "submission": row,
                "said": ", ".join(parts),
                "quote": find_quote(row, None) if is_planned else None,
                "refused": add_deadline(row, limited(row.track)) if is_planned else "",
                "until": row.status_since + limit if row.status == "planned" else None,
            }
        )
    return waiting


def run_lines(submissions: Page[Submission] | QuerySet[Submission]) -> list[Run]:
    """Return the rows of these submissions, in their order."""
    of_track: dict[Track, list[Submission]] = {}
    for row in submissions:
        of_track.setdefault(row.track, []).append(row)
    money = balances([row.purpose for row in submissions])
    under_way = [row for row in submissions if row.status in UNDER_WAY]
    intervals = InterimInterval.objects.filter(
        submission__in=under_way, order=F("submission__orders")
    ).excluding_some_values()
    last = intervals.order_by("submission_id", "-n").distinct("submission_id")
    watched = {interval.submission_id: interval for interval in last}
    run_of: dict[int, Run] = {}
    for track, mine in of_track.items():
        evaluation = track.evaluations.order_by("-number").first()
        scores = headline_figures(evaluation, [row.pk for row in mine]) if evaluation else {}
        places = rank_ranges(evaluation) if evaluation else {}
        for row in mine:
            interval, label, n, kind = _shown_score(row, scores.get(row.pk), watched.get(row.pk))
            judged = judging_extent(row) if row.status == "judging" else None
            run_of[row.pk] = Run(
                row,
                interval,
                label,
                n,
                kind,
                places.get(row.pk),
                len(places),
                money.get(row.purpose),
                judged,
                time_left(row, judged) if judged else None,
            )
    return [run_of[row.pk] for row in submissions]


def _shown_score(
    submission: Submission, headline: tuple[Any, Any] | None, interim: InterimInterval | None
) -> tuple[drawing.Interval, str, int, drawing.Kind]:
    """Return the score to show for a run: the interim interval during the first judging, later the
    score of its rank.
    """
    if submission.has_score and headline is not None:
        quantity, figure = headline
        drawn = drawing.Interval.from_figure(figure)
        kind: drawing.Kind = "moment" if submission.status in UNDER_WAY else "final"
        return drawn, quantity.label, figure.n_labels, "few" if figure.has_few_judgments else kind
    if submission.status in UNDER_WAY and interim is not None:
        measures = kind_of(submission.track).measures
        quantity = measures.quantity_as_printed(measures.mean, submission.track.criterion)
        return (
            drawing.Interval.from_figure(interim),
            f"{quantity.label}, provisional",
            interim.n,
            "live",
        )
    return NO_INTERVAL, "", 0, "final"


def delete_discard(request: HttpRequest) -> HttpResponse:
    """Delete a refused upload or a discarded draft, with its file."""
    user = cast(User, request.user)
    submissions = Submission.objects.filter(team__members=user, deleted_at=None)
    row = get_object_or_404(submissions.select_related("team"), pk=form_pk(request))
    if delete_discarded(row, user):
        messages.success(request, f"{row.file_name} is deleted.")
    else:
        messages.error(request, f"{row.name} is a run. Withdraw it on its own page.")
    return redirect(f"{reverse('runs')}{_runs_url(row.team)}")


MOVEMENTS = {"reserve": "Reserved", "release": "Returned", "spend": "Spent"}


def team_ledger(team: Team, run: Submission | None, request: HttpRequest) -> Table:
    """Return a table of the money movements for the runs of a team, or for one run: one row for
    each day, run and direction.
    """
    moved = ledger_by_day("submission", team, run.purpose if run else None)

    def run_link(row: dict[str, Any]) -> str:
        return link_html(
            f"?{urlencode({'team': team.slug, 'run': row['run'].pk})}", row["run"].name
        )

    columns = [
        Column("on", "Day", cell=lambda row: f"{row['on'].day} {row['on']:%B %Y}"),
        Column("submission", "" if run else "Run", lambda row: row["purpose_number"], run_link),
        Column("track", "" if run else "Track", lambda row: row["run"].track.name, in_files=False),
        Column("kind", "What", cell=_movement_text),
        Column(
            "amount",
            "Amount",
            lambda row: str(row["amount"]),
            lambda row: money_text(row["amount"]),
            is_number=True,
        ),
        Column("movements", value=lambda row: row["n"]),
    ]
    return Table(f"ledger-{team.slug}", columns, moved, request, prepare=_add_runs)


def _add_runs(rows: list[dict[str, Any]]) -> Sequence[dict[str, Any]]:
    runs = Submission.objects.select_related("track", "team").in_bulk(
        {row["purpose_number"] for row in rows}
    )
    return [row | {"run": runs[row["purpose_number"]]} for row in rows]


def _movement_text(row: dict[str, Any]) -> str:
    """Return the direction of a money movement in words; for spending, with the number of
    answers.
    """
    if row["kind"] != "spend":
        return MOVEMENTS[row["kind"]]
    return f"Spent on {plural(row['n'], 'answer')}"


@never_cache
@for_researchers
@in_snapshot
def show_ledger(request: HttpRequest) -> HttpResponseBase:
    """Return the ledger of a team or one of its runs; with `?format=` as a file."""
    team = requested_team(request)
    if team is None:  # an admin who belongs to no team
        return render(request, "upload_not_yet.html", {"researcher": True}, status=403)
    number = request.GET.get("run", "")
    run = find_run_of_team(team, number) if number else None
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


def find_run_of_team(team: Team, number: str) -> Submission:
    """Return the team's run of this number. Raises Http404."""
    row = None
    if number.isascii() and number.isdecimal() and len(number) < 10:
        runs = Submission.objects.filter(team=team, deleted_at=None)
        row = runs.select_related("track", "team").filter(pk=int(number)).first()
    if row is None:
        raise Http404("The team has no such run.")
    return row


urlpatterns = [
    path("runs/", show_runs, name="runs"),
    path("runs/ledger/", show_ledger, name="runs-ledger"),
]
