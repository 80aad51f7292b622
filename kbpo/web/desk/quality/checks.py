"""The admins' page of expert checks: draw a round, answer it, what it says of the crowd and of the
scores.
"""

from __future__ import annotations

from typing import Any, cast

from django.contrib import messages
from django.db.models import Count, Q
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import path

from kbpo.accounts.models import User
from kbpo.evaluation.correction.checkable import frame_of
from kbpo.evaluation.data import read
from kbpo.evaluation.leaderboard import Figure
from kbpo.evaluation.models import Evaluation, Inquiry
from kbpo.experts.draw import MOST, CannotDraw, draw_round, end_round, open_round
from kbpo.sampling.models import ExpertRound
from kbpo.submissions.models import Submission
from kbpo.tracks.models import Track
from kbpo.tracks.recall import recall_of
from kbpo.tracks.registry import kind_of
from kbpo.web.components import drawing
from kbpo.web.http import for_admins, why_of
from kbpo.web.public.board import interval
from scoring.corrected import METHOD
from scoring.double_sampling import LEAST

WHAT = "checks"
USUAL = 40


@for_admins
def show(request: HttpRequest, slug: str) -> HttpResponse:
    """Return the page. A POST asks for a round, or ends the open one."""
    track = get_object_or_404(Track.objects.select_related("corpus"), slug=slug)
    kind = kind_of(track)
    if kind.unchecked:
        raise Http404(kind.unchecked)
    refusal = _move(track, request) if request.method == "POST" else ""
    if request.method == "POST" and not refusal:
        return redirect("desk-checks", slug=slug)
    latest = track.evaluations.order_by("-number").first()
    rounds = list(
        ExpertRound.objects.filter(track=track, kind="check")
        .select_related("drawn_by")
        .annotate(
            n=Count("checks"), done=Count("checks", filter=Q(checks__answered_at__isnull=False))
        )
        .order_by("-number")
    )
    context = {
        "track": track,
        "refusal": refusal,
        "inquiry": Inquiry.objects.filter(track=track, what=WHAT).first(),
        "rounds": rounds,
        "open": next((check_round for check_round in rounds if check_round.ended_at is None), None),
        "usual": request.POST.get("budget", USUAL),
        "most": MOST,
        "least": LEAST,
        "evaluation": latest,
        "matrices": sorted(
            matrices(latest), key=lambda matrix: matrix["criterion"] != track.criterion
        ),
        "scores": scores(track, latest),
        "weighted": kind.distribution_label(track.distribution).lower(),
        "criterion": kind.criterion_label(track.criterion).lower(),
        "words": kind.words,
        "quantity": kind.printed(kind.mean, track.criterion).label,
        "has_recall": recall_of(track) is not None,
        "seconds": kind.asking[0].seconds,
    }
    return render(request, "desk/checks.html", context, status=409 if refusal else 200)


def _move(track: Track, request: HttpRequest) -> str:
    """Return why nothing was drawn or ended, as a sentence; nothing if it was."""
    user = cast(User, request.user)
    why = why_of(request)
    if request.POST.get("verb") == "end":
        if not why:
            return "Nothing was ended: say why. It stands in the log."
        if row := open_round(track):
            end_round(row, user, why)
            messages.success(
                request, f"Round {row.number} is ended. What was answered of it in order counts."
            )
        return ""
    budget = request.POST.get("budget", "").strip()
    if not (budget.isascii() and budget.isdecimal() and 1 <= int(budget[:9]) <= MOST):
        return f"Say how many judgments are to be checked: a number between 1 and {MOST:,}."
    if not why:
        return "Nothing was drawn: say what the check is for. It stands in the log."
    if open_round(track) is not None:
        return "The last round is still open: answer it or end it first."
    Inquiry.ask(track, WHAT, user, budget=int(budget), why=why)
    return ""


def answer(inquiry: Inquiry) -> dict[str, Any]:
    """Return what became of a round that was asked for: its number and size, or why it cannot be
    drawn.
    """
    track, terms = inquiry.track, inquiry.terms
    if why_not := kind_of(track).unchecked:  # asked for before the page knew
        return {"refused": why_not}
    try:
        frame = frame_of(track, read(track))
        row = draw_round(track, frame, terms["budget"], inquiry.asked_by, terms["why"])
    except CannotDraw as refused:
        return {"refused": str(refused)}
    return {"round": row.number, "drawn": row.checks.count()}


def matrices(evaluation: Evaluation | None) -> list[dict[str, Any]]:
    """Return the crowd against experts, a table for each criterion; of single ratings, which are
    neither right nor wrong, how often they say the same and how far they lie apart.
    """
    stored = evaluation.settings.get("expert", {}) if evaluation else {}
    return [
        {
            "criterion": criterion,
            "name": kind_of(evaluation.track).criterion_label(criterion) if evaluation else "",
            "checked": table["checked"],
            "rows": [
                {"says": says, "right": counts[0], "wrong": counts[1], "share": _share(table[key])}
                for says, counts, key in zip(
                    ("right", "wrong"),
                    table["counts"],
                    ("right_of_right", "wrong_of_wrong"),
                    strict=True,
                )
            ]
            if "counts" in table
            else [],
            "agree": _share(table["agree"]),
            "above": _share(table["above"]) if "above" in table else None,
        }
        for criterion, table in stored.items()
        if table["checked"]
    ]


def _share(share: dict[str, float | None]) -> drawing.Interval:
    return drawing.Interval(share["value"], share["low80"], share["high80"])


def scores(track: Track, evaluation: Evaluation | None) -> dict[str, Any]:
    """Return the guaranteed number of every corrected system, as the crowd says it and corrected,
    on one axis.
    """
    if evaluation is None:
        return {"rows": [], "axis": None}
    stored = evaluation.estimates.filter(
        quantity=kind_of(track).mean,
        criterion=track.criterion,
        distribution=track.distribution,
        slice="",
        method__in=["centred", METHOD],
    )
    by_system: dict[int, dict[str, Any]] = {}
    for estimate in stored:
        by_system.setdefault(estimate.submission_id, {})[estimate.method] = estimate
    systems = Submission.objects.select_related("team").in_bulk(by_system)
    rows = [
        {
            "submission": systems[pk],
            "crowd": interval(Figure.of(by_method["centred"])),
            "expert": interval(Figure.of(by_method[METHOD])),
            "n": by_method[METHOD].n_labels,
            "checked": by_method[METHOD].n_checked,
        }
        for pk, by_method in by_system.items()
        if METHOD in by_method and "centred" in by_method
    ]
    rows.sort(key=lambda row: -(row["expert"].estimate or 0.0))
    axis = drawing.axis_over([row[which] for row in rows for which in ("crowd", "expert")])
    return {"rows": rows, "axis": axis, "left_out": len(by_system) - len(rows)}


urlpatterns = [path("desk/tracks/<slug:slug>/checks/", show, name="desk-checks")]
