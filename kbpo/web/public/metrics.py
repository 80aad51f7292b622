"""What each metric and judge of a track is worth, what a question is worth, and how many judgments
a study takes: public, every figure with its numbers as CSV.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any
from urllib.parse import urlencode

import numpy as np
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, render
from django.urls import path, reverse
from django.utils.safestring import SafeString, mark_safe

from kbpo.evaluation.models import Evaluation
from kbpo.evaluation.worth import FEWEST
from kbpo.instances.models import Target
from kbpo.sampling.study import Study, study_of
from kbpo.submissions.models import Prediction, Submission
from kbpo.tracks.base import Track as Kind
from kbpo.tracks.measures import Criterion
from kbpo.tracks.models import Track
from kbpo.tracks.registry import kind_of, n_inputs
from kbpo.tracks.texts.ratings import rated, targets_of
from kbpo.web.components import drawing, plots
from kbpo.web.components.drawing import Axis, Interval
from kbpo.web.components.figures import coefficient_text, count_text, number_text
from kbpo.web.expensive import expensive
from kbpo.web.public.metric_tables import (
    FIGURES,
    cards_of,
    curve_rows,
    names_of,
    scorers_of,
    single_of,
    tabulate,
    widths_of,
    worth_under,
)
from kbpo.web.public.points import draw_points, points_of
from kbpo.web.table import csv_response
from scoring.report import Worth

WORTHS = (1.05, 1.1, 1.2, 1.5, 2.0, 3.0)
"""Contours of equal worth"""
LEAST_ACROSS = 0.4
"""How far the axis of γ goes at least"""
MOST_DRAWN = 10.0
"""Where the axis of a ratio ends at the latest"""
STEPS = 40
SOME, STRONG = 0.05, 0.09
"""Biases from which a cell is bold, and filled"""
HALF, WELL = 0.3, 0.5
"""Correlations from which it is"""


@expensive
def show(request: HttpRequest, slug: str) -> HttpResponse:
    """The page; `?criterion=` chooses what is judged."""
    track, kind, criterion, evaluation = _asked(request, slug)
    stored = worth_under(evaluation, criterion)
    study = study_of(kind, criterion, stored)
    names, cards = names_of(evaluation), cards_of(track, evaluation, criterion)
    single, label = single_of(stored), kind.measures.criterion(criterion).label
    prompts = _prompts(kind, evaluation)
    context: dict[str, Any] = {
        "track": track,
        "kind": kind,
        "words": kind.words,
        "evaluation": evaluation,
        "criterion": label,
        "criteria": _criteria(track, kind, criterion),
        "told": evaluation.report.worth.get(criterion) if evaluation else None,
        "fewest": FEWEST,
        "scorers": cards,
        "beyond": any(card.scorer.worth is not None and card.scorer.rho is None for card in cards),
        "axis": _axis(1.0, [card.interval for card in cards]),
        "savings": [card for card in cards[:2] if card.saves is not None],
        "late": evaluation.report.late_scorers if evaluation else (),
        "prompts": prompts,
        "untold": [
            other.label
            for other in kind.measures.criteria
            if (parts := worth_under(evaluation, other.name).components) and parts.gamma is None
        ],
        "prompt_axis": _axis(0.0, [prompt["gamma"] for prompt in prompts]),
        "contours": _contours(kind, evaluation, criterion),
        "systems": names,
        "bias": _bias(stored, names),
        "left_out": _left_out(stored, names),
        "lower_is_better": not kind.measures.criterion(criterion).higher_is_better,
        "prmse_warnings": _prmse_warnings(stored),
        "within": _within(stored, names),
        "points": draw_points(points_of(kind, criterion, single), single.label, label)
        if single
        else "",
        "single": single,
        "quadrants": _quadrants(kind, kind.measures.criterion(criterion), stored),
        "widths": widths_of(kind, study),
        "curve": _curve(kind, study),
        "study": study,
        "n_inputs": n_inputs(kind.track, test=True),
        "csv": {
            name: reverse("metrics-csv", args=[slug, name])
            + f"?{urlencode({'criterion': criterion})}"
            for name in FIGURES
        },
    }
    return render(request, "metrics.html", context)


def _asked(request: HttpRequest, slug: str) -> tuple[Track, Kind, str, Evaluation | None]:
    track = get_object_or_404(Track.objects.exclude(status="draft"), slug=slug)
    kind = kind_of(track)
    criterion = request.GET.get("criterion", track.criterion)
    if criterion not in kind.measures.criterion_names():
        raise Http404(f"This track judges {', '.join(kind.measures.criterion_names())}.")
    return track, kind, criterion, track.evaluations.order_by("-number").first()


def _criteria(track: Track, kind: Kind, chosen: str) -> list[dict[str, Any]]:
    address = reverse("metrics", args=[track.slug])
    return [
        {
            "url": f"{address}?{urlencode({'criterion': criterion.name})}",
            "text": criterion.label,
            "current": criterion.name == chosen,
        }
        for criterion in kind.measures.criteria
    ]


def _axis(start: float, intervals: Sequence[Interval]) -> Axis:
    """The axis of a column of ratios, from `start` at the latest."""
    return drawing.axis_over([Interval(start), *intervals], bounds=(0.0, MOST_DRAWN))


def _prompts(kind: Kind, evaluation: Evaluation | None) -> list[dict[str, Any]]:
    """What each question is worth: how much people differ, against how much things do."""
    prompts = []
    for criterion in kind.measures.criteria:
        parts = worth_under(evaluation, criterion.name).components
        if parts is not None and parts.gamma is not None:
            gamma = Interval(parts.gamma, *parts.gamma_80)
            prompts.append({"most": parts.most, "label": criterion.label, "gamma": gamma})
    return sorted(prompts, key=lambda prompt: prompt["gamma"].estimate)


def _bias(stored: Worth, names: dict[int, str]) -> list[dict[str, Any]]:
    """By how much each metric alone over- or underrates each system on the board."""
    return [
        {
            "label": scorer.label,
            "bias": [_shade(name, scorer.bias.get(number)) for number, name in names.items()],
        }
        for scorer in scorers_of(stored)
        if scorer.bias
    ]


def _left_out(stored: Worth, names: dict[int, str]) -> list[str]:
    """Of which systems which metrics say nothing, in words."""
    phrases = []
    for scorer in scorers_of(stored):
        systems = [names[number] for number in scorer.left_out if number in names]
        if systems:
            phrases.append(f"{scorer.label} of {', '.join(systems)}")
    return phrases


def _prmse_warnings(stored: Worth) -> list[str]:
    """What must be known of the column PRMSE, each sentence once."""
    scorers = scorers_of(stored)
    return list(dict.fromkeys(warning for row in scorers for warning in row.prmse_warnings))


def _within(stored: Worth, names: dict[int, str]) -> list[dict[str, Any]]:
    """How each metric goes with people among the outputs of each system on the board."""
    return [
        {
            "label": scorer.label,
            "r": [
                _shade(name, scorer.within.get(number), HALF, WELL)
                for number, name in names.items()
            ],
        }
        for scorer in scorers_of(stored)
        if scorer.within
    ]


def _shade(
    name: str, value: float | None, weak: float = SOME, strong: float = STRONG
) -> dict[str, Any]:
    """A bias or a correlation with a system, and how strongly it is drawn."""
    size = abs(value or 0.0)
    shade = "strong" if size >= strong else "some" if size >= weak else ""
    return {"name": name, "value": value, "shade": shade}


def _quadrants(kind: Kind, criterion: Criterion, stored: Worth) -> dict[str, Any] | None:
    """Where the best single metric and people part, with a text of each kind that everybody may
    see.
    """
    single = [scorer for scorer in scorers_of(stored) if scorer.quadrants and scorer.id is not None]
    if not single:
        return None
    words = ("Both like it", "The metric alone", "People alone", "Neither")
    examples = [_example(kind, instances) for instances in single[0].examples]
    shares = zip(words, single[0].quadrants, examples, strict=True)
    return {
        "label": single[0].label,
        "shares": list(shares),
        "any": any(examples),
        "liked": _liked(criterion),
    }


def _liked(criterion: Criterion) -> str:
    """What people like, in words."""
    side = "above" if criterion.higher_is_better else "below"
    if criterion.liked_from == 0.5:
        return f"{side} the middle of their scale"
    end = number_text(criterion.on_scale(criterion.liked_from), decimals=0)
    return f"{side} {end}{' %' if criterion.unit == '%' else ''}"


def _example(kind: Kind, instances: Sequence[int]) -> str:
    """The first text of a system on the board whose judgments everybody may see; none where there
    is no such, or things are no texts.
    """
    if not kind.rates or not instances:
        return ""
    board = Submission.objects.filter(track=kind.track).on_board()
    predicted = set(
        Prediction.objects.filter(instance__in=instances, submission__in=board).values_list(
            "instance_id", flat=True
        )
    )
    shown = [instance for instance in instances if instance in predicted]
    targets = targets_of(np.array(shown, dtype=np.int64)).tolist()
    public = rated(targets, public=True)
    chosen = next((target for target in targets if target in public), None)
    if chosen is None:
        return ""
    content = Target.objects.get(pk=chosen).content or {}
    return str(content.get("text", ""))


def _curve(kind: Kind, study: Study | None) -> SafeString | str:
    """Width against number of judgments."""
    points = curve_rows(kind, study)
    if study is None or not points:
        return ""
    names = ["people alone", "with all metrics", "noiseless people", "perfect metric"]
    kinds, places = ("ground", "path", "equal", "equal"), (0.2, 0.5, 0.75, 1.0)
    shown = [0, 1, 2, 3] if study.rho else [0, 2, 3]
    curves = [
        plots.Curve(
            names[index], [(row[0], row[1 + index]) for row in points], kinds[index], places[index]
        )
        for index in shown
    ]
    up = drawing.axis_over([Interval(0.0), Interval(max(points[0][1:]))], ticks=5)
    return mark_safe(
        plots.draw_curves(
            curves,
            [],
            plots.counts_axis(int(points[-1][0])),
            up,
            "Half-width of an 80 % interval against the number of judgments.",
            x_name="Judgments of one system",
            y_name="Half-width, points",
            x_written=lambda n: count_text(int(n)),
            y_written=lambda width: f"±{number_text(width, decimals=0)}",
        )
    )


def _contours(kind: Kind, evaluation: Evaluation | None, criterion: str) -> SafeString | str:
    """ρ of each metric against γ of the question, over lines of equal worth; the other questions of
    the track in grey, each with its name.
    """
    told = {name: worth_under(evaluation, name) for name in kind.measures.criterion_names()}
    gammas = {
        name: stored.components.gamma if stored.components else None
        for name, stored in told.items()
    }
    if gammas[criterion] is None:
        return ""
    known = {name: gamma for name, gamma in gammas.items() if gamma is not None}
    across = _axis(0.0, [Interval(max(1.3 * max(known.values()), LEAST_ACROSS))])
    up = Axis(0.0, 1.0, (0.0, 0.25, 0.5, 0.75, 1.0))
    dots = _dots(told[criterion], known.pop(criterion))
    for name, gamma in known.items():
        dots += _dots(told[name], gamma, kind.measures.criterion(name).label)
    return mark_safe(
        plots.draw_curves(
            [_contour(worth, across.high) for worth in WORTHS],
            dots,
            across,
            up,
            "How each metric goes with people, over lines of equal worth.",
            x_name="γ: how much people differ, against how much things do",
            y_name="ρ with people, noise removed",
            x_written=lambda value: f"{value:g}",
            y_written=coefficient_text,
        )
    )


def _contour(worth: float, widest: float) -> plots.Curve:
    """The line on which a metric is worth so much."""
    points = []
    for step in range(STEPS + 1):
        x = widest * step / STEPS
        square = (1 + x) * (1 - 1 / worth)
        if square <= 1:
            points.append((x, square**0.5))
    return plots.Curve(f"{worth:g} ×", points, "equal", is_short=True)


def _dots(stored: Worth, gamma: float, other: str = "") -> list[plots.Dot]:
    """The metrics and judges under one question, from the highest down: the first three named; of
    another question all in grey, the highest with the question's name.
    """
    known = [(one.label, abs(one.rho)) for one in scorers_of(stored) if one.rho]
    named = {label for label, _ in known[:3]}
    known.sort(key=lambda pair: -pair[1])
    if not other:
        return [plots.Dot(label, gamma, rho, label in named) for label, rho in known]
    return [
        plots.Dot(f"{other}: {label}" if place else other, gamma, rho, not place, is_quiet=True)
        for place, (label, rho) in enumerate(known)
    ]


@expensive
def as_csv(request: HttpRequest, slug: str, figure: str) -> HttpResponse:
    """The numbers behind one figure."""
    track, kind, criterion, evaluation = _asked(request, slug)
    if figure not in FIGURES:
        raise Http404(f"The figures are {', '.join(FIGURES)}.")
    header, rows = tabulate(kind, evaluation, criterion, figure)
    return csv_response(f"{track.slug}-{criterion}-{figure}.csv", header, rows)


urlpatterns = [
    path("tracks/<slug:slug>/metrics/", show, name="metrics"),
    path("tracks/<slug:slug>/metrics/<slug:figure>.csv", as_csv, name="metrics-csv"),
]
