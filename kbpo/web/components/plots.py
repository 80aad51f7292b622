"""Plots as inline SVG: precision against recall, and an estimate as judgments arrive.

A plot is a small grid of drawings whose positions are percentages, so that it fills any width while
its text keeps its size. Curves stand in an inner drawing that is stretched, with strokes that are
not.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from html import escape
from zlib import crc32

from kbpo.web.components.drawing import Axis, Interval, axis_over, is_known
from kbpo.web.components.figures import count_text, interval_text, number_text

PLOT_HEIGHT = 400
ARRIVAL_HEIGHT = 230
CURVES_HEIGHT = 300
WIDTHS = {"wide": 580, "narrow": 250}
"""What names are placed against: the width a plot has on a wide page, and on a phone"""
LOW = {PLOT_HEIGHT: 300, CURVES_HEIGHT: 220}
"""How high a plot of that height is on a phone, by the style sheet"""
LETTER = 6.5
LINE = 15
DOT = 5
"""From the middle of a point to where something else may stand"""
SIDES = (
    (8, -8, "start"), (8, 16, "start"), (-8, -8, "end"), (-8, 16, "end"), (0, -20, "middle"),
    (0, 30, "middle"), (14, -26, "start"), (14, 34, "start"), (-14, -26, "end"), (-14, 34, "end"),
    (0, -32, "middle"), (0, 42, "middle"), (0, -44, "middle"), (0, 54, "middle"),
)  # fmt: skip
"""Where a name may stand beside its point, the best first: (dx, dy, anchor). One above or below it
moves aside where it would leave the plot."""
DAY = 86400
MINUTES = (1, 5, 15, 60, 180, 360)
STEPS = (*(minutes / 1440 for minutes in MINUTES), 1, 2, 7, 14, 30, 91, 182, 365, 3650, 36500)
"""Days between two ticks of time"""


@dataclass(frozen=True)
class Point:
    """A system on the plot: its short name, both intervals, and whether it stands in the first tie
    group.
    """

    name: str
    precision: Interval
    recall: Interval
    first: bool = False


@dataclass(frozen=True)
class Curve:
    """A line through points (x, y); `kind` is its class in the style sheet."""

    name: str
    points: Sequence[tuple[float, float]]
    kind: str = "path"
    named_at: float = 1.0
    """How far along it its name stands"""
    is_short: bool = False
    """Whether its name has room on a phone, too"""


@dataclass(frozen=True)
class Dot:
    """A named point."""

    name: str
    x: float
    y: float
    is_named: bool = True
    ends: tuple[float, float] | None = None
    """Of an interval of y, drawn upright"""
    is_quiet: bool = False
    """Whether it is drawn in grey, beside what the plot is about"""


@dataclass(frozen=True)
class Moment:
    """An estimate after n judgments, with the interval that stays valid however often one looks."""

    n: int
    estimate: float
    low: float
    high: float


def draw_precision_recall(points: Sequence[Point], alt: str) -> str:
    """Crosses of 80 % intervals with dotted curves of equal F1; the first group and the extremes
    carry their names.
    """
    drawable = [
        point
        for point in points
        if is_known(point.precision.estimate) and is_known(point.recall.estimate)
    ]
    across = _from_zero(drawable, "recall", ticks=6)
    up = _from_zero(drawable, "precision", ticks=5)
    body = _grid(across, up, PLOT_HEIGHT) + _equal_curves(across, up)
    crosses = [_cross(point, across, up) for point in drawable]
    wide = _named(drawable)
    narrow = [index for index in wide if drawable[index].first] or wide[:1]
    texts = _placed_names(
        [point.name for point in drawable], {"wide": wide, "narrow": narrow}, crosses, PLOT_HEIGHT
    )
    body += "".join(map(_draw_cross, drawable, crosses, texts))
    return _framed(body, across, up, PLOT_HEIGHT, alt, "Precision, %", "Recall, %")


def draw_arrival(
    moments: Sequence[Moment],
    alt: str,
    *,
    name: str = "Precision, %",
    plan: tuple[int, float] | None = None,
) -> str:
    """Return an estimate as judgments arrive, in a hatched band; `plan` is (n, half-width) to
    come.
    """
    if not moments:
        raise ValueError("a plot of judgments needs at least one moment")
    now = moments[-1]
    most = max(now.n, plan[0] if plan else 0)
    across = counts_axis(most)
    late = [Interval(m.estimate, m.low, m.high) for m in moments if m.n >= min(20, now.n)]
    up = axis_over(late)
    body = (
        _grid(across, up, ARRIVAL_HEIGHT) + _band(moments, across, up) + _path(moments, across, up)
    )
    body += _now(now, across, up) + (_plan(now, plan, across, up) if plan else "")
    return _framed(
        body, across, up, ARRIVAL_HEIGHT, alt, name, "Judgments of this system", counts=True
    )


def draw_history(moments: Sequence[tuple[datetime, Interval]], alt: str, *, name: str) -> str:
    """Return an estimate over time: a dot and its 80 % interval for every evaluation that is
    kept.
    """
    days = [moment.timestamp() / DAY for moment, _ in moments]
    up, across = axis_over([interval for _, interval in moments]), _days(min(days), max(days))
    dots, marks = [], []
    for day, (moment, interval) in zip(days, moments, strict=True):
        x, y = across.position(day), _y(up, _known(interval.estimate))
        low, high = (
            _y(up, _or(end, interval.estimate)) for end in (interval.low80, interval.high80)
        )
        ends = interval_text(interval.low80, interval.high80)
        label = f"{moment:%Y-%m-%d %H:%M} UTC: {number_text(interval.estimate)}, 80 % {ends}"
        dots.append((x, y))
        marks.append(
            f'<g><title>{escape(label)}</title><line class="now" x1="{x:g}%" x2="{x:g}%"'
            f' y1="{high:g}%" y2="{low:g}%"/><circle class="now-dot" cx="{x:g}%" cy="{y:g}%"'
            ' r="4"/></g>'
        )
    body = _grid(across, up, ARRIVAL_HEIGHT) + _stretched(f'<path class="path" d="{_line(dots)}"/>')
    written = _clock if across.high - across.low < 2 else _day
    body += "".join(marks)
    return _framed(
        body, across, up, ARRIVAL_HEIGHT, alt, name, "Evaluation of (UTC)", x_written=written
    )


def _days(first: float, last: float) -> Axis:
    """Return an axis of days since 1970 with at most seven ticks, at whole days or hours."""
    step = next(step for step in STEPS if (last - first) / step <= 5)
    low, high = math.floor(first / step) * step, math.ceil(last / step) * step
    n = max(1, round((high - low) / step))
    return Axis(low, low + n * step, tuple(low + tick * step for tick in range(n + 1)))


def _day(day: float) -> str:
    return f"{datetime.fromtimestamp(day * DAY, UTC):%d %b %y}"


def _clock(day: float) -> str:
    return f"{datetime.fromtimestamp(round(day * DAY), UTC):%H:%M}"


def draw_curves(
    curves: Sequence[Curve],
    dots: Sequence[Dot],
    across: Axis,
    up: Axis,
    alt: str,
    *,
    x_name: str,
    y_name: str,
    x_written: Callable[[float], str],
    y_written: Callable[[float], str],
) -> str:
    """Lines and dots with their names, on two axes."""
    paths, names = [], []
    for curve in curves:
        inside = [(x, y) for x, y in curve.points if up.low <= y <= up.high]
        if not inside:
            continue
        line = _line([(across.position(x), _y(up, y)) for x, y in inside])
        paths.append(f'<path class="{curve.kind}" d="{line}"/>')
        place = inside[round(curve.named_at * (len(inside) - 1))]
        x, y = across.position(place[0]), _y(up, place[1])
        anchor = "end" if x > 60 else "start"
        names.append(
            f'<text class="equal-name{"" if curve.is_short else " wide"}" x="{x:g}%" y="{y:g}%"'
            f' dy="-5" text-anchor="{anchor}">{escape(curve.name)}</text>'
        )
    marks = []
    crosses = [_upright(dot, across, up) for dot in dots]
    named = [index for index, dot in enumerate(dots) if dot.is_named]
    texts = _placed_names(
        [dot.name for dot in dots], dict.fromkeys(WIDTHS, named), crosses, CURVES_HEIGHT
    )
    for dot, cross, text in zip(dots, crosses, texts, strict=True):
        label = f"{dot.name}: {x_written(dot.x)}, {y_written(dot.y)}"
        upright = ""
        if dot.ends is not None:
            upright = (
                f'<line x1="{cross.x:g}%" x2="{cross.x:g}%" y1="{cross.bottom:g}%"'
                f' y2="{cross.top:g}%"/>'
            )
        kind = "cross" if dot.is_quiet else "cross first"
        marks.append(
            f'<g class="{kind}"><title>{escape(label)}</title>{upright}<circle class="now-dot"'
            f' cx="{cross.x:g}%" cy="{cross.y:g}%" r="4"/>{text}</g>'
        )
    body = _grid(across, up, ARRIVAL_HEIGHT) + _stretched("".join(paths))
    body += "".join(names) + "".join(marks)
    return _framed(
        body,
        across,
        up,
        CURVES_HEIGHT,
        alt,
        y_name,
        x_name,
        x_written=x_written,
        y_written=y_written,
    )


def counts_axis(most: int) -> Axis:
    """Return an axis of whole numbers from 0."""
    raw = max(most, 1) / 7
    magnitude = 10 ** math.floor(math.log10(raw)) if raw >= 1 else 1
    step = next(
        step for step in (magnitude, 2 * magnitude, 5 * magnitude, 10 * magnitude) if step >= raw
    )
    ticks = tuple(float(tick) for tick in range(0, most + step, step))
    return Axis(0.0, ticks[-1], ticks)


def _from_zero(points: Sequence[Point], which: str, *, ticks: int) -> Axis:
    # Curves of equal F1 only make sense from the origin.
    intervals = [getattr(point, which) for point in points]
    high = max((max(interval.known) for interval in intervals if interval.known), default=1.0)
    return axis_over([Interval(0.0), Interval(high)], ticks=ticks)


def _y(axis: Axis, value: float) -> float:
    return round(100 - axis.position(value), 3)


def _grid(across: Axis, up: Axis, height: int) -> str:
    lines = [
        f'<line class="grid" x1="0" x2="100%" y1="{_y(up, t):g}%" y2="{_y(up, t):g}%"/>'
        for t in up.ticks
    ]
    lines += [
        f'<line class="grid" x1="{across.position(t):g}%" x2="{across.position(t):g}%" y1="0"'
        ' y2="100%"/>'
        for t in across.ticks
    ]
    return "".join(lines)


def _equal_curves(across: Axis, up: Axis) -> str:
    paths, names = [], []
    for f1 in (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9):
        top = min(up.high, 1.0)
        lowest = f1 * top / (2 * top - f1) if 2 * top > f1 else across.high
        if lowest >= across.high:
            continue
        dots = []
        for step in range(61):
            # Closer together at the start, where the curve is steep.
            recall = lowest + (across.high - lowest) * (step / 60) ** 2
            dots.append((across.position(recall), _y(up, f1 * recall / (2 * recall - f1))))
        paths.append(f'<path class="equal" d="{_line(dots)}"/>')
        x = dots[0][0]
        words = f"F1 {f1 * 100:.0f}"
        names.append(f'<text class="equal-name wide" x="{x:g}%" dx="5" y="12">{words}</text>')
    return _stretched("".join(paths)) + "".join(names)


@dataclass(frozen=True)
class _Cross:
    """Where a point and its two intervals stand, in shares of the plot."""

    x: float
    y: float
    left: float
    right: float
    top: float
    bottom: float


def _cross(point: Point, across: Axis, up: Axis) -> _Cross:
    left, right = (
        across.position(_or(v, point.recall.estimate))
        for v in (point.recall.low80, point.recall.high80)
    )
    bottom, top = (
        _y(up, _or(v, point.precision.estimate))
        for v in (point.precision.low80, point.precision.high80)
    )
    x, y = across.position(_known(point.recall.estimate)), _y(up, _known(point.precision.estimate))
    return _Cross(x, y, left, right, top, bottom)


def _upright(dot: Dot, across: Axis, up: Axis) -> _Cross:
    """Return where a dot stands, and the ends of its interval."""
    x, y = across.position(dot.x), _y(up, dot.y)
    bottom, top = (_y(up, end) for end in dot.ends or (dot.y, dot.y))
    return _Cross(x, y, x, x, top, bottom)


Label = tuple[int, int, str]
"""How far from its point a name stands, and which end of it is there"""
Box = tuple[float, float, float, float]


def _placed_names(
    names: Sequence[str],
    named: Mapping[str, Sequence[int]],
    crosses: Sequence[_Cross],
    height: int,
) -> list[str]:
    """For each point its name where there is room for it on a wide page, and where on a narrow one;
    `named`: whose names stand on which.
    """
    texts = [""] * len(names)
    for which, width in WIDTHS.items():
        tall = LOW[height] if which == "narrow" else height
        placed = _placed_labels(names, named[which], crosses, width, tall)
        for index, (dx, dy, anchor) in placed.items():
            x, y = crosses[index].x, crosses[index].y
            texts[index] += (
                f'<text class="{which}" x="{x:g}%" y="{y:g}%" dx="{dx}" dy="{dy}"'
                f' text-anchor="{anchor}">{escape(names[index])}</text>'
            )
    return texts


def _draw_cross(point: Point, cross: _Cross, text: str) -> str:
    """Return a cross with its name."""
    x, y = f"{cross.x:g}%", f"{cross.y:g}%"
    label = (
        f"{point.name}: precision {number_text(point.precision.estimate)}, recall"
        f" {number_text(point.recall.estimate)}"
    )
    return (
        f'<g class="cross{" first" if point.first else ""}"><title>{escape(label)}</title>'
        f'<line x1="{cross.left:g}%" x2="{cross.right:g}%" y1="{y}" y2="{y}"/>'
        f'<line x1="{x}" x2="{x}" y1="{cross.top:g}%" y2="{cross.bottom:g}%"/>{text}</g>'
    )


def _placed_labels(
    names: Sequence[str],
    named: Sequence[int],
    crosses: Sequence[_Cross],
    width: int,
    height: int,
) -> dict[int, Label]:
    """For each point that is named, where its name goes on a plot of that size so that it covers
    neither a name nor a point with its intervals; no name where there is no such place.
    """
    taken: list[Box] = []
    for cross in crosses:
        x, y = cross.x / 100 * width, cross.y / 100 * height
        left, right = cross.left / 100 * width, cross.right / 100 * width
        top, bottom = cross.top / 100 * height, cross.bottom / 100 * height
        taken += [(left, y - 2, right, y + 2), (x - 2, top, x + 2, bottom)]
        taken.append((x - DOT, y - DOT, x + DOT, y + DOT))
    placed: dict[int, Label] = {}
    for index in named:
        x, y = crosses[index].x / 100 * width, crosses[index].y / 100 * height
        length = len(names[index]) * LETTER
        for dx, dy, anchor in SIDES:
            if anchor == "middle":
                dx = round(min(max(x, length / 2 + 2), width - length / 2 - 2) - x)
            box = _box(x + dx, y + dy, length, anchor)
            is_inside = box[0] >= 0 and box[2] <= width and box[1] >= 0 and box[3] <= height
            if is_inside and not any(_overlap(box, other) for other in taken):
                placed[index] = (dx, dy, anchor)
                taken.append(box)
                break
    return placed


def _box(x: float, y: float, length: float, anchor: str) -> Box:
    """Return what a name covers whose `anchor` stands there, on the line."""
    left = x - {"start": 0.0, "middle": length / 2, "end": length}[anchor]
    return left, y - LINE + 3, left + length, y + 3


def _named(points: Sequence[Point]) -> list[int]:
    """Return the first group, then the extremes of both axes."""
    leaders = [index for index, point in enumerate(points) if point.first]
    if not points:
        return []
    every = range(len(points))
    extremes = []
    for which in ("precision", "recall"):
        extremes += [
            max(every, key=lambda i: getattr(points[i], which).estimate),
            min(every, key=lambda i: getattr(points[i], which).estimate),
        ]
    return list(dict.fromkeys(leaders + extremes))


def _overlap(box: Box, other: Box) -> bool:
    return box[0] < other[2] and other[0] < box[2] and box[1] < other[3] and other[1] < box[3]


def _band(moments: Sequence[Moment], across: Axis, up: Axis) -> str:
    upper = [(across.position(m.n), _y(up, m.high)) for m in moments]
    lower = [(across.position(m.n), _y(up, m.low)) for m in reversed(moments)]
    # The hatching must not be stretched with the plot, so the band is a clip of a hatched ground,
    # in shares of its box.
    shape = _line([(x / 100, y / 100) for x, y in upper + lower]) + "Z"
    name = f"band-{crc32(shape.encode()):08x}"
    return (
        f'<clipPath id="{name}" clipPathUnits="objectBoundingBox"><path d="{shape}"/></clipPath>'
        f'<rect width="100%" height="100%" fill="url(#hatch-a)" clip-path="url(#{name})"/>'
    )


def _path(moments: Sequence[Moment], across: Axis, up: Axis) -> str:
    dots = [(across.position(m.n), _y(up, m.estimate)) for m in moments]
    return _stretched(f'<path class="path" d="{_line(dots)}"/>')


def _now(now: Moment, across: Axis, up: Axis) -> str:
    x = across.position(now.n)
    half = (now.high - now.low) / 2
    return (
        f'<line class="now" x1="{x:g}%" x2="{x:g}%" y1="{_y(up, now.high):g}%"'
        f' y2="{_y(up, now.low):g}%"/><circle class="now-dot" cx="{x:g}%"'
        f' cy="{_y(up, now.estimate):g}%" r="4"/><text class="strong" x="{x:g}%"'
        f' y="{_y(up, now.high):g}%" dx="5" dy="-6"'
        f' text-anchor="{"end" if x > 80 else "start"}">last look ±{number_text(half)}</text>'
    )


def _plan(now: Moment, plan: tuple[int, float], across: Axis, up: Axis) -> str:
    n, half = plan
    x0, x1 = across.position(now.n), across.position(n)
    lines = []
    for start, end in ((now.high, now.estimate + half), (now.low, now.estimate - half)):
        lines.append(
            f'<line class="plan" x1="{x0:g}%" x2="{x1:g}%" y1="{_y(up, start):g}%"'
            f' y2="{_y(up, end):g}%"/>'
        )
    top, foot = _y(up, now.estimate + half), _y(up, now.estimate - half)
    return (
        "".join(lines)
        + f'<line class="now" x1="{x1:g}%" x2="{x1:g}%" y1="{top:g}%" y2="{foot:g}%"/><text'
        f' x="{x1:g}%" y="{foot:g}%" dy="16" text-anchor="end">±{number_text(half)} at'
        f" {n:,}</text>"
    )


def _framed(
    body: str,
    across: Axis,
    up: Axis,
    height: int,
    alt: str,
    y_name: str,
    x_name: str,
    *,
    counts: bool = False,
    x_written: Callable[[float], str] | None = None,
    y_written: Callable[[float], str] | None = None,
) -> str:
    write_up = y_written or _whole
    y_labels = "".join(
        f'<text x="28" y="{_y(up, tick):g}%">{write_up(tick)}</text>' for tick in up.ticks
    )
    written = x_written or (count_text if counts else _whole)
    x_labels = "".join(
        f'<text x="{across.position(tick):g}%" y="14">{written(tick)}</text>'
        for tick in across.ticks
    )
    return (
        f'<div class="plot"><span class="y-name">{escape(y_name)}</span><svg class="y-axis"'
        f' height="{height}" aria-hidden="true">{y_labels}</svg><svg class="area" role="img"'
        f' aria-label="{escape(alt)}" width="100%" height="{height}">{body}</svg><svg'
        f' class="x-axis" height="18" aria-hidden="true">{x_labels}</svg><span'
        f' class="x-name">{escape(x_name)}</span></div>'
    )


def _whole(share: float) -> str:
    """Return a tick of a share in whole per cent, with a decimal only where ticks are closer than
    that.
    """
    return number_text(share, decimals=0 if round(share * 100, 6).is_integer() else 1)


def _stretched(body: str) -> str:
    return (
        '<svg viewBox="0 0 100 100" preserveAspectRatio="none" width="100%"'
        f' height="100%">{body}</svg>'
    )


def _line(dots: Sequence[tuple[float, float]]) -> str:
    return "M" + "L".join(f"{x:.4g} {y:.4g}" for x, y in dots)


def _known(value: float | None) -> float:
    assert value is not None  # points without estimates are not drawn
    return value


def _or(value: float | None, instead: float | None) -> float:
    return value if value is not None and math.isfinite(value) else _known(instead)
