"""Draws all intervals: scales, bars, differences and tie lines as SVG text.

Values are fractions of one (0.3 is 30 %). Positions are percentages of the drawing's width, so that
a bar fills any column without measurements in the browser. Colours come from the style sheet by
class. The result is SVG that is safe in a page: all text in it is escaped.
"""

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from html import escape
from typing import Any, Literal, Self

from django.utils.safestring import SafeString, mark_safe

from kbpo.web.components.figures import coefficient_text, interval_text, number_text
from scoring.report import ENDS, FEW

Kind = Literal["final", "live", "moment", "published", "few"]
Tone = Literal["a", "b", "quiet"]
Part = Literal["start", "middle", "end", "gap"]

READ_ALOUD: dict[Kind, str] = {
    "final": "",
    "live": ", provisional, valid at any time",
    "moment": ", provisional, valid for one look",
    "published": ", as published",
    "few": ", few judgments",
}
LEGENDS: dict[Kind, str] = {
    "final": "estimate, 80 % and 95 % interval",
    "live": "hatched: valid at any time",
    "moment": ("outlined: valid for one look only, so wait for the final one"),
    "few": f"grey: fewer than {FEW} judgments",
}
PEOPLE_ALONE = "people alone, 80 %"
HEIGHT = 24
WHISKER = 8
"""Additional height of a drawing with the interval from people alone"""
BAR = 9
LANE = 9
TIES_WIDTH = 28
"""Width of the column of tie lines; with many lines they are closer together"""
SINGLE_VALUE_MARGIN = 0.02
"""Distance from a single value to each end of its axis"""


@dataclass(frozen=True)
class Interval:
    """An estimate with its 80 % and 95 % intervals; any of them may be None if unknown."""

    estimate: float | None
    low80: float | None = None
    high80: float | None = None
    low95: float | None = None
    high95: float | None = None

    @classmethod
    def from_figure(cls, figure: Any) -> Self:
        """Return the interval of anything with a value and its ends (a figure, a difference, a
        share); None gives an empty interval.
        """
        return cls(*(getattr(figure, name, None) for name in ENDS))

    @property
    def known(self) -> list[float]:
        """Return the known figures, to choose an axis."""
        figures = (self.estimate, self.low80, self.high80, self.low95, self.high95)
        return [figure for figure in figures if is_known(figure)]  # type: ignore[misc]


@dataclass(frozen=True)
class Axis:
    """A scale from `low` to `high` with its ticks, shared by all the bars of a column."""

    low: float
    high: float
    ticks: tuple[float, ...]

    def position(self, value: float) -> float:
        """Return the position of a value in per cent of the width, clipped to the axis."""
        share = (value - self.low) / (self.high - self.low)
        return round(100 * min(1.0, max(0.0, share)), 3)


def is_known(value: float | None) -> bool:
    """Return whether a figure can be drawn."""
    return value is not None and math.isfinite(value)


def axis_over(
    intervals: Iterable[Interval],
    *,
    ticks: int = 5,
    bounds: tuple[float, float] = (0.0, 1.0),
    zero: bool = False,
) -> Axis:
    """Return an axis over the rounded range of all rows, inside `bounds`, with at most `ticks`
    ticks.

    It need not start at 0, since the bars mark points. With `zero` the range includes zero, as
    differences need. A single value, as of fully judged rows, is placed inside the axis, not at an
    end. If the value is an end of `bounds`, as of a run with no right prediction, the axis covers
    `bounds`.
    """
    figures = []
    for interval in intervals:
        for figure in interval.known:
            figures.append(min(bounds[1], max(bounds[0], figure)))
    if zero:
        figures.append(0.0)
    if not figures:
        figures = [max(bounds[0], 0.0), bounds[1]]
    elif min(figures) == max(figures) and figures[0] in bounds:
        figures = [*bounds]
    elif min(figures) == max(figures):
        figures = [
            max(bounds[0], figures[0] - SINGLE_VALUE_MARGIN),
            min(bounds[1], figures[0] + SINGLE_VALUE_MARGIN),
        ]
    if ticks <= 3:
        return _axis_of_ends(min(figures), max(figures), bounds)
    return _axis_of_steps(min(figures), max(figures), ticks, bounds)


def _axis_of_steps(low: float, high: float, ticks: int, bounds: tuple[float, float]) -> Axis:
    # Steps in thousandths, so that 0.15 + 0.05 is 0.2 and not nearly so.
    for step in (10, 20, 50, 100, 200, 250, 500, 1000, 2000):
        first = math.floor(low * 1000 / step + 1e-9) * step
        last = max(math.ceil(high * 1000 / step - 1e-9) * step, first + step)
        if (last - first) // step < ticks:
            break
    if last > bounds[1] * 1000 and first - step >= bounds[0] * 1000:
        first, last = first - step, last - step
    marks = tuple(mark / 1000 for mark in range(first, last + 1, step))
    return Axis(marks[0], marks[-1], marks)


def _axis_of_ends(low: float, high: float, bounds: tuple[float, float]) -> Axis:
    """Return an axis with labels at both ends and the middle only, rounded to 5 points, for narrow
    columns.
    """
    first = math.floor(low * 20 + 1e-9)
    last = max(math.ceil(high * 20 - 1e-9), first + 2)
    last += (last - first) % 2
    over = max(0, last - round(bounds[1] * 20))
    first, last = first - over, last - over
    marks = (first / 20, (first + last) / 40, last / 20)
    return Axis(marks[0], marks[2], marks)


def draw_interval(
    interval: Interval,
    axis: Axis,
    *,
    kind: Kind = "final",
    tone: Tone = "a",
    name: str = "",
    alone: Interval | None = None,
) -> SafeString:
    """Return an interval as SVG, clipped to [0, 1]: a line for 95 %, a bar for 80 %, a tick for the
    estimate.

    Parameters: `kind` is the style (final is solid; live hatched with a dashed line; moment a
    dashed outline; published hollow; few grey). `tone` is a (blue), b (orange, the second of two
    systems) or quiet (grey). `name` comes before the figures for screen readers. `alone` is the
    interval from people alone, drawn as a thin line under the bar.
    """
    label = interval_label(interval, kind=kind, name=name)
    tone = "quiet" if kind == "few" else tone
    body = _tick_lines(axis) + _interval_glyph(interval, axis, kind, tone, (0.0, 1.0))
    if alone is None or not (is_known(alone.low80) and is_known(alone.high80)):
        return _svg(f"iv iv-{kind} iv-{tone}", label, body)
    label += (
        f"; people alone {interval_text(_clip_to_unit(alone.low80), _clip_to_unit(alone.high80))}"
    )
    return _svg(
        f"iv iv-{kind} iv-{tone}", label, body + _whisker(alone, axis), height=HEIGHT + WHISKER
    )


def interval_label(interval: Interval, *, kind: Kind = "final", name: str = "") -> str:
    """Return an interval in words for screen readers: “30.0, 80 % interval 28.6 to 31.4”."""
    label = _interval_label(name, interval, lambda value: number_text(_clip_to_unit(value)))
    return label + READ_ALOUD[kind]


def _interval_label(
    name: str, interval: Interval, write: Callable[[float | None], str], unit: str = ""
) -> str:
    """Return an estimate with its 80 % interval in words, after the name."""
    sentence = f"{write(interval.estimate)}{unit}"
    if not is_known(interval.estimate):
        sentence = "no estimate yet"
    elif is_known(interval.low80) and is_known(interval.high80):
        sentence += f", 80 % interval {write(interval.low80)} to {write(interval.high80)}"
    return f"{name} {sentence}" if name else sentence


def draw_coefficient(
    interval: Interval, axis: Axis, *, tone: Tone = "a", name: str = ""
) -> SafeString:
    """Return a coefficient with its interval as SVG, clipped to its axis; its label
    reads “0.76”.
    """
    label = _interval_label(name, interval, coefficient_text)
    drawn = _interval_glyph(interval, axis, "final", tone, (axis.low, axis.high))
    return _svg(f"iv iv-final iv-{tone}", label, _tick_lines(axis) + drawn)


def draw_difference(interval: Interval, axis: Axis, *, name: str = "") -> SafeString:
    """Return a difference as SVG with a zero line: blue above zero, orange below, grey if the 80 %
    interval contains zero.
    """
    tone = difference_tone(interval)
    label = _interval_label(name, interval, partial(number_text, signed=True), " points")
    if tone == "quiet":
        label += ", no difference shown"
    zero = axis.position(0.0)
    ground = f'<line class="iv-zero" x1="{zero:g}%" x2="{zero:g}%" y1="1" y2="{HEIGHT - 1}"/>'
    return _svg(
        f"iv iv-final iv-{tone}",
        label,
        ground + _interval_glyph(interval, axis, "final", tone, (-1.0, 1.0)),
    )


def draw_alone_legend() -> SafeString:
    """Return a sample of the thin line that shows an interval from people alone, without metrics,
    for the legend.
    """
    sample = Interval(0.5, 0.1, 0.9)
    return _svg("iv", PEOPLE_ALONE, _whisker(sample, Axis(0.0, 1.0, ()), middle=HEIGHT / 2))


def draw_legend(kind: Kind = "final") -> SafeString:
    """Return a sample of an interval in this style, for the legend."""
    sample = Interval(0.5, 0.2, 0.8, 0.0, 1.0)
    tone: Tone = "quiet" if kind == "few" else "a"
    return _svg(
        f"iv iv-{kind} iv-{tone}",
        LEGENDS[kind],
        _interval_glyph(sample, Axis(0.0, 1.0, ()), kind, tone, (0.0, 1.0)),
    )


def difference_tone(interval: Interval) -> Tone:
    """Return tone a if the 80 % interval is above zero, b if below, quiet if it contains zero or is
    unknown.
    """
    if is_known(interval.low80) and interval.low80 > 0:  # type: ignore[operator]
        return "a"
    if is_known(interval.high80) and interval.high80 < 0:  # type: ignore[operator]
        return "b"
    return "quiet"


def draw_axis(axis: Axis, *, signed: bool = False, coefficient: bool = False) -> SafeString:
    """Return an SVG with the tick labels of an axis, for the header of a column of bars. Labels are
    percentages; with `coefficient` they are plain numbers.
    """
    marks = []
    for tick in axis.ticks:
        text = number_text(
            tick, decimals=0 if round(tick * 100, 6).is_integer() else 1, signed=signed
        )
        text = coefficient_text(tick) if coefficient else text
        marks.append(f'<text x="{axis.position(tick):g}%" y="12">{escape(text)}</text>')
    return mark_safe(
        f'<svg class="axis" width="100%" height="16" aria-hidden="true">{"".join(marks)}</svg>'
    )


def pack_ties(
    groups: Sequence[Iterable[int]], rows: int
) -> tuple[int, list[list[tuple[int, Part]]]]:
    """Return the number of parallel tie lines (lanes), and for each row the (lane, part) of every
    tie line that crosses the row.

    A group has the indices of rows that do not differ significantly; groups of one row need no
    line. The number of lanes is minimal: groups are placed from the top, each into the first free
    lane, which reaches the lower bound given by the row with most lines. A row between two members
    that is not a member gets the part "gap".
    """
    parts: list[list[tuple[int, Part]]] = [[] for _ in range(rows)]
    free_from: list[int] = []
    members = (set(group) for group in groups)
    for group in sorted(
        (group for group in members if len(group) > 1), key=lambda group: (min(group), max(group))
    ):
        first, last = min(group), max(group)
        if first < 0 or last >= rows:
            raise ValueError(
                f"tie group from row {first} to {last} does not fit a board of {rows} rows"
            )
        lane = next((lane for lane, free in enumerate(free_from) if free <= first), len(free_from))
        free_from[lane : lane + 1] = [last + 1]
        for row in range(first, last + 1):
            part: Part = "middle" if row in group else "gap"
            if row in (first, last):
                part = "start" if row == first else "end"
            parts[row].append((lane, part))
    return len(free_from), parts


def draw_ties(lanes: int, parts: Sequence[tuple[int, Part]]) -> SafeString:
    """Return one row's part of the tie lines: vertical, a little shorter at the ends of a group."""
    lines = []
    step = min(LANE, TIES_WIDTH / max(lanes, 1))
    for lane, part in parts:
        x = round(lane * step + 2, 1)
        top = "12%" if part == "start" else "0"
        bottom = "88%" if part == "end" else "100%"
        lines.append(f'<line class="tie tie-{part}" x1="{x}" x2="{x}" y1="{top}" y2="{bottom}"/>')
    width = max(round(lanes * step), 1)
    return mark_safe(
        f'<svg class="ties" width="{width}" height="100%" aria-hidden="true">{"".join(lines)}</svg>'
    )


def interval_figures(
    interval: Interval, *, n: int | None = None, level: int = 80
) -> tuple[str, str]:
    """Return the estimate and its interval as written next to a bar: (“30.0”, “28.6–31.4”)."""
    low, high = (
        (interval.low95, interval.high95) if level == 95 else (interval.low80, interval.high80)
    )
    return number_text(_clip_to_unit(interval.estimate), n=n), interval_text(
        _clip_to_unit(low), _clip_to_unit(high), n=n
    )


def _clip_to_unit(value: float | None) -> float | None:
    return min(1.0, max(0.0, value)) if value is not None and math.isfinite(value) else None


def _whisker(interval: Interval, axis: Axis, *, middle: float = HEIGHT) -> str:
    """Return an 80 % interval as a thin line with ends."""
    left, right = (
        axis.position(_clip_to_unit(end) or 0.0) for end in (interval.low80, interval.high80)
    )
    lines = [(left, right, middle, middle)]
    lines += [(end, end, middle - 4, middle + 4) for end in (left, right)]
    return "".join(
        f'<line class="iv-alone" x1="{x1:g}%" x2="{x2:g}%" y1="{y1:g}" y2="{y2:g}"/>'
        for x1, x2, y1, y2 in lines
    )


def _svg(classes: str, label: str, body: str, *, height: int = HEIGHT) -> SafeString:
    # A label is attribute text: quotes are escaped too.
    return mark_safe(
        f'<svg class="{classes}" role="img" aria-label="{escape(label)}" width="100%"'
        f' height="{height}">{body}</svg>'
    )


def _tick_lines(axis: Axis) -> str:
    lines = []
    for tick in axis.ticks:
        x = axis.position(tick)
        lines.append(f'<line class="iv-tick" x1="{x:g}%" x2="{x:g}%" y1="2" y2="{HEIGHT - 2}"/>')
    return "".join(lines)


def _interval_glyph(
    interval: Interval, axis: Axis, kind: Kind, tone: Tone, bounds: tuple[float, float]
) -> str:
    if not is_known(interval.estimate):
        return ""

    def x_position(value: float | None) -> float | None:
        if value is None or not math.isfinite(value):
            return None
        return axis.position(min(bounds[1], max(bounds[0], value)))

    middle = HEIGHT / 2
    drawn = []
    left, right = x_position(interval.low95), x_position(interval.high95)
    if left is not None and right is not None:
        drawn.append(
            f'<line class="iv-95" x1="{left:g}%" x2="{right:g}%" y1="{middle:g}" y2="{middle:g}"/>'
        )
    left, right = x_position(interval.low80), x_position(interval.high80)
    if left is not None and right is not None:
        # The pattern is an attribute because a style sheet's url(#…) would be looked for in the
        # style sheet.
        fill = f' fill="url(#hatch-{tone})"' if kind == "live" else ""
        drawn.append(
            f'<rect class="iv-80"{fill} x="{left:g}%" y="{middle - BAR / 2:g}"'
            f' width="{max(right - left, 0):g}%" height="{BAR}" rx="1.5"/>'
        )
    x = x_position(interval.estimate)
    drawn.append(
        f'<line class="iv-est" x1="{x:g}%" x2="{x:g}%" y1="{middle - 7:g}" y2="{middle + 7:g}"/>'
    )
    return "".join(drawn)
