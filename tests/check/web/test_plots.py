"""Plots put things where their figures say, name what must be named, and say what they show."""

import re

import pytest

from kbpo.web.components.drawing import Interval
from kbpo.web.components.plots import (
    Moment,
    Point,
    draw_arrival,
    draw_precision_recall,
)


def point(name: str, precision: float, recall: float, *, first: bool = False) -> Point:
    return Point(
        name,
        Interval(precision, precision - 0.02, precision + 0.02),
        Interval(recall, recall - 0.01, recall + 0.01),
        first=first,
    )


BOARD = [
    point("Patterns", 0.9, 0.1),
    point("Neural", 0.2, 0.4),
    point("Twin", 0.5, 0.25, first=True),
    point("Middle", 0.6, 0.2),
]


def test_it_says_what_it_shows_and_where_each_cross_stands():
    svg = draw_precision_recall(BOARD, "Twin leads")
    assert 'role="img" aria-label="Twin leads"' in svg
    # Recall reaches 0.41 and precision 0.92, so the axes end at 50 and 100.
    assert "<title>Twin: precision 50.0, recall 25.0</title>" in svg
    cross = svg.split("<title>Twin")[1].split("</g>")[0]
    assert 'x1="48%" x2="52%" y1="50%" y2="50%"' in cross
    assert 'x1="50%" x2="50%" y1="48%" y2="52%"' in cross


def test_curves_join_points_of_equal_f1():
    svg = draw_precision_recall(BOARD, "alt")
    names = [int(name) / 100 for name in re.findall(r">F1 (\d+)<", svg)]
    curves = re.findall(r'class="equal" d="M([^"]+)"', svg)
    assert len(names) == len(curves) > 2
    for f1, curve in zip(names, curves, strict=True):
        for pair in curve.split("L"):
            x, y = map(float, pair.split())
            recall, precision = 0.5 * x / 100, 1 - y / 100
            assert 2 * precision * recall / (precision + recall) == pytest.approx(f1, abs=0.001)


def test_a_system_without_an_estimate_is_left_out():
    nothing = Point("Nothing", Interval(None), Interval(None))
    assert "Nothing" not in draw_precision_recall([*BOARD, nothing], "alt")
    assert "<svg" in draw_precision_recall([nothing], "alt")


MOMENTS = [Moment(n, 0.5, 0.5 - 2 / n, 0.5 + 2 / n) for n in range(10, 101, 10)]


def test_the_band_is_hatched_and_inside_its_box():
    svg = draw_arrival(MOMENTS, "alt", plan=(150, 0.015))
    shape = re.search(r'objectBoundingBox"><path d="M([^"]+)Z"', svg)
    assert shape and 'fill="url(#hatch-a)"' in svg
    assert all(0 <= float(number) <= 1 for number in re.findall(r"[\d.]+", shape[1]))
    assert "±1.5 at 150" in svg and "last look ±2.0" in svg


@pytest.mark.parametrize("n", [1, 7, 8, 99, 100_000])
def test_any_number_of_judgments_can_be_drawn(n):
    assert "<svg" in draw_arrival([Moment(n, 0.5, 0.4, 0.6)], "alt")


def test_a_plot_of_nothing_is_an_error():
    with pytest.raises(ValueError, match="at least one"):
        draw_arrival([], "alt")
