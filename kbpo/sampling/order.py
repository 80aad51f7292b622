"""Orders more judgments of a submission, scored or being judged again: their price is reserved, or
nothing happens.
"""

from __future__ import annotations

from datetime import datetime
from decimal import Decimal

from django.db import transaction

from kbpo.accounts.models import User
from kbpo.money.spend import ZERO, reserve
from kbpo.queue import nudge
from kbpo.sampling.models import Further
from kbpo.sampling.plan import at_most_new, half_width_now
from kbpo.submissions.models import Submission


def can_order(submission: Submission) -> bool:
    """Return whether more judgments of a submission can be ordered: from when its own sample is
    answered, also while it is judged again.
    """
    was_scored = submission.scored_at is not None or submission.status == "scored"
    return submission.status in ("judging", "scored") and was_scored


class CannotOrder(Exception):
    """Nothing can be ordered now; the text is a sentence for the submission's owner."""


def offer_of(submission: Submission) -> Further | None:
    """Return the offer that can be ordered now, with its prices; None while it is being computed,
    if there is none, before the submission's own sample is answered, or where its track is not
    open. Half-widths that the printed interval has reached meanwhile are left out.
    """
    return filter_offer(submission, Further.objects.filter(submission=submission).first())


def filter_offer(submission: Submission, row: Further | None) -> Further | None:
    """Return the offer as `offer_of` does, given the stored prices of the submission."""
    if row is None or row.order != submission.orders + 1 or not row.plan.get("options"):
        return None
    if not can_order(submission) or submission.track.status != "open":
        return None
    now = half_width_now(submission)
    options = row.plan["options"].items()
    row.plan |= {"options": {width: option for width, option in options if float(width) < now}}
    return row if row.plan["options"] else None


@transaction.atomic
def order(
    submission: Submission,
    who: User,
    *,
    half_width: str,
    number: int | None = None,
    made_at: datetime | None = None,
    at_most: Decimal | None = None,
) -> Submission:
    """Return the submission, with the price of what is ordered reserved: scored, it goes back to be
    judged further; while it is judged, it goes on for longer.

    `number` says which order this is, from 1: a second call with the same number changes nothing.
    `made_at` says which offer was looked at: another one is refused, and so is a higher price than
    `at_most`. Raises CannotOrder, or money's OverBudget; then nothing was reserved.
    """
    row = (
        Submission.objects.select_for_update(of=("self",), no_key=True)
        .select_related("track", "team")
        .get(pk=submission.pk)
    )
    ordered_already = (
        row.status in ("confirmed", "judging") and row.plan.get("chosen") == half_width
    )
    if row.orders and (number == row.orders or (number is None and ordered_already)):
        return row
    offer = _offer(row, number, made_at)
    option = offer.plan["options"].get(half_width)
    if option is None:
        raise CannotOrder(
            f"±{half_width} is not offered; choose one of"
            f" {', '.join(sorted(offer.plan['options']))}."
        )
    price, wanted = Decimal(option["at_most"]), row.orders + 1
    if at_most is not None and price > at_most:
        raise CannotOrder(
            f"It costs at most ${price}, where ${at_most} was said. Look at the prices, and order"
            " again."
        )
    if price > ZERO:
        why = (
            f"Order {wanted}: at most {at_most_new(option)} more judgments for"
            f" ±{Decimal(half_width) * 100:.1f} %"
        )
        reserve(
            row.track,
            row.team,
            row.purpose,
            price,
            key=f"order:{row.pk}:{wanted}",
            who=who,
            why=why,
        )
    row.move(
        "confirmed" if row.status == "scored" else row.status,
        orders=wanted,
        stage_reason="",
        plan=row.plan
        | {
            "chosen": half_width,
            "options": row.plan["options"] | {half_width: option},
        },
        target_half_width=Decimal(half_width),
    )
    nudge("draw")
    return row


def _offer(row: Submission, number: int | None, made_at: datetime | None) -> Further:
    """Return the offer that is ordered from. Raises CannotOrder."""
    if not can_order(row):
        raise CannotOrder(
            f"It is {row.get_status_display().lower()}: more can be ordered once it is scored."
        )
    if row.track.status != "open":
        raise CannotOrder(
            f"The track {row.track.name} is {row.track.status}: nothing more is judged for it."
        )
    offer = offer_of(row)
    if offer is None:
        raise CannotOrder("The price of more judgments is being computed. Look again in a minute.")
    if number is not None and number != offer.order:
        raise CannotOrder(
            f"The next order of this submission has number {offer.order}. Look at its page again."
        )
    if made_at is not None and made_at != offer.made_at:
        raise CannotOrder(
            "The prices were computed again since you looked. Look at them, and order again."
        )
    return offer
