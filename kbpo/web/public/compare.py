"""Compares two systems of a track: differences with intervals, by relation, and their overlap."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any
from urllib.parse import urlencode

import numpy as np
from django.core.paginator import Paginator
from django.db.models import F
from django.http import HttpRequest, HttpResponse, QueryDict
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import path, reverse
from django.utils.safestring import SafeString, mark_safe

from kbpo.accounts.models import User
from kbpo.evaluation.compare import (
    Difference,
    closest_systems,
    compute_differences,
    differences_by_relation,
)
from kbpo.evaluation.leaderboard import NoBoard, evaluation_to_compare, ranking_comparison
from kbpo.evaluation.models import Evaluation
from kbpo.scores.read import instances_by_input
from kbpo.submissions.models import Submission
from kbpo.tracks.base import Track as Kind
from kbpo.tracks.measures import Criterion, Quantity
from kbpo.tracks.models import Track
from kbpo.tracks.registry import kind_of
from kbpo.tracks.texts.ratings import NOTHING, RatedTarget, read_ratings, targets_of_instances
from kbpo.web.components import drawing, plots
from kbpo.web.components.drawing import Interval
from kbpo.web.components.figures import count_text, number_text
from kbpo.web.expensive import limit_concurrency
from kbpo.web.http import in_snapshot
from kbpo.web.public.board_view import View, view_or_404, view_switches
from kbpo.web.public.documents import Asking
from kbpo.web.research.judged import is_restricted, metric_scores, sees_only_public, shows_judgments
from scoring.report import FEW, Part, Report

LEAST_LABELS = FEW
"""Judgments of each system from which a relation is listed"""
MISSING = "One of these systems is not on this board: it is unscored, private, or of another track."


def compare_newest_track(request: HttpRequest) -> HttpResponse:
    """Redirect to the comparison on the track of the visitor's latest scored run, else on the
    newest open track.
    """
    if isinstance(request.user, User):
        own = Submission.objects.that_have_score().filter(team__members=request.user)
        row = own.order_by(F("scored_at").desc(nulls_last=True), "-pk").first()
        if row is not None:
            return redirect("compare-track", slug=row.track.slug)
    tracks = Track.objects.exclude(status="draft").order_by("status", "-pk")
    track = next((track for track in tracks if track.status == "open"), tracks.first())
    return redirect("compare-track", slug=track.slug) if track else redirect("home")


@limit_concurrency
@in_snapshot
def show_comparison(request: HttpRequest, slug: str) -> HttpResponse:
    """Return the comparison of two systems, or the list to choose from. `?a=12&b=15` (or two of
    `?s=`) are submissions; `?evaluation=7` selects an earlier evaluation.
    """
    track = get_object_or_404(Track.objects.exclude(status="draft"), slug=slug)
    kind, view = kind_of(track), view_or_404(request, track)
    submissions = Submission.objects.filter(track=track).comparable_by(request.user)
    board = sorted(submissions.select_related("team"), key=lambda row: row.full_name)
    a, b, why_not = _selected_systems(request, board)
    evaluation = None
    try:
        evaluation = evaluation_to_compare(track, view.number)
    except NoBoard as problem:
        why_not = why_not or str(problem)
    of_pair = partial(comparison_url, track, view, a.pk if a else "", b.pk if b else "")
    report = evaluation.report if evaluation is not None else Report()
    context: dict[str, Any] = {
        "track": track,
        "board": board,
        "why_not": why_not,
        "a": a,
        "b": b,
        "view": view,
        "kind": kind,
        "words": kind.words,
        "mean": kind.measures.quantity_as_printed(kind.measures.mean, track.criterion).label,
        "weighted": kind.measures.distributions[view.distribution].label.lower(),
        "switches": [
            one for one in view_switches(view, track, report, of_pair) if one["of"] != "level"
        ],
        "past": view.number is not None,
    }
    if a and b and evaluation:
        context |= comparison_context(request, evaluation, a, b, view)
        context["swap"] = comparison_url(track, view, b.pk, a.pk)
        context["now"] = comparison_url(track, replace(view, number=None), a.pk, b.pk)
        context["permalink"] = permalink(evaluation, view, a.pk, b.pk)
    elif not (a and b):
        near = closest_systems(evaluation, distribution=view.distribution, criterion=view.criterion)
        by_pk = {system.pk: system for system in board}
        if near and set(near) <= set(by_pk):
            first, second = by_pk[near[0]], by_pk[near[1]]
            context["closest"] = {
                "a": first,
                "b": second,
                "url": comparison_url(track, view, *near),
            }
            board = [first, second, *board]
    mine = [row for row in board if row.team_id in getattr(request.user, "team_keys", ())]
    latest = sorted(mine, key=lambda row: -row.pk)[:1]
    spare = iter(dict.fromkeys(one for one in [*latest, *board] if one not in (a, b)))
    context["marked"] = [system or next(spare, None) for system in (a, b)]
    if a and b:
        context["texts"] = side_by_side(request.user, a, b, view.criterion, request.GET)
    return render(
        request, "compare.html", context, status=404 if why_not and not context.get("rows") else 200
    )


def _selected_systems(
    request: HttpRequest, board: list[Submission]
) -> tuple[Submission | None, Submission | None, str]:
    """Return the two selected systems, and a sentence if they cannot be compared (empty if none
    were selected).
    """
    marked = [number for number in request.GET.getlist("s") if number]
    asked = [
        request.GET.get(name, said).strip()
        for name, said in zip("ab", [*marked, "", ""], strict=False)
    ]
    by_pk = {str(system.pk): system for system in board}
    first, second = (by_pk.get(text) for text in asked)
    for text in asked:
        if text and not (text.isascii() and text.isdecimal()):
            sentence = f"“{text[:40]}” is no system: choose two from the lists."
            return first, second, sentence
    if any(text and text not in by_pk for text in asked):
        return first, second, MISSING
    if first is not None and first == second:
        sentence = "Both are the same system: choose another."
        return first, None, sentence
    if len(marked) > 2:
        return first, second, "More than two systems were marked: these are the first two."
    return first, second, ""


def comparison_url(
    track: Track, view: View, first: int | str, second: int | str, **changes: str
) -> str:
    query = {
        "a": str(first),
        "b": str(second),
        "distribution": view.distribution,
        "criterion": view.criterion,
    } | ({"population": view.population} if view.population else {})
    if view.number is not None:
        query["evaluation"] = str(view.number)
    return f"{reverse('compare-track', args=[track.slug])}?{urlencode(query | changes)}"


def permalink(evaluation: Evaluation, view: View, first: int, second: int) -> str:
    """Return the address of the comparison by this evaluation."""
    return comparison_url(evaluation.track, replace(view, number=evaluation.number), first, second)


def comparison_context(
    request: HttpRequest, evaluation: Evaluation, a: Submission, b: Submission, view: View
) -> dict[str, Any]:
    """Return scores, differences, overlap and differences by relation of two systems."""
    chosen = {name: getattr(view, name) for name in ("distribution", "criterion", "population")}
    kind, measured = kind_of(a.track), compute_differences(evaluation, a.pk, b.pk, **chosen)
    rows, apart, is_up = [], None, kind.measures.higher_is_better
    for difference in measured:
        quantity = kind.measures.quantity_as_printed(difference.quantity, view.criterion)
        up = is_up(difference.quantity, view.criterion)
        rows.append(difference_row(quantity, difference, a, b, higher_is_better=up))
        if apart is None and difference.told_apart is not None:
            apart = (quantity.label_in_text, difference.told_apart)
    ranked = ranking_comparison(evaluation, **chosen)[1]
    return {
        "evaluation": evaluation,
        "rows": rows,
        "sides": _better_sides(a, b, higher_is_better=is_up(kind.measures.mean, view.criterion)),
        "sides_by_relation": _better_sides(
            a, b, higher_is_better=is_up(kind.measures.mean, a.track.criterion)
        ),
        "axis": drawing.axis_over([row["difference"] for row in rows], bounds=(-1, 1), zero=True),
        "tied": [row["in_text"] for row in rows if not row["who"]],
        "level": f"{ranked.level:.0%}".replace("%", " %") if ranked.level else "",
        "n_systems": len(ranked.systems),
        "apart": apart,
        "overlap": overlap_parts(request, evaluation, a, b),
        "share_axis": drawing.Axis(0.0, 1.0, (0.0, 0.5, 1.0)),
        "relations": differences_table(evaluation, a, b),
        "criterion_words": kind.measures.criterion(a.track.criterion).label.lower(),
    }


def _better_sides(a: Submission, b: Submission, *, higher_is_better: bool) -> tuple[str, str]:
    """Return the names of the systems that are better to the left and to the right of zero."""
    return (b.full_name, a.full_name) if higher_is_better else (a.full_name, b.full_name)


def difference_row(
    quantity: Quantity,
    difference: Difference,
    a: Submission,
    b: Submission,
    *,
    higher_is_better: bool,
) -> dict[str, Any]:
    """Return a row of the table of differences: both figures, the leading system, and whether the
    95 % interval excludes zero.
    """
    both = [Interval.from_figure(difference.first), Interval.from_figure(difference.second)]
    who, tone, words = "", "", "No difference shown"
    is_sure = bool(difference.low95 > 0 or difference.high95 < 0)
    if difference.excludes_zero:
        who, tone = (
            (a.full_name, "a") if (difference.value > 0) == higher_is_better else (b.full_name, "b")
        )
        words = f"is {quantity.better}" if is_sure else "is likely ahead; not at 95 %"
    low, high = sorted((abs(difference.low80), abs(difference.high80)))
    return {
        "name": quantity.label,
        "in_text": quantity.label_in_text,
        "first": both[0],
        "second": both[1],
        "kinds": ["final" if system.status == "scored" else "moment" for system in (a, b)],
        "n": [difference.first.n_labels, difference.second.n_labels],
        "axis": drawing.axis_over(both),
        **_difference_cells(difference),
        "who": who,
        "tone": tone,
        "words": words,
        "points": f"{number_text(abs(difference.value))} points {quantity.better}",
        "interval": f"80 % interval {number_text(low)} to {number_text(high)}",
        "sure": is_sure,
    }


def _difference_cells(difference: Difference) -> dict[str, Any]:
    """Return a difference as interval and as text with its 80 % interval."""
    value, low, high = (
        number_text(getattr(difference, name), signed=True) for name in ("value", "low80", "high80")
    )
    return {
        "difference": Interval.from_figure(difference),
        "value": value,
        "written": f"{low} to {high}",
    }


def differences_table(
    evaluation: Evaluation, a: Submission, b: Submission
) -> dict[str, Any] | None:
    """Return the differences by relation and the number of omitted relations; None if the
    evaluation stored nothing for this pair.

    Relations with few judgments are omitted: they would reveal single judgments, and their
    intervals would be too narrow.
    """
    stored = evaluation.details.relations
    if not {a.pk, b.pk} <= set(stored.systems):
        return None
    measured = differences_by_relation(evaluation, a.pk, b.pk, min_judgments=LEAST_LABELS)
    labels = a.track.corpus.relation_names()
    rows: list[dict[str, Any]] = [
        {
            "name": labels.get(difference.quantity, difference.quantity),
            "first": difference.first,
            "second": difference.second,
            **_difference_cells(difference),
        }
        for difference in measured
    ]
    return {
        "rows": rows,
        "differences": measured,
        "axis": drawing.axis_over([row["difference"] for row in rows], bounds=(-1, 1), zero=True),
        "left_out": len(stored.errors) - len(rows),
        "least": LEAST_LABELS,
        "told_apart": sum(bool(difference.told_apart) for difference in measured),
    }


def overlap_parts(
    request: Asking, evaluation: Evaluation, a: Submission, b: Submission
) -> list[dict[str, Any]]:
    """Return the predictions of both systems and of either one alone, with the share that is right
    if it does not reveal single judgments.
    """
    parts = evaluation.details.parts(a.pk, b.pk)
    if not parts:
        return []
    both, first, second = parts
    everything = isinstance(request.user, User) and request.user.is_staff
    everything |= a.track.status == "closed"
    criterion = evaluation.details.overlap_criterion
    words = {"criterion": kind_of(a.track).measures.criterion(criterion).label.lower()}
    return [
        {"key": key, "tone": tone, "name": name} | words | _share_of_part(part, everything)
        for key, tone, name, part in (
            ("a", "a", f"only {a.full_name}", first),
            ("both", "quiet", "both predict it", both),
            ("b", "b", f"only {b.full_name}", second),
        )
    ]


def _share_of_part(part: Part, everything: bool) -> dict[str, Any]:
    if not part.n:
        why = "nothing"
    elif not part.n_labels:
        why = "none is judged yet"
    elif part.value is None:
        why = "no share is known"
    elif part.n_labels < FEW and not everything:
        why = f"too few judgments ({count_text(part.n_labels)})"
    else:
        return {"n": part.n, "share": Interval.from_figure(part), "judged": part.n_labels}
    return {"n": part.n, "share": None, "why": why}


ON_A_PAGE = 10
MOST_DOTS = 500
"""The largest number of inputs in the plot"""
SPREAD, GOLDEN_ANGLE = 0.012, 2.4
"""Inputs with the same ratings are placed around one point like seeds of a sunflower"""
ORDERS = {
    "a": "first is ahead, most first",
    "b": "second is ahead, most first",
    "input": "order of the inputs",
}
FIELDS = ("order", "q", "against", "page")
"""URL parameters of this part of the page"""
SAME = 1e-9
"""Ratings that differ by less count as a tie"""


@dataclass(frozen=True, eq=False)
class Table:
    """The n inputs that both systems answered, as arrays without texts."""

    keys: list[str]
    instances: np.ndarray
    """(n, 2) instances"""
    ratings: Mapping[int, RatedTarget]
    """Target -> its ratings"""
    targets: np.ndarray
    """(n, 2) targets"""
    values: np.ndarray
    """(n, 2) mean ratings in [0, 1]; NaN without ratings"""
    scorers: list[tuple[int, str]]
    """(primary key, name) of each scorer"""
    scores: np.ndarray
    """(n, 2, k) scores; NaN without a score"""

    @property
    def rating_differences(self) -> np.ndarray:
        """Return (n,) the first system's mean rating minus the second's; NaN unless both
        are rated.
        """
        return np.asarray(self.values[:, 0] - self.values[:, 1])


def side_by_side(
    user: Any, a: Submission, b: Submission, criterion: str, parameters: QueryDict
) -> dict[str, Any]:
    """Return the context of the texts of two systems; empty if texts are not rated one by one or
    may not be shown.

    `parameters` may have `order` (a key of `ORDERS`), `q` (words in a text), `against` (the number
    of a metric: only inputs where the metric and people prefer different texts), and `page`.
    """
    kind = kind_of(a.track)
    if not kind.rates or kind.opposes or not (shows_judgments(a) and shows_judgments(b)):
        return {}
    restricted = [is_restricted(user, run) for run in (a, b)]
    table = _pair_table(
        kind, a, b, criterion, public=sees_only_public(user, a), restricted=restricted
    )
    if not table.keys:
        return {"n": 0, "is_restricted": any(restricted)}
    rated_as = kind.measures.criterion(criterion)
    sign = 1.0 if kind.measures.higher_is_better(kind.measures.mean, criterion) else -1.0
    ahead = sign * table.rating_differences
    query, order = parameters.get("q", "").strip()[:200], parameters.get("order", "a")
    order = order if order in ORDERS else "a"
    rows = _rows_with_words(kind, table, query)
    against = next((one for one in table.scorers if str(one[0]) == parameters.get("against")), None)
    if against is not None:
        metric = table.scores[:, :, table.scorers.index(against)]
        opposed = (
            metric[:, 0] - metric[:, 1]
        ) * table.rating_differences < 0  # NaN is no disagreement
        rows = rows[opposed[rows]]
    if order != "input":
        of_order = -ahead[rows] if order == "a" else ahead[rows]
        rows = rows[np.argsort(np.where(np.isnan(of_order), np.inf, of_order), kind="stable")]
    page = Paginator(rows.tolist(), ON_A_PAGE).get_page(parameters.get("page"))
    known = ahead[~np.isnan(ahead)]
    return {
        "n": len(table.keys),
        "is_restricted": any(restricted),
        "wins": int((known > SAME).sum()),
        "ties": int((np.abs(known) <= SAME).sum()),
        "losses": int((known < -SAME).sum()),
        "plot": _draw_ratings(table, rated_as, a, b),
        "rows": [_pair_context(kind, table, at, rated_as) for at in page],
        "page": page,
        "query": query,
        "order": order,
        "orders": ORDERS,
        "against": against[0] if against else None,
        "scorers": table.scorers,
        "criterion": rated_as.label,
        "more": urlencode([(name, value) for name, value in parameters.items() if name != "page"]),
        "kept": [(name, value) for name, value in parameters.items() if name not in FIELDS],
    }


def _pair_table(
    kind: Kind,
    a: Submission,
    b: Submission,
    criterion: str,
    *,
    public: bool,
    restricted: list[bool],
) -> Table:
    """Return the inputs that both systems answered. A text of a `restricted` run is included only
    if it has a public judgment.
    """
    first, second = (instances_by_input(row.pk) for row in (a, b))
    keys = [key for key in first if key in second]
    instances = np.array([(first[key], second[key]) for key in keys], dtype=np.int64)
    instances = instances.reshape(-1, 2)
    every = np.unique(instances)
    targets = (
        targets_of_instances(every)[np.searchsorted(every, instances)] if every.size else instances
    )
    ratings = read_ratings(np.unique(targets).tolist(), public=public)
    shown = (np.isin(targets, list(ratings)) | ~np.array(restricted)).all(axis=1)
    keys = [key for key, is_shown in zip(keys, shown, strict=True) if is_shown]
    instances, targets = instances[shown], targets[shown]
    rated_as = kind.measures.criterion(criterion)
    values = [[ratings.get(t, NOTHING).value(rated_as) for t in row] for row in targets.tolist()]
    named, scores = metric_scores(kind.track, instances)
    return Table(
        keys,
        instances,
        ratings,
        targets,
        np.array(values, dtype=np.float64).reshape(-1, 2),
        named,
        scores,
    )


def _rows_with_words(kind: Kind, table: Table, query: str) -> np.ndarray:
    """Return the rows whose id, input or texts contain all words of the query."""
    rows = np.arange(len(table.keys))
    words = query.casefold().split()
    if not words:
        return rows
    shown = kind.judge_inputs(np.unique(table.instances).tolist())
    has_words = []
    for key, (first, second) in zip(table.keys, table.instances.tolist(), strict=True):
        both = [shown[first], shown[second]]
        texts = [key, *(text for _, text in _input_parts(kind, both)), *map(_output_text, both)]
        text = " ".join(texts).casefold()
        has_words.append(all(word in text for word in words))
    return rows[np.array(has_words, dtype=np.bool_)]


def _pair_context(kind: Kind, table: Table, at: int, rated_as: Criterion) -> dict[str, Any]:
    """Return an input with the texts of both systems: the text, the single ratings by criterion on
    the scale for readers, and the scores of metrics.
    """
    instances, targets = table.instances[at].tolist(), table.targets[at].tolist()
    shown = kind.judge_inputs(instances)
    sides = []
    for instance, target in zip(instances, targets, strict=True):
        said = table.ratings.get(target, NOTHING).ratings
        ratings = [
            (one.label, [one.to_scale(value) for value in said[one.name]])
            for one in kind.measures.criteria
            if said.get(one.name)
        ]
        sides.append({"text": _output_text(shown[instance]), "ratings": ratings})
    difference = float(table.rating_differences[at])
    scores = []
    for column, (_, label) in enumerate(table.scorers):
        first, second = map(float, table.scores[at, :, column])
        if not math.isnan(first + second):
            scores.append({"label": label, "a": first, "b": second})
    return {
        "key": table.keys[at],
        "parts": _input_parts(kind, [shown[instance] for instance in instances]),
        "sides": sides,
        "difference": None if np.isnan(difference) else difference * (rated_as.high - rated_as.low),
        "scores": scores,
    }


def _output_text(shown: Mapping[str, Any]) -> str:
    return str(shown.get("output") or shown.get("text") or "")


def _input_parts(kind: Kind, both: list[dict[str, Any]]) -> list[tuple[str, str]]:
    """Return the inputs and the references, each under its heading; empty if the texts of the
    corpus are not public. A system's own text is not repeated as a reference.
    """
    if not kind.corpus.may_be_downloaded:
        return []
    parts = [(name.capitalize(), both[0].get(name)) for name in ("prompt", "question", "source")]
    references = dict.fromkeys(text for shown in both for text in shown.get("references") or ())
    passages = list(both[0].get("passages") or ())
    for heading, texts in (("Passage", passages), ("Reference", list(references))):
        for number, text in enumerate(texts, 1):
            parts.append((heading if len(texts) == 1 else f"{heading} {number}", text))
    return [(heading, str(text)) for heading, text in parts if text]


def _draw_ratings(
    table: Table, rated_as: Criterion, a: Submission, b: Submission
) -> SafeString | str:
    """Return a scatter plot of the mean ratings of both systems, one dot for each input; empty if
    no input has both.
    """
    both = np.flatnonzero(~np.isnan(table.rating_differences))[:MOST_DOTS]
    if not both.size:
        return ""
    axis = drawing.Axis(-0.1, 1.1, (0.0, 0.25, 0.5, 0.75, 1.0))
    dots = []
    n_at: Counter[tuple[float, float]] = Counter()
    for at in both.tolist():
        x, y = table.values[at].tolist()
        distance, angle = SPREAD * n_at[x, y] ** 0.5, GOLDEN_ANGLE * n_at[x, y]
        n_at[x, y] += 1
        x, y = x + distance * math.cos(angle), y + distance * math.sin(angle)
        dots.append(plots.Dot(table.keys[at], x, y, is_named=False))

    def score_text(share: float) -> str:
        return f"{rated_as.to_scale(share):.3g}" if rated_as.unit != "%" else f"{share:.0%}"

    return mark_safe(
        plots.draw_curves(
            [plots.Curve("", [(step / 20, step / 20) for step in range(21)], "equal")],
            dots,
            axis,
            axis,
            f"{rated_as.label} of each input: {b.full_name} against {a.full_name}.",
            x_name=a.full_name,
            y_name=b.full_name,
            x_written=score_text,
            y_written=score_text,
        )
    )


urlpatterns = [
    path("compare/", compare_newest_track, name="compare"),
    path("tracks/<slug:slug>/compare/", show_comparison, name="compare-track"),
]
