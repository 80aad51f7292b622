"""The figure of pooling bias holds what it shows, above and below zero."""

from __future__ import annotations

import math
import re

import pytest

from kbpo.web.desk.pooling import _axis, draw


def heights(svg: str, kind: str) -> list[float]:
    """Where the points (cy) or lines (y1) of a class stand, in per cent from the top."""
    at = "cy" if kind == "now-dot" else "y1"
    return [float(one) for one in re.findall(rf'class="{kind}"[^>]* {at}="([-\d.]+)%"', svg)]


def test_a_negative_bias_stands_below_the_zero_line() -> None:
    svg = draw([0.04, -0.03, 0.0], 0.0, 0.02, "Recall, official")
    above, below, level = heights(svg, "now-dot")
    zero = heights(svg, "mark")[0]
    assert above < level == zero < below < 100
    assert (below - zero) / (zero - above) == pytest.approx(
        0.75, abs=0.01
    )  # one scale, nothing is cut off
    assert ">−5<" in svg and ">5<" in svg


def test_where_all_are_negative_the_axis_ends_at_zero() -> None:
    axis = _axis([-0.12, -0.02, -0.3])
    assert axis.low <= -0.3 and axis.high == 0 and 0.0 in axis.ticks
    svg = draw([-0.12, -0.02], -0.07, math.nan, "F1, official")
    points = heights(svg, "now-dot")
    assert all(0 < one <= 100 for one in points) and points[0] > points[1] and "nan" not in svg


@pytest.mark.parametrize("biases", [[math.nan, 0.02], [0.02, math.nan], [0.02, math.inf]])
def test_a_bias_that_nobody_knows_is_no_point(biases: list[float]) -> None:
    svg = draw(biases, 0.02, math.nan, "F1, official")
    assert len(heights(svg, "now-dot")) == 1 and "nan" not in svg and "inf" not in svg


def test_nothing_known_gives_a_sound_axis() -> None:
    axis = _axis([])
    assert axis.low == 0 < axis.high and all(math.isfinite(one) for one in axis.ticks)


@pytest.mark.parametrize("top", [0.004, 0.05, 0.06, 0.25, 0.9])
def test_without_negative_ones_the_axis_starts_at_zero(top: float) -> None:
    axis = _axis([top, 0.001])
    assert axis.low == 0 and axis.high >= top and 2 <= len(axis.ticks) <= 6
