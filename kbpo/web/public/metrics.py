"""The metrics page: the worth of metrics, judges and questions, and the number of judgments a study
needs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any
from urllib.parse import urlencode

import numpy as np
from django.http import Http404, HttpRequest
from django.http.response import HttpResponseBase
from django.shortcuts import get_object_or_404, render
from django.urls import path, reverse
from django.utils.safestring import SafeString

from kbpo.evaluation.leaderboard import Board, Saved, read_board, saved_share
from kbpo.evaluation.models import Evaluation
from kbpo.evaluation.worth import FEWEST
from kbpo.instances.models import Target
from kbpo.sampling.designs.base import half_width_for_variance, variance_for_half_width
from kbpo.sampling.draft import CURVE, WIDTHS, Draft, Study, planning_variances
from kbpo.submissions.models import Prediction, Submission
from kbpo.tracks.base import Track as Kind
from kbpo.tracks.measures import Criterion
from kbpo.tracks.models import Track
from kbpo.tracks.registry import count_inputs, kind_of
from kbpo.tracks.texts.ratings import read_ratings, targets_of_instances
from kbpo.web.components import drawing, plots
from kbpo.web.components.drawing import Axis, Interval
from kbpo.web.components.figures import coefficient_text, count_text, number_text
from kbpo.web.expensive import limit_concurrency
from kbpo.web.table import Table, columns_named
from scoring.report import Key, Scorer, Worth
from scoring.saved import LATER, UNAIDED
from scoring.score import DEFAULT

WORTHS = (1.05, 1.1, 1.2, 1.5, 2.0, 3.0)
"""Contours of equal worth"""
LEAST_GAMMA = 0.4
"""The axis of γ reaches at least this value"""
STEPS = 40
"""Number of steps with which a contour is drawn"""
SHARES = (0.0, 0.25, 0.5, 0.75, 1.0)
MOST_DRAWN = 10.0
"""The axis of a ratio reaches at most this value"""
BIASED = 0.05, 0.09
"""Biases from which a cell is bold, and from which it is filled"""
CORRELATED = 0.3, 0.5
"""Correlations from which a cell is bold, and from which it is filled"""


@limit_concurrency
def show_metrics(request: HttpRequest, slug: str) -> HttpResponseBase:
    """Return the page, or with `?format=csv` one `figure` as a table; `?criterion=` selects the
    criterion.
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
        return metric_table(kind, evaluation, criterion, figure).file(request)
    stored = metric_worth_under(evaluation, criterion)
    shown = read_board(track, distribution=track.distribution, criterion=criterion)
    study, names, single = (
        planning_variances(kind, criterion, stored),
        board_names(evaluation),
        best_single_scorer(stored),
    )
    cards, prompts = scorer_cards(shown, stored), _prompt_worth(kind, evaluation)
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
        "axis": _ratio_axis(1.0, [card.interval for card in cards]),
        "savings": [card for card in cards[:2] if card.saves is not None],
        "late": evaluation.report.late_scorers if evaluation else (),
        "late_rows": late_judge_rows(evaluation, criterion),
        "prompts": prompts,
        "prompt_axis": _ratio_axis(0.0, [prompt["gamma"] for prompt in prompts]),
        "contours": _draw_contours(kind, evaluation, criterion),
        "systems": names,
        "bias": _heat_map(stored, names, "bias", BIASED, lambda x: number_text(x, signed=True)),
        "within": _heat_map(stored, names, "within", CORRELATED, coefficient_text),
        "lower_is_better": not kind.measures.criterion(criterion).higher_is_better,
        "prmse_warnings": dict.fromkeys(
            warning for row in sort_scorers(stored) for warning in row.prmse_warnings
        ),
        "single": single,
        "of_systems": _draw_systems(shown, single, label) if single else "",
        "quadrants": _quadrants(kind, kind.measures.criterion(criterion), stored),
        "widths": list(judgments_by_width(kind, study)),
        "curve": _draw_width_curve(kind, study),
        "study": study,
        "n_inputs": count_inputs(kind.track, test=True),
        "csv": {
            name: f"?{urlencode({'criterion': criterion, 'figure': name, 'format': 'csv'})}"
            for name in FIGURES
        },
    }
    return render(request, "metrics.html", context)


def _ratio_axis(start: float, intervals: Sequence[Interval]) -> Axis:
    """Return the axis of a column of ratios, which includes `start`."""
    return drawing.axis_over([Interval(start), *intervals], bounds=(0.0, MOST_DRAWN))


def _prompt_worth(kind: Kind, evaluation: Evaluation | None) -> list[dict[str, Any]]:
    """Return each criterion with the ratio γ of the variance between annotators to that between
    outputs, its interval and the highest possible worth of a metric, in increasing order of γ.
    """
    prompts = []
    for row in prompt_rows(kind, evaluation):
        if row["gamma"] is not None:
            label = kind.measures.criterion(row["criterion"]).label
            gamma = Interval(row["gamma"], row["gamma_low80"], row["gamma_high80"])
            most = row["most_a_metric_can_be_worth"]
            prompts.append({"most": most, "label": label, "gamma": gamma})
    return sorted(prompts, key=lambda prompt: prompt["gamma"].estimate)


def _heat_map(
    worth: Worth,
    names: dict[int, str],
    what: str,
    thresholds: tuple[float, float],
    written: Callable[[float | None], str],
) -> list[dict[str, Any]]:
    """Return a table of metrics by systems, each cell as text with its shade."""
    some, strong = thresholds
    rows = []
    for scorer in sort_scorers(worth):
        values, cells = getattr(scorer, what), []
        for number, name in names.items():
            size = abs(values.get(number) or 0.0)
            shade = "strong" if size >= strong else "some" if size >= some else ""
            cells.append({"name": name, "text": written(values.get(number)), "shade": shade})
        if values:
            rows.append({"label": scorer.label, "cells": cells})
    return rows


def _quadrants(kind: Kind, criterion: Criterion, worth: Worth) -> dict[str, Any] | None:
    """Return the shares of outputs that people, the best single metric, both or neither like, each
    with an example if one is public.
    """
    single = [scorer for scorer in sort_scorers(worth) if scorer.quadrants and scorer.id]
    if not single:
        return None
    names = ("Both like it", "The metric alone", "People alone", "Neither")
    examples = [_public_example(kind, instances) for instances in single[0].examples]
    side = "above" if criterion.higher_is_better else "below"
    end = number_text(criterion.to_scale(criterion.liked_from), decimals=0)
    liked = f"{side} {end}{' %' if criterion.unit == '%' else ''}"
    return {
        "label": single[0].label,
        "shares": list(zip(names, single[0].quadrants, examples, strict=True)),
        "any": any(examples),
        "liked": f"{side} the middle of their scale" if criterion.liked_from == 0.5 else liked,
    }


def _public_example(kind: Kind, instances: Sequence[int]) -> str:
    """Return the first text by a system on the board whose judgments are public; empty if there is
    none, or if predictions are not texts.
    """
    if not kind.rates or not instances:
        return ""
    runs = Submission.objects.filter(track=kind.track).on_board()
    predicted = Prediction.objects.filter(instance__in=instances, submission__in=runs)
    shown = set(predicted.values_list("instance_id", flat=True))
    listed = np.array([pk for pk in instances if pk in shown], dtype=np.int64)
    targets = targets_of_instances(listed).tolist()
    public = read_ratings(targets, public=True)
    chosen = next((target for target in targets if target in public), None)
    if chosen is None:
        return ""
    content = Target.objects.get(pk=chosen).content or {}
    return str(content.get("text", ""))


def _draw_systems(board: Board, single: Scorer, criterion: str) -> SafeString | str:
    """Return a plot of people's scores against a metric, one point for each system; empty with
    fewer than two points.
    """
    intervals, dots = [], []
    for row in board.rows:
        figure, pk = Interval.from_figure(row.figure(row.mean)), row.submission.pk
        if figure.estimate is not None and pk in single.alone:
            x = min(1.0, max(0.0, single.alone[pk]))
            low, high = figure.low80, figure.high80
            ends = None if low is None or high is None else (low, high)
            name = row.submission.full_name
            label = f"{name}: {number_text(x)}, {number_text(figure.estimate)}"
            dots.append(plots.Dot(name, x, figure.estimate, y_ends=ends, label=label))
            intervals += [Interval(figure.estimate, low, high), Interval(x)]
    if len(dots) < 2:
        return ""
    axis = drawing.axis_over(intervals, ticks=6)
    steps = [axis.low + (axis.high - axis.low) * step / 20 for step in range(21)]
    return plots.draw_curves(
        [plots.Curve("", [(share, share) for share in steps], "equal")],
        dots,
        axis,
        axis,
        f"Score by {single.label} and by people, for each system.",
        x_name=f"{single.label} alone, at people’s mean and spread",
        y_name=f"People, {criterion.lower()}",
        x_written=lambda share: number_text(share, decimals=0),
        y_written=lambda share: number_text(share, decimals=0),
    )


def _draw_width_curve(kind: Kind, study: Study | None) -> SafeString | str:
    """Return a plot of the half-width against the number of judgments."""
    points = list(width_curve(kind, study))
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
    return plots.draw_curves(
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


def _draw_contours(kind: Kind, evaluation: Evaluation | None, criterion: str) -> SafeString | str:
    """Return a plot of each metric's correlation ρ with people against the ratio γ of the
    question's variances (between annotators over between outputs), with contours of equal worth.
    Other criteria of the track are in grey. Empty if γ is unknown.
    """
    stored = {
        name: metric_worth_under(evaluation, name) for name in kind.measures.criterion_names()
    }
    gammas = {
        name: one.components.gamma
        for name, one in stored.items()
        if one.components is not None and one.components.gamma is not None
    }
    if criterion not in gammas:
        return ""
    across = _ratio_axis(0.0, [Interval(max(1.3 * max(gammas.values()), LEAST_GAMMA))])
    dots = _metric_dots(stored[criterion], gammas.pop(criterion))
    for name, gamma in gammas.items():
        dots += _metric_dots(stored[name], gamma, kind.measures.criterion(name).label)
    curves = []
    for worth in WORTHS:
        places = [across.high * step / STEPS for step in range(STEPS + 1)]
        squares = [(gamma, (1 + gamma) * (1 - 1 / worth)) for gamma in places]
        points = [(gamma, square**0.5) for gamma, square in squares if square <= 1]
        curves.append(plots.Curve(f"{worth:g} ×", points, "equal", is_short=True))
    return plots.draw_curves(
        curves,
        dots,
        across,
        Axis(0.0, 1.0, SHARES),
        "Correlation of each metric with human ratings, with contours of equal worth.",
        x_name="γ: how much people differ, against how much things do",
        y_name="ρ with people, noise removed",
        x_written=lambda gamma: f"{gamma:g}",
        y_written=coefficient_text,
    )


def _metric_dots(worth: Worth, gamma: float, other: str = "") -> list[plots.Dot]:
    """Return the points of the metrics under one criterion, in decreasing order of their
    correlation ρ. The three of most worth are named; under an `other` criterion only the highest,
    with the criterion's name.
    """
    known = [(one.label, abs(one.rho)) for one in sort_scorers(worth) if one.rho]
    best = {label for label, _ in known[:3]}
    known.sort(key=lambda pair: -pair[1])
    dots = []
    for place, (label, rho) in enumerate(known):
        full = f"{other}, {label}" if other else label
        dots.append(
            plots.Dot(
                other or label,
                gamma,
                rho,
                label=f"{full}: ρ {coefficient_text(rho)}, γ {gamma:.2f}",
                is_named=not place if other else label in best,
                is_first=not other,
            )
        )
    return dots


Records = Iterator[dict[str, Any]]
NUMBERS = ("n", "pearson", "spearman", "rho", "r", "between", "prmse", "worth")
WITH_ENDS = ("rho", "pearson", "spearman", "between", "prmse")
QUADRANTS = ("both_like", "metric_alone", "people_alone", "neither")
OF_COMPONENTS = ("sigma_f2", "sigma_a2", "gamma")


def _columns_of_ends(*names: str) -> list[str]:
    return [f"{name}_{end}" for name in names for end in ("low80", "high80")]


FIGURES = {
    "worth": (
        *("metric", "version", "prompt", *NUMBERS, "low80", "high80", "low95", "high95", "saves"),
        *_columns_of_ends(*WITH_ENDS),
        *("rated_twice", "source", "used", *QUADRANTS),
    ),
    "systems": ("metric", "system", "alone", "people", "bias", "pearson"),
    "width": ("judgments", "people_alone", "with_metrics", "noiseless_people", "perfect_metric"),
    "judgments": ("half_width", "people_alone", "with_metrics", "two_people"),
    "prompts": (
        *("criterion", *OF_COMPONENTS, *_columns_of_ends(*OF_COMPONENTS)),
        "most_a_metric_can_be_worth",
    ),
}
"""Name of a downloadable table -> the names of its columns"""


def metric_table(kind: Kind, evaluation: Evaluation | None, criterion: str, figure: str) -> Table:
    """Return one of FIGURES under a criterion, from an evaluation."""
    stored = metric_worth_under(evaluation, criterion)
    if figure == "worth":
        shown = read_board(kind.track, distribution=kind.track.distribution, criterion=criterion)
        rows: Any = map(_card_record, scorer_cards(shown, stored))
    elif figure == "systems":
        rows = _system_rows(evaluation, stored)
    elif figure == "prompts":
        rows = prompt_rows(kind, evaluation)
    else:
        of_study = width_curve if figure == "width" else judgments_by_width
        rows = of_study(kind, planning_variances(kind, criterion, stored))
    name = f"{kind.track.slug}-{criterion}-{figure}"
    return Table(name, columns_named(*FIGURES[figure]), list(rows))


def metric_worth_under(evaluation: Evaluation | None, criterion: str) -> Worth:
    """Return how many judgments each metric saves under a criterion (its worth), from an
    evaluation; empty if unknown.
    """
    return evaluation.report.worth.get(criterion, Worth()) if evaluation is not None else Worth()


def sort_scorers(worth: Worth) -> list[Scorer]:
    """Return the metrics and judges: all together first, then by decreasing worth, unknown worth
    last.
    """
    scorers = [worth.together] if worth.together is not None else []
    return scorers + sorted(worth.scorers, key=lambda scorer: -(scorer.worth or 0.0))


def best_single_scorer(worth: Worth) -> Scorer | None:
    """Return the metric or judge with the highest worth by itself."""
    known = [scorer for scorer in worth.scorers if scorer.worth is not None]
    return max(known, key=lambda scorer: scorer.worth or 0.0, default=None)


def board_names(evaluation: Evaluation | None) -> dict[int, str]:
    """Return the names of the systems on the board, by number."""
    if evaluation is None:
        return {}
    runs = Submission.objects.filter(track=evaluation.track_id).on_board().select_related("team")
    return {row.pk: row.full_name for row in runs.order_by("pk")}


def late_judge_rows(evaluation: Evaluation | None, criterion: str) -> list[dict[str, Any]]:
    """Return the mean of each system on the board from people alone, and with the judges that were
    added late and not stated to be untuned, which use later judgments only.
    """
    if evaluation is None:
        return []
    track, figures = evaluation.track, evaluation.report.figures
    mean = kind_of(track).measures.mean
    rows = []
    for number, system in board_names(evaluation).items():
        late, unaided, default = (
            figures.get(Key(number, mean, criterion, track.distribution, method))
            for method in (LATER, UNAIDED, DEFAULT)
        )
        alone = unaided or default
        if late is not None and alone is not None:
            rows.append(
                {
                    "system": system,
                    "alone": Interval.from_figure(alone),
                    "late": Interval.from_figure(late),
                }
            )
    return rows


@dataclass(frozen=True)
class Card:
    """A metric or judge with the interval of its worth and its savings on the board."""

    scorer: Scorer
    saves: Saved | None

    @property
    def interval(self) -> Interval:
        return Interval(self.scorer.worth, *self.scorer.worth_80, *self.scorer.worth_95)

    @property
    def tone(self) -> str:
        """Return the tone of the bar: in colour if the gain is significant."""
        return "a" if (self.interval.low80 or 0.0) > 1 else "quiet"


def scorer_cards(board: Board, worth: Worth) -> list[Card]:
    """Return the metrics and judges, each with its savings on a board if they are known."""
    return [Card(scorer, saved_share(board, scorer.id)) for scorer in sort_scorers(worth)]


def _card_record(card: Card) -> dict[str, Any]:
    scorer, ends = card.scorer, (*card.scorer.worth_80, *card.scorer.worth_95)
    record: dict[str, Any] = {
        "metric": scorer.name,
        "saves": card.saves.share if card.saves else None,
        "rated_twice": scorer.n_multiple,
    }
    for name in ("version", "prompt", *NUMBERS, "source", "used"):
        record[name] = getattr(scorer, name)
    record |= zip(("low80", "high80", "low95", "high95"), ends, strict=True)
    for name in WITH_ENDS:
        record |= zip(_columns_of_ends(name), getattr(scorer, f"{name}_80"), strict=True)
    return record | dict(zip(QUADRANTS, scorer.quadrants or (None,) * 4, strict=True))


def _system_rows(evaluation: Evaluation | None, worth: Worth) -> Records:
    """Yield the score of each metric for each system on the board, with its correlation with people
    over the outputs of the system.
    """
    for number, system in board_names(evaluation).items():
        for scorer in sort_scorers(worth):
            alone, bias = scorer.alone.get(number), scorer.bias.get(number)
            if bias is not None or number in scorer.within:
                yield {
                    "metric": scorer.name,
                    "system": system,
                    "alone": alone,
                    "people": None if alone is None or bias is None else alone - bias,
                    "bias": bias,
                    "pearson": scorer.within.get(number),
                }


def width_curve(kind: Kind, study: Study | None) -> Records:
    """Yield the expected half-width of the interval for several numbers of judgments. Each row has
    four plans: people alone, people with metrics, people without disagreement, and a metric that
    predicts people's mean rating perfectly. All are for inputs like those of the track, each judged
    once.
    """
    inputs = count_inputs(kind.track, test=True)
    if study is None or not inputs:
        return
    plan = Draft.with_equal_weights(inputs)
    noiseless = replace(
        plan,
        error=study.error(rho=0.0, noise=False),
        left=study.variance_of_mean_rating(noise=False) / inputs,
    )
    plans = {
        "people_alone": plan.with_study(study, with_scorers=False),
        "with_metrics": plan.with_study(study),
        "noiseless_people": noiseless,
        "perfect_metric": replace(plan.with_study(study), error=study.error(rho=1.0)),
    }
    for n in [*(n for n in CURVE if n < inputs), inputs]:
        widths = {
            name: half_width_for_variance(kind.track, one.variance(n))
            for name, one in plans.items()
        }
        yield {"judgments": n} | widths


def judgments_by_width(kind: Kind, study: Study | None) -> Records:
    """Yield the number of judgments that a system needs for each half-width; None if the track has
    too few inputs.
    """
    if study is None:
        return
    plan = Draft.with_equal_weights(max(1, count_inputs(kind.track, test=True)))
    plans = {
        "people_alone": (plan.with_study(study, with_scorers=False), 1),
        "with_metrics": (plan.with_study(study), 1),
        "two_people": (plan.with_study(study, people=2, with_scorers=False), 2),
    }
    for width in WIDTHS:
        goal, row = variance_for_half_width(kind.track, width), dict[str, Any](half_width=width)
        for name, (planned, people) in plans.items():
            asked = people * planned.questions(planned.thresholds(goal))
            row[name] = asked if planned.left <= goal else None
        if not study.rho:
            row["with_metrics"] = None
        yield row


def prompt_rows(kind: Kind, evaluation: Evaluation | None) -> Records:
    """Yield the variance components of each question: variance between people against variance
    between outputs.
    """
    for prompt in kind.measures.criteria:
        parts = metric_worth_under(evaluation, prompt.name).components
        if parts is not None:
            record: dict[str, Any] = {"criterion": prompt.name}
            for name in OF_COMPONENTS:
                record[name] = getattr(parts, name)
                record |= zip(_columns_of_ends(name), getattr(parts, f"{name}_80"), strict=True)
            yield record | {"most_a_metric_can_be_worth": parts.most}


urlpatterns = [path("tracks/<slug:slug>/metrics/", show_metrics, name="metrics")]
