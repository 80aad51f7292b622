"""What the figures of the methods page are made of: SVG pieces, named bars, and the words of their
captions.

Positions across are percentages, so that a figure fills its column while its text keeps its size;
colours come from the style sheet by class.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape

import numpy as np
from django.utils.safestring import SafeString, mark_safe

from estimators.estimate import Estimate
from kbpo.web.components.drawing import Axis, Interval, draw_axis, draw_interval, figures_of
from kbpo.web.components.figures import NBSP, number_text

WHOLE = Axis(0.0, 1.0, (0.0, 0.25, 0.5, 0.75, 1.0))


@dataclass(frozen=True)
class Figure:
    """A drawing, and the sentence under it."""

    drawing: SafeString
    caption: str


def interval_of(estimate: Estimate, column: int = 0) -> Interval:
    """Return the estimate of one system with both its intervals."""
    ends = [
        end for level in (0.8, 0.95) for end in estimate.confidence_interval(level, method="wilson")
    ]
    return Interval(first(estimate.value, column), *(first(end, column) for end in ends))


def first(values: object, column: int = 0) -> float:
    return float(np.atleast_1d(np.asarray(values, dtype=np.float64))[column])


def width(estimate: Estimate, column: int = 0) -> str:
    shown = interval_of(estimate, column)
    assert shown.low80 is not None and shown.high80 is not None
    return number_text(shown.high80 - shown.low80)


def percent(share: float) -> str:
    return f"{share * 100:.0f}{NBSP}%"


def bars(named: Sequence[tuple[str, Interval]]) -> str:
    """Named interval bars on one axis, with their figures."""
    drawn = []
    for name, shown in named:
        value, ends = figures_of(shown)
        if shown.low80 is None:
            ends = ""
        drawn.append(
            '<div class="bar-row"><span'
            f' class="name">{escape(name)}</span>{draw_interval(shown, WHOLE, name=name)}<span'
            f' class="figures"><b>{escape(value)}</b> {escape(ends)}</span></div>'
        )
    return f'<div class="bars">{"".join(drawn)}{draw_axis(WHOLE)}</div>'


def tile(x: float, y: float, count: int | None) -> str:
    """Return a document: an empty box, or one that was read, with a number."""
    sign = "" if count is None else text(x, y + 12, str(count), "sign", "middle")
    box = (
        f'<rect class="{"box" if count is None else "box read"}" x="-8" width="16" height="16"'
        ' rx="1"/>'
    )
    return f'<svg x="{x:g}%" y="{y}" width="1" height="1">{box}</svg>{sign}'


def stack(parts: Mapping[str, int], y: float) -> str:
    """Numbers beside each other as one bar of the whole width; the names are classes."""
    drawn, at, total = [], 0.0, sum(parts.values())
    for name, number in parts.items():
        share = 100 * number / total
        drawn.append(
            f'<rect class="{name}" x="{at:.4g}%" width="{share:.4g}%" y="{y}" height="30"/>'
        )
        drawn.append(text(round(at + share / 2, 2), y + 20, str(number), f"in-{name}", "middle"))
        at += share
    return "".join(drawn)


def keys(named: Mapping[str, str]) -> str:
    """Return what the colours of these classes mean."""
    entries = (
        f'<li><span class="key {name}"></span>{escape(meaning)}</li>'
        for name, meaning in named.items()
    )
    return f'<ul class="keys">{"".join(entries)}</ul>'


def dot(x: float, y: float, tone: str, drawn: bool) -> str:
    return f'<circle class="dot {tone}{" drawn" if drawn else ""}" cx="{x:g}%" cy="{y}" r="3"/>'


def column(x: float, guess: float, right: float | None) -> str:
    """Return the model's guess as a column; for a judged prediction, the line from the guess to the
    verdict.
    """
    top = 110 - 100 * guess
    drawn = f'<line class="guess" x1="{x:g}%" x2="{x:g}%" y1="110" y2="{top:.1f}"/>'
    if right is None:
        return drawn
    end = 110 - 100 * right
    return (
        f'{drawn}<line class="error" x1="{x:g}%" x2="{x:g}%" y1="{top:.1f}" y2="{end:.1f}"/>'
        f'<circle class="dot a drawn" cx="{x:g}%" cy="{end:.1f}" r="3.5"/>'
    )


def bracket(width: float, y: float, words: str) -> str:
    """Return a measure from the left edge, with its words under it."""
    ends = "".join(
        f'<line class="measure" x1="{x:g}%" x2="{x:g}%" y1="{y - 4}" y2="{y + 4}"/>'
        for x in (0, width)
    )
    return (
        f'<line class="measure" x1="0%" x2="{width:g}%" y1="{y}"'
        f' y2="{y}"/>{ends}{text(0, y + 20, words)}'
    )


def text(x: float, y: float, words: str, kind: str = "", anchor: str = "start") -> str:
    named = f' class="{kind}"' if kind else ""
    return f'<text{named} x="{x:g}%" y="{y:g}" text-anchor="{anchor}">{escape(words)}</text>'


def svg(body: str, height: int, alt: str) -> str:
    return (
        f'<svg class="explain" role="img" aria-label="{escape(alt)}" width="100%"'
        f' height="{height}">{body}</svg>'
    )


def join(*parts: str) -> SafeString:
    return mark_safe("".join(parts))  # every text in it was escaped
