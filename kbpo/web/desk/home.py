"""The desk: one page with everything that needs an admin, and a page for each batch."""

from __future__ import annotations

from datetime import timedelta
from decimal import Decimal
from typing import Any

from django.contrib import messages
from django.db import transaction
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import path, register_converter, reverse
from django.urls.converters import StringConverter

from annotation.budget import accrue, check_books, halts
from annotation.budget.halts import current_halts, stop_publishing
from annotation.budget.halts import lift_halts as lift_halts
from annotation.desk import failures as failed_rows
from annotation.desk import journey
from annotation.desk.failures import CannotDismiss, CannotRetry
from annotation.hits import batch, take_down
from annotation.labels import exclude
from annotation.models import Worker
from annotation.quality import agreement, describe
from annotation.quality.warn import count_warned_since
from annotation.workers import volunteer
from annotation.workers.models import Appeal
from kbpo import clock
from kbpo.accounts.audit import DISMISS, write_audit_entry
from kbpo.accounts.models import AccountRequest
from kbpo.money.models import Budget, Purpose
from kbpo.money.spend import NOTHING, OverBudget, balance, balances, committed_amount
from kbpo.queue import wake_step
from kbpo.releases.make import order_release
from kbpo.releases.models import Release
from kbpo.releases.write import CannotRelease
from kbpo.submissions.models import Submission
from kbpo.submissions.withdraw import CannotChange
from kbpo.tracks.models import Track
from kbpo.web.components.drawing import axis_over
from kbpo.web.components.figures import plural
from kbpo.web.desk.experts import waiting_for_experts
from kbpo.web.desk.health import health_checks
from kbpo.web.desk.measures import agreement_lines
from kbpo.web.desk.stages import all_stages, list_failures, work_in_progress
from kbpo.web.desk.workers import annotator_table
from kbpo.web.http import (
    current_admin,
    for_admins,
    form_pk,
    form_reason,
    form_text,
    has_typed_word,
    in_snapshot,
    run_action,
)
from kbpo.web.research.submissions import resume_failed

A_WEEK = timedelta(days=7)
SPENDING = ("open", "frozen")
"""Statuses of tracks that spend money"""
FEW = 4
"""Number of annotators and failures on the desk"""
NEARLY = Decimal("0.8")
"""Share of a cap from which on the desk shows the cap"""


@for_admins
@in_snapshot
def show_desk(request: HttpRequest) -> HttpResponse:
    """Return the page of what needs an admin: late stages, failures, money; with `?part=live` the
    part that refreshes itself. A POST runs the action of its form.
    """
    if request.method == "POST":
        return run_action(request, ACTIONS)
    template = "desk/live.html" if request.GET.get("part") == "live" else "desk/desk.html"
    return render(request, template, _desk_context())


def _desk_context() -> dict[str, Any]:
    steps, failed, spent = all_stages(), list_failures(), money_summary()
    book_disagreements = journey.book_disagreements()
    late = [row for row in steps if row.is_late]
    halts = [halt for halt in current_halts() if not halt.payer]
    undecided, asked = exclude.undecided_workers(), _open_requests()
    announced = Track.objects.filter(status=Track.Status.OPEN, closes_on__isnull=False)
    overdue = [track for track in announced.order_by("closes_on") if track.is_overdue]
    outlasting = _runs_of_closed_tracks()
    health = health_checks(steps)
    unwell = [sign for sign in health if not sign.well]
    check = spent["check"].row
    wrong = check and (check.trouble or check.findings)
    needs = [late, failed, book_disagreements, halts, undecided, asked, outlasting]
    needs += [overdue, unwell, wrong]
    return {
        "stages": [row for row in steps if row.waiting],
        "late": late,
        "failures": failed[:FEW],
        "more_failures": failed[FEW:],
        "n_failed": len(failed),
        "first_again": next((failure for failure in failed if failure.again), None),
        "book_disagreements": book_disagreements,
        "money": spent,
        "halts": halts,
        "undecided": undecided,
        "asked": asked,
        "outlasting": outlasting,
        "overdue": overdue,
        "health": health,
        "unwell": unwell,
        "well": not any(needs),
        "begins": not Track.objects.exists(),
        "workers": annotator_table(FEW),
        "warned": count_warned_since(clock.now() - A_WEEK),
        "excluded": exclude.count_excluded_since(clock.now() - A_WEEK),
        "online": describe.count_online(),
        "runs": work_in_progress(),
        "now": clock.now(),
    }


def _open_requests() -> list[dict[str, Any]]:
    """Return the open requests: number, kind and page."""
    waiting = [
        (AccountRequest.objects.filter(decided_at=None).count(), "request", "for an account"),
        (volunteer.open_applications().count(), "volunteer", "who wants to judge"),
        (Appeal.objects.filter(answered_at=None).count(), "appeal", "of an annotator"),
        (waiting_for_experts(), "judgment", "that an expert is asked about"),
    ]
    pages = ("desk-people", "desk-requests", "desk-requests", "desk-quality")
    return [
        {"n": n, "what": noun, "about": detail, "url": reverse(page)}
        for (n, noun, detail), page in zip(waiting, pages, strict=True)
        if n
    ]


def _runs_of_closed_tracks() -> list[dict[str, Any]]:
    """Return the closed tracks that have runs still being judged, with the number of runs and the
    money reserved for them. Judging continues until it is finished or the runs are withdrawn.
    """
    submissions = Submission.objects.filter(
        status__in=["confirmed", "judging"], track__status=Track.Status.CLOSED
    )
    runs_of: dict[Track, list[Submission]] = {}
    for row in submissions.select_related("track").order_by("pk"):
        runs_of.setdefault(row.track, []).append(row)
    held = balances([row.purpose for runs in runs_of.values() for row in runs])
    return [
        {
            "track": track,
            "n": len(runs),
            "held": sum((held.get(row.purpose, NOTHING).open for row in runs), Decimal(0)),
            "url": reverse("submission", args=[runs[0].pk])
            if len(runs) == 1
            else reverse("desk-track", args=[track.slug]),
        }
        for track, runs in runs_of.items()
    ]


def money_summary() -> dict[str, Any]:
    """Return today's spending, reservations, and nearly used caps."""
    today = clock.now().replace(hour=0, minute=0, second=0, microsecond=0)
    everything = balance()
    spent_today = balance(created_at__gte=today)
    return {
        "today": spent_today.spent,
        "spent": everything.spent,
        "open": everything.open,
        "owed": accrue.total_owed(),
        "in_doubt": journey.unknown_payments(),
        "check": check_books.last_check_result(),
        "caps": _nearly_used_caps(),
    }


def _nearly_used_caps() -> list[dict[str, Any]]:
    """Return the caps of active tracks and of teams with little left."""
    budgets = Budget.objects.filter(track__status__in=SPENDING, scope__in=["track", "day", "team"])
    budgets = budgets.exclude(scope="team", team=None).select_related("track", "team")
    caps = []
    for row in budgets.order_by("track__name", "scope"):
        used = committed_amount(row, row.team, None)
        if used >= NEARLY * row.cap:
            span = {"track": "in all", "day": "today", "team": f"by {row.team}"}[row.scope]
            name = f"{row.track.name}, {span}"
            caps.append({"name": name, "used": used, "cap": row.cap, "full": used >= row.cap})
    return caps


@transaction.atomic
def _retry_now(submission: Submission) -> bool:
    """Retry a failed step of a submission, and return whether its status was unchanged."""
    locked = Submission.objects.select_for_update(of=("self",), no_key=True)
    row = locked.filter(pk=submission.pk, status=submission.status).first()
    if row is not None:
        row.retry()
    return row is not None


def retry_row(request: HttpRequest) -> HttpResponse:
    """Retry a row at once."""
    kind, pk = form_text(request, "kind"), form_pk(request)
    if kind == "submission":
        row = get_object_or_404(Submission, pk=pk)
        user, before, reason = current_admin(request), row.status, row.reason
        try:
            again = resume_failed(row, user) if before == "failed" else _retry_now(row)
        except (CannotChange, OverBudget) as refusal:
            messages.error(request, f"{refusal} Nothing was retried.")
            return redirect("desk")
        if not again:
            messages.error(request, f"{row.name} has changed meanwhile: nothing was retried.")
            return redirect("desk")
        why = failed_rows.retry_log_text(form_reason(request), reason)
        write_audit_entry(
            "retry",
            row.purpose,
            who=user,
            why=why,
            before=before,
            after=row.status,
            track=row.track.slug,
        )
        messages.success(request, f"{row.name} is tried again.")
        return redirect("desk")
    if kind == "release":
        _retry_release(request, get_object_or_404(Release, pk=pk))
        return redirect("desk")
    try:
        status = failed_rows.retry_failed_row(
            kind, pk, current_admin(request), form_reason(request)
        )
        messages.success(request, f"{kind.capitalize()} {pk} is {status} again.")
    except (CannotRetry, KeyError) as refusal:
        messages.error(
            request,
            str(refusal) if isinstance(refusal, CannotRetry) else f"There is no {kind}.",
        )
    return redirect("desk")


def _retry_release(request: HttpRequest, release: Release) -> None:
    """Retry a release in progress, or order another one."""
    if release.status == Release.Status.ORDERED:
        release.retry()
        wake_step("release")
        write_audit_entry(
            "retry",
            f"track:{release.track.slug}",
            who=current_admin(request),
            track=release.track.slug,
        )
        messages.success(
            request, f"Release {release.number} of {release.track.name} is tried again."
        )
        return
    try:
        made = order_release(release.track, current_admin(request))
    except CannotRelease as refusal:
        messages.error(request, str(refusal))
        return
    messages.success(request, f"Release {made.number} of {release.track.name} is being made.")


def dismiss_failure(request: HttpRequest) -> HttpResponse:
    """Dismiss a failure, and log why."""
    kind, pk = form_text(request, "kind"), form_pk(request)
    user, why = current_admin(request), form_reason(request)
    try:
        if kind == "submission":
            row = get_object_or_404(Submission, pk=pk)
            failed_rows.check_dismissal(kind, row.status, why)
            write_audit_entry(
                DISMISS, row.purpose, who=user, before=row.status, why=why, track=row.track.slug
            )
        elif kind == "release":
            made = get_object_or_404(Release, pk=pk)
            state = "failed" if made.status == Release.Status.REFUSED else made.status
            failed_rows.check_dismissal(kind, state, why)
            about = f"release:{made.pk}"
            write_audit_entry(
                DISMISS, about, who=user, before=made.status, why=why, track=made.track.slug
            )
        else:
            failed_rows.dismiss_failed_row(kind, pk, user, why)
        messages.success(request, f"{kind.capitalize()} {pk} is dismissed; the log has the reason.")
    except CannotDismiss as refusal:
        messages.error(request, str(refusal))
    return redirect("desk")


def keep_shown_workers(request: HttpRequest) -> HttpResponse:
    """Keep all workers that the page showed as undecided; their current signals no longer count."""
    why, kept = form_reason(request), 0
    if not why:
        messages.error(request, "Nothing was decided: give a reason for the log.")
        return redirect("desk")
    seen = request.POST.getlist("worker")
    for case in exclude.undecided_workers():
        if case.worker.handle in seen:
            try:
                exclude.note_worker_reviewed(
                    Worker.objects.get(pk=case.worker.pk), current_admin(request), why
                )
                kept += 1
            except ValueError as meanwhile:
                messages.error(request, f"{case.worker.handle[:6]}: {meanwhile}")
    messages.success(request, f"{plural(kept, 'annotator')} kept.")
    return redirect("desk")


def stop_publishing_everywhere(request: HttpRequest) -> HttpResponse:
    """Stop publishing everywhere, or take down all open HITs, if the confirmation word was
    typed.
    """
    why = form_reason(request)
    if not has_typed_word(request, "stop"):
        messages.error(request, "Nothing was stopped: type the word stop to confirm.")
    elif not why:
        messages.error(request, "Nothing was stopped: give a reason, which annotators can read.")
    elif request.POST.get("scope") == "all":
        n = take_down.take_down_open_hits(None, current_admin(request), why)
        messages.warning(
            request, f"Everything is stopped; {plural(n, 'open question')} taken down."
        )
    else:
        stop_publishing(None, current_admin(request), why)
        messages.warning(request, "Publishing is stopped. Open questions continue and are paid.")
    return redirect("desk-platforms" if request.POST.get("back") == "desk-platforms" else "desk")


def resume_publishing(request: HttpRequest) -> HttpResponse:
    """Lift all stops except those of single batches."""
    user, why = current_admin(request), form_reason(request)
    tracks = {halt.track for halt in current_halts() if not halt.payer}
    if tracks and not why:
        messages.error(request, "Nothing was resumed: give a reason for the log.")
        return redirect("desk")
    lifted = sum(lift_halts(track, user, why) for track in tracks)
    messages.success(request, "Publishing is resumed." if lifted else "Nothing was stopped.")
    return redirect("desk")


def queue_books_check(request: HttpRequest) -> HttpResponse:
    """Queue a check of the books."""
    queued = check_books.queue_check(current_admin(request))
    messages.success(
        request,
        "The books are being checked. Reload in a moment." if queued else "It is queued already.",
    )
    return redirect("desk")


ACTIONS = {
    "retry": retry_row,
    "dismiss": dismiss_failure,
    "keep-all": keep_shown_workers,
    "stop": stop_publishing_everywhere,
    "resume": resume_publishing,
    "check-books": queue_books_check,
}


@for_admins
def show_batch(request: HttpRequest, payer: Purpose) -> HttpResponse:
    """Return the page of a batch. A POST pauses, continues or stops it."""
    shown = batch.load_batch(payer)
    if shown is None:
        raise Http404("There is no such batch.")
    refusal = _change_batch(request, shown) if request.method == "POST" else ""
    if request.method == "POST" and not refusal:
        return redirect("desk-batch", payer=payer)
    lines = agreement_lines(agreement.measure_agreement(payer=payer))
    context: dict[str, Any] = {
        "batch": shown,
        "address": reverse("submission", args=[payer.number]) if payer.kind == "submission" else "",
        "progress": batch.questions_progress(payer=payer),
        "agreement": lines,
        "axis": axis_over([line["interval"] for line in lines], bounds=(-1.0, 1.0), ticks=3),
        "refusal": refusal,
    }
    return render(request, "desk/batch.html", context, status=422 if refusal else 200)


def _change_batch(request: HttpRequest, batch_shown: batch.Batch) -> str:
    """Change the batch, and return why not, as a sentence; empty if it was changed."""
    user, verb, why = current_admin(request), request.POST.get("verb", ""), form_reason(request)
    try:
        if verb == "pause":
            halts.pause_work(batch_shown.track, user, why, payer=batch_shown.payer)
            messages.warning(request, "Paused. Started answers may be finished and are paid.")
        elif verb == "go on":
            halts.lift_halts(batch_shown.track, user, why, payer=batch_shown.payer)
            messages.success(request, "Publishing continues.")
        elif verb == "stop":
            if not has_typed_word(request, "stop"):
                return "Nothing was stopped: type the word stop to confirm."
            n = batch.stop_batch(batch_shown.payer, user, why)
            messages.warning(request, f"Stopped: {n} questions are closed without an answer.")
        else:
            return "Choose: pause, continue or stop."
    except ValueError as refusal:
        return str(refusal)
    return ""


class PurposeConverter(StringConverter):
    """Converts between a purpose of money and its text in an address."""

    def to_python(self, value: str) -> Purpose:  # type: ignore[override]
        return Purpose.parse(value)

    def to_url(self, value: object) -> str:
        return str(value)


register_converter(PurposeConverter, "purpose")
urlpatterns = [
    path("desk/", show_desk, name="desk"),
    path("desk/batches/<purpose:payer>/", show_batch, name="desk-batch"),
]
