"""Plots on two logarithmic axes as inline SVG: how many things occur how often."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

from django.utils.safestring import SafeString, mark_safe

from kbpo.web.components.figures import count_text

HEIGHT = 280
FORMS = ("dot-a", "dot-b")
"""Round and filled, or square: colour never speaks alone."""


@dataclass(frozen=True)
class Series:
    """One set of points (x, y), with its name."""

    name: str
    points: Sequence[tuple[float, float]]

    @property
    def drawable(self) -> list[tuple[float, float]]:
        """Those that logarithmic axes have a place for."""
        return [(x, y) for x, y in self.points if x > 0 and y > 0]


def draw_log_log(series: Sequence[Series], alt: str, *, x_name: str, y_name: str) -> SafeString:
    """The points of up to two series on axes of powers of ten."""
    xs, ys = [], []
    for curve in series:
        for x, y in curve.drawable:
            xs.append(x)
            ys.append(y)
    across, up = _powers(xs or [1.0]), _powers(ys or [1.0])
    body, x_labels, y_labels = "", "", ""
    for power in up:
        y = _y(up, power)
        body += f'<line class="grid" x1="0" x2="100%" y1="{y}%" y2="{y}%"/>'
        y_labels += f'<text x="28" y="{y}%">{_power(power)}</text>'
    for power in across:
        x = _x(across, power)
        body += f'<line class="grid" x1="{x}%" x2="{x}%" y1="0" y2="100%"/>'
        x_labels += f'<text x="{x}%" y="14">{_power(power)}</text>'
    for form, curve in zip(FORMS, series, strict=False):
        body += f'<g class="{form}"><title>{escape(curve.name)}</title>'
        for x, y in curve.drawable:
            body += _mark(form, _x(across, x), _y(up, y))
        body += "</g>"
    return mark_safe(  # all text is ours or escaped
        f'<div class="plot"><span class="y-name">{escape(y_name)}</span><svg class="y-axis"'
        f' height="{HEIGHT}" aria-hidden="true">{y_labels}</svg><svg class="area" role="img"'
        f' aria-label="{escape(alt)}" width="100%" height="{HEIGHT}">{body}</svg><svg'
        f' class="x-axis" height="18" aria-hidden="true">{x_labels}</svg><span'
        f' class="x-name">{escape(x_name)}</span></div>'
    )


def draw_key(series: Sequence[Series]) -> SafeString:
    """What each form of point stands for."""
    items = (
        '<span class="plot-name"><svg class="plot-key" width="12" height="12"'
        f' aria-hidden="true"><g class="{form}">{_mark(form, 50, 50)}</g></svg>'
        f" {escape(curve.name)}</span>"
        for form, curve in zip(FORMS, series, strict=False)
    )
    return mark_safe(" ".join(items))


def _mark(form: str, x: float, y: float) -> str:
    if form == "dot-a":
        return f'<circle cx="{x}%" cy="{y}%" r="3.5"/>'
    return f'<rect x="{x}%" y="{y}%" width="7" height="7" transform="translate(-3.5 -3.5)"/>'


def _powers(values: Sequence[float]) -> list[float]:
    first, last = math.floor(math.log10(min(values))), math.ceil(math.log10(max(values)))
    return [10.0**power for power in range(first, max(last, first + 1) + 1)]


def _x(axis: Sequence[float], value: float) -> float:
    """Where a value stands, in per cent, a little inside both ends so that no point is cut."""
    low, high = math.log10(axis[0]), math.log10(axis[-1])
    return round(2 + 96 * (math.log10(value) - low) / (high - low), 3)


def _y(axis: Sequence[float], value: float) -> float:
    return round(100 - _x(axis, value), 3)


def _power(value: float) -> str:
    return count_text(value) if value >= 1 else f"{value:g}"
