"""The four steps of an upload: file, check, description, confirmation. Only the last one spends
money.
"""

from __future__ import annotations

import hashlib
import secrets
from collections import Counter
from collections.abc import Callable
from datetime import timedelta
from decimal import Decimal
from functools import wraps
from itertools import islice
from typing import Any, Concatenate, ParamSpec, cast
from urllib.parse import urlencode

from django import forms
from django.conf import settings
from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.core.files.uploadedfile import UploadedFile
from django.db.models import QuerySet
from django.http import FileResponse, Http404, HttpRequest, HttpResponse, JsonResponse
from django.http.response import HttpResponseBase
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import path, reverse

from annotation.workers.worker import has_team_judged
from kbpo import clock
from kbpo.accounts.models import Team, User
from kbpo.money.spend import ZERO, OverBudget
from kbpo.sampling.confirm import CannotConfirm, confirm_plan, refusal_to_confirm
from kbpo.submissions.keep import Readable
from kbpo.submissions.limits import no_run_left_reason
from kbpo.submissions.models import Problem, Submission, stored_progress
from kbpo.submissions.receive import (
    NOT_TAKEN,
    CannotChange,
    CannotReceive,
    store_submission,
    withdraw_submission,
)
from kbpo.tracks.models import Track
from kbpo.tracks.registry import count_inputs, count_inputs_by_track, kind_of
from kbpo.web.components.figures import count_text
from kbpo.web.http import run_action
from kbpo.web.public.track import reads_offline
from kbpo.web.research.quote import find_quote, list_quotes
from kbpo.web.research.submissions import SEVERITIES, RunForm, find_run, severity_switch

P = ParamSpec("P")
DRAFT_STATUSES = ("received", "read", "planned")
SHOWN_LINES = 2
"""Number of lines of the example on the page"""
SHOWN_PROBLEMS = 10
"""Number of problems on the page; the others are on another page"""
ENDINGS = (".gz", ".tsv", ".txt", ".kb", ".jsonl", ".json")


def for_researchers(
    view: Callable[Concatenate[HttpRequest, P], HttpResponseBase],
) -> Callable[Concatenate[HttpRequest, P], HttpResponseBase]:
    """Return the view, limited to researchers with a team; others see how to get one."""

    @wraps(view)
    @login_required
    def view_for_researchers(
        request: HttpRequest, /, *args: P.args, **kwargs: P.kwargs
    ) -> HttpResponseBase:
        user = cast(User, request.user)
        if not user.is_staff and (not user.is_researcher or not user.team_keys):
            return render(
                request, "upload_not_yet.html", {"researcher": user.is_researcher}, status=403
            )
        return view(request, *args, **kwargs)

    return view_for_researchers


def receive_run(track: Track, team: Team, user: User, file: Readable, **options: Any) -> Submission:
    """Store an uploaded run and return the submission. Raises CannotReceive like
    `kbpo.submissions.receive`, on a study of another team, and if a member of the team has judged
    on the track.
    """
    if track.is_study and track.owner_id != team.pk and not user.is_staff:
        raise CannotReceive(
            f"{track.name} is a study: only the team that owns it uploads there.", "not_yours"
        )
    if not track.is_study and has_team_judged(track, team):
        raise CannotReceive(
            (f"A member of {team.name} has judged on {track.name}: upload after it is closed."),
            "has_judged",
        )
    return store_submission(track, team, user, file, **options)


@for_researchers
def upload_page(request: HttpRequest) -> HttpResponse:
    """Return step 1 of an upload: track and file. A POST stores the file and leads to the check."""
    user = cast(User, request.user)
    team = requested_team(request)
    if team is None:  # an admin who belongs to no team
        return render(request, "upload_not_yet.html", {"researcher": True}, status=403)
    tracks = list(Track.objects.filter(status="open").select_related("corpus").order_by("-pk"))
    slug = request.POST.get("track") or request.GET.get("track")
    asked = Track.objects.exclude(status="draft").filter(slug=slug).first()
    if request.method != "POST":
        if slug is None:
            return _file_page(request, team, tracks, tracks[0] if tracks else None)
        refusal = asked.refusal if asked else "There is no track at this address."
        return _file_page(request, team, tracks, asked, refusal=refusal)
    if asked is None:
        return _refuse_upload(request, team, tracks, None, "Choose the track that the file is for.")
    return _receive_upload(request, user, team, tracks, asked)


def requested_team(request: HttpRequest) -> Team | None:
    """Return the team in the form or address, or the user's first team. Raises Http404 for a team
    of others.
    """
    slug, user = request.POST.get("team") or request.GET.get("team", ""), cast(User, request.user)
    team = user.team(slug)
    if team is None and slug:
        raise Http404("There is no such team, or it is not yours to see.")
    return team


def _receive_upload(
    request: HttpRequest, user: User, team: Team, tracks: list[Track], track: Track
) -> HttpResponse:
    file = request.FILES.get("file")
    if not isinstance(file, UploadedFile) or not file.name:
        return _refuse_upload(
            request, team, tracks, track, "Choose a file first. Nothing was uploaded."
        )
    try:
        submission = receive_run(
            track,
            team,
            user,
            file,
            name=default_run_name(file.name),
            file_name=file.name,
            idempotency_key=_upload_key(request, file),
        )
    except CannotReceive as refusal:
        return _refuse_upload(request, team, tracks, track, str(refusal))
    address = reverse("upload-check", args=[submission.pk])
    return JsonResponse({"url": address}) if _is_upload_script(request) else redirect(address)


def _upload_key(request: HttpRequest, file: UploadedFile[Any]) -> str | None:
    """Return the idempotency key: the key of the form with a hash of the file."""
    form = request.POST.get("key", "")[:32]
    if not form:
        return None
    digest = hashlib.sha256()
    for block in file.chunks():
        digest.update(block)
    file.seek(0)
    return f"page:{form}:{digest.hexdigest()[:32]}"


def default_run_name(file_name: str) -> str:
    """Return the file name without its extensions, the default name of a run."""
    name = file_name.replace("\\", "/").rsplit("/", 1)[-1]
    while ending := next(
        (suffix for suffix in ENDINGS if name.lower().endswith(suffix) and len(name) > len(suffix)),
        "",
    ):
        name = name[: -len(ending)]
    return name[:80]


def _is_upload_script(request: HttpRequest) -> bool:
    return request.headers.get("X-Requested-With") == "upload"


def _refuse_upload(
    request: HttpRequest, team: Team, tracks: list[Track], track: Track | None, sentence: str
) -> HttpResponse:
    if _is_upload_script(request):
        return JsonResponse({"error": sentence}, status=422)
    return _file_page(request, team, tracks, track, refusal=sentence, status=422)


def _file_page(
    request: HttpRequest,
    team: Team,
    tracks: list[Track],
    track: Track | None,
    *,
    refusal: str = "",
    status: int = 200,
) -> HttpResponse:
    """Return step 1 of an upload: the file. A track that takes no runs is not selected."""
    track = next((choice for choice in tracks if choice == track), None)
    kind = kind_of(track) if track is not None else None
    inputs = count_inputs_by_track(tracks)
    for choice in tracks:
        choice.inputs, choice.words = inputs[choice.pk], kind_of(choice).words  # type: ignore[attr-defined]
    context = {
        "tracks": tracks,
        "track": track,
        "words": kind.words if kind else None,
        "pages": kind.pages if kind else None,
        "n_inputs": count_inputs(track) if track else 0,
        "example": list(islice(kind.example_lines(), SHOWN_LINES)) if kind else [],
        "team": team,
        "teams": list(cast(User, request.user).teams.order_by("pk")),
        "drafts": team_drafts(team),
        "key": secrets.token_hex(16),
        "limit_mb": settings.UPLOAD_LIMIT_MB,
        "refusal": refusal,
        "no_run_left": no_run_left_reason(track, team) if track is not None else "",
    }
    return render(request, "upload.html", context, status=status)


def team_drafts(team: Team) -> QuerySet[Submission]:
    """Return the unconfirmed uploads of a team, newest first."""
    submissions = (
        Submission.objects.filter(team=team).awaiting_confirmation().select_related("track", "team")
    )
    return submissions.order_by("-pk")


@for_researchers
def check_page(request: HttpRequest, pk: int) -> HttpResponse:
    """Return step 2 of an upload: the contents of the file and the price. `?part=live` returns the
    part that is polled. A POST discards the draft.
    """
    if request.method == "POST":
        return run_action(
            request, {"discard": discard_draft}, find_run(request, pk, own_team_only=True)
        )
    submission = find_run(request, pk, own_team_only=True)
    if request.GET.get("part") == "live":
        return render(request, "upload_check_live.html", _check_context(request, submission))
    if submission.status not in (*DRAFT_STATUSES, "refused", "expired"):
        return redirect("submission", pk=pk)
    return render(request, "upload_check.html", _check_context(request, submission))


def _check_context(request: HttpRequest, submission: Submission) -> dict[str, Any]:
    reading = submission.status in ("received", "read")
    share = stored_progress(submission.pk) if submission.status == "received" else 1.0
    took = left = None
    if submission.read_at is not None:
        took = max(submission.read_at - submission.received_at, timedelta(seconds=1))
    if reading and 0.02 <= share < 1.0:  # if it goes on as it began
        left = (clock.now() - submission.status_since) * ((1 - share) / share)
    goes_on = submission.status == "planned" and not submission.track.refusal
    options = list_quotes(submission) if goes_on else []
    chosen = find_quote(submission, request.GET.get("target")) if options else None
    context = {
        "submission": submission,
        "at": 2,
        "reading": reading,
        "share": share,
        "left": left,
        "took": took,
        "quote": chosen,
        "quotes": options,
        "faults": _error_text(submission),
        "same": identical_upload(submission),
        **_problem_context(submission),
    }
    if chosen is None:
        return context
    address = reverse("upload-check", args=[submission.pk])
    labels = "label exists" if chosen.judged == 1 else "labels exist"
    return context | {
        "refused": refusal_to_confirm(submission),
        "targets": [
            {
                "url": f"{address}?{urlencode({'target': option.width})}",
                "text": f"±{option.half_width * 100:g}",
                "current": option.width == chosen.width,
            }
            for option in options
        ],
        "paid_words": f"{count_text(chosen.judged)} {labels}",
        "judge_words": f"{count_text(chosen.new)} to judge",
        "good_words": f"Evaluate the {count_text(submission.n_items or 0)} good ones",
    }


def _error_text(submission: Submission) -> str:
    """Return the number of lines with errors and of errors about the whole file; empty without
    errors.
    """
    whole = submission.counts.get("file_errors", 0)
    lines = submission.counts.get("errors", 0) - whole
    phrases = []
    if lines:
        phrases.append(f"{count_text(lines)} {'line has' if lines == 1 else 'lines have'} errors")
    if whole:
        phrases.append(
            f"{count_text(whole)} {'error is' if whole == 1 else 'errors are'} about the whole file"
        )
    return ", and ".join(phrases)


def _problem_context(submission: Submission) -> dict[str, Any]:
    """Return the first ten problems, most severe first, and the count of each severity."""
    problems = Problem.objects.filter(submission=submission).order_by("line", "pk")
    kept = Counter(problems.values_list("severity", flat=True))
    counts = {name: max(kept[name], submission.counts.get(f"{name}s", 0)) for name in SEVERITIES}
    severest: list[Problem] = []
    for severity in SEVERITIES:
        if len(severest) < SHOWN_PROBLEMS:
            severest += problems.filter(severity=severity)[: SHOWN_PROBLEMS - len(severest)]
    every = sum(counts.values())
    return {
        "problems": severest,
        "severities": severity_switch(submission, counts),
        "more": max(0, every - SHOWN_PROBLEMS),
        "n_problems": every,
        "offline": reads_offline(submission.track),
    }


def identical_upload(submission: Submission) -> Submission | None:
    """Return another submission of the team with the same file; None without one."""
    submissions = Submission.objects.filter(
        team=submission.team_id, track=submission.track_id, file_digest=submission.file_digest
    )
    return (
        submissions.exclude(pk=submission.pk).exclude(status__in=NOT_TAKEN).order_by("-pk").first()
    )


@for_researchers
def describe_page(request: HttpRequest, pk: int) -> HttpResponse:
    """Return step 3 of an upload: name and description of the run."""
    submission = find_run(request, pk, own_team_only=True)
    if submission.status != "planned" or submission.track.refusal:
        return redirect("upload-check", pk=pk)
    if request.GET.get("lines") == "mend":
        kept = f"Nothing was spent. {submission.file_name} stays a draft for seven days."
        messages.info(request, f"{kept} Correct the file and upload it again.")
        query = {"track": submission.track.slug, "team": submission.team.slug}
        return redirect(f"{reverse('submit')}?{urlencode(query)}")
    name = submission.name
    if name == default_run_name(submission.file_name):  # the default: the file may name a run id
        name = submission.run_id or name
    form = RunForm(request.POST or None, submission=submission, who=request.user, name=name)
    if request.method == "POST" and form.is_valid() and form.save():
        return redirect(reverse("upload-confirm", args=[pk]) + _choices_query_string(request))
    context = {"submission": submission, "at": 3, "fields": form}
    context |= {
        "quote": find_quote(submission, request.GET.get("target")),
        "choices": _choices_query_string(request),
        "refused": refusal_to_confirm(submission),
    }
    status = 422 if request.method == "POST" else 200
    return render(request, "upload_describe.html", context, status=status)


def _choices_query_string(request: HttpRequest) -> str:
    """Return the query string with the choices of step 2 of an upload."""
    kept = {key: request.GET[key] for key in ("target", "lines") if key in request.GET}
    return f"?{urlencode(kept)}" if kept else ""


@for_researchers
def confirm_page(request: HttpRequest, pk: int) -> HttpResponse:
    """Return step 4 of an upload: the confirmation. A POST confirms the plan, which spends money; a
    repeat changes nothing.
    """
    submission = find_run(request, pk, own_team_only=True)
    if submission.confirmed_at:
        return redirect("submission", pk=pk)
    if submission.status != "planned" or submission.track.refusal:
        return redirect("upload-check", pk=pk)
    chosen = find_quote(submission, request.GET.get("target"))
    refusal = ""
    if request.method == "POST":
        refusal = _confirm_plan(request, submission, chosen.width if chosen else None)
        if not refusal:
            messages.success(request, f"{submission.name} is confirmed. People judge it now.")
            return redirect("submission", pk=pk)
        submission.refresh_from_db()  # the plan may have changed
        chosen = find_quote(submission, request.GET.get("target"))
    context = {
        "submission": submission,
        "at": 4,
        "quote": chosen,
        "same": identical_upload(submission),
        "refusal": refusal,
        "refused": refusal_to_confirm(submission),
        "good_lines": request.GET.get("lines") == "good",
        "choices": _choices_query_string(request),
        "faults": _error_text(submission),
        "wider": [],
    }
    if chosen and not chosen.is_within_budget:
        context["wider"] = [option for option in list_quotes(submission) if option.is_within_budget]
    return render(request, "upload_confirm.html", context, status=409 if refusal else 200)


def _confirm_plan(request: HttpRequest, submission: Submission, width: str | None) -> str:
    """Confirm the plan, and return the refusal as a sentence (empty if confirmed)."""
    if (same := identical_upload(submission)) is not None and "again" not in request.POST:
        return f"Your team has submitted this file already, as {same.name}. Confirm below."
    shown = _parse_dollars(request.POST.get("at_most", ""))
    development = _parse_count(request.POST.get("development", ""))
    if shown is not None and development:
        shown += development * (_parse_dollars(request.POST.get("each_development", "")) or ZERO)
    try:
        confirm_plan(
            submission,
            cast(User, request.user),
            half_width=width,
            good_lines_only="good_lines" in request.POST,
            at_most=shown,
            development=development,
        )
    except (CannotConfirm, OverBudget) as refusal:
        return str(refusal)
    return ""


def _parse_count(number: str) -> int | None:
    """Return a whole number from the form; None if it is empty, −1 if it is invalid."""
    if not number.strip():
        return None
    return int(number) if number.isascii() and number.isdigit() and len(number) < 7 else -1


def _parse_dollars(amount: str) -> Decimal | None:
    """Return an amount from the form; None if it is empty, 0 if it is invalid."""
    try:
        return cast("Decimal | None", forms.DecimalField(required=False).clean(amount))
    except forms.ValidationError:
        return ZERO


def discard_draft(request: HttpRequest, submission: Submission) -> HttpResponse:
    """Discard a draft; nothing was spent on it."""
    pk = submission.pk
    if submission.confirmed_at:
        messages.error(request, f"{submission.name} is confirmed. Withdraw it on its own page.")
        return redirect("submission", pk=pk)
    try:
        withdraw_submission(submission, cast(User, request.user))
    except CannotChange as refusal:
        messages.error(request, str(refusal))
        return redirect("upload-check", pk=pk)
    messages.success(request, f"{submission.file_name} is discarded. Nothing was spent.")
    return redirect(f"{reverse('runs')}?{urlencode({'team': submission.team.slug})}")


def download_example(request: HttpRequest, slug: str) -> HttpResponse:
    """Return a small valid file for the track."""
    track = get_object_or_404(
        Track.objects.exclude(status="draft").select_related("corpus"), slug=slug
    )
    response = HttpResponse(
        "".join(f"{line}\n" for line in kind_of(track).example_lines()),
        content_type="application/jsonl; charset=utf-8",
    )
    response["Content-Disposition"] = f'attachment; filename="example-{track.slug}.jsonl"'
    return response


@for_researchers
def download_upload(request: HttpRequest, pk: int) -> FileResponse:
    """Return the uploaded file, for the run's own team."""
    submission = find_run(request, pk, own_team_only=True)
    return FileResponse(
        submission.file.open("rb"), as_attachment=True, filename=submission.file_name
    )


urlpatterns = [
    path("submit/", upload_page, name="submit"),
    path("submit/example/<slug:slug>.jsonl", download_example, name="upload-example"),
    path("submit/<int:pk>/", check_page, name="upload-check"),
    path("submit/<int:pk>/file/", download_upload, name="upload-file"),
    path("submit/<int:pk>/describe/", describe_page, name="upload-describe"),
    path("submit/<int:pk>/confirm/", confirm_page, name="upload-confirm"),
]
