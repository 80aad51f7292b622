"""How annotators are dealt with: the policy of the service, and where a track has one, the track's."""

from __future__ import annotations

from decimal import Decimal

from annotation.annotators.models import Intake
from kbpo.tracks.models import Track


def intake_of(track: Track | None = None) -> Intake:
    """The policy that holds for a track (None: for the service); nothing is saved where nobody has set one."""
    rows = list(Intake.objects.filter(track=track) if track is not None else ()) or list(
        Intake.objects.filter(track=None)
    )
    return rows[0] if rows else Intake()


def takes_volunteers() -> str:
    """Whether one can sign up without an invitation: closed, queue or open."""
    return str(intake_of().volunteers)


def tracks_for_volunteers() -> list[int]:
    """The tracks on which volunteers judge: those whose own policy says so, or the service's where there is none."""
    own = dict(Intake.objects.exclude(track=None).values_list("track", "volunteers"))
    service = takes_volunteers()
    tracks = Track.objects.values_list("pk", flat=True)
    return [pk for pk in tracks if own.get(pk, service) != Intake.Volunteers.CLOSED]


def tutorial_rewards() -> list[tuple[Track, Decimal]]:
    """The open tracks that pay for a tutorial which was passed, and how much, oldest first."""
    own = {row.track_id: row.tutorial_reward for row in Intake.objects.exclude(track=None)}
    service = intake_of().tutorial_reward
    open_tracks = Track.objects.filter(status=Track.Status.OPEN).order_by("pk")
    found = [(track, own.get(track.pk, service)) for track in open_tracks]
    return [(track, reward) for track, reward in found if reward > 0]
