"""The pages of experts: the queue of all tracks, and for each track its checks, disputes, and their
effect on scores.
"""

from __future__ import annotations

from typing import Any, cast

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.db.models import Count, Min, Q
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import path, reverse
from django.views.decorators.http import require_POST

from annotation.desk import experts
from annotation.desk.experts import CannotAsk, judged_by_filter, load_trail, question_from_check
from annotation.quality.describe import question_title
from kbpo.accounts.models import User
from kbpo.evaluation.models import Evaluation
from kbpo.experts.draw import (
    MOST,
    CannotDraw,
    drawn_rounds,
    end_expert_round,
    open_round,
    order_expert_round,
)
from kbpo.experts.queue import answerable_checks
from kbpo.sampling.models import ExpertCheck, ExpertRound
from kbpo.submissions.models import Submission
from kbpo.tracks.models import Track
from kbpo.tracks.recall import kind_with_recall_or_none
from kbpo.tracks.registry import kind_of
from kbpo.web.components import drawing
from kbpo.web.http import current_admin, for_admins, form_reason
from kbpo.web.research import judged
from kbpo.web.research.submissions import find_run
from scoring.corrected import METHOD
from scoring.double_sampling import LEAST
from scoring.report import Figure

USUAL = 40


# -- All tracks


def waiting_for_experts() -> int:
    """Return the number of open checks and disputes of all tracks."""
    return ExpertCheck.objects.filter(status="open").count()


@for_admins
def show_queue(request: HttpRequest) -> HttpResponse:
    """Return the tracks with open checks and disputes."""
    user, queue = current_admin(request), []
    for track in Track.objects.exclude(status="draft").order_by("-pk"):
        waits = ExpertCheck.objects.filter(track=track, status="open")
        counted = waits.aggregate(n=Count("pk"), since=Min("raised_at"))
        if counted["n"]:
            yours = answerable_checks(track, user, judged_by_filter(user)).count()
            queue.append({"track": track, "yours": yours, **counted})
    context = {"queue": sorted(queue, key=lambda row: row["since"])}
    return render(request, "desk/expert_queue.html", context)


# -- One track


@for_admins
def show_track_checks(request: HttpRequest, slug: str) -> HttpResponse:
    """Return the page of a track's expert checks and disputes. A POST orders a round, ends the open
    one, or drops a dispute.
    """
    track = get_object_or_404(Track.objects.select_related("corpus"), slug=slug)
    kind = kind_of(track)
    if kind.words.unchecked:
        raise Http404(kind.words.unchecked)
    refusal = ""
    if request.method == "POST":
        change = {"end": _end_round, "drop": _drop_dispute}.get(
            request.POST.get("verb", ""), _order_round
        )
        refusal = change(track, request)
        if not refusal:
            return redirect("desk-experts", slug=slug)
    latest = track.evaluations.order_by("-number").first()
    rounds = list(
        drawn_rounds(track)
        .select_related("drawn_by")
        .annotate(
            n=Count("checks"), done=Count("checks", filter=Q(checks__answered_at__isnull=False))
        )
        .order_by("-number")
    )
    context = {
        "track": track,
        "refusal": refusal,
        "undrawn": ExpertRound.objects.filter(track=track, number=None).first(),
        "rounds": rounds,
        "open": next((check_round for check_round in rounds if check_round.status == "open"), None),
        "waiting": ExpertCheck.objects.filter(track=track, status="open").count(),
        "disputes": [
            (row, question_title(question_from_check(row))) for row in experts.open_disputes(track)
        ],
        "entries": [
            (row, question_title(question_from_check(row))) for row in experts.expert_answers(track)
        ],
        "usual": request.POST.get("budget", USUAL),
        "most": MOST,
        "least": LEAST,
        "evaluation": latest,
        "matrices": sorted(
            crowd_expert_tables(latest), key=lambda matrix: matrix["criterion"] != track.criterion
        ),
        "scores": corrected_scores(track, latest),
        "weighted": kind.measures.distributions[track.distribution].label.lower(),
        "criterion": kind.measures.criterion(track.criterion).label.lower(),
        "words": kind.words,
        "quantity": kind.measures.quantity_as_printed(kind.measures.mean, track.criterion).label,
        "has_recall": kind_with_recall_or_none(track) is not None,
        "seconds": kind.asking[0].seconds,
    }
    return render(request, "desk/experts.html", context, status=409 if refusal else 200)


def _end_round(track: Track, request: HttpRequest) -> str:
    """End the open round of expert checks, and return why not, as a sentence; empty if it was
    ended.
    """
    why = form_reason(request)
    if not why:
        return "Nothing was ended: give a reason for the log."
    if row := open_round(track):
        end_expert_round(row, current_admin(request), why)
        messages.success(
            request, f"Round {row.number} is ended. Its answers in order of the draw count."
        )
    return ""


def _drop_dispute(track: Track, request: HttpRequest) -> str:
    disputes = {str(row.pk): row for row in experts.open_disputes(track)}
    row = disputes.get(request.POST.get("entry", ""))
    if row is None:
        return "That dispute is no longer open."
    try:
        experts.drop_dispute(row, current_admin(request), form_reason(request))
    except CannotAsk as refusal:
        return str(refusal)
    messages.success(request, "The dispute is dismissed.")
    return ""


def _order_round(track: Track, request: HttpRequest) -> str:
    budget = request.POST.get("budget", "").strip()[:9]
    wanted = int(budget) if budget.isascii() and budget.isdecimal() else 0
    try:
        order_expert_round(track, wanted, current_admin(request), form_reason(request))
    except CannotDraw as refusal:
        return str(refusal)
    return ""


def crowd_expert_tables(evaluation: Evaluation | None) -> list[dict[str, Any]]:
    """Return a table of crowd against experts for each criterion; for ratings, how often they agree
    and how far they differ.
    """
    stored = evaluation.report.expert if evaluation else {}
    return [
        {
            "criterion": criterion,
            "name": kind_of(evaluation.track).measures.criterion(criterion).label
            if evaluation
            else "",
            "checked": table.checked,
            "rows": [
                {
                    "says": says,
                    "right": counts[0],
                    "wrong": counts[1],
                    "share": drawing.Interval.from_figure(share),
                }
                for says, counts, share in zip(
                    ("right", "wrong"),
                    table.counts or (),
                    (table.right_of_right, table.wrong_of_wrong),
                    strict=table.counts is not None,
                )
                if share is not None
            ],
            "agree": drawing.Interval.from_figure(table.agree),
            "above": drawing.Interval.from_figure(table.above) if table.above is not None else None,
        }
        for criterion, table in stored.items()
        if table.checked
    ]


def corrected_scores(track: Track, evaluation: Evaluation | None) -> dict[str, Any]:
    """Return the guaranteed figure of each corrected system, before and after the correction, on
    one axis.
    """
    if evaluation is None:
        return {"rows": [], "axis": None}
    guaranteed = (kind_of(track).measures.mean, track.criterion, track.distribution)
    by_system: dict[int, dict[str, Figure]] = {}
    for key, figure in evaluation.report.figures.items():
        if key[1:4] == guaranteed and key.method in ("centred", METHOD):
            by_system.setdefault(key.submission, {})[key.method] = figure.printed
    systems = Submission.objects.select_related("team").in_bulk(by_system)
    rows: list[dict[str, Any]] = [
        {
            "submission": systems[pk],
            "crowd": drawing.Interval.from_figure(by_method["centred"]),
            "expert": drawing.Interval.from_figure(by_method[METHOD]),
            "n": by_method[METHOD].n_labels,
            "checked": by_method[METHOD].n_checked,
        }
        for pk, by_method in by_system.items()
        if pk in systems and METHOD in by_method and "centred" in by_method
    ]
    rows.sort(key=lambda row: -(row["expert"].estimate or 0.0))
    axis = drawing.axis_over([row[which] for row in rows for which in ("crowd", "expert")])
    return {"rows": rows, "axis": axis, "left_out": len(by_system) - len(rows)}


# -- One judgment


@for_admins
def show_trail(request: HttpRequest, slug: str, pk: int) -> HttpResponse:
    """Return the votes and the expert's answer about one judgment. A POST adds the
    expert's remark.
    """
    track = get_object_or_404(Track, slug=slug)
    trail = load_trail(track, pk)
    if trail is None:
        raise Http404("This check has no answer yet.")
    if request.method == "POST":
        experts.store_remark(trail.row, current_admin(request), request.POST.get("remark", ""))
        messages.success(request, "Saved.")
        return redirect("desk-trail", slug=slug, pk=pk)
    return render(request, "desk/trail.html", {"track": track, "trail": trail, "row": trail.row})


@login_required
@require_POST
def dispute(request: HttpRequest, pk: int, prediction: int) -> HttpResponse:
    """Store a dispute of a team member about the judgment of a prediction."""
    submission, note = find_run(request, pk), request.POST.get("note", "")
    try:
        judged.dispute(cast(User, request.user), submission, prediction, note)
        messages.success(request, "An expert will judge it again, without seeing your note.")
    except CannotAsk as refusal:
        messages.error(request, str(refusal))
    return redirect(reverse("submission-explore", args=[pk]) + f"?p={prediction}")


urlpatterns = [
    path("desk/quality/", show_queue, name="desk-quality"),
    path("desk/tracks/<slug:slug>/experts/", show_track_checks, name="desk-experts"),
    path("desk/tracks/<slug:slug>/experts/<int:pk>/", show_trail, name="desk-trail"),
    path(
        "submissions/<int:pk>/judged/<int:prediction>/dispute/", dispute, name="submission-dispute"
    ),
]
