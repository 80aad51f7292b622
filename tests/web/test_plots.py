"""Plots put things where their figures say, name what must be named, and say what they show."""

import re
from itertools import combinations
from pathlib import Path
from typing import Any

import pytest

from kbpo.web.components.drawing import Axis, Interval
from kbpo.web.components.plots import (
    CURVES_HEIGHT,
    LETTER,
    LOW,
    PLOT_HEIGHT,
    WIDTHS,
    Curve,
    Dot,
    Moment,
    Point,
    draw_arrival,
    draw_curves,
    draw_orders,
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


def test_only_the_first_group_and_the_extremes_are_named():
    svg = draw_precision_recall(BOARD, "alt")
    named = {width: sorted(label[0] for label in labels(svg, width)) for width in WIDTHS}
    assert named == {"wide": ["Neural", "Patterns", "Twin"], "narrow": ["Twin"]}


def labels(
    svg: str, which: str, height: int = PLOT_HEIGHT
) -> list[tuple[str, tuple[float, float, float, float]]]:
    """Each name on a plot of that width, and what it covers there."""
    said = (
        rf'<text class="{which}" x="([\d.]+)%" y="([\d.]+)%" dx="(-?\d+)" dy="(-?\d+)"'
        r' text-anchor="(\w+)">([^<]+)</text>'
    )
    found = []
    for x, y, dx, dy, anchor, name in re.findall(said, svg):
        at = float(x) / 100 * WIDTHS[which] + int(dx)
        line = float(y) / 100 * tall(which, height) + int(dy)
        length = LETTER * len(name)
        left = at - {"start": 0, "middle": length / 2, "end": length}[anchor]
        found.append((name, (left, line - 12, left + length, line + 3)))
    return found


def tall(which: str, height: int) -> int:
    """How high a plot of that height is there."""
    return LOW[height] if which == "narrow" else height


def arms(svg: str, which: str) -> list[tuple[float, float, float, float]]:
    """What the lines of all crosses cover on a plot of that width."""
    width, height = WIDTHS[which], tall(which, PLOT_HEIGHT)
    crosses = re.findall(r'<g class="cross.*?</g>', svg)
    said = r'<line x1="([\d.]+)%" x2="([\d.]+)%" y1="([\d.]+)%" y2="([\d.]+)%"/>'
    ends = [map(float, one) for cross in crosses for one in re.findall(said, cross)]
    return [
        (x1 / 100 * width, y1 / 100 * height, x2 / 100 * width, y2 / 100 * height)
        for x1, x2, y1, y2 in ends
    ]


def meet(one: tuple[float, ...], other: tuple[float, ...]) -> bool:
    return one[0] < other[2] and other[0] < one[2] and one[1] < other[3] and other[1] < one[3]


@pytest.mark.parametrize("which", WIDTHS)
def test_a_name_covers_neither_a_cross_nor_another_name_on_wide_pages_and_on_phones(
    which: str,
) -> None:
    """Where crosses stand close together, the leader's name finds room beside them."""
    close = [
        point(f"Harbor Walk run {number}", 0.62 + 0.03 * number, 0.2 + 0.012 * number, first=True)
        for number in range(4)
    ]
    same = [point(f"System {number}", 0.5, 0.3, first=True) for number in range(8)]
    for board in (BOARD, close, same, [*BOARD, *close]):
        svg = draw_precision_recall(board, "alt")
        named, lines = labels(svg, which), arms(svg, which)
        assert named and len(lines) == 2 * len(board)
        for name, box in named:
            assert not any(meet(box, line) for line in lines), name
            assert box[0] >= 0 and box[2] <= WIDTHS[which], name
        for (name, box), (_, other) in combinations(named, 2):
            assert not meet(box, other), name


@pytest.mark.parametrize("which", WIDTHS)
def test_a_dots_name_covers_no_other_dot_on_wide_pages_and_on_phones(which: str) -> None:
    places = [(0.45, 0.5), (0.55, 0.64), (0.86, 0.6), (0.95, 0.97), (0.82, 0.88)]
    dots = [
        Dot(f"Harbor Walk run {at}", x, y, ends=(y - 0.03, y + 0.03))
        for at, (x, y) in enumerate(places)
    ]
    axis = Axis(0.4, 1.0, (0.4, 0.7, 1.0))
    says: dict[str, Any] = {"x_written": str, "y_written": str, "x_name": "x", "y_name": "y"}
    svg = draw_curves([], dots, axis, axis, "alt", **says)
    named = labels(svg, which, CURVES_HEIGHT)
    assert [name for name, _ in named] == [dot.name for dot in dots]
    for dot in dots:
        x = axis.position(dot.x) / 100 * WIDTHS[which]
        y = (100 - axis.position(dot.y)) / 100 * tall(which, CURVES_HEIGHT)
        mark = (x - 4, y - 4, x + 4, y + 4)
        assert not any(meet(box, mark) for _, box in named), dot.name
    for (name, box), (_, other) in combinations(named, 2):
        assert not meet(box, other), name


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


def test_the_same_judgments_give_the_same_drawing():
    assert draw_arrival(MOMENTS, "alt") == draw_arrival(list(MOMENTS), "alt")


@pytest.mark.parametrize("n", [1, 7, 8, 99, 100_000])
def test_any_number_of_judgments_can_be_drawn(n):
    assert "<svg" in draw_arrival([Moment(n, 0.5, 0.4, 0.6)], "alt")


def test_a_plot_of_nothing_is_an_error():
    with pytest.raises(ValueError, match="at least one"):
        draw_arrival([], "alt")


def test_a_phone_draws_plots_as_low_as_names_are_placed_for():
    sheet = (Path(__file__).parents[2] / "static/css/components.css").read_text()
    for height, low in LOW.items():
        assert f'.plot [height="{height}"] {{ height: {low}px; }}' in sheet


def test_what_a_plot_is_about_is_blue_and_what_stands_beside_it_is_grey():
    axis = Axis(0.0, 1.0, (0.0, 1.0))
    says: dict[str, Any] = {"x_written": str, "y_written": str, "x_name": "x", "y_name": "y"}
    dots = [Dot("Judge", 0.2, 0.5), Dot("Fluency", 0.7, 0.6, is_quiet=True)]
    line = [(0.0, 0.1), (1.0, 0.4)]
    curves = [Curve("2 ×", line, "equal", is_short=True), Curve("people", line)]
    svg = draw_curves(curves, dots, axis, axis, "alt", **says)
    assert '<g class="cross first"><title>Judge' in svg and '<g class="cross"><title>Fluency' in svg
    assert re.findall(r'class="(equal-name[^"]*)"', svg) == ["equal-name", "equal-name wide"]


@pytest.mark.parametrize(
    ("right", "moved"), [("ABC", ""), ("BAC", "AB"), ("BCAD", "A"), ("CBA", "AC")]
)
def test_names_that_move_far_are_told_apart_and_else_those_that_move_at_all(
    right: str, moved: str
) -> None:
    svg = draw_orders(sorted(right), list(right), "alt")
    assert sorted(set(re.findall(r'<text class="moved"[^>]*>(\w)<', svg))) == list(moved)
