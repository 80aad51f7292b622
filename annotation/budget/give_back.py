"""Step 9a: releases the reserved money of ended submissions that nobody is owed."""

from __future__ import annotations

from django.db import transaction

from annotation.budget.promises import committed_money, lock_payer
from kbpo.money.spend import balance, close_reservations, purposes_with_open_money, release_money
from kbpo.submissions.models import Submission

ENDED = ("scored", "withdrawn", "failed")


def tick() -> int:
    """Release the money of ended submissions, and return how many of them got money back.
    Submissions with closed reservations are skipped.
    """
    ended = Submission.objects.filter(
        pk__in=purposes_with_open_money("submission"), status__in=ENDED
    ).select_related("track")
    return sum(release_unneeded_money(submission) for submission in ended)


@transaction.atomic
def release_unneeded_money(submission: Submission) -> bool:
    """Release what an ended submission does not need, and return whether anything was released. A
    repeat releases nothing more. Locks the submission, so that a reservation that is made at the
    same moment is kept.
    """
    lock_payer(submission.purpose)
    if (
        not Submission.objects.select_for_update(of=("self",), no_key=True)
        .filter(pk=submission.pk, status__in=ENDED)
        .exists()
    ):
        return False
    purpose = submission.purpose
    sums = balance(purpose=purpose)
    keep = committed_money(purpose)
    if sums.open <= keep:
        if not sums.open and not keep:
            close_reservations(purpose)
        return False
    why = "Judging has ended; unused money is returned"
    key = f"release:{submission.pk}:{sums.released}:{sums.spent}"
    return release_money(submission.track, purpose, key=key, keep=keep, why=why) is not None
