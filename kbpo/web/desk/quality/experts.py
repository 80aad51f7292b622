"""One queue for experts: what of each track waits for one, whatever it is asked for, and which tool
of quality is for what.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from django.db.models import Count, Min
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.urls import path, reverse

from annotation.desk.adjudicate import judged_by
from annotation.quality.gold import candidates, policy_of, standings
from kbpo.accounts.models import User
from kbpo.experts.queue import askable
from kbpo.sampling.models import ExpertCheck
from kbpo.tracks.models import Track
from kbpo.tracks.recall import recall_of
from kbpo.tracks.registry import kind_of
from kbpo.web.desk.checklist import GOLD_WANTED
from kbpo.web.http import admin_of, for_admins

KINDS = {
    "check": ("Checks", "drawn for corrected scores"),
    "dispute": ("Disputes", "a team says that a judgment is wrong"),
    "disagreement": ("Divided judgments", "people did not agree"),
    "random": ("Audits", "drawn at random: how often the crowd errs"),
}
PLACES = {"check": ("expert-next", "desk-checks")}
"""Kind -> names of the addresses of the next of it and of its list, where it has its own"""
TOOLS = (
    # name, when, what it does to scores and pay, the page of a track
    (
        "Gold questions",
        "You want to know who reads with care, while they work.",
        "Signals, never labels. Each answer is paid.",
        "desk-gold",
    ),
    (
        "Pilot",
        "Before a track opens: are the questions clear, how many people are needed?",
        "No label, no score. Paid from the track’s budget.",
        "desk-pilots",
    ),
    (
        "Agreement and signals",
        "Every week: do people agree, who answers against the others or too fast?",
        "May leave answers out of labels, after a warning. Never of pay.",
        "desk-track-quality",
    ),
    (
        "Disputes, split votes",
        "Somebody doubts a judgment, or people could not agree.",
        "An answer for whoever asked; no label, no score.",
        "desk-adjudication",
    ),
    (
        "Audits",
        "You want one figure: how often is the crowd wrong?",
        "An error rate with its interval; no score.",
        "desk-adjudication",
    ),
    (
        "Checks",
        "Scores shall be right although the crowd errs.",
        "Corrected scores beside the crowd’s.",
        "desk-checks",
    ),
)

OF_RELATIONS = ("desk-pilots",)
"""Pages that only tracks have whose systems predict relations of documents"""


@dataclass(frozen=True)
class Waiting:
    """Judgments of one kind that wait for an expert on a track."""

    track: Track
    name: str
    about: str
    n: int
    yours: int | None
    """How many of them this expert may answer; None where that does not matter"""
    since: datetime | None
    next_url: str
    next_text: str
    table_url: str


def waiting_for_experts() -> int:
    """Return how many judgments wait for an expert, of all tracks."""
    return ExpertCheck.objects.filter(status="open").count()


def queue_of(expert: User) -> list[Waiting]:
    """Return what waits for an expert, the longest first; gold that is wanted comes last."""
    waiting = [row for track in _tracks() for row in _asked(track, expert)]
    waiting.sort(key=lambda row: row.since.timestamp() if row.since else 0.0)
    return [*waiting, *(row for track in _tracks() if (row := _gold(track)))]


def _tracks() -> list[Track]:
    return list(Track.objects.exclude(status="draft").order_by("-pk"))


def _asked(track: Track, expert: User) -> list[Waiting]:
    """Return what waits on a track, a line a kind."""
    checks = ExpertCheck.objects.filter(track=track, status="open").order_by()
    mine = askable(track, expert, judged_by(expert)).order_by()
    yours = dict(mine.values_list("kind").annotate(Count("pk")))
    lines = []
    for kind, n, since in checks.values_list("kind").annotate(Count("pk"), Min("raised_at")):
        start, table = PLACES.get(kind, ("adjudicate_next", "desk-adjudication"))
        lines.append(
            Waiting(
                track,
                *KINDS[kind],
                n,
                yours.get(kind, 0),
                since,
                reverse(start, args=[track.slug]),
                "Answer the next",
                reverse(table, args=[track.slug]),
            )
        )
    return lines


def _gold(track: Track) -> Waiting | None:
    """Return what is missing of gold, where a track deals some out."""
    missing = GOLD_WANTED - len(standings(track)) if policy_of(track).gold_rate else 0
    candidate = candidates(track, 1) if missing > 0 else []
    if not candidate:
        return None
    table = reverse("desk-gold", args=[track.slug])
    start = reverse("gold_make", args=[candidate[0].pk])
    sentence = f"{GOLD_WANTED} or more should be dealt out"
    return Waiting(track, "Gold questions", sentence, missing, None, None, start, "Make one", table)


@for_admins
def show(request: HttpRequest) -> HttpResponse:
    """Return what waits for an expert on all tracks, and a map of the tools."""
    tracks = _tracks()
    maps = [
        {"name": name, "when": when, "does": does, "links": _links(page, tracks)}
        for name, when, does, page in TOOLS
    ]
    context = {"queue": queue_of(admin_of(request)), "tools": maps, "tracks": tracks}
    return render(request, "desk/experts.html", context)


def _links(page: str, tracks: list[Track]) -> list[tuple[str, str]]:
    """Name and address of the page of each track that has it."""
    having = (track for track in tracks if _has(page, track))
    return [(track.name, reverse(page, args=[track.slug])) for track in having]


def _has(page: str, track: Track) -> bool:
    if page in ("desk-checks", "desk-adjudication"):
        return not kind_of(track).unchecked
    return page not in OF_RELATIONS or recall_of(track) is not None


urlpatterns = [path("desk/quality/", show, name="desk-quality")]
