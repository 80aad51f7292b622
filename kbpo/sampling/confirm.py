"""Step 3a: a person confirms a plan, or orders more judgments of a scored submission; the price is
reserved, or nothing happens.
"""

from __future__ import annotations

from datetime import datetime
from decimal import Decimal

from django.db import transaction

from kbpo import clock
from kbpo.accounts.models import User
from kbpo.instances.models import Label
from kbpo.money.spend import ZERO, over_budget_error, reserve_money
from kbpo.queue import wake_step
from kbpo.sampling.development import development_price
from kbpo.sampling.models import Further
from kbpo.sampling.plan import current_half_width, max_new_judgments
from kbpo.submissions.limits import no_run_left_reason
from kbpo.submissions.models import Submission


class CannotConfirm(Exception):
    """Raised if the submission cannot be confirmed in its state; the text is a sentence for its
    owner.
    """


def refusal_to_confirm(submission: Submission, *, lock: bool = False) -> str:
    """Return why a submission cannot be confirmed now, whichever option is chosen; empty if it can.
    With `lock`, inside a transaction, two confirmations of one team are serialized.
    """
    if submission.status != "planned":
        return (
            f"It is {submission.get_status_display().lower()}; only a submission with a plan"
            " can be confirmed."
        )
    if submission.track.refusal:
        return submission.track.refusal
    return add_deadline(
        submission, no_run_left_reason(submission.track, submission.team, lock=lock)
    )


def add_deadline(draft: Submission, sentence: str) -> str:
    """Return a sentence extended by the date until which a draft is kept, if its team has no run
    left to confirm; otherwise the sentence.
    """
    until = draft.status_since + draft.DEADLINES["planned"][0]
    kept = f"The draft is kept until {until.day} {until:%B %Y, %H:%M} UTC."
    return f"{sentence} {kept}" if sentence else ""


def refusal_of_plan(submission: Submission) -> str:
    """Return a sentence on why confirming the chosen option of the plan would be refused now; empty
    if it would be accepted.
    """
    if refusal := refusal_to_confirm(submission):
        return refusal
    price = Decimal(submission.plan["options"][submission.plan["chosen"]]["at_most"])
    purpose = submission.purpose
    refused = (
        over_budget_error(submission.track, submission.team, purpose, price) if price else None
    )
    return str(refused or "")


@transaction.atomic
def confirm_plan(
    submission: Submission,
    who: User,
    *,
    half_width: str | None = None,
    good_lines_only: bool = False,
    at_most: Decimal | None = None,
    development: int | None = None,
) -> Submission:
    """Confirm a plan and return the submission. Reserves the price of the plan and of `development`
    development predictions; None means as many as the plan offers.

    `at_most` is the price that the user saw: a higher one is refused. A second call changes
    nothing. Raises CannotConfirm or OverBudget, in which case nothing was reserved.
    """
    row = (
        Submission.objects.select_for_update(of=("self",), no_key=True)
        .select_related("track", "team")
        .get(pk=submission.pk)
    )
    if row.confirmed_at:
        return row
    if refusal := refusal_to_confirm(row, lock=True):
        raise CannotConfirm(refusal)
    if row.counts.get("errors") and not (good_lines_only or row.good_lines_only):
        raise CannotConfirm(
            "The file has errors. Say that its good lines are to be evaluated, or correct"
            " the file first."
        )
    width = half_width or row.plan["chosen"]
    if width not in row.plan["options"]:
        raise CannotConfirm(
            f"There is no plan for ±{width}; choose one of {', '.join(row.plan['options'])}."
        )
    option = row.plan["options"][width]
    price = Decimal(option["at_most"])
    offered = row.plan.get("development", {"n": 0, "available": 0})
    n_dev = offered["n"] if development is None else development
    if not 0 <= n_dev <= offered["available"]:
        raise CannotConfirm(
            f"Between 0 and {offered['available']} development predictions can be judged."
        )
    if n_dev:
        price += development_price(row, n_dev)
    if at_most is not None and price > at_most:
        raise CannotConfirm(
            f"The price has changed: it is at most ${price} now, where ${at_most} was said. Look"
            " at it, and confirm again."
        )
    if price > ZERO:
        why = f"At most {option['new']} judgments for ±{Decimal(width) * 100:.1f} %"
        if n_dev:
            why += f", and {n_dev} development predictions"
        reserve_money(
            row.track, row.team, row.purpose, price, key=f"confirm:{row.pk}", who=who, why=why
        )
    row.move(
        "confirmed",
        who=who,
        confirmed_at=clock.now(),
        good_lines_only=True if row.counts.get("errors") else row.good_lines_only,
        plan=row.plan | {"chosen": width, "development": offered | {"chosen": n_dev}},
        target_half_width=Decimal(width),
        is_organisers=row.team.members.filter(is_staff=True).exists(),
        run_of_team=Submission.objects.filter(
            track=row.track, team=row.team, confirmed_at__isnull=False
        ).count()
        + 1,
        after_public=Label.objects.filter(
            target__corpus=row.track.corpus_id, target__is_dev=False, public_at__isnull=False
        ).exists(),
    )
    wake_step("draw")
    return row


def can_order(submission: Submission) -> bool:
    """Return whether more judgments of a submission can be ordered: as soon as its own sample is
    answered, also while it is judged again.
    """
    was_scored = submission.scored_at is not None or submission.status == "scored"
    return submission.status in ("judging", "scored") and was_scored


class CannotOrder(Exception):
    """Raised if nothing can be ordered now; the text is a sentence for the submission's owner."""


def current_order_offer(submission: Submission) -> Further | None:
    """Return the offer that can be ordered now, with its prices. None while it is being computed,
    if there is none, before the submission's own sample is answered, or if its track is not open.
    Half-widths that the printed interval has reached meanwhile are left out.
    """
    return valid_order_offer(submission, Further.objects.filter(submission=submission).first())


def valid_order_offer(submission: Submission, offer: Further | None) -> Further | None:
    """Return the current offer of more judgments from the stored prices of the submission; None in
    the cases of `current_order_offer`.
    """
    if offer is None or offer.order != submission.orders + 1 or not offer.plan.get("options"):
        return None
    if not can_order(submission) or submission.track.status != "open":
        return None
    now = current_half_width(submission)
    options = offer.plan["options"].items()
    offer.plan |= {"options": {width: option for width, option in options if float(width) < now}}
    return offer if offer.plan["options"] else None


@transaction.atomic
def order_judgments(
    submission: Submission,
    who: User,
    *,
    half_width: str,
    number: int | None = None,
    made_at: datetime | None = None,
    at_most: Decimal | None = None,
) -> Submission:
    """Reserve the price of a narrower interval, and return the submission. A scored submission is
    judged further; one that is being judged is judged until the new half-width is reached.

    `number` is the number of this order, from 1: a second call with the same number changes
    nothing. `made_at` is the time of the offer that the user saw: another offer is refused, and so
    is a price above `at_most`. Raises CannotOrder or OverBudget, in which case nothing was
    reserved.
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
    offer = _checked_offer(row, number, made_at)
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
            f"Order {wanted}: at most {max_new_judgments(option)} more judgments for"
            f" ±{Decimal(half_width) * 100:.1f} %"
        )
        reserve_money(
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
    wake_step("draw")
    return row


def _checked_offer(submission: Submission, number: int | None, made_at: datetime | None) -> Further:
    """Return the offer of an order. Raises CannotOrder if it is not the one that the user saw."""
    if not can_order(submission):
        raise CannotOrder(
            f"It is {submission.get_status_display().lower()}:"
            " more can be ordered once it is scored."
        )
    if submission.track.status != "open":
        raise CannotOrder(
            f"The track {submission.track.name} is {submission.track.status}:"
            " nothing more is judged for it."
        )
    offer = current_order_offer(submission)
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
