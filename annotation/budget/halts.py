"""Stops: who makes and lifts them, and which tracks, questions and HITs they hold."""

from __future__ import annotations

import logging

from django.db import transaction
from django.db.models import Exists, OuterRef, Q, QuerySet

from annotation.models import HIT, Halt, Question
from kbpo import clock
from kbpo.accounts.audit import note
from kbpo.accounts.models import User
from kbpo.money.purpose import Purpose
from kbpo.queue import nudge
from kbpo.tracks.models import Track

log = logging.getLogger(__name__)


def pause(track: Track | None, who: User | None, why: str, *, payer: Purpose | None = None) -> Halt:
    """Return the stop of all work on a track (None: everywhere), or of one payer's batch there:
    nothing is offered; work in hand may be finished, and is paid. Raises ValueError.
    """
    if payer is not None and Halt.objects.filter(lifted_at=None, **payer.at("payer")).exists():
        raise ValueError("This batch is paused already.")
    return _halt(track, Halt.Scope.ALL, who, why, payer)


def stop_publishing(track: Track | None, who: User | None, why: str) -> Halt:
    """Return the stop of publishing: nothing new is put up; what is up goes on."""
    return _halt(track, Halt.Scope.PUBLISHING, who, why)


@transaction.atomic
def _halt(
    track: Track | None, scope: str, who: User | None, why: str, payer: Purpose | None = None
) -> Halt:
    if not why.strip():
        raise ValueError("Say why; whoever waits will read it.")
    log.warning("%s stopped %s of %s: %s", who, scope, payer or track or "all tracks", why)
    what = "stop publishing" if scope == Halt.Scope.PUBLISHING else "pause"
    note(what, _place(track, payer), who=who, why=why, track=track.slug if track else "")
    nudge("reconcile")  # other platforms are told at once
    nudge("pay_out")
    stop = Halt(track=track, scope=scope, who=who, why=why.strip())
    stop.payer = payer
    stop.save()
    return stop


def _place(track: Track | None, payer: Purpose | None) -> Purpose | str:
    """Return what a stop is about, as the log names it."""
    return payer or (f"track:{track.slug}" if track else "every track")


@transaction.atomic
def resume(track: Track | None, who: User | None, why: str, *, payer: Purpose | None = None) -> int:
    """Return how many stops were lifted: of one payer's batch, or of a track (None: of all tracks
    together), where those of single batches stay. Raises ValueError.
    """
    if not why.strip():
        raise ValueError("Say why it may go on; it stands in the log.")
    stops = Halt.objects.filter(lifted_at=None)
    stops = (
        stops.filter(**payer.at("payer")) if payer else stops.filter(track=track, payer_kind=None)
    )
    lifted = stops.update(lifted_at=clock.now(), lifted_by=who)
    log.warning("%s lifted %s stops of %s: %s", who, lifted, payer or track or "all tracks", why)
    if lifted:
        slug = track.slug if track else ""
        note("go on", _place(track, payer), who=who, why=why.strip(), track=slug)
    nudge("publish")
    return lifted


def halt_of(questions: QuerySet[Question], payer: Purpose) -> Halt | None:
    """Return the stop that holds for these questions of a payer, or for their track, if there is
    one.
    """
    tracks = Track.objects.filter(questions__in=questions)
    held = Halt.objects.filter(Q(payer_kind=None) | Q(**payer.at("payer")), lifted_at=None)
    return held.filter(Q(track=None) | Q(track__in=tracks)).first()


def halted_tracks(*scopes: str) -> QuerySet[Track]:
    """Return the tracks that are stopped now; with scopes, only those of which that much is
    stopped.
    """
    halts = Halt.objects.filter(
        lifted_at=None, payer_kind=None, **({"scope__in": scopes} if scopes else {})
    )
    return (
        Track.objects.all()
        if halts.filter(track=None).exists()
        else Track.objects.filter(halts__in=halts)
    )


def halted_hits(*scopes: str) -> QuerySet[HIT]:
    """Return the HITs that are stopped now, with their track or with the batch that pays for one of
    their questions.
    """
    halts = Halt.objects.filter(
        lifted_at=None,
        payer_kind=OuterRef("payer_kind"),
        payer_number=OuterRef("payer_number"),
        **({"scope__in": scopes} if scopes else {}),
    )
    paused = HIT.objects.filter(questions__in=Question.objects.filter(Exists(halts)))
    return HIT.objects.filter(Q(track__in=halted_tracks(*scopes)) | Q(pk__in=paused.values("pk")))


def current_halts() -> list[Halt]:
    """Return the stops that hold now."""
    return list(
        Halt.objects.filter(lifted_at=None).select_related("track", "who").order_by("since")
    )
