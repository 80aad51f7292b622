"""Design poisson: a target is asked iff its random number lies below its threshold; thresholds rise
like water.

A new submission raises the thresholds of what it states just so far that the guaranteed number
meets its interval, with the fewest expected new questions. It goes in stages: the model g learns
from each, and so does what is known of its errors; what counts in the end is the realised variance,
not the planned one.
"""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal
from typing import Any

import numpy as np

from kbpo.corpus.copy import copy
from kbpo.inclusion import own_thresholds
from kbpo.money.spend import balance
from kbpo.pool.probabilities import Floats, Ids
from kbpo.sampling.designs.base import Design, Realised, last_batch, priced, target_variance
from kbpo.sampling.designs.draft import Draft
from kbpo.sampling.designs.state import BOLD, State
from kbpo.sampling.guess import VERSION
from kbpo.sampling.models import Sample, SampleBatch, SamplingDistribution
from kbpo.submissions.models import Submission

FIRST = 4.0
"""Planned variance of the first stage, in units of the target: coarse, so that g is learnt
early."""
STAGES = 12
"""Most stages of an order."""
PRICED_AIM = 0.8
"""What 'at most' allows for: a plan misses in a quarter to a third of arrivals, and then asks
for more."""
SPREAD = 2.0
"""Standard deviations of the number of questions that 'at most' allows for in a draft: what lies
below its threshold is chance."""
CLOSE = 1.02


class Poisson(Design):
    """Thresholds on targets, raised in stages until the realised variance meets the target or the
    money ends.
    """

    def draft(
        self, submission: Submission, half_widths: Sequence[str]
    ) -> dict[str, dict[str, Any]]:
        draft = Draft.of(submission, submission.track.distribution)
        shown, found = int(draft.shown.sum()), dict[str, dict[str, Any]]()
        for width in half_widths:
            goal = target_variance(submission, width)
            new = draft.questions(draft.thresholds(goal))
            most = draft.questions(draft.thresholds(PRICED_AIM * goal), spread=SPREAD)
            found[width] = priced(submission, width, shown + new, new, most)
        return found

    def options(
        self, submission: Submission, half_widths: Sequence[str]
    ) -> dict[str, dict[str, Any]]:
        state = State(submission)
        return {width: self._option(submission, state, width) for width in half_widths}

    def _option(self, submission: Submission, state: State, width: str) -> dict[str, Any]:
        goal = state.aim(target_variance(submission, width), Realised.of(last_batch(submission)))
        likely, most = state.asked(state.raised(goal)), state.asked(state.raised(PRICED_AIM * goal))
        new, bound = len(state.new(likely)), len(state.new(most))
        return priced(submission, width, likely.size, new, bound)

    def sample(self, submission: Submission) -> int:
        stage = submission.batches.filter(design="poisson").count() + 1
        state = State(submission)
        goal = _goal(submission, state)
        pi, goal, why = _affordable(submission, state, goal)
        batch = SampleBatch.objects.create(
            submission=submission,
            distribution=SamplingDistribution.objects.get(
                submission=submission, kind=submission.track.distribution
            ),
            design="poisson",
            stage=stage,
            seed=0,
            size=len(state.new(state.asked(pi))),
            settings={
                "planned_variance": goal,
                "target_variance": target_variance(submission, submission.plan["chosen"]),
                "lambda": state.multiplier(goal),
                "half_width": submission.plan["chosen"],
                "order": submission.orders,
                "why": why,
                "model": VERSION,
                "labels": state.guess.labels,
                "correlation": state.guess.rho,
                "total": state.total,
            },
        )
        higher = pi > state.old
        copy(
            "sampling_threshold",
            ("batch_id", "target_id", "pi"),
            (
                (batch.pk, int(t), float(x))
                for t, x in zip(state.target_id[higher], pi[higher], strict=True)
            ),
        )
        own_thresholds.keep(batch, state.alone(goal))
        return _store(batch, state, state.asked(pi), pi)

    def enough(self, submission: Submission, variance: float | None) -> str:
        if variance is not None and variance <= CLOSE * target_variance(
            submission, submission.plan["chosen"]
        ):
            return "target"
        last = last_batch(submission)
        if last is not None and last.settings.get("why") == "budget":
            return "budget"
        return "exhausted" if _stages(submission) >= STAGES else ""


def _goal(submission: Submission, state: State) -> float:
    """The variance that the next stage plans for: a coarse one first; then as much less than what
    is planned so far as what was realised asks for. An order of more begins where the one before it
    ended.
    """
    target = target_variance(submission, submission.plan["chosen"])
    realised, done = Realised.of(last_batch(submission)), _stages(submission)
    if not submission.orders:
        return state.aim(target, realised, stage=done, most=FIRST) if done else FIRST * target
    return state.aim(target, realised, stage=done + 1, most=FIRST if done else BOLD)


def _stages(submission: Submission) -> int:
    """Stages of the order that is being judged."""
    batches = submission.batches.filter(design="poisson")
    return (
        batches.filter(settings__order=submission.orders) if submission.orders else batches
    ).count()


def _affordable(submission: Submission, state: State, goal: float) -> tuple[Floats, float, str]:
    """Thresholds for the goal, or the highest that the open reservation still pays for; the
    variance that they plan for; and which of the two it is.
    """
    each = Decimal(submission.plan["options"][submission.plan["chosen"]]["each"])
    can = int(balance(purpose=submission.purpose).open / each) if each else 10**9
    pi = state.raised(goal)
    if len(state.new(state.asked(pi))) <= can:
        return pi, goal, "target"
    low, high = goal, max(goal * 1e4, 1.0)
    for _ in range(24):
        middle = float(np.sqrt(low * high))
        low, high = (
            (low, middle)
            if len(state.new(state.asked(state.raised(middle)))) <= can
            else (middle, high)
        )
    return state.raised(high), high, "budget"


def _store(batch: SampleBatch, state: State, asked: Ids, pi: Floats) -> int:
    """How many targets the submission's sample gained."""
    earlier = set(
        Sample.objects.filter(batch__submission=batch.submission).values_list(
            "target_id", flat=True
        )
    )
    of = dict(zip(state.target_id.tolist(), pi.tolist(), strict=True))
    rows = [
        Sample(batch=batch, target_id=one, instance=None, multiplicity=1, probability=of[one])
        for one in asked.tolist()
        if one not in earlier
    ]
    Sample.objects.bulk_create(rows, batch_size=2000)
    return len(rows)
