"""Who pays for a target that several submissions want: the one that asked first; the others reuse
its label.
"""

from __future__ import annotations

from dataclasses import dataclass

from django.contrib.postgres.aggregates import BoolOr
from django.db.models import Exists, OuterRef, Q

from annotation.models import Question
from kbpo.sampling.models import Sample
from kbpo.submissions.models import Submission


@dataclass(frozen=True)
class Shared:
    """Targets of a submission by who asked about them: itself, or others; and those of its own that
    others use too.
    """

    own: int
    others: int
    lent: int


def shared(submission: Submission) -> Shared:
    """Return how many targets of a submission's sample it asked about, how many others did, how
    many of its own others use.
    """
    targets = Sample.objects.filter(batch__submission=submission).values("target")
    asked = Question.objects.filter(target__in=targets).exclude(status="cancelled")
    elsewhere = Sample.objects.exclude(batch__submission=submission)
    of_target = asked.values("target").annotate(
        own=BoolOr(Q(**submission.purpose.at("payer"))),
        lent=Exists(elsewhere.filter(target=OuterRef("target"))),
    )
    found = list(of_target.values_list("own", "lent"))
    own = [lent for is_own, lent in found if is_own]
    return Shared(own=len(own), others=len(found) - len(own), lent=sum(own))
