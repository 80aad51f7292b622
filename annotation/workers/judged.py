"""Finds who judged on a track: their teams cannot upload there before it is closed."""

from __future__ import annotations

from annotation.models import Assignment
from kbpo.accounts.models import Team
from kbpo.tracks.models import Track


def has_judged(track: Track, team: Team) -> bool:
    """Return whether a member of a team has answered a question of a track."""
    return Assignment.objects.filter(
        worker__user__memberships__team=team, hit__questions__track=track, raw__isnull=False
    ).exists()
