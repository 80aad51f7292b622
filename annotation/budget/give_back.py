"""Step 9a: gives back what an ended submission has reserved and nobody is owed."""

from __future__ import annotations

from django.db import transaction

from annotation.hits.publish import committed, one_publisher
from annotation.questions.pilot import give_back as give_back_pilots
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
