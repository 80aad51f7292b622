"""Who belongs to a team, and who owns it: joining, roles, leaving.

Whoever left is kept in `Team.former`: what somebody has seen is not forgotten, so a team that they
join next has seen it too, and nobody judges what a team of theirs predicted.
"""

from __future__ import annotations

from django.db import transaction

from kbpo import clock
from kbpo.accounts.audit import note
from kbpo.accounts.models import AccountRequest, Audit, Team, Token, User

CLOSED = "closed-"
"""How the name of a closed account begins; its number follows"""


class CannotChange(ValueError):
    """Nothing was changed; the text is a sentence for whoever tried."""


def may_manage(team: Team, user: User) -> bool:
    """Return whether this person gives roles in a team and removes members: its owners, admins."""
    return user.is_staff or team.owners.filter(pk=user.pk).exists()


@transaction.atomic
def join(team: Team, user: User) -> None:
    """Nothing; the user is a member, and the owner of a team that has none yet."""
    team = _lock(team)
    team.members.add(user)
    if not team.owners.exists():
        team.owners.add(user)


@transaction.atomic
def set_role(team: Team, user: User, role: str, who: User, why: str = "") -> None:
    """Nothing; a member is an owner from now on, or no owner any more. Raises CannotChange."""
    team = _lock(team)
    _check_member(team, user)
    if role == "owner":
        team.owners.add(user)
    elif role == "member":
        _check_other_owner(team, user)
        team.owners.remove(user)
    else:
        raise CannotChange("Say whether they own the team, or are a member.")
    after = _role(user.get_username(), role)
    note("team role", f"team:{team.slug}", who=who, why=why, after=after)


@transaction.atomic
def remove(team: Team, user: User, who: User, why: str = "") -> int:
    """Return how many open invitations ended with it: none, if somebody left by themselves.

    Raises CannotChange where the team would have members and no owner.
    """
    team = _lock(team)
    _check_member(team, user)
    if team.members.exclude(pk=user.pk).exists():
        _check_other_owner(team, user)
    team.owners.remove(user)
    team.members.remove(user)
    team.former.add(user)
    what = "leave team" if who == user else "remove from team"
    note(what, f"team:{team.slug}", who=who, why=why, before=user.get_username())
    if who == user:
        return 0
    # They may have copied a link while they could see it.
    return team.invitation_set.filter(uses_left__gt=0).update(uses_left=0)


@transaction.atomic
def close(user: User) -> None:
    """Nothing; the account is closed: no name, address or password is left of it, its tokens are
    revoked, and its teams are left. What was submitted stays with them. Raises CannotChange.
    """
    user = User.objects.select_for_update().get(pk=user.pk)
    if user.is_staff:
        raise CannotChange("Admins’ accounts are closed on the server, by another admin.")
    if user.is_annotator:
        raise CannotChange("Leave as an annotator first: it says what becomes of your money.")
    for team in user.teams.order_by("pk"):
        try:
            remove(team, user, user, "The account is closed.")
        except CannotChange as refusal:
            raise CannotChange(f"{team.name}: {refusal}") from None
    Token.objects.filter(user=user, revoked_at=None).update(revoked_at=clock.now())
    user.webhooks.all().delete()
    note("close account", f"user:{user.pk}", who=user)
    _forget(user)
    user.username, user.email = f"{CLOSED}{user.pk}", ""
    user.first_name = user.last_name = ""
    user.is_active = user.is_researcher = False
    user.set_unusable_password()
    user.save()


def _role(name: str, role: str) -> str:
    return f"{name}: {role}"


def _forget(user: User) -> None:
    """Nothing; what the log says of a member's roles, and what they wrote when they asked for an
    account, names them no more.
    """
    name, instead = user.get_username(), f"{CLOSED}{user.pk}"
    log = Audit.objects.filter(about__startswith="team:")
    log.filter(before=name).update(before=instead)
    for role in ("owner", "member"):
        log.filter(after=_role(name, role)).update(after=_role(instead, role))
    if user.email:
        asked = AccountRequest.objects.filter(email__iexact=user.email, decided_at__isnull=False)
        asked.update(name=instead, email="", affiliation="", system="")


def _lock(team: Team) -> Team:
    return Team.objects.select_for_update(of=("self",), no_key=True).get(pk=team.pk)


def _check_member(team: Team, user: User) -> None:
    if not team.members.filter(pk=user.pk).exists():
        raise CannotChange(f"{user.get_username()} does not belong to this team any more.")


def _check_other_owner(team: Team, user: User) -> None:
    owners = set(team.owners.values_list("pk", flat=True))
    if owners == {user.pk}:
        raise CannotChange("Make somebody else an owner first: a team needs one.")
