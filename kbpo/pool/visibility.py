"""Decides who may see a judgment.

A test judgment is hidden while it counts. Judgments of the development part are public at once.
Those of the test part are hidden until the last open track on the corpus closes; then all of that
corpus are public. The team that owns a study sees all of its judgments at once, and admins see
everything.
"""

from __future__ import annotations

from kbpo.tracks.models import Track


def sees_all(user: object, track: Track) -> bool:
    """Return whether a user sees every judgment of a track: an admin, or a member of the owning
    team.
    """
    if getattr(user, "is_staff", False):
        return True
    return track.is_study and track.owner_id in getattr(user, "team_keys", ())
