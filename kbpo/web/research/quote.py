"""Prices of a plan: the share that is judged already, the maximum price, and the
remaining budget.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from decimal import Decimal
from typing import Any

from annotation.hits.progress import answers_per_hour
from annotation.questions.limits import people_expected
from annotation.questions.order import round_up
from kbpo.money.models import Budget
from kbpo.money.spend import SCOPE_NAMES, allowance
from kbpo.sampling.plan import at_most_new
from kbpo.submissions.models import Submission
from kbpo.tracks.registry import kind_of
from kbpo.web.components.figures import count_text


@dataclass(frozen=True)
class Quote:
    """One half-width of a plan with its price."""

    width: str
    half_width: float
    targets: int
    judged: int
    new: int
    most: int
    """how many new judgments it may take at most, which the price is for"""
    each: Decimal
    at_most: Decimal
    expected: Decimal
    """what it costs if as many questions take a third person as so far"""
    work: timedelta
    left: Decimal | None
    """what the tightest cap leaves; None without any cap"""
    cap: str
    """whose cap that is, in words"""
    likely: timedelta | None
    """how long it takes at the rate of the last hour; None while nobody judges"""
    all_judged: float | None
    """the half-width with all of it judged, where that is wider; None where it is not"""
    population: str
    """what the interval holds for, in words; empty where there is no choice"""

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
    def fits(self) -> bool:
        """Return whether the budget allows it."""
        return self.left is None or self.at_most <= self.left


def chosen_width(submission: Submission, asked: str | None) -> str:
    """Return the requested half-width if the plan has it, else the plan's default."""
    is_planned = asked is not None and asked in submission.plan.get("options", {})
    return str(asked if is_planned else submission.plan.get("chosen", ""))


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
    room = allowance(submission.track, submission.team, submission.purpose)
    rate = answers_per_hour(submission.track)
    cap = SCOPE_NAMES[Budget.Scope(room.scope)] if room.scope else ""
    people, kind = people_expected(submission.track), kind_of(submission.track)
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
                most=at_most_new(option),
                each=Decimal(option["each"]),
                at_most=at_most,
                expected=round_up(at_most * share),
                work=timedelta(seconds=option["work_seconds"]),
                left=room.left,
                cap=cap,
                likely=timedelta(hours=answers / rate) if rate and answers else None,
                all_judged=float(option["all_judged"]) if "all_judged" in option else None,
                population=population,
            )
        )
    return told


def find_quote(submission: Submission, asked: str | None) -> Quote | None:
    """Return the requested option, or the plan's default; None without a plan."""
    width = chosen_width(submission, asked)
    return next((option for option in list_quotes(submission) if option.width == width), None)
