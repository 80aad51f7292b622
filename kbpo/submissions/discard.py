"""Discards drafts: what was stored of a file that nobody confirmed before it expired or was
withdrawn.
"""

from __future__ import annotations

from functools import partial

from django.db import transaction
from django.db.models import Exists, OuterRef

from kbpo import clock
from kbpo.accounts.audit import note
from kbpo.accounts.models import User
from kbpo.submissions.models import Prediction, Problem, Submission

AT_ONCE = 20
ENDED = ("expired", "withdrawn", "failed", "refused")


def discard_ended() -> int:
    """Return how many drafts were discarded: submissions that ended before they were confirmed."""
    stored = Exists(Prediction.objects.filter(submission=OuterRef("pk")))
    submissions = Submission.objects.filter(stored, status__in=ENDED[:2], confirmed_at__isnull=True)
    return sum(discard(row) for row in submissions.order_by("pk")[:AT_ONCE])


@transaction.atomic
def discard(submission: Submission) -> bool:
    """Return whether the draft's predictions, problems and distributions were deleted.

    False, and nothing is deleted, for a submission that was ever confirmed (it may have been
    sampled, and its team has seen judgments) or that has not ended. Instances and targets stay:
    others may predict them.
    """
    submissions = Submission.objects.select_for_update(skip_locked=True, of=("self",))
    row = submissions.filter(pk=submission.pk, confirmed_at__isnull=True, status__in=ENDED).first()
    if row is None:
        return False
    forget_reading(row)
    return True


def forget_reading(submission: Submission) -> None:
    """Delete what an earlier reading of the file stored. Only for submissions that are not
    confirmed.
    """
    submission.distributions.all().delete()
    Prediction.objects.filter(submission=submission).delete()
    Problem.objects.filter(submission=submission).delete()


@transaction.atomic
def delete(submission: Submission, who: User) -> bool:
    """Return whether a discard was deleted: its file and what was read of it. False for a run, and
    for what was deleted already. The row stays, since the uploads of a team in a day are counted.
    """
    submissions = Submission.objects.select_for_update(of=("self",)).select_related("track")
    row = submissions.discards().filter(pk=submission.pk).first()
    if row is None:
        return False
    forget_reading(row)
    storage, name = row.file.storage, row.file.name
    row.deleted_at, row.file = clock.now(), ""
    row.save(update_fields=["deleted_at", "file"])
    if name:
        transaction.on_commit(partial(storage.delete, name))
    note("delete", row.purpose, who=who, before=row.status, track=row.track.slug)
    return True
