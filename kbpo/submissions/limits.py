"""Limits of teams and people on a track: how many runs a team may still confirm, and who may not
judge.
"""

from __future__ import annotations

from datetime import datetime, timedelta

from django.db.models import Q

from kbpo import clock
from kbpo.accounts.models import Team, User
from kbpo.submissions.models import Submission
from kbpo.tracks.models import Track

WEEK = timedelta(days=7)
UP = timedelta(minutes=1, microseconds=-1)
"""Added to a time so that its displayed minute is not too early"""


def runs_left(track: Track, team: Team, *, lock: bool = False) -> int | None:
    """Return how many runs the team may confirm now; None if the track sets no limit.

    Confirmed runs count even if they were withdrawn later, since their questions were asked. With
    `lock`, inside a transaction, two confirmations of one team are serialized.
    """
    limits = []
    if lock:
        Team.objects.select_for_update(of=("self",), no_key=True).get(pk=team.pk)
    confirmed = Submission.objects.filter(track=track, team=team, confirmed_at__isnull=False)
    if track.runs_in_all is not None:
        limits.append(track.runs_in_all - confirmed.count())
    if track.runs_a_week is not None:
        lately = confirmed.filter(confirmed_at__gt=clock.now() - WEEK)
        limits.append(track.runs_a_week - lately.count())
    return max(0, min(limits)) if limits else None


def next_run_time(track: Track, team: Team) -> datetime | None:
    """Return when a team without a run left may confirm the next one; None if it has one left, or
    if waiting does not help.
    """
    confirmed = Submission.objects.filter(track=track, team=team, confirmed_at__isnull=False)
    if track.runs_in_all is not None and confirmed.count() >= track.runs_in_all:
        return None
    if not track.runs_a_week:
        return None
    lately = confirmed.filter(confirmed_at__gt=clock.now() - WEEK).order_by("-confirmed_at")
    times = [row.confirmed_at for row in lately[: track.runs_a_week] if row.confirmed_at]
    return times[-1] + WEEK if len(times) == track.runs_a_week else None


def no_run_left_reason(track: Track, team: Team, *, lock: bool = False) -> str:
    """Return sentences on why the team may confirm no run now, and when it may; empty if it may
    now. `lock` is as in `runs_left`.
    """
    if runs_left(track, team, lock=lock) != 0:
        return ""
    sentence = (
        f"{team.name} has no run left on {track.name} now: a team may confirm {limits_text(track)}."
    )
    since = next_run_time(track, team)
    if since is None:
        return sentence
    since += UP
    return f"{sentence} It may from {since.day} {since:%B %Y, %H:%M} UTC on."


def limits_text(track: Track) -> str:
    """Return the limits of runs as text: “3 runs a week and 12 in all”; “as many runs as it likes”
    without a limit.
    """
    words: list[str] = []
    for n, when in ((track.runs_a_week, "a week"), (track.runs_in_all, "in all")):
        if n is not None:
            runs = "" if words else " run" if n == 1 else " runs"
            words.append(f"{n}{runs} {when}")
    return " and ".join(words) or "as many runs as it likes"


def conflict_of_interest_filter(user: User) -> Q:
    """Return the condition that a current or former team of this user has a run on the track of a
    row (`track`).
    """
    teams = Team.objects.filter(Q(members=user) | Q(former=user))
    runs = Submission.objects.filter(
        team__in=teams.values("pk"), deleted_at=None, track__is_study=False
    )
    return Q(track__in=list(runs.values_list("track", flat=True).distinct()))
