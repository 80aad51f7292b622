"""Step 9a: gives back what an ended submission has reserved and nobody is owed."""

from __future__ import annotations

from django.db import transaction

from annotation.budget.promises import committed, one_publisher
from annotation.models import Pilot, Question
from kbpo.corpus.fetch import fetch
from kbpo.money.spend import balance, release
from kbpo.submissions.models import Submission

ENDED = ("scored", "withdrawn", "failed")
OPEN = """
    SELECT split_part(purpose, ':', 2)::bigint FROM money_ledger
    WHERE purpose LIKE 'submission:%%' AND state <> 'failed' GROUP BY purpose
    HAVING sum(CASE kind WHEN 'reserve' THEN amount ELSE -amount END) > 0
"""


def tick() -> int:
    """How many submissions got money back: all that they will not need, less what answers may still
    cost.
    """
    with_money = [pk for (pk,) in fetch(OPEN, [])]
    ended = Submission.objects.filter(pk__in=with_money, status__in=ENDED).select_related("track")
    return sum(give_back(submission) for submission in ended) + give_back_pilots()


@transaction.atomic
def give_back(submission: Submission) -> bool:
    """Whether anything was given back. A repeat gives back nothing more.

    The submission's lock is held: what is reserved at this moment, for an order of more, is not
    given back too. Nor is what is promised at this moment, for one more answer.
    """
    one_publisher(submission.purpose)
    if (
        not Submission.objects.select_for_update(of=("self",))
        .filter(pk=submission.pk, status__in=ENDED)
        .exists()
    ):
        return False
    purpose = submission.purpose
    sums = balance(purpose=purpose)
    keep = committed(purpose)
    if sums.open <= keep:
        return False
    why = "Judging has ended; what is not needed is given back"
    key = f"release:{submission.pk}:{sums.released}:{sums.spent}"
    return release(submission.track, purpose, key=key, keep=keep, why=why) is not None


def give_back_pilots() -> int:
    """How many ended pilots got back what they did not need."""
    return sum(
        _give_back_pilot(pilot) for pilot in Pilot.objects.select_related("track").order_by("pk")
    )


@transaction.atomic
def _give_back_pilot(pilot: Pilot) -> bool:
    """Whether a pilot has ended and got something back: not what is promised at this moment, for
    one more answer.
    """
    if balance(purpose=pilot.payer).open <= 0 or not one_publisher(pilot.payer, wait=False):
        return False
    live = Question.objects.filter(
        payer=pilot.payer, status__in=["waiting", "published", "answered"]
    ).exists()
    sums, keep = balance(purpose=pilot.payer), committed(pilot.payer)
    if live or sums.open <= keep:
        return False
    release(
        pilot.track,
        pilot.payer,
        key=f"release:{pilot.payer}:{sums.released}:{sums.spent}",
        keep=keep,
        why="The pilot has ended; what is not needed is given back",
    )
    return True
