"""Draws how the methods page says that questions are chosen."""

from __future__ import annotations

from functools import cache

import numpy as np

from estimators.estimate import Estimate
from estimators.poisson import planned_variance, select, water_fill
from kbpo.web.components import sketch
from kbpo.web.components.figures import number_text
from kbpo.web.components.sketch import Figure


@cache
def draw_thresholds() -> Figure:
    """Chances of being asked, those that others had raised and those raised now, and the numbers
    that decide.
    """
    rng = np.random.default_rng(8)
    weight = np.sort(rng.gamma(3.0, size=40))[::-1]
    p, guess, u = weight / weight.sum(), rng.beta(1.5, 1.5, 40), rng.random(40)
    doubt = np.maximum(guess * (1 - guess), 0.06)
    before = np.where(
        rng.random(40) < 0.45, rng.uniform(0.2, 0.7, 40), 0.0
    )  # predicted by systems that came earlier
    now = water_fill(p, before, doubt, target_variance=0.0035)
    asked, had = select(u, now), select(u, before)
    drawn = []
    for index in range(40):
        x, old, top = 2 + 2.46 * index, 110 - 100 * before[index], 110 - 100 * now[index]
        drawn.append(
            f'<line class="raised" x1="{x:g}%" x2="{x:g}%" y1="{old:.1f}" y2="{top:.1f}"/>'
        )
        drawn.append(f'<line class="guess" x1="{x:g}%" x2="{x:g}%" y1="110" y2="{old:.1f}"/>')
        drawn.append(sketch.dot(x, round(110 - 100 * float(u[index]), 1), "a", bool(asked[index])))
    sentence = (
        f"{int(asked.sum())} of 40 questions are asked, {int(had.sum())} of which had"
        " been asked before"
    )
    half = number_text(_half_width(planned_variance(p, now, doubt)), decimals=0)
    return Figure(
        sketch.join(
            sketch.svg("".join(drawn), 116, sentence),
            sketch.keys(
                {
                    "guess": "the chance that it had",
                    "raised": "raised now",
                    "u": "its number, asked",
                }
            ),
        ),
        "Forty questions about a new system. A column is the chance to be asked; a dot is the"
        f" question’s secret number, filled if it lies within the column. {sentence}: only"
        f" {int((asked & ~had).sum())} are new. With that the plan is ±{half} points.",
    )


def _half_width(variance: float) -> float:
    """Of an 80 % interval."""
    low, high = Estimate(0.0, variance, 0, np.zeros(0)).confidence_interval(0.8)
    return (sketch.first(high) - sketch.first(low)) / 2
