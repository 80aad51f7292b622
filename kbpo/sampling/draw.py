"""Step 4: draws the next batches of confirmed submissions by their track's design. Batches of a run
that is withdrawn while it is judged are frozen: its answered questions stay in everybody's scores.
"""

from __future__ import annotations

from itertools import groupby

from django.db import transaction
from django.db.models import QuerySet
from django.dispatch import receiver

from kbpo import clock
from kbpo.instances.models import Target
from kbpo.queue import handle_rows_in_batch, take_transaction_lock, wake_step
from kbpo.sampling.designs import design_of
from kbpo.sampling.development import store_development_draw
from kbpo.sampling.models import Sample, SampleBatch, Threshold
from kbpo.sampling.plan import recompute_distributions
from kbpo.submissions.models import GONE, Submission, comes_or_goes
from kbpo.tracks.models import Track
from kbpo.tracks.registry import kind_of

AT_ONCE = 8
"""Number of submissions that are planned together, since each plan reads the whole pool."""


def tick() -> int:
    """Sample the pending submissions, those of a track together, and return how many were
    sampled.
    """
    return handle_rows_in_batch(Submission, "confirmed", _sample_submissions, limit=AT_ONCE)


def _sample_submissions(submissions: list[Submission]) -> None:
    waiting = sorted(submissions, key=lambda submission: (submission.track_id, submission.pk))
    for track_id, group in groupby(waiting, key=lambda submission: submission.track_id):
        take_transaction_lock(
            "sample or score", track_id
        )  # thresholds must not be raised by two, or while scored
        of_track = list(group)
        for submission in of_track:
            if submission.sampled_at is None:
                store_development_draw(submission)
                recompute_distributions(
                    kind_of(submission.track).find_affected_submissions(submission.pk)
                )
        design_of(of_track[0].track).sample_together(of_track)
        for submission in of_track:
            submission.move("judging", sampled_at=submission.sampled_at or clock.now())
    wake_step("ask")
    wake_step("estimate")


def freeze_withdrawn_batches(track: Track) -> None:
    """Freeze each open batch of a withdrawn run at the questions answered so far, once: later
    answers to questions of other runs are not used for it. If a failed run is retried, its batches
    are used in full.
    """
    _freeze_batches(SampleBatch.objects.filter(submission__track=track))


@receiver(comes_or_goes)
@transaction.atomic
def freeze_batches_of_run(run: Submission, **_: object) -> None:
    """Freeze the batches of one run when it is withdrawn or restored. If this fails, the run is
    withdrawn nevertheless, and `freeze_withdrawn_batches` catches up.
    """
    _freeze_batches(SampleBatch.objects.filter(submission=run))


def _freeze_batches(batches: QuerySet[SampleBatch]) -> None:
    back = batches.exclude(submission__status__in=GONE).exclude(answered_below=None)
    back.update(answered_below=None)
    left = batches.filter(
        submission__status__in=GONE,
        design=Track.Design.POISSON,
        settled_at=None,
        answered_below=None,
    )
    for batch in left.select_related("submission__track").order_by("pk"):
        batch.answered_below = _smallest_unanswered_ratio(batch)
        batch.save(update_fields=["answered_below"])


def _smallest_unanswered_ratio(batch: SampleBatch) -> float:
    """Return the smallest ratio of random number to inclusion probability (u/π) among a batch's
    unanswered targets; 1 if all are answered.
    """
    drawn = list(Sample.objects.filter(batch=batch).values_list("target_id", flat=True))
    owner = batch.submission_id
    waiting = kind_of(batch.submission.track).find_unanswered({owner: drawn})[owner]
    pi_of = dict(
        Threshold.objects.filter(batch=batch, target__in=waiting).values_list("target_id", "pi")
    )
    u_of = dict(Target.objects.filter(pk__in=pi_of).values_list("pk", "u"))
    return min((u_of[target] / pi for target, pi in pi_of.items()), default=1.0)
