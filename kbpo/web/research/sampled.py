"""How a submission's sample was drawn, stage by stage: what was planned, what it came to, what the
model had to do with it.
"""

from __future__ import annotations

from typing import Any

from django.db.models import Count

from kbpo.evaluation.latest import Latest
from kbpo.sampling.designs.base import half_width_at
from kbpo.sampling.models import SampleBatch
from kbpo.submissions.models import Submission
from kbpo.tracks.registry import kind_of

WHY = {
    "target": "as far as the interval asks",
    "further": "further, since what the interval asks was asked already",
    "budget": "as far as the money reached",
}
"""Why a stage stopped raising chances where it did."""


def sampled(latest: Latest) -> dict[str, Any] | None:
    """Return what is told of a submission's sample; None before it is drawn."""
    submission = latest.submission
    batches = SampleBatch.objects.filter(submission=submission, design=submission.track.design)
    batches = batches.select_related("distribution").annotate(n=Count("samples"))
    stages: list[Any] = list(batches.order_by("stage", "pk"))
    if not stages:
        return None
    return {
        "design": submission.track.design,
        "stages": [_stage(submission, stage, stage.n) for stage in stages],
        "model": _compare_with_model_alone(latest),
    }


def _stage(submission: Submission, batch: SampleBatch, targets: int) -> dict[str, Any]:
    """One row: when, why, how much was drawn, and the half-widths that were planned and
    realised.
    """
    settings = batch.settings
    planned, came_to = settings.get("planned_variance"), settings.get("came_to")
    return {
        "planned": round(half_width_at(submission, planned), 3) if planned else None,
        "came_to": None if came_to is None else round(came_to, 3),
        "number": batch.stage,
        "drawn_at": batch.drawn_at,
        "settled_at": batch.settled_at,
        "distribution": kind_of(submission.track)
        .measures.distributions[batch.distribution.kind]
        .label,
        "targets": targets,
        "size": batch.size,
        "why": WHY.get(settings.get("why", ""), ""),
        "labels": settings.get("labels", 0),
    }


def _compare_with_model_alone(latest: Latest) -> dict[str, Any] | None:
    """Return what the model alone would print for the guaranteed number, beside what is printed;
    None before that is final.
    """
    submission, report = latest.submission, latest.report
    if submission.status != "scored":
        return None
    track = submission.track
    alone = report.totals.get((track.criterion, track.distribution), {}).get(submission.pk)
    printed = latest.guaranteed()
    if alone is None or printed is None or printed.value is None:
        return None
    return {
        "alone": alone,
        "printed": printed,
        "version": report.model,
        "labels": report.labels,
    }
