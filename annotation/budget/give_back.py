"""Step 9a: gives back what an ended submission has reserved and nobody is owed."""

from __future__ import annotations

from django.db import transaction

from annotation.budget.promises import committed, one_publisher
from kbpo.money.spend import balance, close, release, unclosed
from kbpo.submissions.models import Submission

ENDED = ("scored", "withdrawn", "failed")


def tick() -> int:
    """Return how many submissions got money back: all that they will not need, less what
    answers may still cost. Those whose reservations are closed are not looked at again.
    """
    ended = Submission.objects.filter(
        pk__in=unclosed("submission"), status__in=ENDED
    ).select_related("track")
    return sum(give_back(submission) for submission in ended)


@transaction.atomic
def give_back(submission: Submission) -> bool:
    """Return whether anything was given back. A repeat gives back nothing more.

    The submission's lock is held: what is reserved at this moment, for an order of more, is not
    given back too. Nor is what is promised at this moment, for one more answer.
    """
    one_publisher(submission.purpose)
    if (
        not Submission.objects.select_for_update(of=("self",), no_key=True)
        .filter(pk=submission.pk, status__in=ENDED)
        .exists()
    ):
        return False
    purpose = submission.purpose
    sums = balance(purpose=purpose)
    keep = committed(purpose)
    if sums.open <= keep:
        if not sums.open and not keep:
            close(purpose)
        return False
    why = "Judging has ended; what is not needed is given back"
    key = f"release:{submission.pk}:{sums.released}:{sums.spent}"
    return release(submission.track, purpose, key=key, keep=keep, why=why) is not None
