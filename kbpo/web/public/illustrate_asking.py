"""Draws how the methods page says that questions are chosen: thresholds, the order of asking, what
a team has seen.
"""

from __future__ import annotations

from functools import cache

import numpy as np
from numpy.typing import NDArray

from estimators.estimate import Estimate
from estimators.horvitz_thompson import hajek
from estimators.poisson import asking_order, planned_variance, select, water_fill
from kbpo.web.components import sketch
from kbpo.web.components.figures import number_text
from kbpo.web.components.sketch import Figure
from scoring.arrays import Floats


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


@cache
def draw_order() -> Figure:
    """The score after every answer, in the order of u/π and with the most confident first."""
    rng = np.random.default_rng(5)
    n = 300
    right = (rng.random(n) < 0.6).astype(np.float64)
    confidence = 0.5 * right + rng.random(n)
    u, pi = rng.random(n), np.where(rng.random(n) < 0.5, 0.3, 0.6)
    ours = asking_order(u, pi)
    confident = ours[np.argsort(-confidence[ours], kind="stable")]
    p = np.full(n, 1 / n)
    ways = {"hit": _scores(p, pi, right, ours), "miss": _scores(p, pi, right, confident)}
    truth, quarter = float(right.mean()), ours.size // 4
    level = float(_height(truth))
    drawn = [f'<line class="truth" x1="0%" x2="100%" y1="{level:.1f}" y2="{level:.1f}"/>']
    drawn += [_path(values, kind) for kind, values in ways.items()]
    sentence = (
        "After a quarter of the answers the score is"
        f" {sketch.percent(float(ways['hit'][quarter - 1]))} in our order"
    )
    return Figure(
        sketch.join(
            sketch.svg("".join(drawn), 122, sentence),
            sketch.keys(
                {
                    "hit": "in the order of u/π",
                    "miss": "the most confident first",
                    "truth": "the truth",
                }
            ),
        ),
        f"The same {ours.size} answers come in, from left to right, in two orders. {sentence} and"
        f" {sketch.percent(float(ways['miss'][quarter - 1]))} with the most confident first; in"
        f" truth it is {sketch.percent(truth)}. At the end both are the same.",
    )


def _scores(p: Floats, pi: Floats, right: Floats, order: NDArray[np.int64]) -> Floats:
    """The estimate after each answer."""
    ends = range(1, order.size + 1)
    return np.array(
        [float(hajek(p[order[:k]], pi[order[:k]], right[order[:k]]).value) for k in ends]
    )


def _height(share: float | Floats) -> Floats:
    """Where a share stands, on a scale from 40 % to 100 %."""
    return np.asarray(118 - 108 * (share - 0.4) / 0.6)


def _path(values: Floats, kind: str) -> str:
    """A broken line from left to right, in shares of the width."""
    x, y = np.linspace(0, 100, values.size).round(2), _height(values).round(1)
    return "".join(
        f'<line class="{kind}" x1="{x[index]:g}%" x2="{x[index + 1]:g}%" y1="{y[index]:g}"'
        f' y2="{y[index + 1]:g}"/>'
        for index in range(values.size - 1)
    )
