"""Development judgments: predictions of the development part that a run has judged, for learning.

They are public at once and enter no score. The targets with the smallest stored random numbers are
chosen, so that runs share them.
"""

from __future__ import annotations

from decimal import Decimal
from typing import Any

from kbpo.corpus.sql import fetch_rows
from kbpo.sampling.designs.base import option_price
from kbpo.sampling.models import Sample, SampleBatch, SamplingDistribution
from kbpo.submissions.models import Submission
from kbpo.tracks.registry import kind_of

DEFAULT, MOST = 10, 200
"""Number of predictions that a plan offers, and the most that a run may order"""
FIRST_RUNS = 2
"""Number of a team's runs whose plans offer development predictions"""
PREDICTED = """
    SELECT t.id FROM submissions_prediction p JOIN instances_instance i ON i.id = p.instance_id
    JOIN instances_target t ON t.id = i.target_id
    WHERE p.submission_id = %s AND p.is_dev GROUP BY t.id, t.u ORDER BY t.u, t.id LIMIT %s
"""


def development_plan(submission: Submission) -> dict[str, Any]:
    """Return the development predictions of a plan: the most that can be judged, the number that is
    offered, and the highest price of each.
    """
    available = len(_development_targets(submission, MOST))
    earlier = Submission.objects.filter(
        track=submission.track, team=submission.team, confirmed_at__isnull=False
    ).exclude(pk=submission.pk)
    learns = submission.role == Submission.Role.SYSTEM and earlier.count() < FIRST_RUNS
    price = option_price(submission, 1, 1)
    return {
        "available": available,
        "n": min(DEFAULT, available) if learns else 0,
        "each": price["each"],
    }


def development_price(submission: Submission, n: int) -> Decimal:
    """Return the most that judging `n` development predictions costs: only those without a judgment
    are paid for.
    """
    each = Decimal(submission.plan["development"]["each"])
    return each * len(_unanswered_targets(submission, _development_targets(submission, n)))


def store_development_draw(submission: Submission) -> None:
    """Store the development predictions that the confirmed plan orders, so that they are asked
    about.
    """
    n = submission.plan.get("development", {}).get("chosen", 0)
    targets = _development_targets(submission, n)
    if not targets:
        return
    batch, is_new = SampleBatch.objects.get_or_create(
        submission=submission,
        distribution=SamplingDistribution.objects.get(
            submission=submission, kind=submission.track.distribution
        ),
        design=SampleBatch.DEVELOPMENT,
        stage=1,
        defaults={"seed": 0, "size": len(targets)},
    )
    if is_new:
        Sample.objects.bulk_create(
            Sample(batch=batch, target_id=target, probability=1.0) for target in targets
        )


def count_unpaid(submission: Submission) -> int:
    """Return how many development questions of a submission have no answer yet."""
    drawn = Sample.objects.filter(
        batch__submission=submission, batch__design=SampleBatch.DEVELOPMENT
    )
    return len(_unanswered_targets(submission, list(drawn.values_list("target_id", flat=True))))


def _development_targets(submission: Submission, n: int) -> list[int]:
    return [pk for (pk,) in fetch_rows(PREDICTED, [submission.pk, n])] if n else []


def _unanswered_targets(submission: Submission, targets: list[int]) -> set[int]:
    if not targets:
        return set()
    return kind_of(submission.track).find_unanswered({submission.pk: targets})[submission.pk]
