"""Design poisson: a target is asked iff its random number lies below its threshold; thresholds rise like water.

A new submission raises the thresholds of what it states just so far that the guaranteed number meets its interval, with
the fewest expected new questions. It goes in stages: the model g learns from each, and so does what is known of its
errors; what counts in the end is the realised variance, not the planned one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from decimal import Decimal
from typing import Any

import numpy as np

from estimators.model import expected_error
from estimators.poisson import planned_variance, water_fill
from kbpo.corpus.copy import copy
from kbpo.money.spend import balance
from kbpo.sampling.designs.base import Design, price_of, target_variance
from kbpo.sampling.guess import VERSION, Guess, guess, one_verdict
from kbpo.sampling.inclusion import thresholds
from kbpo.sampling.models import Sample, SampleBatch, SamplingDistribution
from kbpo.sampling.pool import Pool, read_pool
from kbpo.sampling.probabilities import Floats, Ids
from kbpo.sampling.seen import Seen, all_seen, private
from kbpo.submissions.models import Submission
from kbpo.tracks.registry import kind_of

FIRST = 4.0
"""Planned variance of the first stage, in units of the target: coarse, so that g is learnt early."""
BELOW = 0.995
"""Later stages plan a little below what the realised variance asks for."""
STAGES = 12
"""Most stages of an order."""
PRICED_AIM = 0.8
"""What 'at most' allows for: a plan misses in a quarter to a third of arrivals, and then asks for more."""
CLOSE = 1.02


class Poisson(Design):
    """Thresholds on targets, raised in stages until the realised variance meets the target or the money ends."""

    def options(self, submission: Submission, half_widths: Sequence[str]) -> dict[str, dict[str, Any]]:
        state = _State(submission)
        return {width: self._option(submission, state, width) for width in half_widths}

    def _option(self, submission: Submission, state: _State, width: str) -> dict[str, Any]:
        goal = target_variance(submission, width)
        likely, most = state.asked(state.raised(goal)), state.asked(state.raised(PRICED_AIM * goal))
        new, bound = len(state.new(likely)), len(state.new(most))
        told = price_of(submission, likely.size, new)
        return told | {"half_width": width, "at_most": str(Decimal(told["each"]) * bound), "new_at_most": bound}

    def sample(self, submission: Submission) -> int:
        stage = submission.batches.filter(design="poisson").count() + 1
        state = _State(submission)
        goal = _goal(submission, state)
        pi, why = _affordable(submission, state, goal)
        batch = SampleBatch.objects.create(
            submission=submission,
            distribution=SamplingDistribution.objects.get(submission=submission, kind=submission.track.distribution),
            design="poisson",
            stage=stage,
            seed=0,
            size=len(state.new(state.asked(pi))),
            settings={
                "planned_variance": goal,
                "half_width": submission.plan["chosen"],
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
            ((batch.pk, int(t), float(x)) for t, x in zip(state.target_id[higher], pi[higher], strict=True)),
        )
        return _store(batch, state, state.asked(pi), pi)

    def enough(self, submission: Submission, variance: float | None) -> str:
        if variance is not None and variance <= CLOSE * target_variance(submission, submission.plan["chosen"]):
            return "target"
        stages = submission.batches.filter(design="poisson").order_by("stage")
        if stages.count() >= STAGES:
            return "exhausted"
        last = stages.last()
        if last is not None and last.settings.get("why") == "budget":
            return "budget"
        return ""


class _State:
    """What a raise starts from: the submission's targets with p, thresholds, random numbers, and the model's doubt."""

    def __init__(self, submission: Submission) -> None:
        self.track = submission.track
        sampled = Submission.objects.filter(track=self.track, sampled_at__isnull=False).exclude(pk=submission.pk)
        systems = [*sampled.order_by("pk").values_list("pk", flat=True), submission.pk]
        pool = read_pool(self.track, systems)
        mine = np.flatnonzero(np.asarray(pool.member[:, [len(systems) - 1]].toarray()).ravel())
        found = all_seen(pool)
        self.guess = self._guess(pool, found)
        code = pool.target[mine]
        own, self.row = np.unique(code, return_inverse=True)
        self.target_id: Ids = pool.target_id[own]
        self.u: Floats = pool.u[own]
        self.seen = found[len(systems) - 1].of(own) if len(systems) - 1 in found else None
        others = private(pool, found, but=len(systems) - 1)
        self.old: Floats = thresholds(self.track, self.target_id, private=others)
        self.p: Floats = pool.p[self.track.distribution][:, [len(systems) - 1]].toarray().ravel()[mine]
        g = self.guess.g[mine]
        self.total = float(self.p @ g)
        self.v: Floats = np.full(mine.size, 0.25)
        if self.guess.labels:
            self.v = expected_error(self.p, g, self.row, correlation=self.guess.rho)
        self.submission = submission

    def _guess(self, pool: Pool, found: Mapping[int, Seen]) -> Guess:
        verdicts = kind_of(self.track).judge(pool.instance, pool.systems)[self.track.criterion]
        return guess(pool, one_verdict(verdicts, pool.member), key=self.track.corpus.hash_key, seen=found)

    def raised(self, goal: float) -> Floats:
        """Thresholds (per target) that plan for a variance.

        What the team had seen is no sample of this submission: judged, it is certain and costs nothing; unjudged, it
        starts anew, so that a near-copy pays for itself.
        """
        pi = water_fill(self.p, self.start[self.row], self.v, target_variance=goal, target=self.row)
        by_target = np.zeros(self.target_id.size)
        by_target[self.row] = pi
        return self.seen.raised(by_target, self.old) if self.seen else by_target

    @property
    def start(self) -> Floats:
        """Probabilities of the submission's own (per target) before it raises any."""
        return self.seen.start(self.old) if self.seen else self.old

    @property
    def planned(self) -> float:
        """The variance that the thresholds so far plan for."""
        return planned_variance(self.p, self.start[self.row], self.v, target=self.row)

    def asked(self, pi: Floats) -> Ids:
        """Targets below their thresholds."""
        return np.asarray(self.target_id[self.u < pi])

    def new(self, targets: Ids) -> set[int]:
        """Those that nobody has answered and that nobody else is paying for already."""
        open_ones = kind_of(self.track).unanswered(targets.tolist(), [self.submission.pk])
        others = Sample.objects.filter(target__in=open_ones).exclude(batch__submission=self.submission)
        ordered = others.filter(batch__submission__status__in=["confirmed", "judging"])
        return open_ones - set(ordered.values_list("target_id", flat=True))


def _goal(submission: Submission, state: _State) -> float:
    """The variance that the next stage plans for: a coarse one first, then the target; then as much less than what is
    planned so far as the realised variance is above the target."""
    target = target_variance(submission, submission.plan["chosen"])
    last = submission.batches.filter(design="poisson").order_by("stage").last()
    if last is None:
        return FIRST * target
    planned, realised = state.planned, last.settings.get("realised_variance")
    if last.settings["planned_variance"] > target or not 0 < planned < np.inf:
        return target
    return BELOW * planned * target / min(realised or np.inf, FIRST * target)


def _affordable(submission: Submission, state: _State, goal: float) -> tuple[Floats, str]:
    """Thresholds for the goal, or the highest that the open reservation still pays for; and which of the two."""
    each = Decimal(submission.plan["options"][submission.plan["chosen"]]["each"])
    can = int(balance(purpose=submission.purpose).open / each) if each else 10**9
    pi = state.raised(goal)
    if len(state.new(state.asked(pi))) <= can:
        return pi, "target"
    low, high = goal, max(goal * 1e4, 1.0)
    for _ in range(24):
        middle = float(np.sqrt(low * high))
        low, high = (low, middle) if len(state.new(state.asked(state.raised(middle)))) <= can else (middle, high)
    return state.raised(high), "budget"


def _store(batch: SampleBatch, state: _State, asked: Ids, pi: Floats) -> int:
    """How many targets the submission's sample gained."""
    earlier = set(Sample.objects.filter(batch__submission=batch.submission).values_list("target_id", flat=True))
    of = dict(zip(state.target_id.tolist(), pi.tolist(), strict=True))
    rows = [
        Sample(batch=batch, target_id=one, instance=None, multiplicity=1, probability=of[one])
        for one in asked.tolist()
        if one not in earlier
    ]
    Sample.objects.bulk_create(rows, batch_size=2000)
    return len(rows)
