"""Design poisson: people are asked about a target iff its random number lies below its threshold;
thresholds are raised by water-filling.

A new submission raises the thresholds of its targets just enough for the ordered interval of the
guaranteed number, with the fewest expected new questions. Sampling has stages, after each of which
the model g and the estimate of its errors are refitted. Sampling ends by the variance that the
refitted model expects, not by the planned one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import numpy as np

from estimators.poisson import joint_multipliers
from kbpo.corpus.sql import copy_rows
from kbpo.inclusion.read import highest_thresholds
from kbpo.instances.models import Label
from kbpo.money.spend import balance
from kbpo.pool.probabilities import submission_support
from kbpo.sampling import development  # the module: it needs the prices of designs.base
from kbpo.sampling.designs.base import (
    CLOSE,
    Design,
    Realised,
    batch_seed,
    half_width_at,
    last_batch,
    make_option,
    target_variance_of_submission,
)
from kbpo.sampling.designs.state import BOLD, State, targets_to_pay
from kbpo.sampling.draft import Draft
from kbpo.sampling.guess import VERSION
from kbpo.sampling.models import Sample, SampleBatch, SamplingDistribution
from kbpo.submissions.models import Submission
from kbpo.tracks.registry import kind_of
from scoring.arrays import Floats

FIRST = 4.0
"""Planned variance of the first stage, in units of the target variance; large, so that g is fitted
early."""
STAGES = 12
"""Greatest number of stages of an order"""
LOWEST = 1e-9
"""Share of a goal at which all targets are drawn"""
CERTAIN = 1e-6
"""Distance below 1 at which a threshold counts as 1"""
PRICED_AIM = 0.8
"""Share of the target variance that 'at most' is computed for, since a quarter to a third of plans
miss the target and then ask for more."""
ROUNDING = 1e-9
CENSUS = "imported"
"""Reason why all targets are drawn for a submission that was judged elsewhere"""
SPREAD = 2.0
"""Standard deviations of the number of questions that 'at most' includes in a draft, since the
number of drawn targets is random."""


class Poisson(Design):
    """Thresholds on targets, raised in stages until the variance that the model expects reaches the
    target or the money is used up.
    """

    def draft_options(
        self, submission: Submission, half_widths: Sequence[str]
    ) -> dict[str, dict[str, Any]]:
        draft = Draft.from_submission(submission, submission.track.distribution)
        options = dict[str, dict[str, Any]]()
        for width in half_widths:
            goal = target_variance_of_submission(submission, width)
            new = draft.questions(draft.thresholds(goal))
            most = draft.questions(draft.thresholds(PRICED_AIM * goal), spread=SPREAD)
            option = make_option(submission, width, new, new, most)
            if draft.left > goal:
                option["all_judged"] = f"{half_width_at(submission, draft.left):.3f}"
            options[width] = option
        return options

    def further_options(
        self, submission: Submission, half_widths: Sequence[str]
    ) -> dict[str, dict[str, Any]]:
        state = State(submission)
        return {width: self._option_for_width(submission, state, width) for width in half_widths}

    def _option_for_width(self, submission: Submission, state: State, width: str) -> dict[str, Any]:
        goal = state.variance_to_plan(
            target_variance_of_submission(submission, width),
            Realised.from_batch(last_batch(submission)),
        )
        likely, most = (
            state.targets_below(state.thresholds_for(goal)),
            state.targets_below(state.thresholds_for(PRICED_AIM * goal)),
        )
        new, bound = len(state.unpaid_targets(likely)), len(state.unpaid_targets(most))
        return make_option(submission, width, likely.size, new, bound)

    def sample_next_batch(self, submission: Submission) -> int:
        return self.sample_together([submission])

    def sample_together(self, submissions: Sequence[Submission]) -> int:
        """Sample all pending submissions with one joint plan, so that a question that serves
        several of them is asked once.
        """
        plans = [Plan.plan_single_stage(submission) for submission in submissions]
        if len(plans) == 1:
            return plans[0].store()
        if census := [plan for plan in plans if plan.why == CENSUS]:
            rest = [plan.submission for plan in plans if plan.why != CENSUS]
            drawn = sum(plan.store() for plan in census)
            return drawn + (self.sample_together(rest) if rest else 0)
        plan_thresholds_together(plans)
        alone = [
            plan.submission
            for plan in plans
            if not (plan.has_enough_reserved and plan.adds_targets)
        ]
        if not alone:
            return sum(plan.store() for plan in plans)
        others = [
            plan.submission for plan in plans if plan.has_enough_reserved and plan.adds_targets
        ]
        asked = self.sample_together(others) if others else 0
        return asked + sum(self.sample_next_batch(submission) for submission in alone)

    def variance_to_compare(self, realised: Realised) -> float:
        """Return the variance that the model expects. The realised variance is ignored: stopping
        when it is small enough would stop when it is too small by chance, and pay for more when it
        is too large by chance. The interval is still computed from the larger of the two, so it is
        sometimes a little wider than ordered.
        """
        return realised.anticipated

    def reason_to_stop(self, submission: Submission, realised: Realised | None) -> str:
        target = target_variance_of_submission(submission, submission.plan["chosen"])
        if realised is not None and self.variance_to_compare(realised) <= CLOSE * target:
            return "target"
        return self._end_reason(submission)

    def _end_reason(self, submission: Submission) -> str:
        """Return why sampling ends for a submission that has not reached the ordered half-width;
        empty if it goes on.
        """
        _, target, p = submission_support(submission, submission.track.distribution)
        last, done = last_batch(submission), _count_stages(submission)
        left = set(target[p > 0].tolist()) - _drawn_targets(submission)
        if last is None:
            return ""
        if not left and _were_all_draws_certain(submission):
            return "all"
        if not done:
            return ""  # more was ordered meanwhile
        is_to_be_paid = bool(left) and left <= targets_to_pay(submission, left)
        if is_to_be_paid and not _questions_paid_for(submission):
            return "budget"
        if last.settings.get("why") == "budget":
            # Answers may have cost less than was reserved: the rest pays for more questions.
            goes_on = last.size and _questions_paid_for(submission) and done < STAGES
            return "" if goes_on else "budget" if left else "all"
        if done >= STAGES:
            return "stages"
        if last.samples.exists() or last.thresholds.exists():
            return ""
        return "exhausted" if left else "all"


def _next_stage_goal(submission: Submission, state: State) -> float:
    """Return the variance that the next stage plans for: a coarse one at first; later the last
    planned variance, reduced by the ratio of the target to the expected variance. An order of more
    judgments begins where the order before it ended.
    """
    target = target_variance_of_submission(submission, submission.plan["chosen"])
    last, done = last_batch(submission), _count_stages(submission)
    realised = Realised.from_batch(last)
    if not submission.orders and not done:
        return target if state.planned_variance <= target else FIRST * target
    return state.variance_to_plan(target, realised, most=FIRST if done else BOLD)


def _count_stages(submission: Submission) -> int:
    """Return the number of stages of the order that is being judged."""
    batches = submission.batches.filter(design="poisson")
    return (
        batches.filter(settings__order=submission.orders) if submission.orders else batches
    ).count()


def _drawn_targets(submission: Submission) -> set[int]:
    """Return the targets drawn for the submission so far."""
    samples = Sample.objects.filter(batch__submission=submission)
    return set(samples.values_list("target_id", flat=True))


def _were_all_draws_certain(submission: Submission) -> bool:
    """Return whether all targets that the submission drew had probability 1."""
    drawn = np.array(sorted(_drawn_targets(submission)), dtype=np.int64)
    return bool((highest_thresholds(submission.track, drawn) > 1 - CERTAIN).all())


@dataclass
class Plan:
    """The next stage of one submission: the thresholds that it sets, and the questions that it pays
    for.
    """

    submission: Submission
    state: State
    goal: float
    """The planned variance"""
    multiplier: float
    pi: Floats
    """Thresholds of the submission's targets"""
    pays: set[int]
    """Targets whose questions are paid from its reservation"""
    why: str = "target"
    together: int = 1
    """Number of submissions that were planned together"""

    @classmethod
    def plan_single_stage(cls, submission: Submission) -> Plan:
        """Return the next stage of a submission alone, as far as the money suffices."""
        state = State(submission)
        if _is_imported(submission, state.target_id.tolist()):
            goal = _next_stage_goal(submission, state)
            everything = np.ones_like(state.chance)
            return cls(
                submission, state, goal, state.threshold_multiplier(goal), everything, set(), CENSUS
            )
        pi, goal, why = _affordable_thresholds(
            submission, state, _next_stage_goal(submission, state)
        )
        if (
            why == "target"
            and _has_sampling_stalled(submission, state, pi)
            and _has_fewer_judgments_than_ordered(submission)
        ):
            pi, goal, why = _goal_that_adds_a_target(submission, state, goal)
        pays = state.unpaid_targets(state.targets_below(pi))
        return cls(submission, state, goal, state.threshold_multiplier(goal), pi, pays, why)

    @property
    def adds_targets(self) -> bool:
        """Return whether the plan adds a target to the submission's sample."""
        return _do_thresholds_add_targets(self.submission, self.state, self.pi)

    @property
    def has_enough_reserved(self) -> bool:
        """Return whether the submission's open reservation pays for the questions of the plan."""
        return len(self.pays) <= _questions_paid_for(self.submission)

    def store(self) -> int:
        """Store the batch of the plan, and return how many targets the sample gained."""
        submission, state = self.submission, self.state
        target = target_variance_of_submission(submission, submission.plan["chosen"])
        batch = SampleBatch.objects.create(
            submission=submission,
            distribution=SamplingDistribution.objects.get(
                submission=submission, kind=submission.track.distribution
            ),
            design="poisson",
            stage=submission.batches.filter(design="poisson").count() + 1,
            seed=0,
            size=len(self.pays),
            settings={
                "planned_variance": state.reachable_variance(self.goal),
                "target_variance": target,
                "lambda": self.multiplier,
                "half_width": submission.plan["chosen"],
                "order": submission.orders,
                "why": self.why,
                "together": self.together,
                "model": VERSION,
                "labels": state.guess.labels,
                "correlation": state.guess.rho,
                "total": state.total,
            },
        )
        # Also what only open batches raised so far: theirs may never settle, and this one will.
        # Those that are equal but for rounding, which depends on the order of sums, are not higher.
        higher = self.pi > state.settled * (1 + ROUNDING)
        copy_rows(
            "sampling_threshold",
            ("batch_id", "target_id", "pi"),
            (
                (batch.pk, int(t), float(x))
                for t, x in zip(state.target_id[higher], self.pi[higher], strict=True)
            ),
        )
        return _store_stage(batch, self)


def plan_thresholds_together(plans: Sequence[Plan]) -> None:
    """Set the thresholds of the plans so that all goals are met with the fewest expected new
    questions (`joint_multipliers`).

    One of the submissions that need a new question pays for it. It is drawn with probability
    proportional to λ² s², its contribution to the raised threshold.
    """
    target_ids = np.unique(np.concatenate([plan.state.target_id for plan in plans]))
    places = [np.searchsorted(target_ids, plan.state.target_id) for plan in plans]
    squares, chance = (
        np.zeros((len(plans), target_ids.size)),
        np.ones((len(plans), target_ids.size)),
    )
    for row, (plan, place) in enumerate(zip(plans, places, strict=True)):
        squares[row, place], chance[row, place] = plan.state.target_sizes**2, plan.state.chance

    def raised_thresholds(multipliers: Floats) -> Floats:
        return np.minimum(1.0, np.sqrt(multipliers**2 @ squares))

    def planned_variances(multipliers: Floats) -> Floats:
        pi = np.maximum(chance, raised_thresholds(multipliers))
        odds = np.divide(1 - pi, pi, out=np.zeros_like(pi), where=pi > 0)
        return np.asarray((squares * odds).sum(axis=1))

    goals = [_next_stage_goal(plan.submission, plan.state) for plan in plans]
    left = [plan.state.variance_to_control(goal) for plan, goal in zip(plans, goals, strict=True)]
    alone = [plan.state.threshold_multiplier(goal) for plan, goal in zip(plans, goals, strict=True)]
    jointly = joint_multipliers(planned_variances, left, alone, squares.sum(axis=1))
    wanted, highest = raised_thresholds(jointly), np.zeros(target_ids.size)
    for plan, place in zip(plans, places, strict=True):
        own = np.maximum(plan.state.chance, wanted[place])
        highest[place] = np.maximum(highest[place], own)
    needs = np.zeros(squares.shape)
    for row, (plan, place) in enumerate(zip(plans, places, strict=True)):
        plan.pi, plan.goal, plan.multiplier = highest[place], goals[row], float(jointly[row])
        plan.why, plan.together = "target", len(plans)
        new = plan.state.unpaid_targets(plan.state.targets_below(plan.pi))
        needs[row, np.searchsorted(target_ids, sorted(new))] = 1.0
    weight = jointly[:, None] ** 2 * squares
    stage = plans[0].submission.batches.test_part().count() + 1
    rng = np.random.Generator(np.random.PCG64(batch_seed(plans[0].submission, "who pays", stage)))
    share = np.cumsum(needs * (weight + 1e-300), axis=0)
    point = rng.random(needs.shape[1]) * share[-1]
    payer = np.where(needs.any(axis=0), (share <= point).sum(axis=0), -1)
    for row, plan in enumerate(plans):
        plan.pays = set(target_ids[payer == row].tolist())


def _questions_paid_for(submission: Submission) -> int:
    """Return how many questions the open reservation still pays for."""
    each = Decimal(submission.plan["options"][submission.plan["chosen"]]["each"])
    if not each:
        return 10**9
    promised = development.count_unpaid(submission)
    return int(balance(purpose=submission.purpose).open / each) - promised


def _is_imported(submission: Submission, targets: list[int]) -> bool:
    """Return whether all predictions of a submission were judged elsewhere and imported. All of its
    targets are then drawn, so that all labels are used. Labels made here must not raise a target's
    probability, because they exist only for targets that were drawn.
    """
    kind = kind_of(submission.track)
    if not kind.rates or kind.find_unanswered({submission.pk: targets})[submission.pk]:
        return False
    return not Label.objects.filter(target__in=targets).exclude(source="import").exists()


def _affordable_thresholds(
    submission: Submission, state: State, goal: float
) -> tuple[Floats, float, str]:
    """Return thresholds, the variance that they plan for, and the reason for them. They meet the
    goal ("target"), or are the highest that the open reservation pays for ("budget").
    """
    can = _questions_paid_for(submission)

    def is_affordable(pi: Floats) -> bool:
        return len(state.unpaid_targets(state.targets_below(pi))) <= can

    pi = state.thresholds_for(goal)
    if is_affordable(pi):
        return pi, goal, "target"
    low, high = goal, max(goal * 1e4, 1.0)
    for _ in range(24):
        middle = float(np.sqrt(low * high))
        low, high = (low, middle) if is_affordable(state.thresholds_for(middle)) else (middle, high)
    return state.thresholds_for(high), high, "budget"


def _do_thresholds_add_targets(submission: Submission, state: State, pi: Floats) -> bool:
    """Return whether thresholds add a target to the submission's sample."""
    return bool(set(state.targets_below(pi).tolist()) - _drawn_targets(submission))


def _has_sampling_stalled(submission: Submission, state: State, pi: Floats) -> bool:
    """Return whether sampling has stalled: the thresholds add no target, and either none of them
    rose or the two stages before added no target either.
    """
    if _do_thresholds_add_targets(submission, state, pi):
        return False
    drawn = submission.batches.filter(design="poisson").order_by("-stage")
    latest = [batch.samples.exists() for batch in drawn[:2]]
    return latest == [False, False] or not (pi > state.chance).any()


def _has_fewer_judgments_than_ordered(submission: Submission) -> bool:
    """Return whether the precision reached so far is less than ordered."""
    realised = Realised.from_batch(last_batch(submission))
    target = target_variance_of_submission(submission, submission.plan["chosen"])
    return realised is None or realised.anticipated > CLOSE * target


def _goal_that_adds_a_target(
    submission: Submission, state: State, goal: float
) -> tuple[Floats, float, str]:
    """Return the result of `_affordable_thresholds` for a goal that is lowered until at least one
    target is added to the sample. This is needed if most of a variance is disagreement between
    people.

    The lowered goal depends on the expected number of added targets (1, 2, 4, …, doubled each
    time), not on their random numbers.
    """
    left = ~np.isin(state.target_id, sorted(_drawn_targets(submission)))
    before = np.minimum(state.chance[left], 1 - LOWEST)
    wanted = 2.0 ** submission.batches.filter(settings__why="further").count()
    while True:
        low, high = goal * LOWEST, goal
        for _ in range(24):
            middle = float(np.sqrt(low * high))
            added = (state.thresholds_for(middle)[left] - before) / (1 - before)
            low, high = (middle, high) if added.sum() >= wanted else (low, middle)
        pi, reached, why = _affordable_thresholds(submission, state, low)
        if (
            why == "budget"
            or wanted >= left.sum()
            or _do_thresholds_add_targets(submission, state, pi)
        ):
            return pi, reached, "further" if why == "target" else why
        wanted *= 2


def _store_stage(batch: SampleBatch, plan: Plan) -> int:
    """Store the batch of a plan, and return how many targets the submission's sample gained."""
    earlier, state = _drawn_targets(batch.submission), plan.state
    probability_of = dict(zip(state.target_id.tolist(), plan.pi.tolist(), strict=True))
    samples = [
        Sample(
            batch=batch,
            target_id=target,
            instance=None,
            multiplicity=1,
            probability=probability_of[target],
            pays=target in plan.pays,
        )
        for target in state.targets_below(plan.pi).tolist()
        if target not in earlier
    ]
    Sample.objects.bulk_create(samples, batch_size=2000)
    return len(samples)
