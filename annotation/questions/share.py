"""Who pays for a target that several submissions want: the one that asked first; the others reuse
its label.
"""

from __future__ import annotations

from dataclasses import dataclass

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
    """How many targets of a submission's sample it asked about, how many others did, how many of
    its own others use.
    """
    targets = Sample.objects.filter(batch__submission=submission).values("target")
    asked = Question.objects.filter(target__in=targets).exclude(status="cancelled")
    own = asked.filter(**submission.purpose.at("payer")).values_list("target", flat=True).distinct()
    others = asked.exclude(target__in=own).values("target").distinct().count()
    elsewhere = Sample.objects.exclude(batch__submission=submission).filter(target__in=own)
    return Shared(own.count(), others, elsewhere.values("target").distinct().count())
