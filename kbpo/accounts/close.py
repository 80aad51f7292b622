"""Closes accounts: personal data is deleted, actions are kept under a number."""

from __future__ import annotations

from collections.abc import Container, Iterator
from datetime import timedelta
from typing import Any

from django.db import transaction
from django.db.models import CASCADE, ManyToOneRel, Model, QuerySet

from kbpo import clock
from kbpo.accounts import audit
from kbpo.accounts.models import AccountRequest, Audit, User
from kbpo.accounts.teams import ROLES, CannotChange, remove_member, role_log_text

REQUESTS_KEPT = timedelta(days=90)
"""How long a decided account request is kept"""
CLOSED = "closed-"
"""Prefix of the name of a closed account; a number follows"""
KEPT_COLUMNS = {
    "accounts.Former.user": "Who left a team judges nothing of its runs",
}
"""Columns whose rows would be deleted with the user, but are kept, with the reason"""


@transaction.atomic
def close_account(user: User) -> None:
    """Close the account: delete its name, address, password and belongings, and leave its teams,
    which keep their submissions. Raises CannotChange.
    """
    user = User.objects.select_for_update().get(pk=user.pk)
    if user.is_staff:
        raise CannotChange("Admins’ accounts are closed on the server, by another admin.")
    if user.is_annotator:
        raise CannotChange("Leave as an annotator first: that page settles your pay.")
    for team in user.teams.order_by("pk"):
        try:
            remove_member(team, user, user, "The account is closed.")
        except CannotChange as refusal:
            raise CannotChange(f"{team.name}: {refusal}") from None
    erase_person_from_log(user)
    delete_belongings(user, kept_columns=KEPT_COLUMNS)
    audit.write_audit_entry("close account", f"user:{user.pk}", who=user)
    user.username, user.email = f"{CLOSED}{user.pk}", ""
    user.first_name = user.last_name = ""
    user.no_mail_about, user.no_call_about = [], []
    user.is_active = user.is_researcher = False
    user.set_unusable_password()
    user.save()


def erase_person_from_log(user: User) -> None:
    """Remove the person's name and words from the log, and delete their requests for accounts."""
    name, instead = user.get_username(), f"{CLOSED}{user.pk}"
    of_teams = Audit.objects.filter(about__startswith="team:")
    of_teams.filter(before=name).update(before=instead, why=audit.ERASED)
    for role in ROLES:
        acts = of_teams.filter(after=role_log_text(name, role))
        acts.update(after=role_log_text(instead, role), why=audit.ERASED)
    audit.erase_person(f"user:{user.pk}", f"user:{user.pk}")
    _delete_requests(user.requests.all())
    if user.email:
        _delete_requests(AccountRequest.objects.filter(email__iexact=user.email, user=None))


def delete_decided_requests(email: str) -> None:
    """Delete the decided requests of an address without an account. Pending requests are kept,
    since anybody may have entered the address.
    """
    if email:
        asked = AccountRequest.objects.filter(email__iexact=email, decided_at__isnull=False)
        _delete_requests(asked.filter(user=None))


def delete_old_requests() -> None:
    """Delete account requests that were decided `REQUESTS_KEPT` ago."""
    _delete_requests(AccountRequest.objects.filter(decided_at__lt=clock.now() - REQUESTS_KEPT))


def _delete_requests(requests: QuerySet[AccountRequest]) -> None:
    for pk in requests.values_list("pk", flat=True):
        audit.erase_person(f"request:{pk}", f"request:{pk}")
    requests.delete()


def foreign_keys_to(model: type[Model]) -> Iterator[ManyToOneRel]:
    """Yield every foreign key to a table, including those of many-to-many tables."""
    for relation in model._meta.get_fields(include_hidden=True):
        if isinstance(relation, ManyToOneRel):
            yield relation


def column_label(relation: ManyToOneRel) -> str:
    """Return table and column, such as ``accounts.Token.user``."""
    return f"{relation.related_model._meta.label}.{relation.field.name}"


def referring_rows(relation: ManyToOneRel, row: Model) -> QuerySet[Any]:
    """Return the rows whose column `relation` refers to this row."""
    return relation.related_model._base_manager.filter(**{relation.field.name: row})


def delete_belongings(row: Model, *, kept_columns: Container[str] = ()) -> None:
    """Delete all rows that would be deleted with this one, except those of the columns in
    `kept_columns`. The row itself is kept.
    """
    for relation in foreign_keys_to(type(row)):
        if relation.on_delete is CASCADE and column_label(relation) not in kept_columns:
            referring_rows(relation, row).delete()
