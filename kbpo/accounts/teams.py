"""Membership of teams: joining, roles, leaving.

Former members are kept in `Team.former`: they may have seen the team's judgments, so they do not
judge its runs, and a team that they join next is treated as having seen them too.
"""

from __future__ import annotations

from django.db import transaction

from kbpo.accounts.audit import write_audit_entry
from kbpo.accounts.models import Former, Membership, Team, User

ROLES = dict(Membership.Role.choices)
OWNER = Membership.Role.OWNER


class CannotChange(ValueError):
    """Raised for a change that was refused; the text is a sentence."""


def can_manage(team: Team, user: User) -> bool:
    """Return whether a user may change roles and remove members: owners of the team and admins."""
    return user.is_staff or team.memberships.filter(user=user, role=OWNER).exists()


def member_roles(team: Team) -> dict[User, str]:
    """Return the members of a team by name, each with their role."""
    memberships = team.memberships.select_related("user").order_by("user__username")
    return {row.user: row.role for row in memberships}


@transaction.atomic
def add_member(team: Team, user: User) -> None:
    """Add the user to the team, as its owner if it has none. An existing member keeps their
    role.
    """
    team = _lock_team(team)
    membership, _ = Membership.objects.get_or_create(team=team, user=user)
    if not team.memberships.filter(role=OWNER).exists():
        membership.role = OWNER
        membership.save(update_fields=["role"])


@transaction.atomic
def set_member_role(team: Team, user: User, role: str, who: User, why: str = "") -> None:
    """Set the role of a member: owner or member. Raises CannotChange."""
    if role not in ROLES:
        raise CannotChange("Choose a role: owner or member.")
    team = _lock_team(team)
    _check_member(team, user)
    if role != OWNER:
        _check_other_owner(team, user)
    team.memberships.filter(user=user).update(role=role)
    after = role_log_text(user.get_username(), role)
    write_audit_entry("team role", f"team:{team.slug}", who=who, why=why, after=after)


@transaction.atomic
def remove_member(team: Team, user: User, who: User, why: str = "") -> int:
    """Remove a member and return the number of invitations that were revoked. Open invitations are
    revoked unless the member left by themselves and others remain.

    Raises CannotChange if the team would have members but no owner.
    """
    team = _lock_team(team)
    _check_member(team, user)
    check_leaves_an_owner(team, user)
    membership = team.memberships.get(user=user)
    joined_at = membership.joined_at
    membership.delete()
    # Who came back and leaves again has seen what they saw the first time.
    Former.objects.get_or_create(team=team, user=user, defaults={"joined_at": joined_at})
    action = "leave team" if who == user else "remove from team"
    write_audit_entry(action, f"team:{team.slug}", who=who, why=why, before=user.get_username())
    if who == user and team.members.exists():
        return 0
    # A former member may have copied the links of open invitations.
    return team.invitation_set.filter(uses_left__gt=0).update(uses_left=0)


def check_leaves_an_owner(team: Team, user: User) -> None:
    """Raise CannotChange if the team would have members but no owner without this member."""
    if team.members.exclude(pk=user.pk).exists():
        _check_other_owner(team, user)


def role_log_text(name: str, role: str) -> str:
    """Return a role as the log shows it."""
    return f"{name}: {role}"


def _lock_team(team: Team) -> Team:
    return Team.objects.select_for_update(of=("self",), no_key=True).get(pk=team.pk)


def _check_member(team: Team, user: User) -> None:
    if not team.members.filter(pk=user.pk).exists():
        raise CannotChange(f"{user.get_username()} is no longer in this team.")


def _check_other_owner(team: Team, user: User) -> None:
    owners = team.memberships.filter(role=OWNER).values_list("user_id", flat=True)
    if set(owners) == {user.pk}:
        raise CannotChange("Make somebody else an owner first: a team needs one.")
