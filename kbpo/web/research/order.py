"""Orders more judgments for a scored run, for a narrower interval."""

from __future__ import annotations

from typing import Any, cast

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.utils.dateparse import parse_datetime

from kbpo.accounts.models import User
from kbpo.evaluation.extent import Extent
from kbpo.money.spend import OverBudget
from kbpo.sampling.models import Further
from kbpo.sampling.order import CannotOrder, can_order, filter_offer, order
from kbpo.sampling.plan import current_offer, was_computed_before
from kbpo.submissions.models import Submission
from kbpo.web.components.figures import count_text, half_width_text, money_text
from kbpo.web.research.quote import list_quotes


def refresh_offer(submission: Submission) -> Further | None:
    """Return the offer of more judgments, computed again if it is stale; None if nothing can be
    ordered.
    """
    if (
        not can_order(submission)
        or submission.track.status != "open"
        or submission.sampled_at is None
    ):
        return None
    return current_offer(submission)


def order_context(
    submission: Submission, extent: Extent, further: Further | None
) -> dict[str, Any] | None:
    """Return the context of the order form; None if nothing can ever be ordered."""
    if further is None:
        waits = submission.status == "judging" and submission.scored_at is None
        return {"ordered": submission.target_half_width} if waits else None
    judging = submission.status == "judging"
    now = None if extent.half_width is None else round(extent.half_width, 3)  # as it is printed
    context: dict[str, Any] = {
        "now": submission.target_half_width if judging else now,
        "ordered": submission.target_half_width if judging else None,
        "exact": not judging and extent.half_width == 0,
    }
    offer = filter_offer(submission, further)
    if offer is None:
        reckoning = further.status == "wanted" or further.order <= submission.orders
        reckoning |= was_computed_before(submission, further)
        return context | {"reckoning": reckoning, "reason": further.reason}
    steps = list_quotes(submission, offer.plan["options"])
    fitting = [index for index, step in enumerate(steps) if step.fits]
    chosen = fitting[0] if fitting else 0
    return context | {
        "offer": offer,
        "stamp": offer.made_at.isoformat() if offer.made_at else "",
        "rows": [
            {
                "value": step.width,
                "half_width": step.half_width,
                "n": step.most,
                "cost": step.at_most,
                "time": step.likely or step.work,
            }
            for step in steps
        ],
        "chosen": chosen,
        "quote": steps[chosen],
        "have_words": f"{count_text(steps[chosen].judged)} judged or asked for",
        "judge_words": steps[chosen].new_words,
        "fits": bool(fitting),
        "open": submission.status == "scored" and submission.stage_reason != "target",
    }


def order_more(request: HttpRequest, submission: Submission) -> HttpResponse:
    """Order the selected interval. A repeated request with the same number changes nothing."""
    number = request.POST.get("order", "")
    try:
        made_at = parse_datetime(request.POST.get("offer", ""))
    except ValueError:
        made_at = None
    try:
        ordered = order(
            submission,
            cast(User, request.user),
            half_width=request.POST.get("target", ""),
            number=int(number) if number.isdecimal() and len(number) < 5 else None,
            made_at=made_at,
        )
    except CannotOrder as refusal:
        messages.error(request, f"{refusal} Nothing was ordered.")
    except OverBudget as refusal:
        messages.error(
            request, f"{refusal} Nothing was ordered; choose a wider interval or ask an admin."
        )
    else:
        option = ordered.plan["options"][ordered.plan["chosen"]]
        width = half_width_text(float(ordered.plan["chosen"]))
        messages.success(
            request, f"Ordered: {width}, at most {money_text(option['at_most'])}. Judging goes on."
        )
    return redirect("submission", pk=submission.pk)
