"""Plans a submission's sample: how many draws its target interval needs, how many are paid for, what the rest costs."""

from __future__ import annotations

import hashlib
from decimal import Decimal
from typing import Any

import numpy as np
from scipy.stats import norm

from estimators.sample_size import required_samples
from kbpo.money.models import Price
from kbpo.money.spend import allowance
from kbpo.sampling.models import Overlap, Sample, TrackKey
from kbpo.sampling.probabilities import Floats, Ids, matrix, support
from kbpo.submissions.models import Submission
from kbpo.tracks.models import Track
from kbpo.tracks.registry import kind_of

HALF_WIDTHS = ("0.050", "0.040", "0.030", "0.020")
DRAW_LIMIT = 20_000
SUPPORT_LIMIT = 20_000
"""A larger X_i is represented, in the search for the sample size, by this many draws from p_i."""


def plan(submission: Submission) -> dict[str, Any]:
    """The plan that is shown before anybody confirms: one option per half-width, and the chosen one."""
    track = submission.track
    chosen = str(submission.target_half_width or track.target_half_width)
    widths = sorted({*HALF_WIDTHS, chosen}, reverse=True)
    supports = {kind: support(submission, kind) for kind in track.distributions}
    existing = existing_draws(submission)
    options = {width: _option(submission, Decimal(width), supports, existing) for width in widths}
    left = allowance(track, submission.team, submission.purpose)
    return {
        "distribution": track.distribution,
        "criterion": track.criterion,
        "level": str(track.confidence_level),
        "chosen": chosen,
        "options": options,
        "allowance": None if left.left is None else str(left.left),
        "allowance_scope": left.scope,
    }


def seed_of(submission: Submission, kind: str, stage: int = 1) -> int:
    """The seed of a batch: derived from the track's secret, so that nobody can foresee or choose the sample."""
    key, _ = TrackKey.objects.get_or_create(track=submission.track)
    digest = hashlib.sha256(f"{key.secret}|{submission.pk}|{kind}|{stage}".encode()).digest()
    return int.from_bytes(digest[:7], "big")


def draw(p: Floats, n: int, seed: int) -> tuple[Ids, Ids]:
    """Indices drawn with replacement from p, and how often each: n draws in all. The same seed gives the same draw."""
    generator = np.random.Generator(np.random.PCG64(seed))
    cumulative = np.cumsum(p)
    hits = np.searchsorted(cumulative, generator.random(n) * cumulative[-1], side="right")
    index, multiplicity = np.unique(np.minimum(hits, p.size - 1), return_counts=True)
    return index.astype(np.int64), multiplicity.astype(np.int64)


def sizes(track: Track, guaranteed: int) -> dict[str, int]:
    """Draws of every distribution: the guaranteed one's, and a share of it for each of the others."""
    other = int(np.ceil(guaranteed * float(track.other_share)))
    return {kind: guaranteed if kind == track.distribution else other for kind in track.distributions}


def existing_draws(submission: Submission) -> dict[str, Any]:
    """What is known already: labelled draws of the guaranteed distribution, P and overlap with this one last."""
    track, kind = submission.track, submission.track.distribution
    rows = list(
        Sample.objects.filter(batch__distribution__kind=kind, batch__design="iid", batch__submission__track=track)
        .exclude(batch__submission=submission)
        .order_by("pk")
        .values_list("batch__submission_id", "instance_id", "multiplicity")
    )
    systems = [*sorted({owner for owner, _, _ in rows}), submission.pk]
    instance = np.repeat([row[1] for row in rows], [row[2] for row in rows]).astype(np.int64)
    owner = np.repeat([systems.index(row[0]) for row in rows], [row[2] for row in rows]).astype(np.int64)
    label = kind_of(track).judge(instance, [submission.pk])[track.criterion][:, 0] if rows else np.zeros(0)
    return {
        "systems": systems,
        "P": matrix(track, kind, instance, systems),
        "owner": owner,
        "label": label,
        "overlap": overlaps(kind, systems),
    }


def overlaps(kind: str, systems: list[int]) -> Floats:
    """Σ_x p_i p_j of every pair, shape (m, m)."""
    column = {system: j for j, system in enumerate(systems)}
    table = np.zeros((len(systems), len(systems)))
    rows = Overlap.objects.filter(kind=kind, first__in=systems, second__in=systems)
    for first, second, value in rows.values_list("first_id", "second_id", "value"):
        table[column[first], column[second]] = table[column[second], column[first]] = value
    return table


def _option(
    submission: Submission, half_width: Decimal, supports: dict[str, tuple[Ids, Ids, Floats]], existing: dict[str, Any]
) -> dict[str, Any]:
    track = submission.track
    guaranteed = _required(submission, half_width, supports[track.distribution], existing)
    draws = sizes(track, guaranteed)
    targets: set[int] = set()
    for kind, n in draws.items():
        _, target, p = supports[kind]
        index, _ = draw(p, n, seed_of(submission, kind))
        targets.update(target[index].tolist())
    new = len(kind_of(track).unanswered(sorted(targets)))
    price = Price.objects.filter(track=track, interface="relation").first()
    each = (price.per_answer if price else Decimal("0.05")) * track.workers_per_question
    seconds = (price.seconds if price else 20) * track.workers_per_question * new
    return {
        "half_width": str(half_width),
        "draws": draws,
        "targets": len(targets),
        "judged": len(targets) - new,
        "new": new,
        "each": str(each),
        "at_most": str(each * new),
        "work_seconds": seconds,
    }


def _required(
    submission: Submission, half_width: Decimal, own: tuple[Ids, Ids, Floats], existing: dict[str, Any]
) -> int:
    """Draws that the joint estimator needs for the half-width, given what others' labels contribute already."""
    instance, _, p = own
    track = submission.track
    z = float(norm.ppf(0.5 + float(track.confidence_level) / 2))
    if p.size > SUPPORT_LIMIT:
        index, multiplicity = draw(p, SUPPORT_LIMIT, seed_of(submission, "support"))
        instance, p_m = instance[index], multiplicity / SUPPORT_LIMIT
    else:
        p_m = p
    table = matrix(track, track.distribution, instance, existing["systems"])
    if p.size > SUPPORT_LIMIT:
        table *= (p_m / table[:, -1])[:, None]
    return int(
        required_samples(
            table,
            existing["P"],
            existing["owner"],
            existing["label"],
            existing["overlap"],
            target_variance=(float(half_width) / z) ** 2,
            bounds=(0, DRAW_LIMIT),
            own_term="largest_variance",  # the published bound would have a system alone draw four times too much
        )
    )
