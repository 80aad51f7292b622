"""Receives an upload, for the page, the API and the command alike."""

from __future__ import annotations

from typing import Any

from annotation.workers.judged import has_judged
from kbpo.accounts.models import Team, User
from kbpo.submissions.keep import Readable
from kbpo.submissions.models import Submission
from kbpo.submissions.receive import CannotReceive, receive
from kbpo.tracks.models import Track


def receive_run(track: Track, team: Team, user: User, file: Readable, **options: Any) -> Submission:
    """Return the new submission. Raises CannotReceive where `kbpo.submissions.receive` does, on a
    study of another team, and where a member of the team has judged on the track.
    """
    if track.is_study and track.owner_id != team.pk and not user.is_staff:
        raise CannotReceive(
            f"{track.name} is a study: only the team that owns it uploads there.", "not_yours"
        )
    if not track.is_study and has_judged(track, team):
        raise CannotReceive(
            f"A member of {team.name} has judged on {track.name}: the team can upload there once"
            " it is closed.",
            "has_judged",
        )
    return receive(track, team, user, file, **options)
