"""Withdraws, renames and describes submissions, and discards drafts that ended unconfirmed."""

from __future__ import annotations

import re
from functools import partial

from django.core.exceptions import ValidationError
from django.core.validators import URLValidator
from django.db import IntegrityError, OperationalError, transaction
from django.db.models import Exists, OuterRef

from kbpo import clock
from kbpo.accounts.audit import write_audit_entry
from kbpo.accounts.models import User
from kbpo.submissions.models import Prediction, Problem, Submission

AT_ONCE = 20
DISCARDABLE = ("expired", "withdrawn", "failed", "refused")


def discard_ended_drafts() -> int:
    """Discard submissions that ended before they were confirmed; return how many."""
    stored = Exists(Prediction.objects.filter(submission=OuterRef("pk")))
    submissions = Submission.objects.filter(
        stored, status__in=DISCARDABLE[:2], confirmed_at__isnull=True
    )
    return sum(discard_draft(row) for row in submissions.order_by("pk")[:AT_ONCE])


@transaction.atomic
def discard_draft(submission: Submission) -> bool:
    """Delete a draft's predictions, problems and distributions, and return whether that was done.

    Returns False without deleting for a submission that was ever confirmed (it may have been
    sampled, and its team has seen judgments) or that has not ended. Instances and targets are kept,
    since others may predict them.
    """
    submissions = Submission.objects.select_for_update(skip_locked=True, of=("self",))
    row = submissions.filter(
        pk=submission.pk, confirmed_at__isnull=True, status__in=DISCARDABLE
    ).first()
    if row is None:
        return False
    delete_earlier_reading(row)
    return True


def delete_earlier_reading(submission: Submission) -> None:
    """Delete the results of an earlier reading of the file. Only for submissions that are not
    confirmed.
    """
    submission.distributions.all().delete()
    Prediction.objects.filter(submission=submission).delete()
    Problem.objects.filter(submission=submission).delete()


@transaction.atomic
def delete_discarded(submission: Submission, who: User) -> bool:
    """Delete a discarded upload with its file and its stored contents, and return whether that was
    done; False for a run, or if it was deleted already. The row is kept, since a team's uploads per
    day are counted.
    """
    submissions = Submission.objects.select_for_update(of=("self",)).select_related("track")
    row = submissions.unconfirmed_ended().filter(pk=submission.pk).first()
    if row is None:
        return False
    delete_earlier_reading(row)
    storage, name = row.file.storage, row.file.name
    row.deleted_at, row.file = clock.now(), ""
    row.save(update_fields=["deleted_at", "file"])
    if name:
        transaction.on_commit(partial(storage.delete, name))
    write_audit_entry("delete", row.purpose, who=who, before=row.status, track=row.track.slug)
    return True


ENDED = ("withdrawn", "refused", "expired")
_is_link = URLValidator(schemes=["http", "https"])


TAKEN = "Your team has a run called {name} on this track already."
DRAFT_HAS_IT = (
    "Your team has an upload called {name} on this track that nobody has confirmed ({number})."
    " Withdraw it, or give this one another name."
)


_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f\ud800-\udfff]")


class CannotChange(Exception):
    """Raised for a change that was refused; the text is a sentence for the team."""


def clean_text(text: str) -> str:
    """Return the text without control characters and surrounding blanks."""
    return _CONTROL.sub("", text).strip()


def clean_line(name: str) -> str:
    """Return a name as one line, with a blank for each character that breaks a line or a cell."""
    return clean_text(" ".join(name.split()))


@transaction.atomic
def withdraw_submission(
    submission: Submission, who: User | None = None, why: str = ""
) -> Submission:
    """Withdraw a submission and return it; a finished one is unchanged. Its team is notified, with
    the reason, if somebody outside the team did it.

    Existing judgments are kept. The caller releases its reserved money. Raises CannotChange while
    the file is being read.
    """
    row = _lock_submission(submission)
    if row.status not in ENDED:
        row.move("withdrawn", why, who=who, withdrawn_at=clock.now())
    return row


CHANGEABLE = ("name", "description", "paper_url", "code_url", "is_private", "is_anonymous")
"""Fields of a run that its team may change at any time"""


@transaction.atomic
def change_description(
    submission: Submission, who: User | None = None, **said: str | bool
) -> Submission:
    """Change some of the fields in CHANGEABLE and return the submission. Raises CannotChange."""
    row = _lock_submission(submission)
    before, was_public = (row.is_private, row.is_anonymous), row.was_public
    for field, value in said.items():
        setattr(row, field, clean_text(value) if isinstance(value, str) else value)
    row.name, row.description = clean_line(row.name)[:80].strip(), row.description[:2000]
    if not row.name or "\x00" in str(said.get("name", "")):
        raise CannotChange("Give the submission a name.")
    if row.is_private and was_public:
        raise CannotChange(
            "It stands on the board, where everybody has seen it. Withdraw it to take it away."
            if row.has_score
            else "Everybody has seen it on the board, so that its line in the history stays."
        )
    for url in (row.paper_url, row.code_url):
        check_link(url)
    try:
        with transaction.atomic():
            row.save(update_fields=list(said))
    except IntegrityError as taken:
        raise CannotChange(TAKEN.format(name=row.name)) from taken
    if before != (now := (row.is_private, row.is_anonymous)):
        shown = [_visibility_text(*flags) for flags in (before, now)]
        write_audit_entry(
            "show", row.purpose, who=who, before=shown[0], after=shown[1], track=row.track.slug
        )
    return row


@transaction.atomic
def set_submission_role(submission: Submission, role: str, who: User | None = None) -> Submission:
    """Set the role of a submission (system, baseline or reference), as an admin decides, and return
    it. Raises CannotChange.
    """
    row = _lock_submission(submission)
    if role not in Submission.Role.values:
        raise CannotChange(f"There is no role {role[:20]}: {', '.join(Submission.Role.values)}.")
    if role != row.role:
        write_audit_entry(
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


def _visibility_text(private: bool, anonymous: bool) -> str:
    flags = {"private": private, "anonymous": anonymous}
    return ", ".join(name for name, is_set in flags.items() if is_set) or "public, by name"


def check_link(url: str) -> None:
    """Raise CannotChange if this is neither the address of a page nor empty."""
    if not url:
        return
    try:
        _is_link(url)
    except ValidationError as problem:
        raise CannotChange(
            f"“{url[:60]}” is no address of a page: it begins with https:// or http://, and has 300"
            " characters at most."
        ) from problem
    if len(url) > 300:
        raise CannotChange("The address of a page has 300 characters at most.")


def _lock_submission(submission: Submission) -> Submission:
    """Lock the row and return it. Raises CannotChange at once, instead of waiting, if a reader of
    the file holds the lock.
    """
    submissions = Submission.objects.select_for_update(nowait=True, of=("self",)).select_related(
        "track", "team"
    )
    try:
        with transaction.atomic():
            return submissions.get(pk=submission.pk)
    except OperationalError as problem:
        raise CannotChange("The file is being read just now. Try again in a minute.") from problem
