"""Step 9c, payments through a HIT of their own: the HIT is offered until the worker takes it, taken
down by a halt, and deleted at the end.

The money is returned only when nobody has taken the HIT and nobody can any more. So the HIT is
taken down first; a worker who accepted it before that may still submit it.
"""

from __future__ import annotations

import logging
from datetime import timedelta

from django.db import transaction

from annotation.budget.halts import halted_tracks
from annotation.models import Bonus, Halt
from annotation.platforms.base import (
    Lost,
    Offer,
    Platform,
    PlatformDown,
    Refused,
    UnknownOutcome,
    configured_endpoint,
)
from kbpo import clock
from kbpo.money.models import Ledger
from kbpo.money.spend import OverBudget, lock_track_money, remaining_allowance
from kbpo.queue import BACKOFF, MAX_ATTEMPTS

log = logging.getLogger(__name__)

OFFERED_FOR = timedelta(days=90)
"""Time for which a payment is offered: a month less than the platform keeps a HIT"""
LATER = BACKOFF * 2**8
"""Wait before a retry, about twenty minutes"""
BATCH = 200
NEVER_TAKEN = f"Its worker has not taken it in {OFFERED_FOR.days} days."


class Withdrawn(Exception):
    """Raised if a payment reached nobody and never will. `status` is the new status of the bonus;
    the text is a sentence.
    """

    def __init__(self, status: str, text: str) -> None:
        super().__init__(text)
        self.status = status


def offer_payment(platform: Platform, bonus: Bonus) -> bool:
    """Offer a payment, and return whether the worker has taken it. Raises Withdrawn if the payment
    reached nobody and never will.
    """
    # Halts of all tracks and those of its own track, but not those of a single payer
    halts = Halt.objects.filter(lifted_at=None, payer_kind=None)
    halts = halts.filter(track=None) | halts.filter(track=bonus.track_id)
    status, why = "", ""
    if (halt := halts.filter(scope=Halt.Scope.ALL).first()) is not None:
        status, why = "stopped", f"Taken down: {halt.why}"
    elif bonus.offered_at is not None and clock.now() - bonus.offered_at > OFFERED_FOR:
        status, why = "failed", NEVER_TAKEN
    if not bonus.external_id and not why and (halt := halts.first()) is not None:
        raise PlatformDown(f"Publishing is stopped: {halt.why}")
    try:
        became = platform.advance_compensation(bonus, still_offered=not why)
    except Lost:
        raise
    except Refused as no:
        if bonus.attempts < MAX_ATTEMPTS:
            raise
        # It is taken down; until the platform answers that, somebody may have accepted it.
        status, why = "failed", str(no)
        try:
            became = platform.advance_compensation(bonus, still_offered=False)
        except Lost:
            raise
        except Refused as again:
            raise UnknownOutcome(f"{why} Nor could it be taken down: {again}") from again
    if became is Offer.NOBODY:
        raise Withdrawn(status, why)
    return became is Offer.PAID


@transaction.atomic
def return_bonus_money(bonus: Bonus, no: Withdrawn) -> int:
    """Give the money of a payment that nobody received back to its track; return 1 if that was not
    done before.
    """
    if not Bonus.objects.filter(pk=bonus.pk, status="sent").move(no.status, str(no)):
        return 0
    Ledger.objects.filter(**bonus.purpose.filter_condition("purpose")).update(
        state=Ledger.State.FAILED
    )
    return 1


def spend_bonus_again(bonus: Bonus) -> None:
    """Reserve the returned money of a bonus again. If the last HIT of a compensation was deleted, a
    new HIT will be made. Raises OverBudget. The caller locks the row and changes its status.
    """
    lock_track_money(bonus.track)
    movements = Ledger.objects.filter(
        state=Ledger.State.FAILED, **bonus.purpose.filter_condition("purpose")
    )
    cost, room = bonus.amount + bonus.fee, remaining_allowance(bonus.track, None, bonus.purpose)
    if movements.exists() and room.left is not None and room.scope is not None and cost > room.left:
        raise OverBudget(room.left, room.scope, cost)
    Ledger.objects.filter(**bonus.purpose.filter_condition("purpose")).update(
        state=Ledger.State.CONFIRMED
    )
    if bonus.cleared_at is not None:
        bonus.offers += 1
        bonus.external_id, bonus.offered_at, bonus.cleared_at = "", None, None
        bonus.save(update_fields=["offers", "external_id", "offered_at", "cleared_at"])


def owe_after_lifted_halt(name: str) -> int:
    """Mark the payments whose halt was lifted as owed again, as far as the caps allow, and return
    their number.
    """
    bonuses = Bonus.objects.filter(
        worker__platform=name, status="stopped", next_try_at__lte=clock.now()
    )
    due = bonuses.exclude(track__in=halted_tracks(Halt.Scope.ALL))
    return sum(_owe_bonus_again(pk) for pk in due.values_list("pk", flat=True))


@transaction.atomic
def _owe_bonus_again(pk: int) -> int:
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


def make_halted_due(name: str) -> None:
    """Make payments due at once that a new halt stops, so that their HITs are taken down."""
    waiting = Bonus.objects.filter(
        worker__platform=name, assignment=None, status__in=["owed", "unknown"]
    )
    for stop in Halt.objects.filter(lifted_at=None, payer_kind=None, scope=Halt.Scope.ALL):
        unseen = waiting.filter(status_since__lt=stop.since)
        if stop.track_id is not None:
            unseen = unseen.filter(track=stop.track_id)
        unseen.update(next_try_at=clock.now())


def delete_ended_hits(platform: Platform) -> int:
    """Delete the HITs of ended payments with their qualifications, and return their number."""
    bonuses = Bonus.objects.filter(
        worker__platform=platform.name,
        endpoint=configured_endpoint(platform),
        assignment=None,
        cleared_at=None,
        status__in=["paid", "failed"],
        next_try_at__lte=clock.now(),
    )
    cleared = 0
    for bonus in bonuses.select_related("worker", "track").order_by("pk")[:BATCH]:
        try:
            if bonus.status == "failed" and not _was_never_taken(platform, bonus):
                continue
            platform.advance_compensation(bonus, is_finished=True)
        except (PlatformDown, UnknownOutcome, Refused) as trouble:
            # A repeated call has the same result.
            log.warning("The HIT of %s could not be deleted: %s", bonus, trouble)
            Bonus.objects.filter(pk=bonus.pk).update(next_try_at=clock.now() + LATER)
            continue
        cleared += Bonus.objects.filter(pk=bonus.pk).update(cleared_at=clock.now())
    return cleared


def _was_never_taken(platform: Platform, bonus: Bonus) -> bool:
    """Return whether nobody took the HIT of a payment that was cancelled. False while the
    platform's list is incomplete, since somebody may have taken it.
    """
    try:
        became = platform.advance_compensation(bonus, still_offered=False)
    except Lost:
        return True
    if became is Offer.PAID:
        with transaction.atomic():
            movements = Ledger.objects.filter(**bonus.purpose.filter_condition("purpose"))
            movements.update(state=Ledger.State.CONFIRMED)
            bonus.move("paid")
    elif became is Offer.WAITS:
        Bonus.objects.filter(pk=bonus.pk).update(next_try_at=clock.now() + LATER)
    return became is Offer.NOBODY
