"""Draws the figures of the methods page. Every number in them is computed by the estimator that they explain.

Positions across are percentages, so that a figure fills its column while its text keeps its size; colours come from
the style sheet by class.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from html import escape

import numpy as np
from django.utils.safestring import SafeString, mark_safe
from numpy.typing import NDArray

from estimators.estimate import Estimate
from estimators.horvitz_thompson import centred, hajek
from estimators.intervals import wilson
from estimators.joint import joint_precision, simple_precision
from kbpo.web.drawing import Axis, Interval, draw_axis, draw_interval, figures_of
from kbpo.web.figures import NBSP, number_text

Floats = NDArray[np.float64]
WHOLE = Axis(0.0, 1.0, (0.0, 0.25, 0.5, 0.75, 1.0))


@dataclass(frozen=True)
class Figure:
    """A drawing, and the sentence under it."""

    drawing: SafeString
    caption: str


@cache
def draw_simple() -> Figure:
    """Forty predictions, twelve of them drawn and judged: the share that is right, with its interval."""
    drawn = (1, 4, 6, 10, 13, 17, 22, 24, 29, 31, 35, 38)
    right = np.array([1, 1, 0, 1, 1, 0, 1, 1, 1, 0, 1, 0], dtype=np.float64)
    found = simple_precision(right, np.zeros(12, dtype=np.int64), 1, ddof=1)
    verdicts = dict(zip(drawn, right.tolist(), strict=True))
    boxes = [_box(2.5 + 5 * (at % 20), 4 + 22 * (at // 20), verdicts.get(at)) for at in range(40)]
    told = f"{int(right.sum())} of the 12 predictions that were drawn are right"
    return Figure(
        _join(_svg("".join(boxes), 46, told), _bars([("Estimate", _interval(found))])),
        f"Forty predictions; twelve were drawn and judged. {told}: the estimate is {_percent(_first(found.value))},"
        " and the bar says how far another draw of twelve might have moved it.",
    )


@cache
def draw_joint() -> Figure:
    """Two systems that share predictions: what the other's judgments add to the first one's score."""
    rng = np.random.default_rng(3)
    right = rng.random(50) < 0.6
    stated = np.array([np.arange(50) < 40, np.arange(50) >= 10])
    p = stated / stated.sum(axis=1, keepdims=True)
    draws = [rng.choice(50, 20, p=p[system]) for system in (0, 1)]
    row, system = np.concatenate(draws), np.repeat([0, 1], 20)
    label = right[row].astype(np.float64)
    alone = simple_precision(label, system, 2, ddof=1)
    both = joint_precision(p[:, row].T, system, label, p @ p.T, ddof=1)
    shared = int(stated[0][draws[1]].sum())
    dots = [
        _dot(4 + 1.9 * at, 14 + 30 * which, "ab"[which], at in draws[which])
        for which in (0, 1)
        for at in np.flatnonzero(stated[which]).tolist()
    ]
    names = _text(0, 18, "A") + _text(0, 48, "B")
    ground = f'<rect class="lit" x="{4 + 1.9 * 10 - 0.95:g}%" width="{1.9 * 30:g}%" y="0" height="60" rx="4"/>'
    bars = [("A, own draws", _interval(alone, 0)), ("A, with B’s", _interval(both, 0))]
    told = "With the judgments that were made for B, the interval of A is narrower"
    return Figure(
        _join(_svg(ground + names + "".join(dots), 62, told), _bars(bars)),
        "Each dot is a prediction, each filled one was drawn: 20 for A, 20 for B (some twice). The shaded ones are"
        f" stated by both, so {shared} of B’s draws say something about A as well, at no cost."
        f" A’s 80 % interval is {_width(alone, 0)} points wide alone and {_width(both, 0)} with B’s draws.",
    )


@cache
def draw_centred() -> Figure:
    """A model's guesses, the errors that people found in them, and the corrected estimate."""
    rng = np.random.default_rng(41)
    chance = np.sort(rng.beta(0.9, 0.7, 44))
    right = (rng.random(44) < chance).astype(np.float64)
    guess = np.clip(0.3 + 0.68 * chance, 0.02, 0.98)  # it ranks well and is too kind
    asked = np.flatnonzero(rng.random(44) < 0.4)
    p, pi = np.full(asked.size, 1 / 44), np.full(asked.size, 0.4)
    without = hajek(p, pi, right[asked])
    corrected = centred(p, pi, right[asked], guess[asked], float(guess.mean()))
    columns = [_column(13 + 2 * at, float(guess[at]), float(right[at]) if at in asked else None) for at in range(44)]
    words = _text(0, 14, "right") + _text(0, 114, "wrong")
    bars = [
        ("The model alone", Interval(float(guess.mean()))),
        ("Judgments alone", _interval(without)),
        ("Both", _interval(corrected)),
    ]
    told = "Judgments move the model’s guess to where it should be, and the model narrows the interval"
    return Figure(
        _join(_svg(words + "".join(columns), 122, told), _bars(bars)),
        "Each column is what the model guesses for one prediction; a line leads from the guess to what people said of"
        f" the {asked.size} that were asked. The model alone says {_percent(float(guess.mean()))}; in truth"
        f" {_percent(float(right.mean()))} are right. The lines’ mean length is the correction. The 80 % interval is"
        f" {_width(without)} points wide without the model and {_width(corrected)} with it.",
    )


@cache
def draw_recall() -> Figure:
    """What a system found, what only others found and what nobody found: pooled recall against true recall."""
    own, others, nobody = 30, 20, 50
    parts = (("own", own), ("others", others), ("nobody", nobody))
    drawn, at = [], 0
    for name, facts in parts:
        drawn.append(f'<rect class="{name}" x="{at}%" width="{facts}%" y="0" height="30"/>')
        drawn.append(_text(at + facts / 2, 20, str(facts), f"in-{name}", "middle"))
        at += facts
    pooled, true = own / (own + others), own / (own + others + nobody)
    drawn.append(_bracket(own + others, 44, f"the pool: {own} of {own + others} is {_percent(pooled)}"))
    drawn.append(_bracket(100, 84, f"the truth: {own} of {own + others + nobody} is {_percent(true)}"))
    key = "".join(
        f'<li><span class="key {name}"></span>{words}</li>'
        for name, words in (
            ("own", "this system found it"),
            ("others", "only others did"),
            ("nobody", "no system did; people did, reading the document"),
        )
    )
    told = f"The same system has {_percent(pooled)} of what the pool found and {_percent(true)} of what is true"
    return Figure(
        mark_safe(f'{_svg("".join(drawn), 116, told)}<ul class="keys">{key}</ul>'),
        f"The {own + others + nobody} facts of some documents. {told}. Nothing about the system differs; only what"
        " it is measured against does.",
    )


@cache
def draw_coverage() -> Figure:
    """Twenty samples of the same system, each with its 80 % interval, and the truth."""
    rng = np.random.default_rng(7)
    truth, n = 0.62, 60
    values = rng.binomial(n, truth, 20) / n
    low, high = wilson(values, np.full(20, float(n)), 0.8)
    low, high = np.asarray(low), np.asarray(high)
    axis = Axis(0.38, 0.84, (0.4, 0.5, 0.6, 0.7, 0.8))
    hit = (low <= truth) & (truth <= high)
    ends = zip(low.tolist(), values.tolist(), high.tolist(), hit.tolist(), strict=True)
    rows = [_row(axis, 6 + 11 * at, *each) for at, each in enumerate(ends)]
    line = f'<line class="truth" x1="{axis.position(truth):g}%" x2="{axis.position(truth):g}%" y1="0" y2="222"/>'
    told = f"{int(hit.sum())} of 20 intervals contain the truth"
    return Figure(
        mark_safe(_svg(line + "".join(rows), 224, told) + draw_axis(axis)),
        f"Twenty evaluations of one system whose true precision is {_percent(truth)}, with {n} judgments each. {told};"
        " in the long run it is four of five. Those that miss are dashed, with a ✗.",
    )


def _interval(estimate: Estimate, column: int = 0) -> Interval:
    """The estimate of one system with both its intervals."""
    ends = [end for level in (0.8, 0.95) for end in estimate.confidence_interval(level, method="wilson")]
    return Interval(_first(estimate.value, column), *(_first(end, column) for end in ends))


def _first(values: object, column: int = 0) -> float:
    return float(np.atleast_1d(np.asarray(values, dtype=np.float64))[column])


def _width(estimate: Estimate, column: int = 0) -> str:
    shown = _interval(estimate, column)
    assert shown.low80 is not None and shown.high80 is not None
    return number_text(shown.high80 - shown.low80)


def _percent(share: float) -> str:
    return f"{share * 100:.0f}{NBSP}%"


def _bars(named: Sequence[tuple[str, Interval]]) -> str:
    """Named interval bars on one axis, with their figures."""
    rows = []
    for name, shown in named:
        value, ends = figures_of(shown)
        if shown.low80 is None:
            ends = ""
        rows.append(
            f'<div class="bar-row"><span class="name">{escape(name)}</span>{draw_interval(shown, WHOLE, name=name)}'
            f'<span class="figures"><b>{escape(value)}</b> {escape(ends)}</span></div>'
        )
    return f'<div class="bars">{"".join(rows)}{draw_axis(WHOLE)}</div>'


def _box(x: float, y: float, right: float | None) -> str:
    """A prediction: an empty box, or one with its verdict."""
    kind = {None: "", 1.0: " right", 0.0: " wrong"}[right]
    sign = "" if right is None else _text(x, y + 13, "✓" if right else "✗", f"sign{kind}", "middle")
    box = f'<rect class="box{kind}" x="-8" width="16" height="16" rx="3"/>'
    return f'<svg x="{x:g}%" y="{y}" width="1" height="1">{box}</svg>{sign}'


def _dot(x: float, y: float, tone: str, drawn: bool) -> str:
    return f'<circle class="dot {tone}{" drawn" if drawn else ""}" cx="{x:g}%" cy="{y}" r="3"/>'


def _column(x: float, guess: float, right: float | None) -> str:
    """The model's guess as a column; for a judged prediction, the line from the guess to the verdict."""
    top = 110 - 100 * guess
    drawn = f'<line class="guess" x1="{x:g}%" x2="{x:g}%" y1="110" y2="{top:.1f}"/>'
    if right is None:
        return drawn
    end = 110 - 100 * right
    return (
        f'{drawn}<line class="error" x1="{x:g}%" x2="{x:g}%" y1="{top:.1f}" y2="{end:.1f}"/>'
        f'<circle class="dot a drawn" cx="{x:g}%" cy="{end:.1f}" r="3.5"/>'
    )


def _bracket(width: float, y: float, words: str) -> str:
    """A measure from the left edge, with its words under it."""
    ends = "".join(f'<line class="measure" x1="{x:g}%" x2="{x:g}%" y1="{y - 4}" y2="{y + 4}"/>' for x in (0, width))
    return f'<line class="measure" x1="0%" x2="{width:g}%" y1="{y}" y2="{y}"/>{ends}{_text(0, y + 20, words)}'


def _row(axis: Axis, y: float, low: float, value: float, high: float, hit: bool) -> str:
    """One interval among many: a line with its estimate; dashed and crossed if it misses."""
    kind = "hit" if hit else "miss"
    left, tick, right = (axis.position(float(end)) for end in (low, value, high))
    sign = "" if hit else f'<text class="sign wrong" x="{right:g}%" dx="6" y="{y + 4}">✗</text>'
    return (
        f'<line class="{kind}" x1="{left:g}%" x2="{right:g}%" y1="{y}" y2="{y}"/>'
        f'<line class="{kind} tick" x1="{tick:g}%" x2="{tick:g}%" y1="{y - 4}" y2="{y + 4}"/>{sign}'
    )


def _text(x: float, y: float, words: str, kind: str = "", anchor: str = "start") -> str:
    named = f' class="{kind}"' if kind else ""
    return f'<text{named} x="{x:g}%" y="{y:g}" text-anchor="{anchor}">{escape(words)}</text>'


def _svg(body: str, height: int, told: str) -> str:
    return f'<svg class="explain" role="img" aria-label="{escape(told)}" width="100%" height="{height}">{body}</svg>'


def _join(*parts: str) -> SafeString:
    return mark_safe("".join(parts))  # every text in it was escaped


FIGURES: tuple[Callable[[], Figure], ...] = (draw_simple, draw_joint, draw_centred, draw_recall, draw_coverage)
"""All of them, for those that look at every one."""
