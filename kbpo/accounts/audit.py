"""The audit log: who changed what, and why, written in the same transaction as the change."""

from __future__ import annotations

from django.db.models import CharField, Exists, OuterRef, Value
from django.db.models.functions import Cast, Concat

from kbpo.accounts.models import Audit, User

DISMISS = "dismiss"
COMMAND = "By a command of this service"
"""The reason that is stored for changes by a command"""
ERASED = "Erased with the person"


def write_audit_entry(
    action: str,
    about: object,
    *,
    who: User | None = None,
    why: str = "",
    before: str = "",
    after: str = "",
    track: str = "",
) -> Audit:
    """Write an entry of the audit log and return it. Without `who` the service itself made the
    change; `about` names the row, e.g. ``submission:12``.
    """
    person = who if who is not None and who.pk else None
    return Audit.objects.create(
        who=person,
        what=action,
        about=str(about)[:120],
        track=track,
        before=before[:200],
        after=after[:200],
        why=why[:2000],
    )


def erase_person(about: str, replacement: str) -> int:
    """Remove the old name and all free text about a person from the log, and return the number of
    changed entries. Actions, actors and times stay.
    """
    return Audit.objects.filter(about=about).update(about=replacement, before="", why=ERASED)


def dismissed_condition(kind: str) -> Exists:
    """Return a condition for querysets: whether an admin dismissed the row after it entered its
    current status.
    """
    about = Concat(Value(f"{kind}:"), Cast(OuterRef("pk"), CharField()), output_field=CharField())
    return Exists(Audit.objects.filter(what=DISMISS, about=about, at__gte=OuterRef("status_since")))
