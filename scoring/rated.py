"""Adds annotator noise to the variance of estimates from single ratings.

A majority counts as true; a rating is one person's opinion, and another person would have rated
differently. So sampling error remains even if every output has been rated (`estimators.ratings`).
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from estimators.design import Design
from estimators.estimate import Estimate
from estimators.ratings import (
    add_judge_effect,
    estimate_with_rating_noise,
    judge_effect,
    rating_design,
)
from scoring.data import Data
from scoring.default import Centred

FEWEST_JUDGES = 5
"""Number of people below which numbers are about these judges only, since so few do not represent
others
"""


def add_rating_noise_variance(
    centred: Centred, kind: str, criterion: str, estimate: Estimate
) -> tuple[Estimate, Design]:
    """Return the weighted mean of every system under a distribution, with annotator noise in its
    variance, and the design of its terms. Both are unchanged under a criterion whose judgments
    count as true.
    """
    under = centred.for_criterion(criterion)
    noise = centred.data.noise.get(criterion)
    if noise is None:
        return estimate, under.design
    p = centred.data.pool.p[kind][under.row].toarray()
    count = noise.ratings_per_mean(under.judged_positions)
    member = centred.data.pool.member[centred.data.judged].toarray() > 0
    variance = noise.rating_variances(member, centred.data.f[criterion])[under.judged_positions]
    target, design = under.counted_targets[1], under.design
    sign = np.broadcast_to(noise.rating_sign(under.judged_positions), p.shape)

    widened = estimate_with_rating_noise(
        estimate,
        p,
        under.row_pi,
        count,
        variance,
        sign=sign,
        freedom=noise.degrees_of_freedom,
        target=target,
        design=design,
    )
    return widened, rating_design(under.row_pi, target=target, design=design)


def add_judge_effects(
    data: Data, estimates: Mapping[tuple[str, str, str], tuple[Estimate, Design]]
) -> dict[tuple[str, str, str], Estimate]:
    """Return the weighted means, by quantity, criterion and distribution, with annotators as a
    second cluster in their variance.

    People who rate many outputs have different mean levels, so the ratings of one person are
    correlated (`estimators.ratings.add_judge_effect`). For unknown people nothing is added.
    Influences are unchanged: in a difference of systems with the same judges their levels cancel.
    """
    arranged = Centred(data)
    crossed_of: dict[tuple[str, str, str], Estimate] = {}
    for (quantity, criterion, kind), (estimate, _) in estimates.items():
        noise = data.noise.get(criterion)
        if noise is None or quantity != data.mean or not noise.single.at.size:
            continue
        under = arranged.for_criterion(criterion)
        ratings = noise.single.select_instances(under.judged_positions)
        row, judge = ratings.at, ratings.judge
        if not row.size:
            continue
        residual = ratings.value - data.g[criterion][under.row[row]]
        p = data.pool.p[kind][under.row].toarray()
        effect = judge_effect(residual, judge, row)
        if effect.n_judges < FEWEST_JUDGES:
            continue  # the number holds for these judges only
        crossed_of[quantity, criterion, kind] = add_judge_effect(
            estimate, p, under.row_pi, judge, row, effect, count=noise.count[under.judged_positions]
        ).estimate
    return crossed_of
