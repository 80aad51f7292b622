"""How often experts contradict the crowd: from judgments drawn at random alone, each weighted by its chance.

A target may have had a chance in several draws: in each that was made after people had settled it, as long as it was
not drawn before. Of what a draw found, the part that is answered is random too, since entries are answered in random
order. So the chance that a target is among the answered ones is, over its draws j = 1, 2, … in turn,

    Σ_j  p_j f_j Π_{i<j} (1 − p_i),

with p_j the recorded probability of the draw and f_j the share of it that is answered; its weight is one over that.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from django.db.models import Min

from annotation.models import Adjudication, Question
from estimators.intervals import wilson
from kbpo.tracks.models import Track


@dataclass(frozen=True)
class Errors:
    """The estimated share of a track's judgments that experts contradict, with an 80 % interval.

    `against` of `of` random judgments were contradicted; unless all had the same chance the share is not their ratio.
    """

    against: int
    of: int
    share: float | None
    low80: float | None
    high80: float | None


@dataclass(frozen=True)
class Draw:
    """Judgments that were drawn together: when, with which probability, and which share of them is answered."""

    seed: int | None
    moment: datetime
    probability: float
    answered: float


def errors(track: Track) -> Errors:
    """How often experts contradict the crowd on a track."""
    rows = list(
        Adjudication.objects.filter(track=track, kind="random").values_list(
            "target", "seed", "raised_at", "probability", "status", "agrees"
        )
    )
    done = [(target, seed, agrees) for target, seed, _, _, status, agrees in rows if status == "answered"]
    if not done:
        return Errors(0, 0, None, None, None)
    draws = _draws(
        [(seed, moment, probability, status == "answered") for _, seed, moment, probability, status, _ in rows]
    )
    since = _settled_since(track, [target for target, _, _ in done])
    weights = [1.0 / _chance(draws, seed, since.get(target)) for target, seed, _ in done]
    against = [not agrees for _, _, agrees in done]
    total = sum(weights)
    share = sum(weight for weight, wrong in zip(weights, against, strict=True) if wrong) / total
    low, high = wilson(share, total**2 / sum(weight**2 for weight in weights), 0.80)
    return Errors(sum(against), len(done), share, float(low), float(high))


def _draws(rows: Sequence[tuple[int | None, datetime, float | None, bool]]) -> list[Draw]:
    """The draws, the first one first."""
    found: dict[int | None, list[tuple[datetime, float, bool]]] = {}
    for seed, moment, probability, answered in rows:
        found.setdefault(seed, []).append((moment, probability or 1.0, answered))
    draws = [
        Draw(seed, min(moment for moment, _, _ in own), own[0][1], sum(answered for _, _, answered in own) / len(own))
        for seed, own in found.items()
    ]
    return sorted(draws, key=lambda one: one.moment)


def _settled_since(track: Track, targets: Sequence[int]) -> dict[int, datetime]:
    """target -> since when people's judgment of it could be drawn."""
    rows = Question.objects.filter(track=track, target__in=targets, interface="relation", status="settled", gold=None)
    return dict(rows.values_list("target").annotate(Min("status_since")).order_by())


def _chance(draws: Sequence[Draw], drawn_in: int | None, since: datetime | None) -> float:
    """The chance that a target which was drawn in one of the draws is among those that are answered now."""
    chance, left = 0.0, 1.0
    for draw in draws:
        if draw.seed == drawn_in or (since is not None and since <= draw.moment):
            chance += left * draw.probability * draw.answered
            left *= 1.0 - draw.probability
    return chance
