"""Handles requests for accounts and teams, and their acceptance or refusal by admins."""

from __future__ import annotations

from datetime import timedelta

from django.conf import settings
from django.db import transaction
from django.db.models import Q
from django.utils.text import slugify

from kbpo import clock
from kbpo.accounts.audit import write_audit_entry
from kbpo.accounts.mail import queue_mail
from kbpo.accounts.models import (
    FULL,
    AccountRequest,
    Delivery,
    Invitation,
    Team,
    User,
    can_one_more_wait,
)
from kbpo.queue import take_transaction_lock

INVITATION_DAYS = 14
"""How long the link of an accepted request works"""


class CannotAsk(Exception):
    """Raised for a request that was not stored; the text is a sentence for the sender."""


class JoinsTeam(Exception):
    """Raised for a request that was not accepted because its team already has members. The text is
    a sentence for admins.
    """


@transaction.atomic
def request_account(
    *,
    name: str,
    email: str,
    affiliation: str,
    team: str,
    system: str,
    network: str,
    user: User | None = None,
) -> AccountRequest:
    """Store a request for an admin to decide, and return it. An identical pending request is
    returned unchanged.

    `user` is the sender, if they are logged in; `network` their network. Raises CannotAsk if too
    many requests are pending.
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
    take_transaction_lock("ask for an account", 0)
    if (same := waiting.filter(**fields).first()) is not None:
        return same
    if not can_one_more_wait(waiting, network, "asked_at"):
        raise CannotAsk(FULL)
    return AccountRequest.objects.create(**fields, network=network)


def link_account(invitation: Invitation, user: User) -> None:
    """Link a new account to the accepted request whose link it used, and to earlier requests of the
    same address.
    """
    asked = AccountRequest.objects.filter(invitation=invitation).first()
    if asked is not None:
        same = Q(email__iexact=asked.email, user=None, decided_at__isnull=False)
        asked_by_them = AccountRequest.objects.filter(same | Q(pk=asked.pk))
        Delivery.objects.filter(request__in=asked_by_them).update(user=user)
        asked_by_them.update(user=user)


@transaction.atomic
def accept_request(request: AccountRequest, who: User, *, joins: bool = False) -> Invitation | None:
    """Accept a request and return its invitation, which is also mailed; None if it was decided
    before. `joins` confirms that the person joins an existing team and will see its runs and money.
    Raises JoinsTeam without that confirmation.
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
    _store_decision(request, who, accepted=True, invitation=invitation)
    if request.user is None:
        subject, step = f"Your account for {request.team}", "you can make your account now:"
    else:
        subject = f"Your team {request.team}"
        step = f"you can join {request.team} as {request.user.get_username()}:"
    _mail_answer(
        request,
        subject,
        f"{step}\n\n{settings.SITE_URL}/join/{invitation.code}/\n\n"
        f"The link works for one person and {INVITATION_DAYS} days.",
    )
    return invitation


@transaction.atomic
def decline_request(request: AccountRequest, who: User, why: str) -> None:
    """Decline the request, and tell the person who asked why."""
    request = AccountRequest.objects.select_for_update(of=("self",)).get(pk=request.pk)
    if request.decided_at is not None:
        return
    _store_decision(request, who, accepted=False, why=why)
    wish = "an account" if request.user is None else "a team"
    text = f"we cannot give you {wish} at the moment:\n\n{why}"
    _mail_answer(request, f"Your request for {wish}", text)


def _mail_answer(request: AccountRequest, subject: str, text: str) -> None:
    """Mail the answer to the sender. It is deleted together with the request."""
    text = f"Hello {request.name},\n\n{text}\n"
    queue_mail(request.email, subject, text, user=request.user, request=request)


def _store_decision(
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
    write_audit_entry(verb, f"request:{request.pk}", who=who, why=why, after=request.team)


def find_or_create_team(name: str) -> Team:
    """Return the team of this name, in any case; it is created if it is new."""
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
