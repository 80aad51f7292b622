"""Two systems of a track side by side: is the difference real, and where is it?"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC
from functools import partial
from typing import Any
from urllib.parse import urlencode

import numpy as np
from django.db.models import F
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import path, reverse

from kbpo.accounts.models import User
from kbpo.evaluation.compare import Difference, closest, differences
from kbpo.evaluation.leaderboard import NoBoard, compared_at, ranking
from kbpo.evaluation.models import Evaluation
from kbpo.submissions.models import Prediction, Submission
from kbpo.tracks.measures import Quantity
from kbpo.tracks.models import Track
from kbpo.tracks.registry import kind_of
from kbpo.web.components import drawing
from kbpo.web.components.drawing import Interval
from kbpo.web.components.figures import count_text, number_text
from kbpo.web.expensive import expensive
from kbpo.web.http import at_one_moment
from kbpo.web.public.board_view import View, read, switches
from kbpo.web.public.by_relation import by_relation
from kbpo.web.public.compare_texts import side_by_side
from kbpo.web.public.documents import Asking
from kbpo.web.research.judged import describe, may_see, only_public, verdicts
from scoring.report import FEW, Part, Report

EXAMPLES = 3
WHY_NOT = {
    "number": "“{said}” is no system: choose two from the lists.",
    "missing": (
        "One of these systems is not on this board: it is of another track, not scored yet, or not"
        " public. Private runs are compared by their own team alone."
    ),
    "same": "These are one and the same system: choose another for one of them.",
}


def newest(request: HttpRequest) -> HttpResponse:
    """To the comparison on the track of the run of one's own that was scored last, else on the
    newest track that is open.
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
    """The comparison, or what there is to compare. `?a=12&b=15`, or two of `?s=`, are submissions;
    `?evaluation=7` or `?on=2026-05-01` compares them as they stood then.
    """
    track = get_object_or_404(Track.objects.exclude(status="draft"), slug=slug)
    view = read(request, track)
    submissions = Submission.objects.filter(track=track).compared_by(request.user)
    board = sorted(submissions.select_related("team"), key=lambda row: row.full_name)
    marked = [*request.GET.getlist("s"), "", ""]
    a, b = request.GET.get("a", marked[0]), request.GET.get("b", marked[1])
    chosen, why_not = _chosen(board, a.strip(), b.strip())
    if not why_not and len([number for number in request.GET.getlist("s") if number]) > 2:
        why_not = "More than two systems were marked: these are the first two."
    evaluation = None
    try:
        evaluation = compared_at(track, number=view.number, day=view.on)
    except NoBoard as problem:
        why_not = why_not or str(problem)
    kind = kind_of(track)
    measures = kind.measures
    context: dict[str, Any] = {
        "track": track,
        "board": board,
        "why_not": why_not,
        "a": chosen[0],
        "b": chosen[1],
        "view": view,
        "kind": kind,
        "words": kind.words,
        "mean": measures.printed(measures.mean, track.criterion).label,
        "weighted": measures.distributions[view.distribution].label.lower(),
        "switches": _switches(track, view, evaluation, chosen),
        "past": view.on or view.number is not None,
    }
    if chosen[0] and chosen[1] and evaluation:
        context |= compared(request, evaluation, chosen[0], chosen[1], view)
        context["swap"] = address(track, view, chosen[1].pk, chosen[0].pk)
        newest = replace(view, number=None, on="")
        context["now"] = address(track, newest, chosen[0].pk, chosen[1].pk)
        context["permalink"] = permalink(
            evaluation,
            chosen[0].pk,
            chosen[1].pk,
            distribution=view.distribution,
            criterion=view.criterion,
            population=view.population,
        )
    elif not (chosen[0] and chosen[1]):
        near = closest(evaluation, distribution=view.distribution, criterion=view.criterion)
        by_pk = {system.pk: system for system in board}
        if near and set(near) <= set(by_pk):
            context["closest"] = {
                "a": by_pk[near[0]],
                "b": by_pk[near[1]],
                "url": address(track, view, *near),
            }
    if chosen[0] and chosen[1]:
        context["texts"] = side_by_side(
            request.user, chosen[0], chosen[1], view.criterion, request.GET
        )
    context["marked"] = _marked(
        _latest_own(board, request.user), board, chosen, context.get("closest", {})
    )
    return render(
        request, "compare.html", context, status=404 if why_not and not context.get("rows") else 200
    )


def address(track: Track, view: View, first: int | str, second: int | str, **changes: str) -> str:
    """The address of a comparison."""
    query = {
        "a": str(first),
        "b": str(second),
        "distribution": view.distribution,
        "criterion": view.criterion,
    } | ({"population": view.population} if view.population else {})
    if view.number is not None:
        query["evaluation"] = str(view.number)
    elif view.on:
        query["on"] = view.on
    return f"{reverse('compare-track', args=[track.slug])}?{urlencode(query | changes)}"


def permalink(
    evaluation: Evaluation,
    first: int,
    second: int,
    *,
    distribution: str,
    criterion: str,
    population: str,
) -> str:
    """The address of a comparison that stays as it is, whatever is scored later; of an evaluation
    that a later one of today may yet replace, that of the day, which stays once the day is over.
    """
    query = {"a": str(first), "b": str(second), "distribution": distribution}
    query |= {"criterion": criterion} | ({"population": population} if population else {})
    if evaluation.stays_whole:
        query["evaluation"] = str(evaluation.number)
    else:
        query["on"] = f"{evaluation.made_at.astimezone(UTC):%Y-%m-%d}"
    return f"{reverse('compare-track', args=[evaluation.track.slug])}?{urlencode(query)}"


def _chosen(board: list[Submission], a: str, b: str) -> tuple[list[Submission | None], str]:
    """The systems that were asked for, and why they cannot be compared, as a sentence (empty:
    nothing was asked).
    """
    by_pk = {str(system.pk): system for system in board}
    for text in (a, b):
        if text and not (text.isascii() and text.isdecimal()):
            return [by_pk.get(a), by_pk.get(b)], WHY_NOT["number"].format(said=text[:40])
    if (a and a not in by_pk) or (b and b not in by_pk):
        return [by_pk.get(a), by_pk.get(b)], WHY_NOT["missing"]
    if a and a == b:
        return [by_pk[a], None], WHY_NOT["same"]
    return [by_pk.get(a), by_pk.get(b)], ""


def _latest_own(board: list[Submission], visitor: Any) -> list[Submission]:
    """The latest of somebody's own runs that can be compared, if there is one."""
    teams = set(visitor.teams.values_list("pk", flat=True)) if isinstance(visitor, User) else set()
    own = [row for row in board if row.team_id in teams]
    return [max(own, key=lambda row: row.pk)] if own else []


def _marked(
    own: list[Submission],
    board: list[Submission],
    chosen: list[Submission | None],
    near: dict[str, Any],
) -> list[Submission]:
    """What the two lists have selected: what was chosen, else a run of one's own, the closest
    neighbours, or what comes first.
    """
    spare = own + [near[key] for key in ("a", "b") if key in near] + board
    taken = [system for system in chosen if system]
    spare = [system for system in dict.fromkeys(spare) if system not in taken]
    return [system or spare.pop(0) for system in chosen if system or spare]


def _switches(
    track: Track, view: View, evaluation: Evaluation | None, chosen: list[Submission | None]
) -> list[dict[str, Any]]:
    first, second = (system.pk if system else "" for system in chosen)
    report = evaluation.report if evaluation is not None else Report()
    url = partial(address, track, view, first, second)
    return [one for one in switches(view, track, report, url) if one["of"] != "level"]


def compared(
    request: HttpRequest, evaluation: Evaluation, a: Submission, b: Submission, view: View
) -> dict[str, Any]:
    """Scores, differences, overlap, differences by relation and examples of two systems."""
    measured = differences(
        evaluation,
        a.pk,
        b.pk,
        distribution=view.distribution,
        criterion=view.criterion,
        population=view.population,
    )
    kind = kind_of(a.track)
    better = {
        quantity.name: kind.measures.higher_is_better(quantity.name, view.criterion)
        for quantity in kind.measures.quantities
        if quantity.short
    }
    called = {name: kind.measures.printed(name, view.criterion) for name in better}
    rows = [
        _row(called[difference.quantity], difference, a, b, up=better[difference.quantity])
        for difference in measured
    ]
    ranked = ranking(
        evaluation,
        distribution=view.distribution,
        criterion=view.criterion,
        population=view.population,
    )[1]
    return {
        "evaluation": evaluation,
        "rows": rows,
        "sides": _sides(a, b, up=better[kind.measures.mean]),
        "sides_by_relation": _sides(
            a, b, up=kind.measures.higher_is_better(kind.measures.mean, a.track.criterion)
        ),
        "axis": drawing.axis_over([row["difference"] for row in rows], bounds=(-1, 1), zero=True),
        "sentence": sentence(called, measured, better, a.full_name, b.full_name),
        "level": f"{ranked.level:.0%}".replace("%", " %") if ranked.level else "",
        "n_systems": len(ranked.systems),
        "apart": next(
            (
                (called[difference.quantity].in_text, difference.told_apart)
                for difference in measured
                if difference.told_apart is not None
            ),
            None,
        ),
        "overlap": overlap(request, evaluation, a, b),
        "share_axis": drawing.Axis(0.0, 1.0, (0.0, 0.5, 1.0)),
        "relations": by_relation(evaluation, a, b),
        "criterion_words": kind.measures.criterion(a.track.criterion).label.lower(),
        "examples": examples(request, a, b),
    }


def _sides(a: Submission, b: Submission, *, up: bool) -> tuple[str, str]:
    """Who is better on the left and on the right of a plot of a minus b."""
    return (b.full_name, a.full_name) if up else (a.full_name, b.full_name)


def sentence(
    called: Mapping[str, Quantity],
    differences: list[Difference],
    up: dict[str, bool],
    first: str,
    second: str,
) -> dict[str, Any]:
    """The answer: what is different, and what cannot be told apart; `called` has the quantities as
    pages call them, `up` of which of them more is better.
    """
    parts = []
    for difference in differences:
        if difference.shown:
            ahead, tone = (
                (first, "a") if (difference.value > 0) == up[difference.quantity] else (second, "b")
            )
            low, high = sorted((abs(difference.low80), abs(difference.high80)))
            better = called[difference.quantity].better
            parts.append(
                {
                    "who": ahead,
                    "tone": tone,
                    "points": f"{number_text(abs(difference.value))} points {better}",
                    "interval": f"80 % interval {number_text(low)} to {number_text(high)}",
                    "sure": _is_sure(difference),
                }
            )
    tied = [
        called[difference.quantity].in_text for difference in differences if not difference.shown
    ]
    return {"told": parts, "tied": tied}


def _is_sure(difference: Difference) -> bool:
    """Whether the 95 % interval shows it, too."""
    return bool(difference.low95 > 0 or difference.high95 < 0)


def _row(
    quantity: Quantity, difference: Difference, a: Submission, b: Submission, *, up: bool
) -> dict[str, Any]:
    both = [Interval.of(difference.first), Interval.of(difference.second)]
    if not difference.shown:
        words, ahead, tone = "No difference shown", "", ""
    else:
        ahead, tone = (a.full_name, "a") if (difference.value > 0) == up else (b.full_name, "b")
        better = quantity.better
        words = f"is {better}" if _is_sure(difference) else "is likely ahead; not at 95 %"
    return {
        "name": quantity.label,
        "first": both[0],
        "second": both[1],
        "kinds": ["final" if system.status == "scored" else "moment" for system in (a, b)],
        "n": [difference.first.n_labels, difference.second.n_labels],
        "axis": drawing.axis_over(both),
        "difference": Interval.of(difference),
        "value": number_text(difference.value, signed=True),
        "written": (
            f"{number_text(difference.low80, signed=True)} to"
            f" {number_text(difference.high80, signed=True)}"
        ),
        "who": ahead,
        "tone": tone,
        "words": words,
    }


def overlap(
    request: Asking, evaluation: Evaluation, a: Submission, b: Submission
) -> list[dict[str, Any]]:
    """What both predict and what one predicts alone; shares only as far as they do not tell single
    judgments.
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
        share = Interval.of(part)
        return {"n": part.n, "share": share, "judged": part.n_labels}
    return {"n": part.n, "share": None, "why": why}


def examples(request: HttpRequest, a: Submission, b: Submission) -> list[dict[str, Any]]:
    """Judged claims of each kind, of systems whose judgments the visitor may see."""
    groups = []
    for tone, mine, other in (("a", a, b), ("b", b, a)):
        if may_see(mine):
            ids, right = _judged(request, mine, other, both=False)
            claims = describe(
                mine,
                [*ids[right == 1][:2], *ids[right == 0][:1]],
                public=only_public(request.user, mine),
            )
            groups.append(
                {
                    "title": f"Only {mine.full_name}",
                    "tone": tone,
                    "rows": claims,
                    "submission": mine,
                }
            )
    if may_see(a) and may_see(b):
        ids, right = _judged(request, a, b, both=True)
        claims = describe(
            a, ids[right == 0][:EXAMPLES].tolist(), public=only_public(request.user, a)
        )
        groups.append(
            {"title": "Both say it, and it is wrong", "tone": "", "rows": claims, "submission": a}
        )
    return groups


def _judged(
    request: HttpRequest, row: Submission, other: Submission, *, both: bool
) -> tuple[Any, Any]:
    """Ids of a submission's judged predictions that another one predicts too (or does not), and
    whether each is right.
    """
    judged = verdicts(row, public=only_public(request.user, row))
    ids, right = judged.prediction, judged.value
    instance_of = dict(Prediction.objects.filter(pk__in=ids).values_list("pk", "instance_id"))
    shared = Prediction.objects.filter(submission=other, instance__in=list(instance_of.values()))
    theirs = set(shared.values_list("instance_id", flat=True))
    kept = np.array([(instance_of[pk] in theirs) == both for pk in ids], dtype=np.bool_)
    return np.array(ids, dtype=np.int64)[kept], right[kept]


urlpatterns = [
    path("compare/", newest, name="compare"),
    path("tracks/<slug:slug>/compare/", show, name="compare-track"),
]
