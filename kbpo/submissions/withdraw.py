"""Withdraws, renames and describes submissions: what their team may do with them at any time."""

from __future__ import annotations

from django.db import OperationalError, transaction

from kbpo import clock
from kbpo.accounts.audit import note
from kbpo.accounts.models import User
from kbpo.submissions.models import Submission

ENDED = ("withdrawn", "refused", "expired")


class CannotChange(Exception):
    """A change that cannot be made now; the text is a sentence for the team."""


@transaction.atomic
def withdraw(submission: Submission, who: User | None = None) -> Submission:
    """The submission, withdrawn; one that has ended already stays as it is.

    What people have judged is kept. The caller gives back what is reserved for it. Raises
    CannotChange while the file is being read.
    """
    row = _locked(submission)
    if row.status not in ENDED:
        row.move("withdrawn", who=who, withdrawn_at=clock.now())
    return row


@transaction.atomic
def describe(
    submission: Submission, *, name: str | None = None, description: str | None = None
) -> Submission:
    """The submission under a new name, with a new description. Raises CannotChange."""
    row = _locked(submission)
    if name is not None:
        row.name = name.strip()[:80]
        if not row.name or "\x00" in row.name:
            raise CannotChange("Give the submission a name.")
    if description is not None:
        row.description = description.replace("\x00", "").strip()[:2000]
    row.save(update_fields=["name", "description"])
    return row


@transaction.atomic
def set_role(submission: Submission, role: str, who: User | None = None) -> Submission:
    """The submission as a system, a baseline or the reference, which is an admin's word. Raises
    CannotChange.
    """
    row = _locked(submission)
    if role not in Submission.Role.values:
        raise CannotChange(f"There is no role {role[:20]}: {', '.join(Submission.Role.values)}.")
    if role != row.role:
        note(
            "set role",
            f"submission:{row.pk}",
            who=who,
            before=row.role,
            after=role,
            track=row.track.slug,
        )
        row.role = role
        row.save(update_fields=["role"])
    return row


def _locked(submission: Submission) -> Submission:
    """The row, locked. A reader holds that lock for as long as it reads: rather than wait, say
    so.
    """
    rows = Submission.objects.select_for_update(nowait=True, of=("self",)).select_related(
        "track", "team"
    )
    try:
        with transaction.atomic():
            return rows.get(pk=submission.pk)
    except OperationalError as problem:
        raise CannotChange("The file is being read just now. Try again in a minute.") from problem
