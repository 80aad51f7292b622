"""Design iid: draws with replacement from p_i, as published (Chaganty 2018, section 3.4); one batch
for each distribution.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from decimal import Decimal
from typing import Any

import numpy as np

from estimators.poisson import planned_variance
from estimators.sample_size import required_samples
from kbpo.pool.pool import pairwise_overlaps
from kbpo.pool.probabilities import instance_probabilities, submission_support
from kbpo.sampling.designs.base import (
    CLOSE,
    Design,
    Realised,
    batch_seed,
    last_batch,
    make_option,
    option_price,
    target_variance_of_submission,
)
from kbpo.sampling.designs.state import State
from kbpo.sampling.draft import Draft
from kbpo.sampling.models import Sample, SampleBatch, SamplingDistribution
from kbpo.submissions.models import Submission
from kbpo.tracks.models import Track
from kbpo.tracks.registry import kind_of
from scoring.arrays import Floats, Ids
from scoring.inclusion import probability_at_least_once, union_probability

DRAW_LIMIT = 20_000
LEAST = 30
"""Minimal number of own draws of every system, even if others' labels would suffice: without any,
predictions that no other system makes would count as wrong."""
SUPPORT_LIMIT = 20_000
"""Size of X_i above which it is represented, in the search for the sample size, by this many draws
from p_i.
"""


class Iid(Design):
    """Independent draws with replacement (design iid). The seed of every batch is fixed in advance
    and secret. The plan of a draft shows the expected number of targets, and its price covers
    distinct targets only.
    """

    def draft_options(
        self, submission: Submission, half_widths: Sequence[str]
    ) -> dict[str, dict[str, Any]]:
        supports = _supports_by_distribution(submission)
        draft = Draft.from_submission(submission, submission.track.distribution)
        alone = existing_draws(submission, [])
        return {
            width: _draft_option(submission, Decimal(width), supports, alone, draft)
            for width in half_widths
        }

    def further_options(
        self, submission: Submission, half_widths: Sequence[str]
    ) -> dict[str, dict[str, Any]]:
        supports, state = _supports_by_distribution(submission), State(submission)
        return {
            width: _option_of_more_draws(submission, Decimal(width), supports, state)
            for width in half_widths
        }

    def sample_next_batch(self, submission: Submission) -> int:
        draws = submission.plan["options"][submission.plan["chosen"]]["draws"]
        if not submission.orders:
            own = submission_support(submission, submission.track.distribution)
            width = Decimal(submission.plan["chosen"])
            batches = SampleBatch.objects.filter(submission__track=submission.track, design="iid")
            owners = batches.exclude(submission=submission).values_list("submission_id", flat=True)
            existing = existing_draws(submission, sorted(set(owners)))
            needed = draw_sizes(submission.track, _required_draws(submission, width, own, existing))
            draws = _limit_to_plan(draws, needed)
        return sum(
            store_draw(make_batch(submission, kind, size)) for kind, size in draws.items() if size
        )

    def variance_to_compare(self, realised: Realised) -> float:
        """Return the variance that the interval is computed from."""
        return realised.interval_variance

    def reason_to_stop(self, submission: Submission, realised: Realised | None) -> str:
        if not submission.batches.filter(design="iid", stage=1 + submission.orders).exists():
            return ""  # more was ordered meanwhile
        target = target_variance_of_submission(submission, submission.plan["chosen"])
        reached = realised is None or self.variance_to_compare(realised) <= CLOSE * target
        return "target" if reached else "exhausted"


def make_batch(submission: Submission, kind: str, size: int) -> SampleBatch:
    """Return the batch of a submission under a distribution, for its current order; it stores the
    seed and everything else that the draw depends on.
    """
    stage = 1 + submission.orders
    batch, _ = SampleBatch.objects.get_or_create(
        submission=submission,
        distribution=SamplingDistribution.objects.get(submission=submission, kind=kind),
        design="iid",
        stage=stage,
        defaults={
            "seed": batch_seed(submission, kind, stage),
            "size": size,
            "settings": {
                "half_width": submission.plan["chosen"],
                "target_variance": target_variance_of_submission(
                    submission, submission.plan["chosen"]
                ),
                "order": submission.orders,
            },
        },
    )
    return batch


def store_draw(batch: SampleBatch) -> int:
    """Store the draw of a batch and return its number of distinct instances. A repeat stores
    nothing new.
    """
    samples = recomputed_draws(batch)
    Sample.objects.bulk_create(samples, batch_size=2000, ignore_conflicts=True)
    return len(samples)


def recomputed_draws(batch: SampleBatch) -> list[Sample]:
    """Return the draws of a batch, recomputed from its seed and size; they are not stored."""
    instance, target, p = submission_support(batch.submission, batch.distribution.kind)
    index, multiplicity = draw_with_replacement(p, batch.size, batch.seed)
    return [
        Sample(
            batch=batch,
            target_id=int(target[i]),
            instance_id=int(instance[i]),
            multiplicity=int(times),
            probability=float(p[i]),
        )
        for i, times in zip(index, multiplicity, strict=True)
    ]


def draw_with_replacement(p: Floats, n: int, seed: int) -> tuple[Ids, Ids]:
    """Draw n indices with replacement from p; return the distinct indices and how often each was
    drawn. The same seed gives the same draw.
    """
    generator = np.random.Generator(np.random.PCG64(seed))
    cumulative = np.cumsum(p)
    hits = np.searchsorted(cumulative, generator.random(n) * cumulative[-1], side="right")
    index, multiplicity = np.unique(np.minimum(hits, p.size - 1), return_counts=True)
    return index.astype(np.int64), multiplicity.astype(np.int64)


def draw_sizes(track: Track, guaranteed: int) -> dict[str, int]:
    """Return the number of draws of each distribution: the whole number for the guaranteed one, and
    a share of it for each of the others.
    """
    other = int(np.ceil(guaranteed * float(track.other_share)))
    return {
        kind: guaranteed if kind == track.distribution else other for kind in track.distributions
    }


def _supports_by_distribution(submission: Submission) -> dict[str, tuple[Ids, Ids, Floats]]:
    return {kind: submission_support(submission, kind) for kind in submission.track.distributions}


def _limit_to_plan(planned_draws: dict[str, int], wanted_draws: dict[str, int]) -> dict[str, int]:
    """Return the wanted number of draws, limited to the plan that was confirmed."""
    return {kind: min(size, wanted_draws.get(kind, size)) for kind, size in planned_draws.items()}


def existing_draws(submission: Submission, owners: Collection[int]) -> dict[str, Any]:
    """Return the existing labelled draws from the guaranteed distributions of other runs, with the
    probabilities P and the overlaps of systems; this submission is last.
    """
    track, kind = submission.track, submission.track.distribution
    labelled_draws = list(
        Sample.objects.filter(
            batch__distribution__kind=kind, batch__design="iid", batch__submission__in=owners
        )
        .order_by("pk")
        .values_list("batch__submission_id", "instance_id", "multiplicity")
    )
    systems = [*sorted({owner for owner, _, _ in labelled_draws}), submission.pk]
    instance = np.repeat(
        [row[1] for row in labelled_draws], [row[2] for row in labelled_draws]
    ).astype(np.int64)
    owner = np.repeat(
        [systems.index(row[0]) for row in labelled_draws], [row[2] for row in labelled_draws]
    ).astype(np.int64)
    label = (
        kind_of(track).judge(instance, [submission.pk])[track.criterion][:, 0]
        if labelled_draws
        else np.zeros(0)
    )
    return {
        "systems": systems,
        "P": instance_probabilities(track, kind, instance, systems),
        "owner": owner,
        "label": label,
        "overlap": pairwise_overlaps(kind, systems),
    }


def _draft_option(
    submission: Submission,
    half_width: Decimal,
    supports: dict[str, tuple[Ids, Ids, Floats]],
    existing: dict[str, Any],
    draft: Draft,
) -> dict[str, Any]:
    """Return an option of a draft."""
    track = submission.track
    guaranteed = _required_draws(submission, half_width, supports[track.distribution], existing)
    draws = draw_sizes(track, guaranteed)
    held = [
        probability_at_least_once(
            np.minimum(np.bincount(draft.row, weights=supports[kind][2]), 1.0), n
        )
        for kind, n in draws.items()
    ]
    chance = union_probability(*held)
    new = draft.questions(chance)
    most = min(sum(draws.values()), draft.n_targets)
    price = make_option(submission, str(half_width), min(new, most), min(new, most), most)
    return price | {"draws": draws}


def _option_of_more_draws(
    submission: Submission,
    half_width: Decimal,
    supports: dict[str, tuple[Ids, Ids, Floats]],
    state: State,
) -> dict[str, Any]:
    """Return an option of a scored submission: draws in addition to those it has."""
    draws = draw_sizes(submission.track, _required_further_draws(submission, half_width, state))
    old = set(
        Sample.objects.filter(batch__submission=submission).values_list("target_id", flat=True)
    )
    targets: set[int] = set()
    for kind, n in draws.items():
        _, target, p = supports[kind]
        index, _ = draw_with_replacement(p, n, batch_seed(submission, kind, 2 + submission.orders))
        targets.update(target[index].tolist())
    new = len(
        kind_of(submission.track).find_unanswered({submission.pk: targets - old})[submission.pk]
    )
    return {"half_width": str(half_width), "draws": draws} | option_price(
        submission, len(targets | old), new
    )


def _required_further_draws(submission: Submission, half_width: Decimal, state: State) -> int:
    """Return the fewest further draws that reach the half-width: the variance that the board's
    estimator expects must fall by the same ratio as the realised one.
    """
    target, realised = (
        target_variance_of_submission(submission, half_width),
        Realised.from_batch(last_batch(submission)),
    )
    now, draw_chance = state.chance, np.bincount(state.row, weights=state.p)

    def variance_after_draws(n: int) -> float:
        chance = union_probability(now, probability_at_least_once(np.minimum(draw_chance, 1.0), n))
        return planned_variance(state.p, chance[state.row], state.v, target=state.row)

    before, goal = variance_after_draws(0), target
    if realised and 0 < realised.interval_variance < np.inf and 0 < before < np.inf:
        goal = before * target / realised.interval_variance
    low, high = 0, DRAW_LIMIT
    while low < high:
        middle = (low + high) // 2
        low, high = (low, middle) if variance_after_draws(middle) <= goal else (middle + 1, high)
    return low


def _required_draws(
    submission: Submission,
    half_width: Decimal,
    own_support: tuple[Ids, Ids, Floats],
    existing: dict[str, Any],
) -> int:
    """Return the number of draws that the joint estimator needs for the half-width, given the draws
    of other runs.
    """
    instance, _, p = own_support
    track = submission.track
    if p.size > SUPPORT_LIMIT:
        index, multiplicity = draw_with_replacement(
            p, SUPPORT_LIMIT, batch_seed(submission, "support")
        )
        instance, p_m = instance[index], multiplicity / SUPPORT_LIMIT
    else:
        p_m = p
    table = instance_probabilities(track, track.distribution, instance, existing["systems"])
    if p.size > SUPPORT_LIMIT:
        table *= (p_m / table[:, -1])[:, None]
    return int(
        required_samples(
            table,
            existing["P"],
            existing["owner"],
            existing["label"],
            existing["overlap"],
            target_variance=target_variance_of_submission(submission, half_width),
            bounds=(LEAST, DRAW_LIMIT),
            # with the published bound the only system would draw four times too much
            own_term="largest_variance",
        )
    )
