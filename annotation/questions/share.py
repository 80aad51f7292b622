"""Counts the targets that several submissions share: the first one pays, the others reuse the
labels.
"""

from __future__ import annotations

from dataclasses import dataclass

from django.contrib.postgres.aggregates import BoolOr
from django.db.models import Exists, OuterRef, Q

from annotation.models import Question
from kbpo.sampling.models import Sample
from kbpo.submissions.models import Submission


@dataclass(frozen=True)
class TargetShares:
    """Numbers of targets: paid by the submission, paid by others, and paid by it and used by
    others.
    """

    own: int
    others: int
    lent: int


def target_shares(submission: Submission) -> TargetShares:
    """Return the numbers for the sample of a submission."""
    targets = Sample.objects.filter(batch__submission=submission).values("target")
    asked = Question.objects.filter(target__in=targets).exclude(status="cancelled")
    elsewhere = Sample.objects.exclude(batch__submission=submission)
    of_target = asked.values("target").annotate(
        own=BoolOr(Q(**submission.purpose.at("payer"))),
        lent=Exists(elsewhere.filter(target=OuterRef("target"))),
    )
    found = list(of_target.values_list("own", "lent"))
    own = [lent for is_own, lent in found if is_own]
    return TargetShares(own=len(own), others=len(found) - len(own), lent=sum(own))
