"""Draws what the methods page says of intervals, each computed by the function that makes it."""

from __future__ import annotations

from functools import cache
from statistics import NormalDist

import numpy as np
from numpy.typing import NDArray

from estimators.intervals import interim_factor, wilson
from kbpo.web.components import sketch
from kbpo.web.components.figures import NBSP
from kbpo.web.components.sketch import Figure
from scoring.arrays import Floats


@cache
def draw_watched() -> Figure:
    """One stream of judgments, and after every fifth the interval for one look and the one that may
    be watched.
    """
    truth, n, rng = 0.62, 200, np.random.default_rng(16)
    streams = (rng.random((100, n)) < truth).astype(np.float64)
    count = np.arange(1, n + 1)
    once = [np.asarray(wilson(np.cumsum(x) / count, count, 0.8)) for x in streams]
    always = [_looked_at(x) for x in streams]
    missed = [[_misses(low, high, truth) for low, high in ends] for ends in (once, always)]
    ever = [sum(bool(misses[9:].any()) for misses in by_stream) for by_stream in missed]
    shown = next(
        index
        for index in range(100)
        if 10 < missed[0][index][9:].sum() < 60 and not missed[1][index].any()
    )
    looks = range(4, n, 5)
    panels = [
        _panel(once[shown], missed[0][shown], looks, truth, 0, "for one look"),
        _panel(always[shown], missed[1][shown], looks, truth, 130, "to be watched"),
    ]
    sentence = (
        "Of a hundred such streams the interval for one look misses the truth at some time in"
        f" {ever[0]}"
    )
    return Figure(
        sketch.join(sketch.svg("".join(panels), 250, sentence)),
        f"{n} judgments, from left to right, of a system whose true precision is"
        f" {sketch.percent(truth)} (the line). Both are 80{NBSP}% intervals; those that miss are"
        f" dashed. {sentence}, the one to be watched in {ever[1]}. It is wider: that is its price.",
    )


def _looked_at(x: Floats) -> Floats:
    """(2, n) the interval to be watched of right and wrong answers x after each: from a fifth of
    them on, with a variance of at least that of all.
    """
    n = x.size
    begins = n // 5
    quantile = interim_factor(n / begins) * NormalDist().inv_cdf(0.9)
    ends = np.tile([[0.0], [1.0]], n)
    for count in range(begins, n + 1):
        low, high = wilson(float(x[:count].mean()), count, 2 * NormalDist().cdf(quantile) - 1)
        ends[:, count - 1] = low, high
    return ends


def _misses(low: Floats, high: Floats, truth: float) -> NDArray[np.bool_]:
    missed: NDArray[np.bool_] = (low > truth) | (high < truth)
    return missed


def _panel(
    ends: Floats, missed: NDArray[np.bool_], looks: range, truth: float, down: float, words: str
) -> str:
    """Intervals as upright lines, in the order of the looks."""

    def height(share: float) -> float:
        return round(down + 116 - 92 * float(share), 1)

    lines = [sketch.text(0, down + 14, words)]
    lines.append(
        f'<line class="truth" x1="0%" x2="100%" y1="{height(truth)}" y2="{height(truth)}"/>'
    )
    for place, look in enumerate(looks):
        x = f"{1.5 + 97 * place / (len(looks) - 1):.4g}%"
        kind = "miss" if missed[look] else "hit"
        lines.append(
            f'<line class="{kind}" x1="{x}" x2="{x}" y1="{height(ends[0, look])}"'
            f' y2="{height(ends[1, look])}"/>'
        )
    return "".join(lines)
