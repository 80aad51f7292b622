"""Queues for experts by the clock what people were most divided about, and judgments drawn at
random among them, as many at once of either as the track's policy says.

An expert's answer makes room for the next. All names of a document, which take an expert a quarter
of an hour, are left to an admin; so are ratings, where who differs may be right as well
(`Track.is_taste`), and everything beyond the limits (`adjudicate.queue_split_votes`,
`adjudicate.queue_random`).

When and how many are drawn at random depends on how many wait, never on which: each draw is one of
`queue_random`, with its probability, and draws that follow each other add up as `error_rate` says.
It waits until half of the last ones are answered, so that there are few draws.
"""

from __future__ import annotations

import logging
from datetime import timedelta

from django.db import transaction

from annotation.desk.adjudicate import MOST, CannotAsk, queue_random, queue_split_votes
from annotation.models import Policy
from annotation.quality.judged import NAMES, words_of
from kbpo import clock
from kbpo.accounts.audit import note
from kbpo.accounts.models import User
from kbpo.queue import one_at_a_time
from kbpo.sampling.models import ExpertCheck
from kbpo.tracks.models import Track
from kbpo.tracks.registry import kind_of

log = logging.getLogger(__name__)

LOOK = timedelta(minutes=10)  # between two looks at a track: all its labels are read
SPLIT, RANDOM = "split_votes", "random"
LIMITS = {SPLIT: "split_limit", RANDOM: "random_limit"}
"""What the clock queues -> the field of the policy that says how many of it may wait"""


def tick() -> int:
    """Return how many judgments were queued."""
    tracks = Track.objects.filter(
        status__in=["open", "frozen"], questions__status="settled"
    ).distinct()
    looked_at = Policy.objects.filter(split_looked_at__gt=clock.now() - LOOK).values("track")
    queued = 0
    for track in tracks.exclude(pk__in=looked_at).order_by("pk"):
        try:
            queued += _fill(track)
        except (
            Exception
        ):  # one track's bug must not keep the others waiting; the clock comes round again
            log.exception(
                "What people were divided about on track %s could not be queued", track.pk
            )
    return queued


def kinds_of(track: Track) -> list[str]:
    """Return what of a track the clock queues, of what experts can be asked about."""
    return (
        []
        if kind_of(track).is_taste
        else [judgment for judgment in words_of(track) if judgment != NAMES]
    )


def _fill(track: Track) -> int:
    """Return how many were queued on a track, so that as many wait as may."""
    queued = _queue(track)
    if queued is None:
        return 0
    # In a transaction of its own: whoever holds questions may come to the policy, and what was
    # queued takes the locks of its questions when it is committed.
    Policy.objects.filter(track=track).update(split_looked_at=clock.now())
    return queued


@transaction.atomic
def _queue(track: Track) -> int | None:
    """Return how many were queued; None if somebody looked a moment ago."""
    one_at_a_time("annotation.desk.split_votes", track.pk)
    policy, _ = Policy.objects.get_or_create(track=track)
    if policy.split_looked_at is not None and policy.split_looked_at > clock.now() - LOOK:
        return None
    waiting = ExpertCheck.objects.filter(track=track, kind="disagreement", status="open").count()
    room = min(MOST, policy.split_limit - waiting)
    why = f"The clock keeps up to {policy.split_limit} waiting for experts"
    queued = 0
    for judgment in kinds_of(track):
        if room > queued:
            queued += queue_split_votes(track, room - queued, None, judgment, why=why)
    return queued + _draw(track, policy.random_limit)


def _draw(track: Track, limit: int) -> int:
    """Return how many were drawn at random and queued: so that `limit` of each kind wait, once at
    most half of them do.
    """
    why = f"The clock keeps up to {limit} of each kind, drawn at random, waiting for experts"
    drawn = 0
    for judgment in kinds_of(track) if limit else ():
        waiting = ExpertCheck.objects.filter(
            track=track, kind="random", judgment=judgment, status="open"
        ).count()
        if waiting <= limit // 2:
            drawn += queue_random(track, limit - waiting, None, judgment, why=why)
    return drawn


@transaction.atomic
def set_limit(track: Track, limit: int, who: User, why: str, of: str = SPLIT) -> None:
    """Set how many split votes, or how many random ones of each kind, may wait for experts at once.
    None: only those that somebody queues. Raises CannotAsk, also without a reason, and where the
    clock queues nothing.
    """
    if not 0 <= limit <= MOST:
        raise CannotAsk(f"Let the clock keep between 0 and {MOST} judgments waiting.")
    if limit and not kinds_of(track):
        raise CannotAsk("The clock queues nothing here: people rate, and who differs may be right.")
    if not why.strip():
        raise CannotAsk("The limit is as it was: say why you change it. It stands in the log.")
    policy, _ = Policy.objects.get_or_create(track=track)
    before = getattr(policy, LIMITS[of])
    Policy.objects.filter(pk=policy.pk).update(**{LIMITS[of]: limit, "split_looked_at": None})
    note(
        f"{of.replace('_', ' ')} limit",
        f"track:{track.slug}",
        who=who,
        why=why,
        before=str(before),
        after=str(limit),
        track=track.slug,
    )
