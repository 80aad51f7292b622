"""Prices of a plan: the share that is judged already, the maximum price, and the
remaining budget.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from decimal import Decimal
from typing import Any, cast

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.utils.dateparse import parse_datetime

from annotation.hits.batch import answers_per_hour
from annotation.questions.limits import expected_people
from annotation.questions.order import round_up_to_cent
from kbpo.accounts.models import User
from kbpo.evaluation.latest import Extent
from kbpo.money.models import Budget
from kbpo.money.spend import SCOPE_NAMES, OverBudget, remaining_allowance
from kbpo.sampling.confirm import CannotOrder, can_order, order_judgments, valid_order_offer
from kbpo.sampling.models import Further
from kbpo.sampling.plan import current_offer, max_new_judgments, was_computed_before
from kbpo.submissions.models import Submission
from kbpo.tracks.registry import kind_of
from kbpo.web.components.figures import count_text, half_width_text, money_text


@dataclass(frozen=True)
class Quote:
    """One half-width of a plan with its price."""

    width: str
    half_width: float
    targets: int
    judged: int
    new: int
    most: int
    """The greatest number of new judgments, which the price covers"""
    each: Decimal
    at_most: Decimal
    expected: Decimal
    """The expected cost, if as many questions need a third person as so far"""
    work: timedelta
    left: Decimal | None
    """What the tightest cap leaves; None without a cap"""
    cap: str
    """Scope of that cap, in words"""
    likely: timedelta | None
    """Expected duration at the rate of the last hour; None while nobody judges"""
    all_judged: float | None
    """The half-width when all is judged, if that is wider; otherwise None"""
    population: str
    """Population of the interval, in words; empty if there is only one"""

    @property
    def share(self) -> float:
        """Return the share of the sample that is judged already; 1 for an empty sample."""
        return self.judged / self.targets if self.targets else 1.0

    @property
    def new_words(self) -> str:
        """Return the expected number of new judgments as text: “100 to judge”, “100 to 125 to
        judge”.
        """
        if self.new == self.most:
            return f"{count_text(self.new)} to judge"
        return f"{count_text(self.new)} to {count_text(self.most)} to judge"

    @property
    def is_within_budget(self) -> bool:
        """Return whether the budget allows the option."""
        return self.left is None or self.at_most <= self.left


def chosen_width(submission: Submission, requested_width: str | None) -> str:
    """Return the requested half-width if the plan has it, else the plan's default."""
    is_planned = requested_width is not None and requested_width in submission.plan.get(
        "options", {}
    )
    return str(requested_width if is_planned else submission.plan.get("chosen", ""))


def plan_with_expected_cost(submission: Submission) -> dict[str, Any]:
    """Return a submission's plan with the expected cost of each option."""
    expected = {quote.width: str(quote.expected) for quote in list_quotes(submission)}
    plan: dict[str, Any] = dict(submission.plan)
    if expected:
        plan["options"] = {
            width: option | {"expected": expected[width]}
            for width, option in plan["options"].items()
        }
    return plan


def list_quotes(submission: Submission, options: dict[str, Any] | None = None) -> list[Quote]:
    """Return the options of the plan (or those given), widest interval first; none
    without a plan.
    """
    options = submission.plan.get("options", {}) if options is None else options
    if not options:
        return []
    room = remaining_allowance(submission.track, submission.team, submission.purpose)
    rate = answers_per_hour(submission.track)
    cap = SCOPE_NAMES[Budget.Scope(room.scope)] if room.scope else ""
    people, kind = expected_people(submission.track), kind_of(submission.track)
    share = people / submission.track.workers_per_question
    population = kind.words.populations.get(kind.measures.population, "")
    told = []
    for width in sorted(options, reverse=True):
        option = options[width]
        at_most, answers = Decimal(option["at_most"]), float(option["new"] * people)
        told.append(
            Quote(
                width=width,
                half_width=float(width),
                targets=option["targets"],
                judged=option["judged"],
                new=option["new"],
                most=max_new_judgments(option),
                each=Decimal(option["each"]),
                at_most=at_most,
                expected=round_up_to_cent(at_most * share),
                work=timedelta(seconds=option["work_seconds"]),
                left=room.left,
                cap=cap,
                likely=timedelta(hours=answers / rate) if rate and answers else None,
                all_judged=float(option["all_judged"]) if "all_judged" in option else None,
                population=population,
            )
        )
    return told


def find_quote(submission: Submission, requested_width: str | None) -> Quote | None:
    """Return the requested option, or the plan's default; None without a plan."""
    width = chosen_width(submission, requested_width)
    return next((option for option in list_quotes(submission) if option.width == width), None)


def refresh_offer(submission: Submission) -> Further | None:
    """Return the offer of more judgments, recomputed if it is out of date; None if nothing can be
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
    offer = valid_order_offer(submission, further)
    if offer is None:
        reckoning = further.status == "wanted" or further.order <= submission.orders
        reckoning |= was_computed_before(submission, further)
        return context | {"reckoning": reckoning, "reason": further.reason}
    steps = list_quotes(submission, offer.plan["options"])
    fitting = [index for index, step in enumerate(steps) if step.is_within_budget]
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
        ordered = order_judgments(
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
            request,
            f"Ordered: {width}, at most {money_text(option['at_most'])}. Judging continues.",
        )
    return redirect("submission", pk=submission.pk)
