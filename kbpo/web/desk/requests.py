"""The pages about annotators: applications, appeals, feedback, messages, rules, terms, payouts."""

from __future__ import annotations

import secrets
from decimal import Decimal
from operator import attrgetter
from typing import Any

from django.contrib import messages
from django.db import IntegrityError, transaction
from django.db.models import Count, Q, QuerySet, Sum
from django.http import HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import path

from annotation.desk.appeals import answer_appeal
from annotation.interfaces.registry import interface_by_name
from annotation.models import Worker
from annotation.workers import consent, payout, speak, teach, volunteer
from annotation.workers.intake import intake_rules, volunteer_policy
from annotation.workers.models import Appeal, Feedback, Intake, Payout, Terms, TutorialRun
from kbpo.accounts.audit import write_audit_entry
from kbpo.accounts.models import AccountRequest
from kbpo.tracks.models import Track
from kbpo.web.components.figures import plural
from kbpo.web.desk.workers import answers_with_signals
from kbpo.web.http import (
    current_admin,
    for_admins,
    form_pk,
    form_reason,
    form_text,
    has_typed_word,
    parse_amount,
    run_action,
)
from kbpo.web.judging.own_pages import show_receipt
from kbpo.web.table import Column, Table

OWED = (
    Column("worker", value=attrgetter("worker.handle")),
    Column("login", value=lambda row: row.worker.user.get_username() if row.worker.user else ""),
    Column("email", value=lambda row: row.worker.user.email if row.worker.user else ""),
    Column("amount"),
    Column("payments", value=attrgetter("n")),
    Column("since"),
    Column("address"),
)
"""Columns of payments for the bank. The file contains names, so it is for admins only."""
TAKEN_BACK = {True: "What was refused is paid.", False: "Reinstated."}
MOST_SHOWN = 200
NOBODY_COMES = "Volunteers are closed for the service: open them under “The service”."


@for_admins
def show_requests(request: HttpRequest) -> HttpResponse:
    """Return appeals, applications, feedback and annotators. A POST runs the action of its form."""
    if request.method == "POST":
        return run_action(request, ANSWERS)
    counts = Feedback.objects.aggregate(
        n=Count("pk"),
        clear=Count("pk", filter=Q(clear=True)),
        fair=Count("pk", filter=Q(fair=True)),
    )
    answers = Count("assignments", filter=Q(assignments__submitted_at__isnull=False))
    workers = Worker.objects.exclude(user=None).select_related("user").annotate(n=answers)
    owed = {balance.worker.pk: balance.amount for balance in payout.list_debts()}
    context = {
        "appeals": [
            {"row": row, "doubted": answers_with_signals(row.worker)}
            for row in Appeal.objects.filter(answered_at=None)
            .select_related("worker")
            .order_by("made_at")
        ],
        "volunteers": (
            volunteer.open_applications().select_related("user").order_by("made_at")[:MOST_SHOWN]
        ),
        "n_requests": AccountRequest.objects.filter(decided_at=None).count(),
        "told": counts,
        "feedback": [
            {"row": row, "title": interface_by_name(row.interface).title if row.interface else ""}
            for row in Feedback.objects.select_related("worker").order_by("-at")[:50]
        ],
        "annotators": [
            {"worker": row, "n": row.n, "owed": owed.get(row.pk)}
            for row in workers.order_by("-last_seen_at", "pk")[:MOST_SHOWN]
        ],
        "failed": _failed_tutorials().select_related("worker__user")[:50],
        "mode": volunteer_policy(),
    }
    return render(request, "annotators/desk/overview.html", context)


def _failed_tutorials() -> QuerySet[TutorialRun]:
    """Return the last attempt of each worker without attempts left, for the latest version of each
    tutorial.
    """
    runs = TutorialRun.objects.filter(passed=False, attempt=teach.ATTEMPTS)
    return runs.order_by("worker", "interface", "-version").distinct("worker", "interface")


def send_message(request: HttpRequest) -> HttpResponse:
    """Send a message to one annotator (by hash or login), or to all."""
    sent, admin = request.POST, current_admin(request)
    to, subject, text = sent.get("to", "").strip(), sent.get("subject", ""), sent.get("text", "")
    try:
        if sent.get("all"):
            n = speak.send_to_all_annotators(subject, text, admin)
            messages.success(request, f"Sent to {plural(n, 'annotator')}.")
        else:
            workers = list(Worker.objects.filter(Q(handle=to) | Q(user__username=to))[:2])
            if len(workers) != 1:
                raise speak.CannotSay(f"There is no annotator “{to[:40]}” with an account.")
            speak.send_message_from_admin(workers[0], subject, text, admin)
            notice = (
                "It is shown on their page."
                if workers[0].user_id
                else "The marketplace will deliver it."
            )
            messages.success(request, f"Sent. {notice}")
    except speak.CannotSay as cannot:
        messages.error(request, str(cannot))
    return redirect("desk-requests")


def decide_appeal(request: HttpRequest) -> HttpResponse:
    """Answer an appeal with the decision of an admin."""
    decision = request.POST.get("decision", "")
    if decision not in ("reinstate", "keep"):
        messages.error(request, "Choose: reinstate or keep the decision.")
        return redirect("desk-requests")
    try:
        row = answer_appeal(
            form_pk(request),
            current_admin(request),
            request.POST.get("text", ""),
            reinstate=decision == "reinstate",
        )
        messages.success(
            request,
            TAKEN_BACK[row.about_pay] if row.reinstated else "Answered; the decision stays.",
        )
    except speak.CannotSay as cannot:
        messages.error(request, str(cannot))
    return redirect("desk-requests")


def decide_volunteer(request: HttpRequest) -> HttpResponse:
    """Accept or decline a volunteer."""
    admits, why = request.POST.get("decision") == "admit", form_reason(request)
    if not admits and not why:
        messages.error(request, "Nobody was declined: give a reason, which the person reads.")
        return redirect("desk-requests")
    row = volunteer.decide_application(
        form_pk(request), current_admin(request), admit=admits, why=why
    )
    if row is None:
        messages.info(request, "That was decided already.")
    else:
        done = "admitted" if row.admitted else "declined"
        messages.success(request, f"{row.user.get_username()} is {done}, and notified.")
    return redirect("desk-requests")


def allow_another_attempt(request: HttpRequest) -> HttpResponse:
    """Allow another attempt after a tutorial was failed."""
    interface, handle = form_text(request, "interface"), form_text(request, "handle")
    worker = get_object_or_404(Worker, handle=handle)
    run = _failed_tutorials().filter(worker=worker, interface=interface).first()
    if not (why := form_reason(request)):
        messages.error(request, "Nothing was changed: give a reason for the log.")
    elif run is not None and teach.forget_attempts(worker, teach.tutorials()[interface]):
        write_audit_entry(
            "tutorial",
            f"worker:{worker.handle}",
            who=current_admin(request),
            why=why,
            after=f"another attempt: {interface}, version {run.version}",
        )
        messages.success(request, "They may try it again, from the first question.")
    else:
        messages.info(request, "They have not failed it.")
    return redirect("desk-requests")


@for_admins
def show_rules(request: HttpRequest) -> HttpResponse:
    """Return the rules and the terms. A POST publishes new terms, or sets rules."""
    if request.POST.get("action") == "intake":
        return set_intake(request)
    refusal = _publish_terms(request) if request.method == "POST" else ""
    if request.method == "POST" and not refusal:
        return redirect("desk-rules")
    tracks = (
        Track.objects.exclude(status=Track.Status.CLOSED).select_related("intake").order_by("name")
    )
    context = {
        "service": intake_rules(),
        "tracks": [{"track": track, "own": getattr(track, "intake", None)} for track in tracks],
        "modes": Intake.Volunteers.choices,
        "terms": consent.current_terms(),
        "versions": Terms.objects.select_related("made_by").order_by("-version"),
        "refusal": refusal,
        "why": form_reason(request),
        "text": request.POST.get("text") if refusal else consent.current_terms().text,
    }
    return render(request, "annotators/desk/rules.html", context, status=422 if refusal else 200)


def _publish_terms(request: HttpRequest) -> str:
    """Publish new terms, and return why not, as a sentence; empty if they were published."""
    text = request.POST.get("text", "").replace("\x00", "").replace("\r\n", "\n").strip()
    holds = consent.current_terms()
    if not has_typed_word(request, "publish"):
        return "Nothing was changed: type the word publish to confirm."
    if not 100 <= len(text) <= consent.LONGEST:
        return f"Terms have 100 to {consent.LONGEST} characters; these have {len(text)}."
    if text == holds.text.strip():
        return "Nothing was changed: the text is the same."
    if not form_reason(request):
        return "Nothing was changed: give a reason for the log."
    try:
        with transaction.atomic():
            row = Terms.objects.create(
                version=holds.version + 1, text=text, made_by=current_admin(request)
            )
            write_audit_entry(
                "terms",
                f"terms:{row.version}",
                who=current_admin(request),
                why=form_reason(request),
                before=str(holds.version),
            )
    except IntegrityError:
        return "Somebody else has just published a version. Check it first."
    messages.success(
        request, f"Version {row.version} is published. Annotators agree before their next answer."
    )
    return ""


def set_intake(request: HttpRequest) -> HttpResponse:
    """Set the rules of the service or of a track, or remove those of a track."""
    slug = request.POST.get("track", "")
    track = get_object_or_404(Track, slug=slug) if slug else None
    name, subject = (track.name, f"track:{track.slug}") if track else ("the service", "service")
    if not form_reason(request):
        messages.error(request, "Nothing was changed: give a reason for the log.")
        return redirect("desk-rules")
    if track is not None and request.POST.get("mode") == "":
        Intake.objects.filter(track=track).delete()
        write_audit_entry(
            "intake",
            subject,
            who=current_admin(request),
            why=form_reason(request),
            after="as the service",
        )
        messages.success(request, f"{name} follows the service again.")
        return redirect("desk-rules")
    mode = request.POST.get("mode", "")
    reward = parse_amount(request.POST.get("reward", ""), 9_999)
    least = parse_amount(request.POST.get("minimum", "5.00"))
    if mode not in Intake.Volunteers.values or reward is None or least is None:
        messages.error(
            request, "Nothing was changed: choose who may come in, and give dollars such as 0.75."
        )
        return redirect("desk-rules")
    fields: dict[str, Any] = {"volunteers": mode, "tutorial_reward": reward}
    if track is None:
        day, ways = request.POST.get("day", "1"), request.POST.get("ways", "")
        if not day.isdecimal() or not 1 <= int(day) <= 31:
            messages.error(request, "Nothing was changed: the day of payouts is from 1 to 31.")
            return redirect("desk-rules")
        fields |= {
            "payout_minimum": least,
            "payout_day": int(day),
            "payout_ways": " ".join(ways.replace("\x00", "").split())[:300],
        }
    before = payout.payout_schedule()
    Intake.objects.update_or_create(track=track, defaults=fields)
    rules = ", ".join(f"{field} {value}" for field, value in fields.items())
    write_audit_entry(
        "intake", subject, who=current_admin(request), why=form_reason(request), after=rules
    )
    messages.success(request, f"The rules of {name} are changed.")
    if track is not None and mode != Intake.Volunteers.CLOSED == volunteer_policy():
        messages.warning(request, NOBODY_COMES)
    if payout.payout_schedule() != before:
        n = speak.send_to_all_annotators(
            "How you are paid has changed",
            payout.payout_schedule().sentence(),
            current_admin(request),
        )
        messages.info(request, f"{plural(n, 'annotator')} got a message about it.")
    return redirect("desk-rules")


@for_admins
def show_payouts(request: HttpRequest) -> HttpResponseBase:
    """Return the sums owed to annotators, and the payouts; with `?format=csv` the payments that are
    due, for the bank. A POST marks a payout as paid, or undoes it.
    """
    if "format" in request.GET:
        return Table("owed", OWED, [row for row in payout.list_debts() if row.due]).file(request)
    refusal = ""
    if request.method == "POST":
        refusal = _undo_payout(request) if request.POST.get("undo") else _mark_paid(request)
        if not refusal:
            return redirect("desk-payouts")
    balances = payout.list_debts()
    marks = Payout.objects.select_related(
        "worker__user", "paid_by", "undone_by", "undoes"
    ).order_by("-paid_at")
    context = {
        "rows": [{"owed": row, "key": secrets.token_hex(16)} for row in balances],
        "total": sum((balance.amount for balance in balances), Decimal("0.00")),
        "due": sum((balance.amount for balance in balances if balance.due), Decimal("0.00")),
        "minimum": intake_rules().payout_minimum,
        "next_date": payout.payout_schedule().next_date(),
        "paid": marks[:MOST_SHOWN],
        "paid_in_all": Payout.objects.aggregate(sum=Sum("amount"))["sum"] or Decimal("0.00"),
        "refusal": refusal,
    }
    return render(request, "annotators/desk/payouts.html", context, status=409 if refusal else 200)


def _mark_paid(request: HttpRequest) -> str:
    """Mark a payout as paid, and return why not, as a sentence; empty if it was marked."""
    sent = request.POST
    worker = Worker.objects.filter(handle=sent.get("worker", "")).first()
    amount, upto, key = (
        parse_amount(sent.get("amount", "")),
        sent.get("upto", ""),
        sent.get("key", ""),
    )
    if worker is None or amount is None or not upto.isdecimal() or not 8 <= len(key) <= 64:
        return "Nothing was marked: the form was incomplete. Try again from the list below."
    try:
        made = payout.record_payout(
            worker,
            upto=int(upto),
            amount=amount,
            reference=sent.get("reference", ""),
            key=key,
            who=current_admin(request),
        )
    except payout.CannotPay as cannot:
        return str(cannot)
    messages.success(request, f"${made.amount} are marked as paid. Receipt {made.number}.")
    return ""


def _undo_payout(request: HttpRequest) -> str:
    """Undo a payout, and return why not, as a sentence; empty if it was undone."""
    try:
        undone = payout.undo_payout(
            request.POST["undo"], current_admin(request), request.POST.get("why", "")
        )
    except payout.CannotPay as cannot:
        return str(cannot)
    messages.warning(
        request,
        f"${-undone.amount} are owed again. If the money did move, ask for it back yourself.",
    )
    return ""


@for_admins
def show_payout_receipt(request: HttpRequest, number: str) -> HttpResponse:
    """Return the receipt of a payout."""
    return show_receipt(request, get_object_or_404(Payout, number=number, undoes=None))


ANSWERS = {
    "write": send_message,
    "appeal": decide_appeal,
    "volunteer": decide_volunteer,
    "another-attempt": allow_another_attempt,
}
urlpatterns = [
    path("desk/requests/", show_requests, name="desk-requests"),
    path("desk/requests/rules/", show_rules, name="desk-rules"),
    path("desk/requests/payouts/", show_payouts, name="desk-payouts"),
    path("desk/requests/payouts/<str:number>/", show_payout_receipt, name="desk-receipt"),
]
