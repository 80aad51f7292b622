"""Compares two systems of a track: differences with intervals, by relation, and their overlap."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Any
from urllib.parse import urlencode

from django.db.models import F
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import path, reverse

from kbpo.accounts.models import User
from kbpo.evaluation.compare import Difference, closest, differences, differences_by_relation
from kbpo.evaluation.leaderboard import NoBoard, compared_at, ranking
from kbpo.evaluation.models import Evaluation
from kbpo.submissions.models import Submission
from kbpo.tracks.measures import Quantity
from kbpo.tracks.models import Track
from kbpo.tracks.registry import kind_of
from kbpo.web.components import drawing
from kbpo.web.components.drawing import Interval
from kbpo.web.components.figures import count_text, number_text
from kbpo.web.expensive import expensive
from kbpo.web.http import at_one_moment
from kbpo.web.public.board_view import View, switches, view_or_404
from kbpo.web.public.compare_texts import side_by_side
from kbpo.web.public.documents import Asking
from scoring.report import FEW, Part, Report

LEAST_LABELS = FEW
"""Judgments of each of the two from which a relation is listed"""
MISSING = (
    "One of these systems is not on this board: it is of another track, not scored yet, or not"
    " public. Private runs are compared by their own team alone."
)


def compare_newest_track(request: HttpRequest) -> HttpResponse:
    """Redirect to the comparison on the track of the visitor's latest scored run, else on the
    newest open track.
    """
    if isinstance(request.user, User):
        own = Submission.objects.with_score().filter(team__members=request.user)
        row = own.order_by(F("scored_at").desc(nulls_last=True), "-pk").first()
        if row is not None:
            return redirect("compare-track", slug=row.track.slug)
    tracks = Track.objects.exclude(status="draft").order_by("status", "-pk")
    track = next((track for track in tracks if track.status == "open"), tracks.first())
    return redirect("compare-track", slug=track.slug) if track else redirect("home")


@expensive
@at_one_moment
def show(request: HttpRequest, slug: str) -> HttpResponse:
    """Show the comparison of two systems, or the list to choose from. `?a=12&b=15` (or two of
    `?s=`) are submissions; `?evaluation=7` selects an earlier evaluation.
    """
    track = get_object_or_404(Track.objects.exclude(status="draft"), slug=slug)
    kind, view = kind_of(track), view_or_404(request, track)
    submissions = Submission.objects.filter(track=track).compared_by(request.user)
    board = sorted(submissions.select_related("team"), key=lambda row: row.full_name)
    a, b, why_not = _chosen(request, board)
    evaluation = None
    try:
        evaluation = compared_at(track, view.number)
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
        "mean": kind.measures.printed(kind.measures.mean, track.criterion).label,
        "weighted": kind.measures.distributions[view.distribution].label.lower(),
        "switches": [one for one in switches(view, track, report, of_pair) if one["of"] != "level"],
        "past": view.number is not None,
    }
    if a and b and evaluation:
        context |= comparison_context(request, evaluation, a, b, view)
        context["swap"] = comparison_url(track, view, b.pk, a.pk)
        context["now"] = comparison_url(track, replace(view, number=None), a.pk, b.pk)
        context["permalink"] = permalink(evaluation, view, a.pk, b.pk)
    elif not (a and b):
        near = closest(evaluation, distribution=view.distribution, criterion=view.criterion)
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


def _chosen(
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
        sentence = "These are one and the same system: choose another for one of them."
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
    kind, measured = kind_of(a.track), differences(evaluation, a.pk, b.pk, **chosen)
    rows, apart, is_up = [], None, kind.measures.higher_is_better
    for difference in measured:
        quantity = kind.measures.printed(difference.quantity, view.criterion)
        up = is_up(difference.quantity, view.criterion)
        rows.append(difference_row(quantity, difference, a, b, up=up))
        if apart is None and difference.told_apart is not None:
            apart = (quantity.in_text, difference.told_apart)
    ranked = ranking(evaluation, **chosen)[1]
    return {
        "evaluation": evaluation,
        "rows": rows,
        "sides": _better_sides(a, b, up=is_up(kind.measures.mean, view.criterion)),
        "sides_by_relation": _better_sides(a, b, up=is_up(kind.measures.mean, a.track.criterion)),
        "axis": drawing.axis_over([row["difference"] for row in rows], bounds=(-1, 1), zero=True),
        "tied": [row["in_text"] for row in rows if not row["who"]],
        "level": f"{ranked.level:.0%}".replace("%", " %") if ranked.level else "",
        "n_systems": len(ranked.systems),
        "apart": apart,
        "overlap": overlap(request, evaluation, a, b),
        "share_axis": drawing.Axis(0.0, 1.0, (0.0, 0.5, 1.0)),
        "relations": by_relation(evaluation, a, b),
        "criterion_words": kind.measures.criterion(a.track.criterion).label.lower(),
    }


def _better_sides(a: Submission, b: Submission, *, up: bool) -> tuple[str, str]:
    """Return the names of the systems that are better to the left and to the right of zero."""
    return (b.full_name, a.full_name) if up else (a.full_name, b.full_name)


def difference_row(
    quantity: Quantity, difference: Difference, a: Submission, b: Submission, *, up: bool
) -> dict[str, Any]:
    """Return a row of the table of differences: both figures, the leading system, and whether the
    95 % interval excludes zero.
    """
    both = [Interval.of(difference.first), Interval.of(difference.second)]
    who, tone, words = "", "", "No difference shown"
    is_sure = bool(difference.low95 > 0 or difference.high95 < 0)
    if difference.shown:
        who, tone = (a.full_name, "a") if (difference.value > 0) == up else (b.full_name, "b")
        words = f"is {quantity.better}" if is_sure else "is likely ahead; not at 95 %"
    low, high = sorted((abs(difference.low80), abs(difference.high80)))
    return {
        "name": quantity.label,
        "in_text": quantity.in_text,
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
        "difference": Interval.of(difference),
        "value": value,
        "written": f"{low} to {high}",
    }


def by_relation(evaluation: Evaluation, a: Submission, b: Submission) -> dict[str, Any] | None:
    """Return the differences by relation and the number of omitted relations; None if the
    evaluation stored nothing for this pair.

    Relations with few judgments are omitted: they would reveal single judgments, and their
    intervals would be too narrow.
    """
    stored = evaluation.details.relations
    if not {a.pk, b.pk} <= set(stored.systems):
        return None
    measured = differences_by_relation(evaluation, a.pk, b.pk, least=LEAST_LABELS)
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


def overlap(
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
            ("both", "quiet", "both say it", both),
            ("b", "b", f"only {b.full_name}", second),
        )
    ]


def _share_of_part(part: Part, everything: bool) -> dict[str, Any]:
    if not part.n:
        why = "nothing"
    elif not part.n_labels:
        why = "nothing of it is judged yet"
    elif part.value is None:
        why = "no share is known"
    elif part.n_labels < FEW and not everything:
        why = f"too few judgments to say ({count_text(part.n_labels)})"
    else:
        return {"n": part.n, "share": Interval.of(part), "judged": part.n_labels}
    return {"n": part.n, "share": None, "why": why}


urlpatterns = [
    path("compare/", compare_newest_track, name="compare"),
    path("tracks/<slug:slug>/compare/", show, name="compare-track"),
]
