"""Step 9c, payments through a HIT of their own: offered until it is taken, taken down by a stop,
deleted at its end.

The money goes back only when it is known that nobody has taken the HIT, and that nobody can any
more; so a HIT is taken down first, and whoever has it in hand then may still send it in.
"""

from __future__ import annotations

import logging
from datetime import timedelta

from django.db import transaction
from django.db.models import QuerySet

from annotation.budget.halts import halted_tracks
from annotation.models import Bonus, Halt
from annotation.platforms.base import (
    Lost,
    Offer,
    Platform,
    PlatformDown,
    Refused,
    UnknownOutcome,
    endpoint_of,
)
from kbpo import clock
from kbpo.money.models import Ledger
from kbpo.money.spend import OverBudget, allowance, lock
from kbpo.queue import BACKOFF, MAX_ATTEMPTS

log = logging.getLogger(__name__)

OFFERED_FOR = timedelta(days=90)
"""A month less than the platform keeps a HIT for"""
LATER = BACKOFF * 2**8
"""About twenty minutes"""
BATCH = 200
NEVER_TAKEN = f"Its worker has not taken it in {OFFERED_FOR.days} days."


class Withdrawn(Exception):
    """Nobody was paid, and nobody will be; `status` is the bonus's from now on, the text a
    sentence.
    """

    def __init__(self, status: str, text: str) -> None:
        super().__init__(text)
        self.status = status


def offer(platform: Platform, bonus: Bonus) -> bool:
    """Return whether the worker has been paid. Raises Withdrawn if nobody was, and nobody
    will be.
    """
    status, why = _why_not(bonus)
    if not bonus.external_id and not why and (stop := _stops(bonus).first()) is not None:
        raise PlatformDown(f"Publishing is stopped: {stop.why}")
    try:
        became = platform.compensate(bonus, offered=not why)
    except Lost:
        raise
    except Refused as no:
        if bonus.attempts < MAX_ATTEMPTS:
            raise
        status, why = "failed", str(no)
        became = _taken_down(platform, bonus, why)
    if became is Offer.NOBODY:
        raise Withdrawn(status, why)
    return became is Offer.PAID


def _why_not(bonus: Bonus) -> tuple[str, str]:
    """Return why a payment is not offered (any more), as what it then becomes and a sentence;
    nothing if it is.
    """
    if (stop := _stops(bonus).filter(scope=Halt.Scope.ALL).first()) is not None:
        return "stopped", f"Taken down: {stop.why}"
    if bonus.offered_at is not None and clock.now() - bonus.offered_at > OFFERED_FOR:
        return "failed", NEVER_TAKEN
    return "", ""


def _stops(bonus: Bonus) -> QuerySet[Halt]:
    held = Halt.objects.filter(lifted_at=None, payer_kind=None)
    return held.filter(track=None) | held.filter(track=bonus.track_id)


def _taken_down(platform: Platform, bonus: Bonus, why: str) -> Offer:
    """Return what became of a payment that the platform refuses for good; in doubt until it says
    whether somebody has it.
    """
    try:
        return platform.compensate(bonus, offered=False)
    except Lost:
        raise
    except Refused as no:
        raise UnknownOutcome(f"{why} Nor could it be taken down: {no}") from no


@transaction.atomic
def give_back(bonus: Bonus, no: Withdrawn) -> int:
    """1: nobody is paid, and the money is its track's again."""
    now = clock.now()
    fields = {
        "status": no.status,
        "status_since": now,
        "next_try_at": now,
        "attempts": 0,
        "reason": str(no),
    }
    if not Bonus.objects.filter(pk=bonus.pk, status="sent").update(**fields):
        return 0
    Ledger.objects.filter(**bonus.purpose.at("purpose")).update(state=Ledger.State.FAILED)
    return 1


def spend_bonus_again(bonus: Bonus) -> None:
    """Sets the money of a bonus aside that was given back, and lets a compensation be offered by a
    new HIT if its last one was deleted. Raises OverBudget; the caller holds the row and moves it.
    """
    lock(bonus.track)
    movements = Ledger.objects.filter(state=Ledger.State.FAILED, **bonus.purpose.at("purpose"))
    cost, room = bonus.amount + bonus.fee, allowance(bonus.track, None, bonus.purpose)
    if movements.exists() and room.left is not None and room.scope is not None and cost > room.left:
        raise OverBudget(room.left, room.scope, cost)
    Ledger.objects.filter(**bonus.purpose.at("purpose")).update(state=Ledger.State.CONFIRMED)
    if bonus.cleared_at is not None:
        bonus.offers, bonus.external_id, bonus.offered_at, bonus.cleared_at = (
            bonus.offers + 1,
            "",
            None,
            None,
        )
        bonus.save(update_fields=["offers", "external_id", "offered_at", "cleared_at"])


def put_back(name: str) -> int:
    """Return how many payments are owed again, since the stop that took them down was lifted; as
    far as the caps allow.
    """
    bonuses = Bonus.objects.filter(
        worker__platform=name, status="stopped", next_try_at__lte=clock.now()
    )
    return sum(
        _put_back(pk)
        for pk in bonuses.exclude(track__in=halted_tracks(Halt.Scope.ALL)).values_list(
            "pk", flat=True
        )
    )


@transaction.atomic
def _put_back(pk: int) -> int:
    row = Bonus.objects.select_for_update(of=("self",)).select_related("track").get(pk=pk)
    if row.status != "stopped":
        return 0
    try:
        spend_bonus_again(row)
    except OverBudget as over:
        Bonus.objects.filter(pk=pk).update(reason=str(over), next_try_at=clock.now() + LATER)
        return 0
    row.move("owed")
    return 1


def hurry(name: str) -> None:
    """Lets everything that a new stop takes down be looked at now, however long it was to wait."""
    waiting = Bonus.objects.filter(
        worker__platform=name, assignment=None, status__in=["owed", "unknown"]
    )
    for stop in Halt.objects.filter(lifted_at=None, payer_kind=None, scope=Halt.Scope.ALL):
        not_looked = waiting.filter(status_since__lt=stop.since)  # not looked at since
        (not_looked if stop.track_id is None else not_looked.filter(track=stop.track_id)).update(
            next_try_at=clock.now()
        )


def clear_away(platform: Platform) -> int:
    """Return how many HITs of payments that have ended were deleted, each with the qualification
    that was made for it.
    """
    bonuses = Bonus.objects.filter(
        worker__platform=platform.name,
        endpoint=endpoint_of(platform),
        assignment=None,
        cleared_at=None,
        status__in=["paid", "failed"],
        next_try_at__lte=clock.now(),
    )
    cleared = 0
    for bonus in bonuses.select_related("worker", "track").order_by("pk")[:BATCH]:
        try:
            if bonus.status == "failed" and not _is_nobodys(platform, bonus):
                continue
            platform.compensate(bonus, over=True)
        except (
            PlatformDown,
            UnknownOutcome,
            Refused,
        ) as trouble:  # asked again, it ends where it would have ended
            log.warning("The HIT of %s could not be deleted: %s", bonus, trouble)
            Bonus.objects.filter(pk=bonus.pk).update(next_try_at=clock.now() + LATER)
            continue
        cleared += Bonus.objects.filter(pk=bonus.pk).update(cleared_at=clock.now())
    return cleared


def _is_nobodys(platform: Platform, bonus: Bonus) -> bool:
    """Return whether nobody took what was given up. Somebody may have: while a list was short we
    knew of no HIT.
    """
    try:
        became = platform.compensate(bonus, offered=False)
    except Lost:
        return True
    if became is Offer.PAID:
        with transaction.atomic():
            Ledger.objects.filter(**bonus.purpose.at("purpose")).update(
                state=Ledger.State.CONFIRMED
            )
            bonus.move("paid")
    elif became is Offer.WAITS:
        Bonus.objects.filter(pk=bonus.pk).update(next_try_at=clock.now() + LATER)
    return became is Offer.NOBODY
