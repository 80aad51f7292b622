"""The pages of annotators: checks and answers, exclusion, reinstatement, rejection."""

from __future__ import annotations

from typing import Any

from django.contrib import messages
from django.contrib.auth.tokens import default_token_generator
from django.db.models import Count, Q
from django.db.models.functions import Lower
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import path, reverse
from django.utils.html import format_html
from django.utils.http import urlsafe_base64_encode
from django.utils.safestring import SafeString
from django.utils.text import Truncator

from annotation.hits.parts import compare_with_others
from annotation.labels import exclude, reject
from annotation.labels.reject import CannotReject
from annotation.models import Assignment, Worker
from annotation.quality import describe
from annotation.workers import leave, speak
from kbpo.accounts.ask import JoinsTeam, accept_request, decline_request, find_or_create_team
from kbpo.accounts.audit import write_audit_entry
from kbpo.accounts.mail import is_mail_configured
from kbpo.accounts.models import MOST_REQUESTS, AccountRequest, Invitation, Team, User
from kbpo.web.components.figures import DASH, count_text, money_text
from kbpo.web.http import (
    current_admin,
    for_admins,
    form_pk,
    form_reason,
    form_text,
    has_typed_word,
    run_action,
)
from kbpo.web.research.teams import (
    create_invitation,
    invitation_links,
    revoke_invitations,
    usable_invitations,
)
from kbpo.web.table import Column, Table, code_html, link_html, tag_html

MOST_READ = 8
"""Number of doubtful answers that a page shows in words"""


def _worker_cell(line: Any) -> SafeString:
    address = reverse("desk-worker", args=[line.handle])
    online = tag_html("online", "good") if line.is_online else ""
    who = link_html(address, code_html(line.handle[:6]))
    return format_html('{} <span class="quiet">{}</span> {}', who, line.platform, online)


def _agreement_cell(line: Any) -> SafeString | str:
    held = line.agreement
    if not held:
        return DASH
    return format_html(
        '<span class="nobr">{} <span class="quiet">of {}</span></span>',
        f"{held.agreement_share:.2f}",
        count_text(held.of),
    )


def _state_cell(line: Any) -> SafeString:
    if line.excluded_reason:
        reason = Truncator(line.excluded_reason).chars(90)
        return format_html("<span>{} {}</span>", tag_html("excluded", "warn"), reason)
    if line.flags_past_limit:
        return format_html(
            "<span>{}</span>", " ".join(flag.sentence for flag in line.flags_past_limit)
        )
    several = "" if line.signals == 1 else "s"
    words = f"{count_text(line.signals)} signal{several}, within limits"
    return format_html('<span class="quiet">{}</span>', words if line.signals else "no signal")


COLUMNS = (
    Column("handle", "Who", cell=_worker_cell),
    Column("answers", "Answers", cell=lambda line: count_text(line.answers), is_number=True),
    Column(
        "seconds",
        "Seconds each",
        cell=lambda line: f"{line.seconds:.0f}" if line.seconds else DASH,
        is_number=True,
    ),
    Column("agreement", "Agreeing with the majority", cell=_agreement_cell, is_number=True),
    Column("owed", "Owed", cell=lambda line: money_text(line.owed), is_number=True),
    Column("state", "State", cell=_state_cell),
)


def annotator_table(n: int) -> Table:
    """Return the table of the annotators who were seen last."""
    return Table("annotators", COLUMNS, describe.worker_lines(n))


@for_admins
def list_workers(request: HttpRequest) -> HttpResponse:
    """Return all annotators, last seen first."""
    context = {"table": annotator_table(500), "online": describe.count_online()}
    return render(request, "desk/workers.html", context)


@for_admins
def show_worker(request: HttpRequest, handle: str) -> HttpResponse:
    """Return the page of an annotator. A POST changes their state or writes to them."""
    refusal = _change_worker(request, handle) if request.method == "POST" else ""
    if request.method == "POST" and not refusal:
        # an erased worker has another hash, which nobody is told
        remains = describe.worker_record(handle, 1) is not None
        return redirect("desk-worker", handle=handle) if remains else redirect("desk-workers")
    record = describe.worker_record(handle)
    if record is None:
        raise Http404("There is no such annotator.")
    context = {
        "record": record,
        "worker": record.worker,
        "line": record.line,
        "refusal": refusal,
        "doubted": answers_with_signals(record.worker),
    }
    return render(request, "desk/worker.html", context, status=422 if refusal else 200)


def _change_worker(request: HttpRequest, handle: str) -> str:
    """Run the action, and return why not, as a sentence; empty if it was done."""
    worker = get_object_or_404(Worker, handle=handle)
    user, verb, why = current_admin(request), request.POST.get("verb"), _form_text(request, "why")
    if verb not in ("write", "erase", "exclude", "reinstate", "keep"):
        return "Choose: exclude, keep or reinstate."
    if verb == "erase" and not has_typed_word(request, "erase"):
        return "Nothing was erased: type the word erase to confirm."
    if verb in ("exclude", "reinstate", "keep") and not why:
        return "Give a reason, which the annotator reads."
    try:
        if verb == "write":
            speak.send_message_from_admin(
                worker, _form_text(request, "subject"), request.POST.get("text", ""), user
            )
            said = "Sent."
        elif verb == "erase":
            said = leave.erase_marketplace_worker(worker, user, why)
        elif verb == "exclude":
            left_out = exclude.exclude_worker(worker, f"{why} ({user.get_username()})", user)
            said = f"Excluded: {left_out}. All work stays paid."
        elif verb == "reinstate":
            said = f"Reinstated, and counting again: {exclude.reinstate_worker(worker, user, why)}."
        else:
            exclude.note_worker_reviewed(worker, user, why)
            said = "Kept. Earlier signals no longer count."
    except ValueError as no:
        return str(no)
    show = messages.warning if verb in ("exclude", "erase") else messages.success
    show(request, said)
    return ""


@for_admins
def show_answer(request: HttpRequest, pk: int) -> HttpResponse:
    """Return an answer next to the right one and those of others; with `?refuse` the form for a
    rejection. A POST rejects the answer, or undoes that.
    """
    pair = describe.worker_and_answer(pk)
    if pair is None:
        raise Http404("There is no such answer.")
    if request.POST.get("action") == "undo":
        try:
            reject.undo_rejection(
                _find_answer(pk), current_admin(request), _form_text(request, "why")
            )
            messages.success(request, "The rejection is undone: the answer counts and is paid.")
        except CannotReject as wrong:
            messages.error(request, str(wrong))
        return redirect("desk-worker", handle=pair[0].handle)
    if request.method == "POST" or "refuse" in request.GET:
        return _reject(request, pk, *pair)
    context = {"worker": pair[0], "answer": pair[1], "read": compare_with_others(_find_answer(pk))}
    return render(request, "desk/answer.html", context)


def _find_answer(pk: int) -> Assignment:
    assignments = Assignment.objects.select_related("hit", "worker")
    return get_object_or_404(assignments, pk=pk, raw__isnull=False)


def answers_with_signals(worker: Worker) -> list[dict[str, Any]]:
    """Return the latest answers of a worker with signals or rejections."""
    assignments = worker.assignments.filter(
        Q(signals__against=True) | Q(rejections__undone_at=None, rejections__isnull=False),
        raw__isnull=False,
    )
    latest = assignments.select_related("hit", "worker").distinct().order_by("-submitted_at", "-pk")
    return [
        {"answer": pair[1], "read": compare_with_others(row)}
        for row in latest[:MOST_READ]
        if (pair := describe.worker_and_answer(row.pk)) is not None
    ]


def _reject(request: HttpRequest, pk: int, worker: Worker, answer: Any) -> HttpResponse:
    """Return the steps of a rejection: evidence, consequences, confirmation."""
    user, evidence, refusal, sure = (
        current_admin(request),
        _form_text(request, "evidence"),
        "",
        False,
    )
    row = _find_answer(pk)
    if request.method == "POST":
        try:
            reject.check_rejectable(row, evidence)
            sure = True
            if request.POST.get("sure") == "yes":
                reject.reject_answer(row, user, evidence)
                messages.warning(
                    request, "Pay is refused. You can undo it; the money stays reserved."
                )
                return redirect("desk-worker", handle=worker.handle)
        except CannotReject as wrong:
            refusal, sure = str(wrong), False
    context = {
        "worker": worker,
        "answer": answer,
        "evidence": evidence,
        "refusal": refusal,
        "sure": sure,
        "read": compare_with_others(row),
    }
    return render(request, "desk/reject.html", context, status=422 if refusal else 200)


def _form_text(request: HttpRequest, name: str) -> str:
    return form_text(request, name, 2000)


MOST_USES = 200
REQUESTS = 20
"""Number of account requests on a page; others appear when these are answered"""


@for_admins
def show_people(request: HttpRequest) -> HttpResponse:
    """Return teams, links and requests. A POST makes a link, or runs the action of its form."""
    if "action" in request.POST:
        return run_action(request, ACTIONS)
    refusal = _make_invitation(request) if request.method == "POST" else ""
    if request.method == "POST" and not refusal:
        return redirect("desk-people")
    context = {
        "teams": Team.objects.prefetch_related("members").order_by("name"),
        "links": invitation_links(request, usable_invitations()),
        "refusal": refusal,
        "sent": request.POST,
        "annotators": User.objects.filter(is_annotator=True, is_active=True).count(),
        "requests": _open_account_requests(),
        "n_requests": AccountRequest.objects.filter(decided_at=None).count(),
        "most_requests": MOST_REQUESTS,
        "reset_link": request.session.pop("reset_link", None),
    }
    return render(request, "desk/people.html", context, status=422 if refusal else 200)


def _open_account_requests() -> list[dict[str, Any]]:
    """Return the first account requests, with the existing team of the same name."""
    asked = AccountRequest.objects.select_related("user").filter(decided_at=None).order_by("pk")
    requests = list(asked[:REQUESTS])
    teams = Team.objects.annotate(lower=Lower("name"), n=Count("members", distinct=True))
    team_of_name = {team.lower: team for team in teams if team.n} if requests else {}
    return [{"row": row, "team": team_of_name.get(row.team.lower())} for row in requests]


def _make_invitation(request: HttpRequest) -> str:
    """Make an invitation link, and return why not, as a sentence; empty if it was made."""
    role, user = request.POST.get("role", ""), current_admin(request)
    uses = request.POST.get("uses", "1")
    if role not in ("annotator", "researcher"):
        return "Choose a role for the link: annotator or researcher."
    if not uses.isdecimal() or not 1 <= int(uses) <= MOST_USES:
        return f"A link works between 1 and {MOST_USES} times."
    team = None
    if role == "researcher":
        name = " ".join(form_text(request, "team").split())
        if not any(letter.isalnum() for letter in name) or len(name) > 80:
            return "Name the team of the researcher, in 1 to 80 characters."
        team = find_or_create_team(name)
    create_invitation(
        role, user, team=team, uses=int(uses), why=form_reason(request, "Invited from the desk.")
    )
    messages.success(request, "The link is created; it is listed first.")
    return ""


def revoke_invitation(request: HttpRequest) -> HttpResponse:
    """Revoke an invitation link."""
    why = form_reason(request, "Revoked from the desk.")
    revoke_invitations(Invitation.objects.filter(pk=form_pk(request)), current_admin(request), why)
    messages.success(request, "The link is revoked.")
    return redirect("desk-people")


def answer_request(request: HttpRequest) -> HttpResponse:
    """Accept or decline an account request."""
    asked = get_object_or_404(AccountRequest, pk=form_pk(request))
    admin = current_admin(request)
    verdict = request.POST.get("verdict")
    if verdict == "decline":
        decline_request(asked, admin, form_reason(request, "No reason was given."))
        notice = "is told that there is no account at the moment."
        if not is_mail_configured():
            notice = (
                f"is declined. No mail is sent: write to {asked.email}, or they never hear of it."
            )
        messages.success(request, f"{asked.name} {notice}")
        return redirect("desk-people")
    try:
        accepted = accept_request(asked, admin, joins=verdict == "join")
    except JoinsTeam as refusal:
        messages.error(request, str(refusal))
        return redirect("desk-people")
    if accepted is None:
        messages.info(request, "Somebody has decided this already.")
    else:
        sent = (
            f"A mail went to {asked.email}."
            if is_mail_configured()
            else "Send it yourself: no mail is sent."
        )
        messages.success(
            request, f"The link for {asked.name} is created; it is listed below. {sent}"
        )
    return redirect("desk-people")


def make_reset_link(request: HttpRequest) -> HttpResponse:
    """Make a link for a new password, shown to the admin once."""
    name = form_text(request, "username")
    person = User.objects.filter(username__iexact=name, is_active=True).first()
    if person is None:
        messages.error(request, f"There is no user “{name[:80]}”.")
    elif person.is_staff:
        messages.error(request, "Admins set their passwords by mail, or on the server itself.")
    else:
        uid = urlsafe_base64_encode(str(person.pk).encode())
        token = default_token_generator.make_token(person)
        address = reverse("password_reset_confirm", args=[uid, token])
        request.session["reset_link"] = {
            "name": person.username,
            "url": request.build_absolute_uri(address),
        }
        why = form_reason(request, "Asked for by hand.")
        write_audit_entry(
            "make reset link", f"user:{person.pk}", who=current_admin(request), why=why
        )
    return redirect("desk-people")


ACTIONS = {"take-back": revoke_invitation, "answer": answer_request, "reset-link": make_reset_link}


urlpatterns = [
    path("desk/annotators/", list_workers, name="desk-workers"),
    path("desk/annotators/<str:handle>/", show_worker, name="desk-worker"),
    path("desk/answers/<int:pk>/", show_answer, name="desk-answer"),
    path("desk/people/", show_people, name="desk-people"),
]
