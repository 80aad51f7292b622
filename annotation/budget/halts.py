"""Stops work on tracks and batches, lifts stops, and finds the tracks and HITs that are stopped."""

from __future__ import annotations

import logging

from django.db import transaction
from django.db.models import Exists, OuterRef, Q, QuerySet

from annotation.models import HIT, Halt, Question
from kbpo import clock
from kbpo.accounts.audit import write_audit_entry
from kbpo.accounts.models import User
from kbpo.money.models import Purpose
from kbpo.queue import wake_step
from kbpo.tracks.models import Track

log = logging.getLogger(__name__)


def pause_work(
    track: Track | None, who: User | None, why: str, *, payer: Purpose | None = None
) -> Halt:
    """Stop all work on a track (None: on all tracks), or on one payer's batch, and return the stop.
    Nothing is offered any more; started work may be finished and is paid. Raises ValueError.
    """
    if (
        payer is not None
        and Halt.objects.filter(lifted_at=None, **payer.filter_condition("payer")).exists()
    ):
        raise ValueError("This batch is paused already.")
    return _store_halt(track, Halt.Scope.ALL, who, why, payer)


def stop_publishing(track: Track | None, who: User | None, why: str) -> Halt:
    """Stop the publishing of new questions; published ones stay open. Return the stop."""
    return _store_halt(track, Halt.Scope.PUBLISHING, who, why)


@transaction.atomic
def _store_halt(
    track: Track | None, scope: str, who: User | None, why: str, payer: Purpose | None = None
) -> Halt:
    if not why.strip():
        raise ValueError("Say why; whoever waits will read it.")
    log.warning("%s stopped %s of %s: %s", who, scope, payer or track or "all tracks", why)
    what = "stop publishing" if scope == Halt.Scope.PUBLISHING else "pause"
    write_audit_entry(
        what,
        _halted_track_or_payer(track, payer),
        who=who,
        why=why,
        track=track.slug if track else "",
    )
    wake_step("reconcile")  # other platforms are told at once
    wake_step("pay_out")
    stop = Halt(track=track, scope=scope, who=who, why=why.strip())
    stop.payer = payer
    stop.save()
    return stop


def _halted_track_or_payer(track: Track | None, payer: Purpose | None) -> Purpose | str:
    """Return what was stopped, for the log: a payer, a track or “every track”."""
    return payer or (f"track:{track.slug}" if track else "every track")


@transaction.atomic
def lift_halts(
    track: Track | None, who: User | None, why: str, *, payer: Purpose | None = None
) -> int:
    """Lift stops and return their number. With `payer`, these are the stops of its batch; otherwise
    those of the track (None: of all tracks together), and stops of single batches stay. Raises
    ValueError.
    """
    if not why.strip():
        raise ValueError("Give a reason; it is logged.")
    stops = Halt.objects.filter(lifted_at=None)
    stops = (
        stops.filter(**payer.filter_condition("payer"))
        if payer
        else stops.filter(track=track, payer_kind=None)
    )
    lifted = stops.update(lifted_at=clock.now(), lifted_by=who)
    log.warning("%s lifted %s stops of %s: %s", who, lifted, payer or track or "all tracks", why)
    if lifted:
        slug = track.slug if track else ""
        write_audit_entry(
            "go on", _halted_track_or_payer(track, payer), who=who, why=why.strip(), track=slug
        )
    wake_step("publish")
    return lifted


def halt_of_payer(questions: QuerySet[Question], payer: Purpose) -> Halt | None:
    """Return the stop that applies to a payer's questions or to their track; None without one."""
    tracks = Track.objects.filter(questions__in=questions)
    held = Halt.objects.filter(
        Q(payer_kind=None) | Q(**payer.filter_condition("payer")), lifted_at=None
    )
    return held.filter(Q(track=None) | Q(track__in=tracks)).first()


def halted_tracks(*scopes: str) -> QuerySet[Track]:
    """Return the tracks that are stopped now, with one of these scopes if any is given."""
    halts = Halt.objects.filter(
        lifted_at=None, payer_kind=None, **({"scope__in": scopes} if scopes else {})
    )
    if halts.filter(track=None).exists():
        return Track.objects.all()
    return Track.objects.filter(halts__in=halts)


def halted_hits(*scopes: str) -> QuerySet[HIT]:
    """Return the HITs that are stopped now, with their track or with the batch of one of their
    questions.
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
    """Return all current stops, the oldest first."""
    halts = Halt.objects.filter(lifted_at=None).select_related("track", "who")
    return list(halts.order_by("since"))
