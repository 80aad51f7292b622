"""The study of pooling bias on a track: a table, a figure, the numbers behind it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from html import escape
from typing import Any

from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import path
from django.utils.safestring import SafeString, mark_safe

from kbpo.evaluation.models import Inquiry
from kbpo.evaluation.studies.pooling import HEAD, QUANTITIES, study
from kbpo.web.access import admin_of, for_admins, track_of_relations
from kbpo.web.components.drawing import Axis
from kbpo.web.components.figures import number_text
from kbpo.web.csv import csv_response

WHAT = "pooling"
NAMES = {"precision": "Precision", "recall": "Recall", "f1": "F1"}
METRICS = {"official": "Official", "anydoc": "Any document"}
HEIGHT = 150
WORDS = 16
"""Pixels that a line of words takes."""


@for_admins
def show(request: HttpRequest, slug: str) -> HttpResponse:
    """The last study of a track. A POST asks for a new one."""
    track = track_of_relations(slug)
    if request.method == "POST":
        Inquiry.ask(track, WHAT, admin_of(request))
        return redirect("desk-pooling", slug=slug)
    inquiry = Inquiry.objects.filter(track=track, what=WHAT).first()
    study = inquiry.answer if inquiry else None
    context: dict[str, Any] = {"track": track, "inquiry": inquiry, "study": study}
    if study:
        context |= {"summary": [_told(row) for row in study["summary"]], "figures": figures(study)}
    return render(request, "desk/pooling.html", context)


@for_admins
def as_csv(request: HttpRequest, slug: str) -> HttpResponse:
    """Every system's scores with and without its team in the pool, by the last study."""
    inquiry = get_object_or_404(Inquiry, track__slug=slug, what=WHAT)
    if not inquiry.answer:
        raise Http404("There are no judged predictions of two teams on this track yet.")
    rows = [["" if cell is None else cell for cell in row] for row in inquiry.answer["rows"]]
    return csv_response(f"pooling-{slug}.csv", HEAD, rows)


def answer(inquiry: Inquiry) -> dict[str, Any]:
    """The study as it is stored; nothing before two teams have judged predictions."""
    outcome = study(inquiry.track)
    return outcome.told() if outcome is not None else {}


def _told(row: dict[str, Any]) -> dict[str, Any]:
    median, gap = row["median"], row["gap"]
    matters = median is not None and gap is not None and median > gap
    return row | {
        "metric": METRICS[row["metric"]],
        "quantity": NAMES[row["quantity"]],
        "matters": matters,
    }


def figures(study: dict[str, Any]) -> list[dict[str, Any]]:
    """One drawing for each quantity and metric: the bias of each system in the order of rank."""
    drawn = []
    for row in study["summary"]:
        metric, quantity = row["metric"], row["quantity"]
        biases = [
            _number(system_row[-1])
            for system_row in study["rows"]
            if system_row[:2] == [metric, quantity]
        ]
        if any(math.isfinite(bias) for bias in biases):
            name = f"{NAMES[quantity]}, {METRICS[metric].lower()}"
            drawn.append(
                {
                    "name": name,
                    "svg": draw(biases, _number(row["median"]), _number(row["gap"]), name),
                }
            )
    return sorted(
        drawn, key=lambda figure: [NAMES[q] for q in QUANTITIES].index(figure["name"].split(",")[0])
    )


def _number(value: object) -> float:
    return float(value) if isinstance(value, float) else math.nan


def draw(biases: Sequence[float], median: float, gap: float, name: str) -> SafeString:
    """Bias by rank as points, its median and the largest gap between neighbours in rank as
    lines.
    """
    up = _axis([value for value in (*biases, median, gap) if math.isfinite(value)])
    body = "".join(
        f'<line class="{"mark" if tick == 0 else "grid"}" x1="0" x2="100%" y1="{_y(up, tick)}%"'
        f' y2="{_y(up, tick)}%"/>'
        for tick in up.ticks
    )
    for value, other, style, words in (
        (gap, median, "mark", "largest gap"),
        (median, gap, "plan", "median bias"),
    ):
        if math.isfinite(value):
            y = _y(up, value)
            # The words stand above their line, but those of the lower line below it where both
            # would meet.
            meet = abs(y - _y(up, other)) < 100 * WORDS / HEIGHT
            shift = 14 if meet and (value < other or (value == other and style == "plan")) else -4
            body += f'<line class="{style}" x1="0" x2="100%" y1="{y}%" y2="{y}%"/>'
            body += (
                f'<text x="100%" y="{y}%" dy="{shift}" text-anchor="end">{words}'
                f" {number_text(value)}</text>"
            )
    for rank, value in enumerate(biases):
        if not math.isfinite(value):
            continue
        x = 100 * (rank + 0.5) / len(biases)
        body += f'<circle class="now-dot" cx="{x:.3g}%" cy="{_y(up, value)}%" r="3.5"/>'
    alt = (
        f"{name}: median bias {number_text(median)}, largest gap between neighbours"
        f" {number_text(gap)}"
    )
    labels = "".join(
        f'<text x="28" y="{_y(up, tick)}%">{number_text(tick, decimals=0)}</text>'
        for tick in up.ticks
    )
    return mark_safe(  # all text is ours or escaped
        '<div class="plot"><span class="y-name">Bias in points</span><svg class="y-axis"'
        f' height="{HEIGHT}" aria-hidden="true">{labels}</svg><svg class="area" role="img"'
        f' aria-label="{escape(alt)}" width="100%" height="{HEIGHT}">{body}</svg><span'
        ' class="x-name">Systems from best to worst</span></div>'
    )


def _axis(figures: Sequence[float]) -> Axis:
    """An axis that holds every number and 0: a bias below 0 is one, and stands below the line."""
    low, high = min([0.0, *figures]), max([0.0, *figures])
    step = next((width for width in (0.01, 0.05, 0.25) if high - low <= 5 * width + 1e-9), 0.25)
    first, last = math.floor(low / step + 1e-9), math.ceil(high / step - 1e-9)
    last = max(last, first + 1)
    return Axis(
        first * step, last * step, tuple(round(tick * step, 4) for tick in range(first, last + 1))
    )


def _y(axis: Axis, value: float) -> float:
    return round(100 - axis.position(value), 3)


urlpatterns = [
    path("desk/tracks/<slug:slug>/pooling/", show, name="desk-pooling"),
    path("desk/tracks/<slug:slug>/pooling.csv", as_csv, name="desk-pooling-csv"),
]
