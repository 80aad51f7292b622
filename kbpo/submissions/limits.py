"""How many runs a team may still confirm on a track."""

from __future__ import annotations

from datetime import timedelta

from kbpo import clock
from kbpo.accounts.models import Team
from kbpo.submissions.models import Submission
from kbpo.tracks.models import Track

WEEK = timedelta(days=7)


def runs_left(track: Track, team: Team, *, lock: bool = False) -> int | None:
    """How many runs the team may confirm now; None where the track sets no limit.

    What was confirmed counts, also if it was withdrawn later: its questions were asked. With
    `lock`, inside a transaction, two confirmations of one team wait for each other.
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


def limits_in_words(track: Track) -> str:
    """“3 runs a week and 12 in all”; “as many runs as it likes” without a limit."""
    words: list[str] = []
    for n, when in ((track.runs_a_week, "a week"), (track.runs_in_all, "in all")):
        if n is not None:
            runs = "" if words else " run" if n == 1 else " runs"
            words.append(f"{n}{runs} {when}")
    return " and ".join(words) or "as many runs as it likes"
