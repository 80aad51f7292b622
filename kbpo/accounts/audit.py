"""Notes who changed what, and why, in the transaction that changes it."""

from __future__ import annotations

from django.db.models import CharField, Exists, OuterRef, Value
from django.db.models.functions import Cast, Concat

from kbpo.accounts.models import Audit, User

DISMISS = "dismiss"
COMMAND = "By a command of this service"
"""Why, where nobody was asked"""
ERASED = "Erased with the person"


def note(
    what: str,
    about: object,
    *,
    who: User | None = None,
    why: str = "",
    before: str = "",
    after: str = "",
    track: str = "",
) -> Audit:
    """Return the entry. Without `who` the service itself did it; `about` names the row, e.g.
    ``submission:12``.
    """
    person = who if who is not None and who.pk else None
    return Audit.objects.create(
        who=person,
        what=what,
        about=str(about)[:120],
        track=track,
        before=before[:200],
        after=after[:200],
        why=why[:2000],
    )


def forget(about: str, instead: str) -> int:
    """Return how many entries about somebody who is erased lost their old name, and what was
    written of them in words. That something was done, by whom and when, stays.
    """
    return Audit.objects.filter(about=about).update(about=instead, before="", why=ERASED)


def was_dismissed(kind: str) -> Exists:
    """Return whether a row that failed was dismissed since it did: a filter for rows of this kind,
    which have a status.
    """
    about = Concat(Value(f"{kind}:"), Cast(OuterRef("pk"), CharField()), output_field=CharField())
    return Exists(Audit.objects.filter(what=DISMISS, about=about, at__gte=OuterRef("status_since")))
