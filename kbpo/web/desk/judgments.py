"""The pages for importing and exporting judgments of a track, and for its metrics and judges:
progress, use by the model, and files of scores.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, BinaryIO, cast

from django.contrib import messages
from django.db import transaction
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseBase, StreamingHttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import path

from annotation.labels.export import single_ratings
from formats.messages import Report
from formats.opening import Source
from kbpo.accounts.audit import COMMAND, write_audit_entry
from kbpo.accounts.models import User
from kbpo.scores.bring import (
    NOT_PAIRS,
    BadFile,
    CannotTake,
    Name,
    list_scorers,
    set_scorer_used,
    state_not_tuned,
    store_score_file,
)
from kbpo.scores.models import Computing, Scorer
from kbpo.submissions.receive import run_names_in_files
from kbpo.tracks.models import Track
from kbpo.tracks.registry import kind_of
from kbpo.tracks.texts.judgments import (
    CannotImport,
    ImportCounts,
    SingleRating,
    export_judgments,
    import_judgments,
    predicted_targets,
    text_track_kind,
)
from kbpo.web.expensive import limit_exports
from kbpo.web.http import current_admin, for_admins

SHOWN = 100
"""Number of problems on the page"""


def judgment_lines(track: Track, *, public: bool = False) -> Iterator[str]:
    """Yield the lines of the export with a header; with `public` only public judgments. Raises
    CannotImport for tracks without ratings.
    """
    text_track_kind(track)
    return export_judgments(track, _own_ratings(track, public=public), public=public)


def judgment_file(track: Track, *, public: bool = False) -> StreamingHttpResponse:
    """Return the export as a download."""
    return StreamingHttpResponse(
        judgment_lines(track, public=public),
        content_type="text/tab-separated-values; charset=utf-8",
        headers={"Content-Disposition": f'attachment; filename="{track.slug}-judgments.tsv"'},
    )


@transaction.atomic
def import_file(
    track: Track,
    source: Source,
    report: Report,
    who: User | None,
    *,
    skip_bad_lines: bool = False,
    is_public: bool | None = None,
) -> ImportCounts:
    """Import a file of judgments, and return the result. With `is_public` they are public; by
    default only on studies. Raises CannotImport.
    """
    text_track_kind(track)
    done = import_judgments(
        track,
        source,
        report,
        _own_ratings(track),
        skip_bad_lines=skip_bad_lines,
        is_public=track.is_study if is_public is None else is_public,
    )
    write_audit_entry(
        "import judgments",
        f"track:{track.slug}",
        who=who,
        why=COMMAND if who is None else "",
        after=done.sentence,
        track=track.slug,
    )
    return done


def _own_ratings(track: Track, *, public: bool = False) -> Iterator[SingleRating]:
    return (
        SingleRating(*rating) for rating in single_ratings(predicted_targets(track), public=public)
    )


@for_admins
def show_judgments(request: HttpRequest, slug: str) -> HttpResponseBase:
    """Return the format of files; with `?format=tsv` all judgments. A POST imports a file."""
    track = get_object_or_404(Track.objects.select_related("corpus"), slug=slug)
    if "format" in request.GET and not why_no_ratings(track):
        return limit_exports(lambda request: judgment_file(track))(request)
    report, refusal, sent = Report(), "", request.FILES.get("file")
    if request.method == "POST" and sent is None:
        refusal = "Nothing was imported: choose a file."
    elif request.method == "POST" and sent is not None:
        try:
            partly = request.POST.get("partly") == "1"
            done = import_file(
                track,
                cast(BinaryIO, sent),
                report,
                cast(User, request.user),
                skip_bad_lines=partly,
                is_public=request.POST.get("public") == "1",
            )
        except CannotImport as no:
            refusal = str(no)
        else:
            messages.success(request, done.sentence)
            return redirect("desk-track-judgments", slug=slug)
    context = {
        "track": track,
        "rated": kind_of(track).rates,
        "why_no_ratings": why_no_ratings(track),
        "refusal": refusal,
        "problems": list(report)[:SHOWN],
    }
    return render(request, "desk/judgments.html", context, status=422 if refusal else 200)


def why_no_ratings(track: Track) -> str:
    """Return why a track has no files of judgments, as a sentence; empty if it has."""
    try:
        text_track_kind(track)
    except CannotImport as no:
        return str(no)
    return ""


SHOWN_PROBLEMS = 20
"""Number of problems of a file that the page shows"""


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
        "scorers": list_scorers(track),
        "waiting": waiting.select_related("submission__team").order_by("pk"),
        "systems": list(run_names_in_files(track).written.values()),
        "no_pairs": NOT_PAIRS.format(track.name) if kind_of(track).opposes else "",
        "refusal": refusal,
        "problems": [message for message in report or () if message.severity == "error"][
            :SHOWN_PROBLEMS
        ],
        "n_problems": report.errors if report else 0,
        "sent": request.POST,
    }
    return render(request, "desk/scores.html", context, status=422 if refusal else 200)


def _change_scorer(track: Track, request: HttpRequest) -> None:
    """Switch the use of a metric or judge, or record that it was not tuned. Raises Http404."""
    sent, admin, used = request.POST, current_admin(request), request.POST.get("used") == "1"
    try:
        if "switch" in sent:
            row = set_scorer_used(track, int(sent["switch"]), admin, used=used)
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


urlpatterns = [
    path("desk/tracks/<slug:slug>/judgments/", show_judgments, name="desk-track-judgments"),
    path("desk/tracks/<slug:slug>/scores/", show_scores, name="desk-scores"),
]
