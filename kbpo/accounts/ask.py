"""Asking for an account from outside, and what admins decide."""

from __future__ import annotations

from datetime import timedelta

from django.conf import settings
from django.db import transaction
from django.db.models import Q
from django.utils.text import slugify

from kbpo import clock
from kbpo.accounts.audit import note
from kbpo.accounts.mail import send
from kbpo.accounts.models import AccountRequest, Delivery, Invitation, Team, User
from kbpo.accounts.waiting import FULL, has_room
from kbpo.queue import one_at_a_time

INVITATION_DAYS = 14
"""How long the link of an accepted request works"""


class CannotAsk(Exception):
    """No request was made; the text is a sentence for whoever asked."""


class JoinsTeam(Exception):
    """Nobody was accepted: the team that was asked for has members; a sentence for admins."""


@transaction.atomic
def ask(
    *,
    name: str,
    email: str,
    affiliation: str,
    team: str,
    system: str,
    network: str,
    user: User | None = None,
) -> AccountRequest:
    """Return the request, which waits for an admin, beside others under its address: whoever knows
    an address may write it. The very same one is asked once, also by a double click.

    `user`: who asks, if they are logged in; `network`: from where. Raises CannotAsk where too many
    wait.
    """
    waiting = AccountRequest.objects.filter(decided_at=None)
    fields = {
        "name": name,
        "email": email.lower(),
        "affiliation": affiliation,
        "team": team,
        "system": system,
        "user": user,
    }
    one_at_a_time("ask for an account", 0)
    if (same := waiting.filter(**fields).first()) is not None:
        return same
    if not has_room(waiting, network, "asked_at"):
        raise CannotAsk(FULL)
    return AccountRequest.objects.create(**fields, network=network)


def invitation_url(invitation: Invitation, user: User) -> None:
    """Link a new account to the accepted request whose link it used, and to earlier requests of the
    address that the link was sent to.
    """
    asked = AccountRequest.objects.filter(invitation=invitation).first()
    if asked is not None:
        same = Q(email__iexact=asked.email, user=None, decided_at__isnull=False)
        asked_by_them = AccountRequest.objects.filter(same | Q(pk=asked.pk))
        Delivery.objects.filter(request__in=asked_by_them).update(user=user)
        asked_by_them.update(user=user)


@transaction.atomic
def accept(request: AccountRequest, who: User, *, joins: bool = False) -> Invitation | None:
    """Return the link that makes the account, also sent by mail; None if it was decided before.

    `joins`: yes, into a team that is there already, whose runs and money they will see. Raises
    JoinsTeam where that was not said.
    """
    request = AccountRequest.objects.select_for_update(of=("self",)).get(pk=request.pk)
    if request.decided_at is not None:
        return None
    team = find_or_create_team(request.team)
    if team.members.exists() and not joins:
        raise JoinsTeam(f"There is a team {team.name} already. Read again whom you let into it.")
    invitation = Invitation.objects.create(
        role="researcher",
        team=team,
        made_by=who,
        expires_at=clock.now() + timedelta(days=INVITATION_DAYS),
    )
    _decide(request, who, accepted=True, invitation=invitation)
    _mail_answer(
        request,
        f"Your {'account for' if request.user is None else 'team'} {request.team}",
        f"{_next_step_text(request)}\n\n{settings.SITE_URL}/join/{invitation.code}/\n\n"
        f"The link works for one person and {INVITATION_DAYS} days.",
    )
    return invitation


@transaction.atomic
def decline(request: AccountRequest, who: User, why: str) -> None:
    """Decline the request, and tell the person who asked why."""
    request = AccountRequest.objects.select_for_update(of=("self",)).get(pk=request.pk)
    if request.decided_at is not None:
        return
    _decide(request, who, accepted=False, why=why)
    wish = "an account" if request.user is None else "a team"
    text = f"we cannot give you {wish} at the moment:\n\n{why}"
    _mail_answer(request, f"Your request for {wish}", text)


def _next_step_text(request: AccountRequest) -> str:
    """Return what somebody does who is let in: who has an account keeps it."""
    if request.user is None:
        return "you can make your account now:"
    name = request.user.get_username()
    return f"you can join {request.team} now, with your account {name}; log in and open this link:"


def _mail_answer(request: AccountRequest, subject: str, text: str) -> None:
    """Mail an answer to the person who asked. It is deleted together with the request."""
    text = f"Hello {request.name},\n\n{text}\n"
    send(request.email, subject, text, user=request.user, request=request)


def _decide(
    request: AccountRequest,
    who: User,
    *,
    accepted: bool,
    invitation: Invitation | None = None,
    why: str = "Accepted from the desk.",
) -> None:
    request.accepted, request.invitation = accepted, invitation
    request.decided_at, request.decided_by, request.network = clock.now(), who, ""
    request.save()
    verb = "accept request" if accepted else "decline request"
    note(verb, f"request:{request.pk}", who=who, why=why, after=request.team)


def find_or_create_team(name: str) -> Team:
    """Return the team of this name, made if it is new: in capitals or not, it is the same."""
    name = " ".join(name.split())[:80]
    team = Team.objects.filter(name__iexact=name).first()
    if team is not None:
        return team
    slug = slugify(name)[:80] or "team"
    free, number = slug, 1
    while Team.objects.filter(slug=free).exists():
        number += 1
        free = f"{slug[:70]}-{number}"
    return Team.objects.create(name=name, slug=free)
