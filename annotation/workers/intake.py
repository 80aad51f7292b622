"""How annotators are dealt with: the policy of the service, and where a track has one, the
track's.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal

from django.db.models import QuerySet

from annotation.interfaces.registry import interface_of
from annotation.models import Worker
from annotation.platforms.registry import local_names
from annotation.workers.models import Intake
from kbpo.money.models import Price
from kbpo.money.purpose import Purpose
from kbpo.money.spend import allowance
from kbpo.prepared import Prepared
from kbpo.tracks.models import Track


def intake_of(track: Track | None = None) -> Intake:
    """Return the policy that holds for a track (None: for the service); nothing is saved where
    nobody has set one.
    """
    policies = list(Intake.objects.filter(track=track) if track is not None else ()) or list(
        Intake.objects.filter(track=None)
    )
    return policies[0] if policies else Intake()


def takes_volunteers() -> str:
    """Return whether one can sign up without an invitation: closed, queue or open."""
    return str(intake_of().volunteers)


def tracks_for_volunteers() -> list[int]:
    """Return the tracks on which volunteers judge: those whose own policy says so, or the service's
    where there is none.
    """
    own = dict(Intake.objects.exclude(track=None).values_list("track", "volunteers"))
    service = takes_volunteers()
    tracks = Track.objects.values_list("pk", flat=True)
    return [pk for pk in tracks if own.get(pk, service) != Intake.Volunteers.CLOSED]


@dataclass(frozen=True)
class Offer:
    """A kind of question that open tracks ask: what one does there, and the seconds that an answer
    takes, from the track on which that is quickest to the slowest.
    """

    what: str
    least: int
    most: int


def offers_of(tracks: QuerySet[Track]) -> list[Offer]:
    """Return what there is to judge on those of some tracks that are open, by what they pay for."""
    prices = Price.objects.filter(track__in=tracks, track__status=Track.Status.OPEN)
    seconds: dict[str, list[int]] = {}
    for interface, one in prices.order_by("interface").values_list("interface", "seconds"):
        seconds.setdefault(interface_of(interface).terms.offered_as, []).append(one)
    return [Offer(what, min(each), max(each)) for what, each in seconds.items()]


def tutorial_reward_on(track: Track) -> Decimal:
    """Return what a track pays for passing a tutorial, while its money lasts."""
    reward = intake_of(track).tutorial_reward
    left = allowance(track, None, Purpose("tutorial")).left
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
    """For each of these interfaces, the open tracks that pay this worker for its tutorial, and how
    much: those that ask through it, and whose questions may come to this worker. First where some
    wait for an answer now, then the oldest.
    """
    rewards: dict[str, list[tuple[Track, Decimal]]] = {interface: [] for interface in interfaces}
    if worker.excluded_at is not None or not interfaces:
        return rewards
    own = {row.track_id: row.tutorial_reward for row in Intake.objects.exclude(track=None)}
    service = intake_of().tutorial_reward
    paying = {
        track.pk: (track, reward)
        for track in (_open_to(worker) if service > 0 or any(own.values()) else ())
        if (reward := own.get(track.pk, service)) > 0
    }
    if paying:
        for interface, track in _PAID_FOR.rows(interfaces=list(interfaces), tracks=list(paying)):
            rewards[interface].append(paying[track])
    return rewards


def _open_to(worker: Worker) -> QuerySet[Track]:
    """Return the open tracks whose questions are put up where this worker is, and are for them."""
    ours = local_names()
    where = ours if worker.platform in ours else [worker.platform]
    tracks = Track.objects.filter(status=Track.Status.OPEN, platform__in=where)
    volunteer = worker.user is not None and worker.user.is_volunteer
    return tracks.filter(pk__in=tracks_for_volunteers()) if volunteer else tracks
