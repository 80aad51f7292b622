"""Reads the rules for volunteers, tutorials and payouts: of a track, or else of the service."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal

from django.db.models import QuerySet

from annotation.interfaces.registry import interface_by_name
from annotation.models import Worker
from annotation.platforms.registry import local_platform_names
from annotation.workers.models import Intake
from kbpo.money.models import Price, Purpose
from kbpo.money.spend import remaining_allowance
from kbpo.prepared import Prepared
from kbpo.tracks.models import Track


def intake_rules(track: Track | None = None) -> Intake:
    """Return the rules for annotators of a track (None: of the service); unsaved defaults if none
    are stored.
    """
    policies = list(Intake.objects.filter(track=track) if track is not None else ()) or list(
        Intake.objects.filter(track=None)
    )
    return policies[0] if policies else Intake()


def volunteer_policy() -> str:
    """Return whether people can sign up without an invitation: closed, queue or open."""
    return str(intake_rules().volunteers)


def tracks_for_volunteers() -> list[int]:
    """Return the tracks on which volunteers may judge."""
    own = dict(Intake.objects.exclude(track=None).values_list("track", "volunteers"))
    service = volunteer_policy()
    tracks = Track.objects.values_list("pk", flat=True)
    return [pk for pk in tracks if own.get(pk, service) != Intake.Volunteers.CLOSED]


@dataclass(frozen=True)
class Offer:
    """A kind of question on open tracks, and the shortest and longest expected seconds of an
    answer.
    """

    what: str
    least: int
    most: int


def offered_questions(tracks: QuerySet[Track]) -> list[Offer]:
    """Return the kinds of questions that the open tracks among these ask."""
    prices = Price.objects.filter(track__in=tracks, track__status=Track.Status.OPEN)
    seconds: dict[str, list[int]] = {}
    for interface, one in prices.order_by("interface").values_list("interface", "seconds"):
        seconds.setdefault(interface_by_name(interface).terms.offered_as, []).append(one)
    return [Offer(what, min(each), max(each)) for what, each in seconds.items()]


def tutorial_reward(track: Track) -> Decimal:
    """Return what a track pays for passing a tutorial; 0 if it has no money."""
    reward = intake_rules(track).tutorial_reward
    left = remaining_allowance(track, None, Purpose("tutorial")).left
    return reward if left is None or left >= reward else Decimal(0)


_PAID_FOR = Prepared("""
    SELECT asked.interface, t.id
    FROM unnest(%(interfaces)s::text[]) AS asked (interface)
    CROSS JOIN unnest(%(tracks)s::bigint[]) AS t (id)
    CROSS JOIN LATERAL (SELECT EXISTS (
        SELECT 1 FROM annotation_question q
        WHERE q.track_id = t.id AND q.interface = asked.interface
          AND q.status IN ('waiting', 'published')) AS waits) AS now
    WHERE now.waits OR EXISTS ( -- it may ask soon
            SELECT 1 FROM money_price p
            WHERE p.track_id = t.id AND p.interface = asked.interface)
        OR EXISTS (
            SELECT 1 FROM annotation_question q
            WHERE q.track_id = t.id AND q.interface = asked.interface
              AND q.status NOT IN ('cancelled', 'gold'))
    ORDER BY now.waits DESC, t.id
""")


def tutorial_rewards(
    worker: Worker, interfaces: Sequence[str]
) -> dict[str, list[tuple[Track, Decimal]]]:
    """Return interface -> the open tracks that pay this worker for its tutorial, with the reward.
    Only tracks with such questions for this worker are included: first those with pending
    questions, then the oldest.
    """
    rewards: dict[str, list[tuple[Track, Decimal]]] = {interface: [] for interface in interfaces}
    if worker.excluded_at is not None or not interfaces:
        return rewards
    own = {row.track_id: row.tutorial_reward for row in Intake.objects.exclude(track=None)}
    service = intake_rules().tutorial_reward
    if service <= 0 and not any(own.values()):
        return rewards
    platforms = (
        local_platform_names() if worker.platform in local_platform_names() else [worker.platform]
    )
    tracks = Track.objects.filter(status=Track.Status.OPEN, platform__in=platforms)
    if worker.user is not None and worker.user.is_volunteer:
        tracks = tracks.filter(pk__in=tracks_for_volunteers())
    paying = {
        track.pk: (track, reward) for track in tracks if (reward := own.get(track.pk, service)) > 0
    }
    if paying:
        for interface, track in _PAID_FOR.fetch_all(
            interfaces=list(interfaces), tracks=list(paying)
        ):
            rewards[interface].append(paying[track])
    return rewards
