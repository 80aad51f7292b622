"""Step 4: a confirmed submission gets its batches and samples; a draw is a function of its committed batch row."""

from __future__ import annotations

from django.utils import timezone

from kbpo.queue import nudge, work
from kbpo.sampling.models import Sample, SampleBatch, SamplingDistribution
from kbpo.sampling.plan import draw, seed_of
from kbpo.sampling.probabilities import support
from kbpo.submissions.models import Submission


def tick() -> int:
    """How many submissions were sampled."""
    return work(Submission, "confirmed", _sample)


def _sample(submission: Submission) -> None:
    option = submission.plan["options"][submission.plan["chosen"]]
    for kind, size in option["draws"].items():
        if size:
            fill(make_batch(submission, kind, size, option["half_width"]))
    submission.move("judging", sampled_at=timezone.now())
    nudge("ask")
    nudge("estimate")


def make_batch(submission: Submission, kind: str, size: int, half_width: str) -> SampleBatch:
    """The batch of a distribution at stage 1: everything that its draw depends on."""
    batch, _ = SampleBatch.objects.get_or_create(
        submission=submission,
        distribution=SamplingDistribution.objects.get(submission=submission, kind=kind),
        design="iid",
        stage=1,
        defaults={"seed": seed_of(submission, kind), "size": size, "settings": {"half_width": half_width}},
    )
    return batch


def fill(batch: SampleBatch) -> int:
    """How many distinct instances the batch holds after its draw was stored (a repeat stores nothing new)."""
    rows = draws_of(batch)
    Sample.objects.bulk_create(rows, batch_size=2000, ignore_conflicts=True)
    return len(rows)


def draws_of(batch: SampleBatch) -> list[Sample]:
    """The draws that a batch row stands for, recomputed from its seed and size; nothing is stored."""
    instance, target, p = support(batch.submission, batch.distribution.kind)
    index, multiplicity = draw(p, batch.size, batch.seed)
    return [
        Sample(
            batch=batch,
            target_id=int(target[i]),
            instance_id=int(instance[i]),
            multiplicity=int(times),
            probability=float(p[i]),
        )
        for i, times in zip(index, multiplicity, strict=True)
    ]
