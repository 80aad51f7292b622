"""What each metric and judge of a track is worth, what a question is worth, and how many judgments
a study takes: public, every figure with its numbers as a file.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any
from urllib.parse import urlencode

import numpy as np
from django.http import Http404, HttpRequest
from django.http.response import HttpResponseBase
from django.shortcuts import get_object_or_404, render
from django.urls import path, reverse
from django.utils.safestring import SafeString, mark_safe

from kbpo.evaluation.leaderboard import Board, board
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
    curve_of,
    names_of,
    points_of,
    scorers_of,
    single_of,
    table_of,
    widths_of,
    worth_under,
)
from scoring.report import Scorer, Worth

WORTHS = (1.05, 1.1, 1.2, 1.5, 2.0, 3.0)
"""Contours of equal worth"""
LEAST_ACROSS = 0.4
"""How far the axis of γ goes at least"""
MOST_DRAWN = 10.0
"""Where the axis of a ratio ends at the latest"""
MOST_POINTS = 500
STEPS = 40
BIASED = 0.05, 0.09
"""Biases from which a cell is bold, and filled"""
ALIKE = 0.3, 0.5
"""Correlations from which it is"""
SHARES = (0.0, 0.25, 0.5, 0.75, 1.0)


@expensive
def show(request: HttpRequest, slug: str) -> HttpResponseBase:
    """Return the page, or with `?format=csv` the numbers behind one `figure`; `?criterion=` chooses
    what is judged.
    """
    track = get_object_or_404(Track.objects.exclude(status="draft"), slug=slug)
    kind, figure = kind_of(track), request.GET.get("figure", "worth")
    criterion = request.GET.get("criterion", track.criterion)
    if criterion not in kind.measures.criterion_names():
        raise Http404(f"This track judges {', '.join(kind.measures.criterion_names())}.")
    evaluation = track.evaluations.order_by("-number").first()
    if figure not in FIGURES:
        raise Http404(f"The figures are {', '.join(FIGURES)}.")
    if "format" in request.GET:
        return table_of(kind, evaluation, criterion, figure).file(request)
    stored = worth_under(evaluation, criterion)
    shown = board(track, distribution=track.distribution, criterion=criterion)
    study, names, single = (
        study_of(kind, criterion, stored),
        names_of(evaluation),
        single_of(stored),
    )
    cards, prompts = cards_of(shown, stored), _prompts(kind, evaluation)
    address, label = reverse("metrics", args=[slug]), kind.measures.criterion(criterion).label
    context: dict[str, Any] = {
        "track": track,
        "kind": kind,
        "words": kind.words,
        "evaluation": evaluation,
        "criterion": label,
        "criteria": [
            {
                "url": f"{address}?{urlencode({'criterion': one.name})}",
                "text": one.label,
                "current": one.name == criterion,
            }
            for one in kind.measures.criteria
        ],
        "told": evaluation.report.worth.get(criterion) if evaluation else None,
        "fewest": FEWEST,
        "scorers": cards,
        "beyond": any(card.scorer.worth is not None and card.scorer.rho is None for card in cards),
        "axis": _axis(1.0, [card.interval for card in cards]),
        "savings": [card for card in cards[:2] if card.saves is not None],
        "late": evaluation.report.late_scorers if evaluation else (),
        "prompts": prompts,
        "prompt_axis": _axis(0.0, [prompt["gamma"] for prompt in prompts]),
        "contours": _contours(kind, evaluation, criterion),
        "systems": names,
        "bias": _heat(stored, names, "bias", BIASED, lambda x: number_text(x, signed=True)),
        "within": _heat(stored, names, "within", ALIKE, coefficient_text),
        "lower_is_better": not kind.measures.criterion(criterion).higher_is_better,
        "prmse_warnings": dict.fromkeys(
            warning for row in scorers_of(stored) for warning in row.prmse_warnings
        ),
        "single": single,
        "of_systems": _draw_systems(shown, single, label) if single else "",
        "points": _draw_points(points_of(kind, criterion, single), single, label) if single else "",
        "quadrants": _quadrants(kind, kind.measures.criterion(criterion), stored),
        "widths": list(widths_of(kind, study)),
        "curve": _curve(kind, study),
        "study": study,
        "n_inputs": n_inputs(kind.track, test=True),
        "csv": {
            name: f"?{urlencode({'criterion': criterion, 'figure': name, 'format': 'csv'})}"
            for name in FIGURES
        },
    }
    return render(request, "metrics.html", context)


def _axis(start: float, intervals: Sequence[Interval]) -> Axis:
    """Return the axis of a column of ratios, from `start` at the latest."""
    return drawing.axis_over([Interval(start), *intervals], bounds=(0.0, MOST_DRAWN))


def _prompts(kind: Kind, evaluation: Evaluation | None) -> list[dict[str, Any]]:
    """Return what each question is worth: how much people differ, against how much things do."""
    prompts = []
    for criterion in kind.measures.criteria:
        parts = worth_under(evaluation, criterion.name).components
        if parts is not None and parts.gamma is not None:
            gamma = Interval(parts.gamma, *parts.gamma_80)
            prompts.append({"most": parts.most, "label": criterion.label, "gamma": gamma})
    return sorted(prompts, key=lambda prompt: prompt["gamma"].estimate)


def _heat(
    stored: Worth,
    names: dict[int, str],
    what: str,
    thresholds: tuple[float, float],
    written: Callable[[float | None], str],
) -> list[dict[str, Any]]:
    """Return what is stored of each metric by system on the board, a row a metric: each cell in
    words, and how strongly it is drawn.
    """
    some, strong = thresholds
    rows = []
    for scorer in scorers_of(stored):
        values, cells = getattr(scorer, what), []
        for number, name in names.items():
            size = abs(values.get(number) or 0.0)
            shade = "strong" if size >= strong else "some" if size >= some else ""
            cells.append({"name": name, "text": written(values.get(number)), "shade": shade})
        if values:
            rows.append({"label": scorer.label, "cells": cells})
    return rows


def _quadrants(kind: Kind, criterion: Criterion, stored: Worth) -> dict[str, Any] | None:
    """Return where the best single metric and people part, with a text of each kind that everybody
    may see.
    """
    single = [scorer for scorer in scorers_of(stored) if scorer.quadrants and scorer.id is not None]
    if not single:
        return None
    words = ("Both like it", "The metric alone", "People alone", "Neither")
    examples = [_example(kind, instances) for instances in single[0].examples]
    side = "above" if criterion.higher_is_better else "below"
    end = number_text(criterion.to_scale(criterion.liked_from), decimals=0)
    liked = f"{side} {end}{' %' if criterion.unit == '%' else ''}"
    return {
        "label": single[0].label,
        "shares": list(zip(words, single[0].quadrants, examples, strict=True)),
        "any": any(examples),
        "liked": f"{side} the middle of their scale" if criterion.liked_from == 0.5 else liked,
    }


def _example(kind: Kind, instances: Sequence[int]) -> str:
    """Return the first text of a system on the board whose judgments everybody may see; none where
    there is no such, or things are no texts.
    """
    if not kind.rates or not instances:
        return ""
    board = Submission.objects.filter(track=kind.track).on_board()
    predicted = Prediction.objects.filter(instance__in=instances, submission__in=board)
    shown = set(predicted.values_list("instance_id", flat=True))
    listed = np.array([pk for pk in instances if pk in shown], dtype=np.int64)
    targets = targets_of(listed).tolist()
    public = rated(targets, public=True)
    chosen = next((target for target in targets if target in public), None)
    if chosen is None:
        return ""
    content = Target.objects.get(pk=chosen).content or {}
    return str(content.get("text", ""))


def _draw_systems(shown: Board, single: Scorer, criterion: str) -> SafeString | str:
    """Return people against the metric, a dot a system, with the 80 % interval of people's score;
    nothing where it scored fewer than two systems whole.
    """
    intervals, dots = [], []
    for row in shown.rows:
        figure, pk = Interval.of(row.figure(row.mean)), row.submission.pk
        if figure.estimate is not None and pk in single.alone:
            x = min(1.0, max(0.0, single.alone[pk]))
            low, high = figure.low80, figure.high80
            ends = None if low is None or high is None else (low, high)
            dots.append(plots.Dot(row.submission.full_name, x, figure.estimate, True, ends))
            intervals += [Interval(figure.estimate, low, high), Interval(x)]
    if len(dots) < 2:
        return ""
    axis = drawing.axis_over(intervals, ticks=6)
    return _against_people(dots, axis, single.label, criterion, "system")


def _draw_points(
    points: Sequence[dict[str, Any]], single: Scorer, criterion: str
) -> SafeString | str:
    """Return a scatter plot of people's ratings against the scores of a metric, one dot per output.
    The scores are rescaled to the mean and standard deviation of the ratings. Returns an empty
    string for fewer than three outputs, or if the scores or the ratings are constant.
    """
    score, people = (np.array([one[name] for one in points]) for name in ("score", "people"))
    if len(points) < 3 or not score.std() or not people.std():
        return ""
    slope = people.std() / score.std() * (1.0 if np.corrcoef(score, people)[0, 1] >= 0 else -1.0)
    across = np.clip(people.mean() + slope * (score - score.mean()), 0.0, 1.0)
    dots = [
        plots.Dot(point["system"], float(x), point["people"], is_named=False)
        for point, x in zip(points[:MOST_POINTS], across, strict=False)
    ]
    return _against_people(dots, Axis(0.0, 1.0, SHARES), single.label, criterion, "output")


def _against_people(
    dots: Sequence[plots.Dot], axis: Axis, label: str, criterion: str, thing: str
) -> SafeString:
    """Return a metric across, at people's mean and spread, and people above it, a dot for each
    `thing`; on the line they say the same.
    """
    steps = [axis.low + (axis.high - axis.low) * step / 20 for step in range(21)]
    return mark_safe(
        plots.draw_curves(
            [plots.Curve("", [(share, share) for share in steps], "equal")],
            dots,
            axis,
            axis,
            f"What {label} says of each {thing} against what people say.",
            x_name=f"{label} alone, at people’s mean and spread",
            y_name=f"People, {criterion.lower()}",
            x_written=lambda share: number_text(share, decimals=0),
            y_written=lambda share: number_text(share, decimals=0),
        )
    )


def _curve(kind: Kind, study: Study | None) -> SafeString | str:
    """Return the width against the number of judgments, drawn."""
    points = list(curve_of(kind, study))
    if study is None or not points:
        return ""
    drawn = {
        "people_alone": ("people alone", "ground", 0.2),
        "with_metrics": ("with all metrics", "path", 0.5),
        "noiseless_people": ("noiseless people", "equal", 0.75),
        "perfect_metric": ("perfect metric", "equal", 1.0),
    }
    if not study.rho:
        del drawn["with_metrics"]
    curves = [
        plots.Curve(words, [(row["judgments"], row[name]) for row in points], look, place)
        for name, (words, look, place) in drawn.items()
    ]
    widest = max(points[0][name] for name in FIGURES["width"][1:])
    return mark_safe(
        plots.draw_curves(
            curves,
            [],
            plots.counts_axis(int(points[-1]["judgments"])),
            drawing.axis_over([Interval(0.0), Interval(widest)], ticks=5),
            "Half-width of an 80 % interval against the number of judgments.",
            x_name="Judgments of one system",
            y_name="Half-width, points",
            x_written=lambda n: count_text(int(n)),
            y_written=lambda width: f"±{number_text(width, decimals=0)}",
        )
    )


def _contours(kind: Kind, evaluation: Evaluation | None, criterion: str) -> SafeString | str:
    """Return ρ of each metric against γ of the question, over lines of equal worth; the other
    questions of the track in grey, each with its name.
    """
    told = {name: worth_under(evaluation, name) for name in kind.measures.criterion_names()}
    known = {
        name: stored.components.gamma
        for name, stored in told.items()
        if stored.components is not None and stored.components.gamma is not None
    }
    if criterion not in known:
        return ""
    across = _axis(0.0, [Interval(max(1.3 * max(known.values()), LEAST_ACROSS))])
    dots = _dots(told[criterion], known.pop(criterion))
    for name, gamma in known.items():
        dots += _dots(told[name], gamma, kind.measures.criterion(name).label)
    curves = []
    for worth in WORTHS:
        places = [across.high * step / STEPS for step in range(STEPS + 1)]
        squares = [(x, (1 + x) * (1 - 1 / worth)) for x in places]
        points = [(x, square**0.5) for x, square in squares if square <= 1]
        curves.append(plots.Curve(f"{worth:g} ×", points, "equal", is_short=True))
    return mark_safe(
        plots.draw_curves(
            curves,
            dots,
            across,
            Axis(0.0, 1.0, SHARES),
            "Correlation of each metric with human ratings, over lines of equal worth.",
            x_name="γ: how much people differ, against how much things do",
            y_name="ρ with people, noise removed",
            x_written=lambda value: f"{value:g}",
            y_written=coefficient_text,
        )
    )


def _dots(stored: Worth, gamma: float, other: str = "") -> list[plots.Dot]:
    """Return the metrics and judges under one question, from the highest down: the first three
    named; of another question all in grey, the highest with the question's name.
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


urlpatterns = [path("tracks/<slug:slug>/metrics/", show, name="metrics")]
