"""Who may see a judgment.

What counts is never shown while it counts. A judgment of the development part is public at once.
One of the test part is hidden until the last open track on its corpus closes; then everything of
that corpus opens. The team that owns a study sees all of it at once, and admins see everything.
"""

from __future__ import annotations

from kbpo.tracks.models import Track


def sees_all(user: object, track: Track) -> bool:
    """Return whether a reader sees every judgment of a track: an admin, or a member of the team
    that owns the study.
    """
    if getattr(user, "is_staff", False):
        return True
    return track.is_study and track.owner_id in getattr(user, "team_keys", ())
