"""The page of a track's metrics and judges: progress, use by the model, and files of scores."""

from __future__ import annotations

from typing import Any, BinaryIO, cast

from django.contrib import messages
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import path

from kbpo.scores.bring import (
    NOT_PAIRS,
    BadFile,
    CannotTake,
    Name,
    scorers,
    set_used,
    state_not_tuned,
    store_score_file,
)
from kbpo.scores.models import Computing, Scorer
from kbpo.submissions.receive import run_names
from kbpo.tracks.models import Track
from kbpo.tracks.registry import kind_of
from kbpo.web.http import current_admin, for_admins

SHOWN = 20
"""Problems of a file that the page shows"""


@for_admins
def show_scores(request: HttpRequest, slug: str) -> HttpResponse:
    """Return the metrics and judges. A POST switches one on or off, records that one was not tuned
    on judgments, or imports a file.
    """
    track = get_object_or_404(Track.objects.select_related("corpus"), slug=slug)
    refusal, report = "", None
    if "switch" in request.POST or "not_tuned_of" in request.POST:
        _change_scorer(track, request)
        return redirect("desk-scores", slug=slug)
    if request.method == "POST":
        try:
            _import_scores(track, request)
            return redirect("desk-scores", slug=slug)
        except BadFile as bad:
            report, refusal = bad.report, "Nothing was stored: the file has errors."
        except CannotTake as error:
            refusal = str(error)
    waiting = Computing.objects.filter(submission__track=track).exclude(status="made")
    context: dict[str, Any] = {
        "track": track,
        "kind": kind_of(track),
        "words": kind_of(track).words,
        "scorers": scorers(track),
        "waiting": waiting.select_related("submission__team").order_by("pk"),
        "systems": list(run_names(track).written.values()),
        "no_pairs": NOT_PAIRS.format(track.name) if kind_of(track).opposes else "",
        "refusal": refusal,
        "problems": [message for message in report or () if message.severity == "error"][:SHOWN],
        "n_problems": report.errors if report else 0,
        "sent": request.POST,
    }
    return render(request, "desk/scores.html", context, status=422 if refusal else 200)


def _change_scorer(track: Track, request: HttpRequest) -> None:
    """Switch the use of a metric or judge, or record that it was not tuned. Raises Http404."""
    sent, admin, used = request.POST, current_admin(request), request.POST.get("used") == "1"
    try:
        if "switch" in sent:
            row = set_used(track, int(sent["switch"]), admin, used=used)
            change = "used by the model again" if used else "no longer used by the model"
        else:
            row = state_not_tuned(track, int(sent["not_tuned_of"]), admin)
            change = "your statement is recorded"
    except (ValueError, OverflowError, Scorer.DoesNotExist) as error:
        raise Http404("There is no such metric or judge.") from error
    messages.success(request, f"{row}: {change}. Scores are being recomputed.")


def _import_scores(track: Track, request: HttpRequest) -> None:
    """Import a file of scores. Raises BadFile, or CannotTake."""
    file = request.FILES.get("file")
    if file is None:
        raise CannotTake("Choose a file first.")
    name, version, prompt = (
        request.POST.get(field, "").strip() for field in ("name", "version", "prompt")
    )
    named = Name(name, version, prompt) if name else None
    outcomes = store_score_file(
        track,
        cast(BinaryIO, file.file),
        named,
        current_admin(request),
        not_tuned="not_tuned" in request.POST,
    )
    for scorer, taken in outcomes.items():
        messages.success(request, f"{scorer}: {taken.sentence}")


urlpatterns = [path("desk/tracks/<slug:slug>/scores/", show_scores, name="desk-scores")]
