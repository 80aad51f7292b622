"""Intervals are drawn where they are, said as they are written, and never outside [0, 1]."""

import re
from itertools import combinations

import pytest

from kbpo.web.components.drawing import (
    Interval,
    axis_over,
    difference_tone,
    draw_difference,
    draw_interval,
    interval_figures,
    interval_label,
    pack_ties,
)

PATTERNS = Interval(0.300, 0.286, 0.314, 0.279, 0.321)
NEURAL = Interval(0.188, 0.177, 0.199, 0.160, 0.210)


def positions(svg: str) -> list[float]:
    return [float(number) for number in re.findall(r'(?:x|x1|x2)="([-\d.]+)%"', svg)]


def test_it_says_the_estimate_and_its_80_percent_interval():
    assert interval_label(PATTERNS) == "30.0, 80 % interval 28.6 to 31.4"
    assert 'aria-label="F1 30.0, 80 % interval 28.6 to 31.4"' in draw_interval(
        PATTERNS, axis_over([PATTERNS]), name="F1"
    )


def test_a_live_interval_says_that_it_may_be_watched_and_is_hatched():
    svg = draw_interval(PATTERNS, axis_over([PATTERNS]), kind="live")
    assert "provisional, valid at any time" in svg and 'fill="url(#hatch-a)"' in svg


def test_an_interval_for_one_look_says_so_and_is_not_hatched():
    svg = draw_interval(PATTERNS, axis_over([PATTERNS]), kind="moment")
    assert (
        "provisional, valid for one look" in svg and "hatch" not in svg and "iv-moment iv-a" in svg
    )


def test_it_is_clipped_to_zero_and_one():
    wide = Interval(0.97, 0.90, 1.06, -0.2, 1.4)
    axis = axis_over([wide])
    assert (axis.low, axis.high) == (0.0, 1.0)
    svg = draw_interval(wide, axis)
    assert 'class="iv-95" x1="0%" x2="100%"' in svg
    assert all(0 <= position <= 100 for position in positions(svg))
    assert interval_label(wide) == "97.0, 80 % interval 90.0 to 100.0"
    assert interval_figures(wide) == ("97.0", "90.0–100.0")


def test_the_estimate_stands_at_its_share_of_the_axis():
    axis = axis_over([PATTERNS, NEURAL])
    assert axis.ticks == (0.15, 0.2, 0.25, 0.3, 0.35)
    assert 'class="iv-est" x1="75%" x2="75%"' in draw_interval(PATTERNS, axis)


@pytest.mark.parametrize("unknown", [None, float("nan")])
def test_an_unknown_estimate_draws_no_mark_and_says_so(unknown):
    svg = draw_interval(Interval(unknown), axis_over([PATTERNS]))
    assert "no estimate yet" in svg and "iv-est" not in svg


def test_an_axis_holds_every_row_and_has_few_ticks():
    for low in range(0, 100, 7):
        for high in range(low, 101, 3):
            row = Interval(low / 100, low / 100, high / 100)
            for ticks in (3, 5):
                axis = axis_over([row], ticks=ticks)
                assert axis.low <= low / 100 + 1e-12 and high / 100 - 1e-12 <= axis.high
                assert 2 <= len(axis.ticks) <= ticks and 0 <= axis.low < axis.high <= 1


def test_a_difference_is_coloured_only_when_80_percent_leaves_zero():
    assert difference_tone(Interval(0.012, 0.002, 0.023)) == "a"
    assert difference_tone(Interval(-0.12, -0.14, -0.10)) == "b"
    assert difference_tone(Interval(-0.001, -0.009, 0.006)) == "quiet"
    axis = axis_over([Interval(-0.001, -0.009, 0.006)], bounds=(-1, 1), zero=True)
    svg = draw_difference(Interval(-0.001, -0.009, 0.006), axis)
    assert "−0.1 points" in svg and "no difference shown" in svg and "iv-zero" in svg


def test_a_name_cannot_break_out_of_its_label():
    svg = draw_interval(PATTERNS, axis_over([PATTERNS]), name='"><script>alert(1)</script>')
    assert "<script" not in svg and svg.count("<svg") == 1


def test_tie_lines_use_as_few_lanes_as_can_be():
    rows = 9
    ranges = [
        range(first, last + 1)
        for first in range(0, rows - 1, 2)
        for last in (first + 1, first + 3)
        if last < rows
    ]
    for groups in combinations(ranges, 4):
        lanes, parts = pack_ties(groups, rows)
        crossing = [sum(min(group) <= row <= max(group) for group in groups) for row in range(rows)]
        assert lanes == max(crossing)
        assert [len(part) for part in parts] == crossing
        assert all(len({lane for lane, _ in part}) == len(part) for part in parts)
