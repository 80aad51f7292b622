"""Notes who changed what, and why, in the transaction that changes it."""

from __future__ import annotations

from kbpo.accounts.models import Audit, User

ERASED = "Erased with the person"


def note(
    what: str, about: str, *, who: User | None = None, why: str = "", before: str = "", after: str = "", track: str = ""
) -> Audit:
    """The entry. Without `who` the service itself did it; `about` names the row, e.g. ``submission:12``."""
    person = who if who is not None and who.pk else None
    return Audit.objects.create(
        who=person, what=what, about=about[:120], track=track, before=before[:200], after=after[:200], why=why[:2000]
    )


def forget(about: str, instead: str) -> int:
    """How many entries about somebody who is erased lost their old name, and what was written of them in words. That
    something was done, by whom and when, stays."""
    return Audit.objects.filter(about=about).update(about=instead, before="", why=ERASED)
