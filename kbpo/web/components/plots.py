"""Draws plots as inline SVG: systems, curves, an estimate over time and as judgments arrive.

A plot is a small grid of drawings whose positions are percentages, so that it fills any width while
its text keeps its size. Curves are in an inner drawing that is stretched, but their strokes are
not. Every text is escaped here.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from html import escape
from zlib import crc32

from django.utils.safestring import SafeString, mark_safe

from kbpo.web.components.drawing import Axis, Interval, axis_over, is_known
from kbpo.web.components.figures import count_text, interval_text, number_text

PLOT_HEIGHT = 400
ARRIVAL_HEIGHT = 230
CURVES_HEIGHT = 300
WIDTH = 580
"""Width of a plot on a wide page, used to place names; phones show only the names of the first
group
"""
LETTER, LINE = 6.5, 15
"""Width of a letter and height of a line"""
DOT = 5
"""Radius around a point that is kept free of names"""
SIDES = ((8, -8, "start"), (8, 16, "start"), (-8, -8, "end"), (-8, 16, "end"))
"""Positions of a name relative to its point, the best first: (dx, dy, anchor)"""
DAY = 86400
MINUTES = (1, 5, 15, 60, 180, 360)
STEPS = (*(minutes / 1440 for minutes in MINUTES), 1, 2, 7, 14, 30, 91, 182, 365, 3650, 36500)
"""Days between two ticks of time"""
Ends = tuple[float, float]
Box = tuple[float, float, float, float]
"""Left, top, right and bottom in pixels"""


@dataclass(frozen=True)
class Point:
    """A system in a precision-recall plot: name, both intervals, and whether it is in the first tie
    group.
    """

    name: str
    precision: Interval
    recall: Interval
    first: bool = False


@dataclass(frozen=True)
class Curve:
    """A line through points (x, y); `kind` is its CSS class."""

    name: str
    points: Sequence[tuple[float, float]]
    kind: str = "path"
    named_at: float = 1.0
    """Share of the line after which its name is placed"""
    is_short: bool = False
    """Whether phones have room for its name"""


@dataclass(frozen=True)
class Dot:
    """A point with its name, and optional horizontal and vertical intervals."""

    name: str
    x: float
    y: float
    x_ends: Ends | None = None
    y_ends: Ends | None = None
    label: str = ""
    """Text for a tooltip and for screen readers"""
    is_named: bool = True
    is_first: bool = True
    """Whether the dot is coloured, and named on phones too"""
    has_disc: bool = True


@dataclass(frozen=True)
class Moment:
    """An estimate after n judgments, with an interval that is valid at any time."""

    n: int
    estimate: float
    low: float
    high: float


def draw_curves(
    curves: Sequence[Curve],
    dots: Sequence[Dot],
    x_axis: Axis,
    y_axis: Axis,
    alt: str,
    *,
    x_name: str,
    y_name: str,
    x_written: Callable[[float], str],
    y_written: Callable[[float], str],
    height: int = CURVES_HEIGHT,
) -> SafeString:
    """Return a plot of curves and named dots."""
    paths, names = [], []
    for curve in curves:
        inside = [(x, y) for x, y in curve.points if y_axis.low <= y <= y_axis.high]
        if not inside:
            continue
        line = _polyline([(x_axis.position(x), _y_position(y_axis, y)) for x, y in inside])
        paths.append(f'<path class="{curve.kind}" d="{line}"/>')
        if not curve.name:
            continue
        place = inside[round(curve.named_at * (len(inside) - 1))]
        x, y = x_axis.position(place[0]), _y_position(y_axis, place[1])
        anchor, dx = ("end", 0) if x > 60 else ("start", 5)
        shown = "" if curve.is_short else ' class="wide"'
        names.append(
            f'<text{shown} x="{x:g}%" y="{y:g}%" dx="{dx}"'
            f' dy="{12 if y < 5 else -5}" text-anchor="{anchor}">{escape(curve.name)}</text>'
        )
    taken = [box for dot in dots for box in _covered_boxes(dot, x_axis, y_axis, height)]
    marks = [_draw_dot(dot, x_axis, y_axis, height, taken) for dot in dots]
    body = _draw_grid(x_axis, y_axis) + _stretched_svg("".join(paths)) + "".join([*names, *marks])
    return _draw_frame(body, x_axis, y_axis, height, alt, y_name, x_name, x_written, y_written)


def draw_precision_recall(points: Sequence[Point], alt: str) -> SafeString:
    """Return a plot of systems as crosses of 80 % intervals, with curves of equal F1. The first tie
    group and the extremes are named.
    """
    drawable = [
        point
        for point in points
        if is_known(point.precision.estimate) and is_known(point.recall.estimate)
    ]
    across = _axis_from_zero([point.recall for point in drawable], ticks=6)
    up = _axis_from_zero([point.precision for point in drawable], ticks=5)
    extremes = {
        choose(range(len(drawable)), key=lambda at: getattr(drawable[at], which).estimate)
        for which in ("precision", "recall")
        for choose in (max, min)
        if drawable
    }
    dots = []
    for at, point in enumerate(drawable):
        precision, recall = (
            _require_value(point.precision.estimate),
            _require_value(point.recall.estimate),
        )
        dots.append(
            Dot(
                point.name,
                recall,
                precision,
                _ends_of(point.recall),
                _ends_of(point.precision),
                f"{point.name}: precision {number_text(precision)}, recall {number_text(recall)}",
                is_named=point.first or at in extremes,
                is_first=point.first,
                has_disc=False,
            )
        )
    return draw_curves(
        _equal_f1(across, up),
        sorted(dots, key=lambda dot: not dot.is_first),
        across,
        up,
        alt,
        x_name="Recall, %",
        y_name="Precision, %",
        x_written=_tick_label,
        y_written=_tick_label,
        height=PLOT_HEIGHT,
    )


def draw_history(
    moments: Sequence[tuple[datetime, Interval]], alt: str, *, name: str
) -> SafeString:
    """Return a plot of an estimate with its 80 % interval over time."""
    days = [moment.timestamp() / DAY for moment, _ in moments]
    up, across = (
        axis_over([interval for _, interval in moments]),
        _axis_of_days(min(days), max(days)),
    )
    form, dots = "%H:%M" if across.high - across.low < 2 else "%d %b %y", []
    for day, (moment, interval) in zip(days, moments, strict=True):
        ends = interval_text(interval.low80, interval.high80)
        label = f"{moment:%Y-%m-%d %H:%M} UTC: {number_text(interval.estimate)}, 80 % {ends}"
        value = _require_value(interval.estimate)
        dots.append(Dot("", day, value, y_ends=_ends_of(interval), label=label, is_named=False))
    return draw_curves(
        [Curve("", [(dot.x, dot.y) for dot in dots])],
        dots,
        across,
        up,
        alt,
        x_name="Evaluation of (UTC)",
        y_name=name,
        x_written=partial(_time_label, form=form),
        y_written=_tick_label,
        height=ARRIVAL_HEIGHT,
    )


def draw_arrival(
    moments: Sequence[Moment],
    alt: str,
    *,
    name: str = "Precision, %",
    plan: tuple[int, float] | None = None,
) -> SafeString:
    """Return a plot of an estimate against the number of judgments, with a hatched band; `plan` is
    the planned (n, half-width).
    """
    if not moments:
        raise ValueError("a plot of judgments needs at least one moment")
    now = moments[-1]
    across = counts_axis(max(now.n, plan[0] if plan else 0))
    late = [Interval(m.estimate, m.low, m.high) for m in moments if m.n >= min(20, now.n)]
    up = axis_over(late)
    dots = [(across.position(m.n), _y_position(up, m.estimate)) for m in moments]
    path = _stretched_svg(f'<path class="path" d="{_polyline(dots)}"/>')
    body = (
        _draw_grid(across, up)
        + _draw_band(moments, across, up)
        + path
        + _draw_last_look(now, across, up)
    )
    body += _draw_plan(now, plan, across, up) if plan else ""
    x_name = "Judgments of this system"
    return _draw_frame(body, across, up, ARRIVAL_HEIGHT, alt, name, x_name, count_text, _tick_label)


def counts_axis(maximum: int) -> Axis:
    """Return an axis of whole numbers from 0."""
    raw = max(maximum, 1) / 7
    magnitude = 10 ** math.floor(math.log10(raw)) if raw >= 1 else 1
    step = next(
        step for step in (magnitude, 2 * magnitude, 5 * magnitude, 10 * magnitude) if step >= raw
    )
    ticks = tuple(float(tick) for tick in range(0, maximum + step, step))
    return Axis(0.0, ticks[-1], ticks)


def _axis_from_zero(intervals: Sequence[Interval], *, ticks: int) -> Axis:
    """Return an axis from 0, which curves of equal F1 need."""
    high = max((max(interval.known) for interval in intervals if interval.known), default=1.0)
    return axis_over([Interval(0.0), Interval(high)], ticks=ticks)


def _equal_f1(x_axis: Axis, y_axis: Axis) -> list[Curve]:
    curves = []
    for f1 in (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9):
        top = min(y_axis.high, 1.0)
        lowest = f1 * top / (2 * top - f1) if 2 * top > f1 else x_axis.high
        if lowest >= x_axis.high:
            continue
        points = []
        for step in range(61):
            # Closer together at the start, where the curve is steep.
            recall = lowest + (x_axis.high - lowest) * (step / 60) ** 2
            points.append((recall, min(top, f1 * recall / (2 * recall - f1))))
        curves.append(Curve(f"F1 {f1 * 100:.0f}", points, "equal", named_at=0.0))
    return curves


def _axis_of_days(first: float, last: float) -> Axis:
    """Return an axis of days since 1970 with at most seven ticks, at whole days or hours."""
    step = next(step for step in STEPS if (last - first) / step <= 5)
    low, high = math.floor(first / step) * step, math.ceil(last / step) * step
    n = max(1, round((high - low) / step))
    return Axis(low, low + n * step, tuple(low + tick * step for tick in range(n + 1)))


def _time_label(day: float, form: str) -> str:
    return datetime.fromtimestamp(round(day * DAY), UTC).strftime(form)


def _draw_dot(dot: Dot, x_axis: Axis, y_axis: Axis, height: int, occupied_boxes: list[Box]) -> str:
    """Return a dot with its intervals and its name, which is omitted if no place beside the dot is
    free; its place is added to `occupied_boxes`.
    """
    x, y = x_axis.position(dot.x), _y_position(y_axis, dot.y)
    parts = [f"<title>{escape(dot.label)}</title>"]
    if dot.x_ends is not None:
        left, right = (x_axis.position(end) for end in dot.x_ends)
        parts.append(f'<line x1="{left:g}%" x2="{right:g}%" y1="{y:g}%" y2="{y:g}%"/>')
    if dot.y_ends is not None:
        bottom, top = (_y_position(y_axis, end) for end in dot.y_ends)
        parts.append(f'<line x1="{x:g}%" x2="{x:g}%" y1="{top:g}%" y2="{bottom:g}%"/>')
    if dot.has_disc:
        parts.append(f'<circle class="now-dot" cx="{x:g}%" cy="{y:g}%" r="4"/>')
    length = len(dot.name) * LETTER
    for dx, dy, anchor in SIDES if dot.is_named else ():
        begins = x / 100 * WIDTH + dx - (length if anchor == "end" else 0)
        line = y / 100 * height + dy
        box = (begins, line - LINE + 3, begins + length, line + 3)
        is_inside = box[0] >= 0 and box[2] <= WIDTH and box[1] >= 0 and box[3] <= height
        is_free = all(
            box[2] <= other[0] or other[2] <= box[0] or box[3] <= other[1] or other[3] <= box[1]
            for other in occupied_boxes
        )
        if is_inside and is_free:
            occupied_boxes.append(box)
            shown = "" if dot.is_first else ' class="wide"'
            parts.append(
                f'<text{shown} x="{x:g}%" y="{y:g}%" dx="{dx}" dy="{dy}"'
                f' text-anchor="{anchor}">{escape(dot.name)}</text>'
            )
            break
    return f'<g class="cross{" first" if dot.is_first else ""}">{"".join(parts)}</g>'


def _covered_boxes(dot: Dot, x_axis: Axis, y_axis: Axis, height: int) -> list[Box]:
    """Return the boxes that a point and its intervals cover."""
    x, y = x_axis.position(dot.x) / 100 * WIDTH, _y_position(y_axis, dot.y) / 100 * height
    boxes = [(x - DOT, y - DOT, x + DOT, y + DOT)]
    if dot.x_ends is not None:
        left, right = (x_axis.position(end) / 100 * WIDTH for end in dot.x_ends)
        boxes.append((left, y - 2, right, y + 2))
    if dot.y_ends is not None:
        bottom, top = (_y_position(y_axis, end) / 100 * height for end in dot.y_ends)
        boxes.append((x - 2, top, x + 2, bottom))
    return boxes


def _draw_band(moments: Sequence[Moment], x_axis: Axis, y_axis: Axis) -> str:
    upper = [(x_axis.position(m.n), _y_position(y_axis, m.high)) for m in moments]
    lower = [(x_axis.position(m.n), _y_position(y_axis, m.low)) for m in reversed(moments)]
    # The hatching must not be stretched with the plot, so the band is a clip of a hatched ground,
    # in shares of its box.
    shape = _polyline([(x / 100, y / 100) for x, y in upper + lower]) + "Z"
    name = f"band-{crc32(shape.encode()):08x}"
    return (
        f'<clipPath id="{name}" clipPathUnits="objectBoundingBox"><path d="{shape}"/></clipPath>'
        f'<rect width="100%" height="100%" fill="url(#hatch-a)" clip-path="url(#{name})"/>'
    )


def _draw_last_look(last_moment: Moment, x_axis: Axis, y_axis: Axis) -> str:
    x = x_axis.position(last_moment.n)
    half = (last_moment.high - last_moment.low) / 2
    return (
        f'<line class="now" x1="{x:g}%" x2="{x:g}%" y1="{_y_position(y_axis, last_moment.high):g}%"'
        f' y2="{_y_position(y_axis, last_moment.low):g}%"/><circle class="now-dot" cx="{x:g}%"'
        f' cy="{_y_position(y_axis, last_moment.estimate):g}%" r="4"/>'
        f'<text class="strong" x="{x:g}%"'
        f' y="{_y_position(y_axis, last_moment.high):g}%" dx="5" dy="-6"'
        f' text-anchor="{"end" if x > 80 else "start"}">last look ±{number_text(half)}</text>'
    )


def _draw_plan(last_moment: Moment, plan: tuple[int, float], x_axis: Axis, y_axis: Axis) -> str:
    n, half = plan
    x0, x1 = x_axis.position(last_moment.n), x_axis.position(n)
    lines = []
    for start, end in (
        (last_moment.high, last_moment.estimate + half),
        (last_moment.low, last_moment.estimate - half),
    ):
        lines.append(
            f'<line class="plan" x1="{x0:g}%" x2="{x1:g}%" y1="{_y_position(y_axis, start):g}%"'
            f' y2="{_y_position(y_axis, end):g}%"/>'
        )
    top, foot = (
        _y_position(y_axis, last_moment.estimate + half),
        _y_position(y_axis, last_moment.estimate - half),
    )
    return (
        "".join(lines)
        + f'<line class="now" x1="{x1:g}%" x2="{x1:g}%" y1="{top:g}%" y2="{foot:g}%"/><text'
        f' x="{x1:g}%" y="{foot:g}%" dy="16" text-anchor="end">±{number_text(half)} at'
        f" {n:,}</text>"
    )


def _draw_grid(x_axis: Axis, y_axis: Axis) -> str:
    lines = [
        f'<line class="grid" x1="0" x2="100%" y1="{_y_position(y_axis, t):g}%"'
        f' y2="{_y_position(y_axis, t):g}%"/>'
        for t in y_axis.ticks
    ]
    lines += [
        f'<line class="grid" x1="{x_axis.position(t):g}%" x2="{x_axis.position(t):g}%" y1="0"'
        ' y2="100%"/>'
        for t in x_axis.ticks
    ]
    return "".join(lines)


def _draw_frame(
    body: str,
    x_axis: Axis,
    y_axis: Axis,
    height: int,
    alt: str,
    y_name: str,
    x_name: str,
    x_written: Callable[[float], str],
    y_written: Callable[[float], str],
) -> SafeString:
    y_labels = "".join(
        f'<text x="28" y="{_y_position(y_axis, tick):g}%">{y_written(tick)}</text>'
        for tick in y_axis.ticks
    )
    x_labels = "".join(
        f'<text x="{x_axis.position(tick):g}%" y="14">{x_written(tick)}</text>'
        for tick in x_axis.ticks
    )
    return mark_safe(
        f'<div class="plot"><span class="y-name">{escape(y_name)}</span><svg class="y-axis"'
        f' height="{height}" aria-hidden="true">{y_labels}</svg><svg class="area" role="img"'
        f' aria-label="{escape(alt)}" width="100%" height="{height}">{body}</svg><svg'
        f' class="x-axis" height="18" aria-hidden="true">{x_labels}</svg><span'
        f' class="x-name">{escape(x_name)}</span></div>'
    )


def _tick_label(share: float) -> str:
    """Return the label of a tick in per cent, with a decimal only if ticks are closer than 1 %."""
    return number_text(share, decimals=0 if round(share * 100, 6).is_integer() else 1)


def _stretched_svg(body: str) -> str:
    return (
        '<svg viewBox="0 0 100 100" preserveAspectRatio="none" width="100%"'
        f' height="100%">{body}</svg>'
    )


def _polyline(dots: Sequence[tuple[float, float]]) -> str:
    return "M" + "L".join(f"{x:.4g} {y:.4g}" for x, y in dots)


def _y_position(axis: Axis, value: float) -> float:
    return round(100 - axis.position(value), 3)


def _require_value(value: float | None) -> float:
    assert value is not None  # points without estimates are not drawn
    return value


def _ends_of(interval: Interval) -> Ends:
    """Return the ends of an 80 % interval, the estimate for an unknown end."""
    estimate = _require_value(interval.estimate)
    low, high = (
        end if end is not None and math.isfinite(end) else estimate
        for end in (interval.low80, interval.high80)
    )
    return low, high
