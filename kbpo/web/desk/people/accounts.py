"""The page of people: teams, invitation links, account requests, lost passwords."""

from __future__ import annotations

from typing import Any

from django.contrib import messages
from django.contrib.auth.tokens import default_token_generator
from django.db.models import Count
from django.db.models.functions import Lower
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import path, reverse
from django.utils.http import urlsafe_base64_encode

from kbpo.accounts import models as queues
from kbpo.accounts.ask import JoinsTeam, accept, decline, find_or_create_team
from kbpo.accounts.audit import note
from kbpo.accounts.mail import goes_out
from kbpo.accounts.models import AccountRequest, Invitation, Team, User
from kbpo.web.http import act, admin_of, for_admins, pk_of, text_of, why_of
from kbpo.web.research.teams import invite, links, usable_invitations, withdraw

MOST_USES = 200
REQUESTS = 20
"""Requests for accounts on a page; the others follow as these are answered"""


@for_admins
def people(request: HttpRequest) -> HttpResponse:
    """Return teams, links and requests. A POST makes a link, or runs the action of its form."""
    if "action" in request.POST:
        return act(request, ACTIONS)
    refusal = _invite(request) if request.method == "POST" else ""
    if request.method == "POST" and not refusal:
        return redirect("desk-people")
    context = {
        "teams": Team.objects.prefetch_related("members").order_by("name"),
        "links": links(request, usable_invitations()),
        "refusal": refusal,
        "said": request.POST,
        "annotators": User.objects.filter(is_annotator=True, is_active=True).count(),
        "requests": _requests(),
        "n_requests": AccountRequest.objects.filter(decided_at=None).count(),
        "most_requests": queues.MOST,
        "reset_link": request.session.pop("reset_link", None),
    }
    return render(request, "desk/people.html", context, status=422 if refusal else 200)


def _requests() -> list[dict[str, Any]]:
    """Return the first account requests, with the existing team of the same name."""
    asked = AccountRequest.objects.select_related("user").filter(decided_at=None).order_by("pk")
    requests = list(asked[:REQUESTS])
    teams = Team.objects.annotate(lower=Lower("name"), n=Count("members", distinct=True))
    team_of_name = {team.lower: team for team in teams if team.n} if requests else {}
    return [{"row": row, "team": team_of_name.get(row.team.lower())} for row in requests]


def _invite(request: HttpRequest) -> str:
    """Make an invitation link, and return why not, as a sentence; empty if it was made."""
    role, user = request.POST.get("role", ""), admin_of(request)
    uses = request.POST.get("uses", "1")
    if role not in ("annotator", "researcher"):
        return "Say whom the link is for: an annotator or a researcher."
    if not uses.isdecimal() or not 1 <= int(uses) <= MOST_USES:
        return f"A link works between 1 and {MOST_USES} times."
    team = None
    if role == "researcher":
        name = " ".join(text_of(request, "team").split())
        if not any(letter.isalnum() for letter in name) or len(name) > 80:
            return (
                "A researcher submits for a team: give its name, of 1 to 80 characters, with"
                " letters or digits."
            )
        team = find_or_create_team(name)
    invite(role, user, team=team, uses=int(uses), why=why_of(request, "Invited from the desk."))
    messages.success(request, "The link is made; it stands first below.")
    return ""


def take_back(request: HttpRequest) -> HttpResponse:
    """Revoke an invitation."""
    why = why_of(request, "Taken back from the desk.")
    withdraw(Invitation.objects.filter(pk=pk_of(request)), admin_of(request), why)
    messages.success(request, "The link works no more.")
    return redirect("desk-people")


def answer_request(request: HttpRequest) -> HttpResponse:
    """Accept or decline an account request."""
    asked = get_object_or_404(AccountRequest, pk=pk_of(request))
    admin = admin_of(request)
    verdict = request.POST.get("verdict")
    if verdict == "decline":
        decline(asked, admin, why_of(request, "No reason was given."))
        notice = "is told that there is no account at the moment."
        if not goes_out():
            notice = (
                f"is declined. No mail is sent: write to {asked.email}, or they never hear of it."
            )
        messages.success(request, f"{asked.name} {notice}")
        return redirect("desk-people")
    try:
        accepted = accept(asked, admin, joins=verdict == "join")
    except JoinsTeam as refusal:
        messages.error(request, str(refusal))
        return redirect("desk-people")
    if accepted is None:
        messages.info(request, "Somebody has decided this already.")
    else:
        sent = f"A mail went to {asked.email}." if goes_out() else "Hand it over: no mail is sent."
        messages.success(request, f"The link for {asked.name} is made; it stands below. {sent}")
    return redirect("desk-people")


def reset_link(request: HttpRequest) -> HttpResponse:
    """Make a link for a new password, shown to the admin once."""
    name = text_of(request, "username")
    person = User.objects.filter(username__iexact=name, is_active=True).first()
    if person is None:
        messages.error(request, f"Nobody is called “{name[:80]}” here.")
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
        why = why_of(request, "Asked for by hand.")
        note("make reset link", f"user:{person.pk}", who=admin_of(request), why=why)
    return redirect("desk-people")


ACTIONS = {"take-back": take_back, "answer": answer_request, "reset-link": reset_link}
urlpatterns = [path("desk/people/", people, name="desk-people")]
