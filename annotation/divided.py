"""Queues for experts what people were most divided about, by the clock, as many at once as the track's policy says.

An expert's answer makes room for the next. All names of a document, which take an expert a quarter of an hour, are left
to an admin; so is everything beyond the limit (`adjudicate.queue_divided`).
"""

from __future__ import annotations

import logging
from datetime import timedelta

from django.db import transaction
from django.utils import timezone

from annotation.adjudicate import MOST, CannotAsk, queue_divided
from annotation.judged import MARKED, PAIRS
from annotation.models import Adjudication, Policy
from kbpo.accounts.audit import note
from kbpo.accounts.models import User
from kbpo.queue import one_at_a_time
from kbpo.tracks.models import Track

log = logging.getLogger(__name__)

LOOK = timedelta(minutes=10)  # between two looks at a track: all its labels are read
KINDS = (PAIRS, MARKED)


def tick() -> int:
    """How many judgments were queued."""
    tracks = Track.objects.filter(status__in=["open", "frozen"], questions__status="settled").distinct()
    looked_at = Policy.objects.filter(divided_at__gt=timezone.now() - LOOK).values("track")
    queued = 0
    for track in tracks.exclude(pk__in=looked_at).order_by("pk"):
        try:
            queued += _fill(track)
        except Exception:  # one track's bug must not keep the others waiting; the clock comes round again
            log.exception("What people were divided about on track %s could not be queued", track.pk)
    return queued


@transaction.atomic
def _fill(track: Track) -> int:
    """How many were queued on a track, so that as many wait as may."""
    one_at_a_time("annotation.divided", track.pk)
    policy, _ = Policy.objects.get_or_create(track=track)
    if policy.divided_at is not None and policy.divided_at > timezone.now() - LOOK:
        return 0
    Policy.objects.filter(pk=policy.pk).update(divided_at=timezone.now())
    waiting = Adjudication.objects.filter(track=track, kind="disagreement", status="open").count()
    room = min(MOST, policy.divided_limit - waiting)
    why = f"The clock keeps up to {policy.divided_limit} waiting for experts"
    queued = 0
    for what in KINDS:
        if room > queued:
            queued += queue_divided(track, room - queued, None, what, why=why)
    return queued


@transaction.atomic
def set_limit(track: Track, limit: int, who: User, why: str) -> None:
    """Nothing; so many divided judgments wait for experts at once by the clock; none: only those that somebody queues.
    Raises CannotAsk, also without a reason."""
    if not 0 <= limit <= MOST:
        raise CannotAsk(f"Let the clock keep between 0 and {MOST} judgments waiting.")
    if not why.strip():
        raise CannotAsk("The limit is as it was: say why you change it. It stands in the log.")
    policy, _ = Policy.objects.get_or_create(track=track)
    Policy.objects.filter(pk=policy.pk).update(divided_limit=limit, divided_at=None)
    note("divided limit", f"track:{track.slug}", who=who, why=why, before=str(policy.divided_limit), after=str(limit),
         track=track.slug)  # fmt: skip
