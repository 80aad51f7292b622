"""Team pages: members, roles, money, and invitation links."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from decimal import Decimal
from typing import Any, cast
from urllib.parse import urlencode

from django import forms
from django.contrib import messages
from django.contrib.auth import login
from django.contrib.auth.decorators import login_required
from django.core.exceptions import PermissionDenied
from django.db import transaction
from django.db.models import F, Q, QuerySet
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import path, reverse
from django.views.decorators.cache import never_cache
from rest_framework.request import Request

from annotation.workers.intake import offered_questions
from kbpo import clock
from kbpo.accounts import teams
from kbpo.accounts.ask import link_account
from kbpo.accounts.audit import write_audit_entry
from kbpo.accounts.models import AccountRequest, Invitation, Team, User
from kbpo.accounts.sign_up import SignUpForm
from kbpo.money.models import Budget, Purpose
from kbpo.money.spend import ZERO, balance, remaining_allowance
from kbpo.submissions.models import Submission
from kbpo.tracks.models import Track
from kbpo.web.components.figures import plural
from kbpo.web.http import form_pk, form_reason, has_typed_word, run_action

INVITATION_DAYS = 14
USED_UP = "This invitation is used up or expired. Ask for a new one."


BUSY = "You are the last member of {team}, which has open runs or reserved money."
UNDER_WAY = ("confirmed", "judging")
"""Statuses of runs in progress"""
ONLY_OWNERS = "Only owners of the team give roles and remove members."


class JoinForm(SignUpForm):
    """The form for a new account; researchers also accept how their files are used."""

    terms = forms.BooleanField(error_messages={"required": "Please agree: an account needs it."})

    def __init__(self, *args: Any, role: str = "researcher", **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        if role == "annotator":  # they agree to terms of their own before their first question
            del self.fields["terms"]


def usable_invitations() -> QuerySet[Invitation]:
    """Return the invitations that can still be used."""
    in_time = Q(expires_at=None) | Q(expires_at__gt=clock.now())
    return Invitation.objects.filter(in_time, uses_left__gt=0)


@never_cache
def join_team(request: HttpRequest, code: str) -> HttpResponse:
    """Return an invitation: a form for a new account, or a button for a user who is logged in."""
    invitation = usable_invitations().select_related("team").filter(code=code).first()
    if invitation is None:
        return render(request, "people/join.html", {"refusal": USED_UP}, status=410)
    has_account = request.user.is_authenticated
    asked = AccountRequest.objects.filter(invitation=invitation).first()
    initial = {"email": asked.email} if asked else {}
    form = None
    if not has_account:
        form = JoinForm(request.POST or None, role=invitation.role, initial=initial)
    if request.method == "POST" and (form is None or form.is_valid()):
        user = accept_invitation(invitation, cast(User, request.user) if form is None else form)
        if user is None:
            return render(request, "people/join.html", {"refusal": USED_UP}, status=410)
        if not has_account:
            login(request, user)
        if invitation.role == "annotator":
            messages.success(request, "Welcome. This is your page.")
            return redirect("annotate")
        if (team := invitation.team) is None:
            return redirect("account")
        messages.success(request, f"Welcome. You belong to {team.name} now and can submit for it.")
        return redirect(f"{reverse('runs')}?{urlencode({'team': team.slug})}")
    status = 422 if request.method == "POST" else 200
    context: dict[str, Any] = {"form": form, "invitation": invitation}
    if invitation.role == "annotator":
        context["offers"] = offered_questions(Track.objects.all())
    return render(request, "people/join.html", context, status=status)


@transaction.atomic
def accept_invitation(invitation: Invitation, who: User | JoinForm) -> User | None:
    """Give the user the role of the invitation and return them; None if its last use was taken
    meanwhile.
    """
    if not usable_invitations().filter(pk=invitation.pk).update(uses_left=F("uses_left") - 1):
        return None
    user = who.save(commit=False) if isinstance(who, JoinForm) else who
    if invitation.role == "annotator":
        user.is_annotator, user.is_volunteer = True, False
    else:
        user.is_researcher = True
    user.save()
    if invitation.team is not None:
        teams.add_member(invitation.team, user)
    link_account(invitation, user)
    return cast(User, user)


@transaction.atomic
def create_invitation(
    role: str, made_by: User, *, team: Team | None = None, uses: int = 1, why: str = ""
) -> Invitation:
    """Return a new invitation, which expires after two weeks."""
    expires = clock.now() + timedelta(days=INVITATION_DAYS)
    row = Invitation.objects.create(
        role=role, team=team, made_by=made_by, uses_left=uses, expires_at=expires
    )
    after = f"{role}{f' of {team.name}' if team else ''}, {plural(uses, 'use')}"
    write_audit_entry("invite", f"invitation:{row.pk}", who=made_by, why=why, after=after)
    return row


@transaction.atomic
def revoke_invitations(invitations: QuerySet[Invitation], who: User, why: str) -> None:
    """Make these invitations unusable."""
    for row in invitations.filter(uses_left__gt=0).select_for_update(of=("self",)):
        write_audit_entry(
            "withdraw invitation",
            f"invitation:{row.pk}",
            who=who,
            why=why,
            before=f"{row.uses_left} left",
            after="0 left",
        )
        row.uses_left = 0
        row.save(update_fields=["uses_left"])


def invitation_links(
    request: HttpRequest, invitations: QuerySet[Invitation]
) -> list[dict[str, Any]]:
    """Return invitations with their full addresses."""
    return [
        {
            "invitation": row,
            "url": request.build_absolute_uri(reverse("join", args=[row.code])),
            "asked": getattr(row, "accountrequest", None),
        }
        for row in invitations.select_related("team", "made_by", "accountrequest").order_by("-pk")
    ]


def open_invitations(team: Team) -> QuerySet[Invitation]:
    """Return the invitations of a team that can still be used."""
    return usable_invitations().filter(team=team)


def find_team(request: HttpRequest | Request, slug: str) -> Team:
    """Return the team, for its members and admins. Raises Http404 for others."""
    user = cast(User, request.user)
    candidates = Team.objects.filter(slug=slug)
    team = (candidates if user.is_staff else candidates.filter(members=user)).first()
    if team is None:
        raise Http404("There is no such team, or it is not yours to see.")
    return team


@never_cache
@login_required
def show_team(request: HttpRequest, slug: str) -> HttpResponse:
    """Return a team's page for its members. A POST performs the action of its form."""
    team, user = find_team(request, slug), cast(User, request.user)
    if request.method == "POST":
        actions = {"invite": invite_member, "member": change_member, "take-back": revoke_invitation}
        return run_action(request, actions, team)
    members = teams.member_roles(team)
    context = {
        "team": team,
        "members": members,
        "stays": why_cannot_leave(team, user) if user in members else "",
        "n_owners": sum(role == "owner" for role in members.values()),
        "manages": teams.can_manage(team, user),
        "money": balance(team=team),
        "purses": team_purses(team),
        "links": invitation_links(request, open_invitations(team)),
    }
    return render(request, "people/team.html", context)


@dataclass(frozen=True)
class Purse:
    """A team's money on a track."""

    track: Track
    spent: Decimal
    reserved: Decimal
    cap: Decimal | None
    """The team's own cap on the track; None without one"""
    left: Decimal | None
    """The most that the next run may cost under all caps, including the track's; None without a
    cap, 0 on a track that takes no run
    """


def team_purses(team: Team) -> list[Purse]:
    """Return the money of a team on every open track and every track on which it has spent."""
    tracks = Track.objects.filter(Q(status="open") | Q(ledger__team=team)).distinct()
    purses = []
    for track in tracks.order_by("name"):
        sums = balance(team=team, track=track)
        left: Decimal | None = ZERO
        if track.status == Track.Status.OPEN:
            left = remaining_allowance(track, team, Purpose("submission")).left  # of a run to come
        purses.append(Purse(track, sums.spent, sums.open, team_cap(track, team), left))
    return purses


def team_cap(track: Track, team: Team) -> Decimal | None:
    """Return the budget of a team on a track; None without one."""
    caps = Budget.objects.filter(
        Q(team=team) | Q(team=None), track=track, scope="team"
    ).values_list("cap", flat=True)
    return min(caps, default=None)


def invite_member(request: HttpRequest, team: Team) -> HttpResponse:
    """Create an invitation for one researcher."""
    why = form_reason(request, "Invited from the team’s page.")
    create_invitation("researcher", cast(User, request.user), team=team, why=why)
    messages.success(
        request, f"A link for one person is made. It works for {INVITATION_DAYS} days."
    )
    return redirect("team", slug=team.slug)


def change_member(request: HttpRequest, team: Team) -> HttpResponse:
    """Change the role of a member or remove them (owners), or leave the team after the
    typed word.
    """
    user, verb = cast(User, request.user), request.POST.get("verb")
    person = get_object_or_404(team.members, pk=form_pk(request))
    leaves = verb == "remove" and person == user
    if not leaves and not teams.can_manage(team, user):
        raise PermissionDenied(ONLY_OWNERS)
    try:
        if leaves and not has_typed_word(request, "leave"):
            raise teams.CannotChange("You did not leave: type the word leave to confirm.")
        if leaves:
            check_may_leave(team, user)
        if verb == "remove":
            ended = teams.remove_member(team, person, user, form_reason(request))
            notice = f"{person.get_username()} is no longer in {team.name}."
            notice += " Open links ended with it: make new ones." if ended else ""
        else:
            teams.set_member_role(team, person, verb or "", user, form_reason(request))
            notice = f"{person.get_username()} is {teams.ROLES[verb or '']} now."
        messages.success(request, notice)
    except teams.CannotChange as refusal:
        messages.error(request, str(refusal))
        leaves = False
    return redirect("account") if leaves else redirect("team", slug=team.slug)


def check_may_leave(team: Team, user: User) -> None:
    """Raise CannotChange unless a member may leave: a team needs an owner, and its last member may
    not leave runs in progress or reserved money.
    """
    teams.check_leaves_an_owner(team, user)
    if team.members.exclude(pk=user.pk).exists():
        return
    runs = Submission.objects.filter(team=team, deleted_at=None, status__in=UNDER_WAY)
    if runs.exists() or balance(team=team).open:
        raise teams.CannotChange(BUSY.format(team=team.name))


def why_cannot_leave(team: Team, user: User) -> str:
    """Return a sentence on why a member may not leave; empty if they may."""
    try:
        check_may_leave(team, user)
    except teams.CannotChange as refusal:
        return str(refusal)
    return ""


def revoke_invitation(request: HttpRequest, team: Team) -> HttpResponse:
    """Make an invitation of the team unusable."""
    invitations = Invitation.objects.filter(pk=form_pk(request), team=team)
    revoke_invitations(
        invitations,
        cast(User, request.user),
        form_reason(request, "Revoked from the team’s page."),
    )
    messages.success(request, "The link is revoked.")
    return redirect("team", slug=team.slug)


urlpatterns = [
    path("join/<str:code>/", join_team, name="join"),
    path("teams/<slug:slug>/", show_team, name="team"),
]
