"""Step 4: a confirmed submission gets the next batch of its track's design."""

from __future__ import annotations

from kbpo import clock
from kbpo.queue import nudge, one_at_a_time, work
from kbpo.sampling.designs import design_of
from kbpo.sampling.leaks import look_for_leaks
from kbpo.submissions.models import Submission


def tick() -> int:
    """How many submissions were sampled."""
    return work(Submission, "confirmed", _sample)


def _sample(submission: Submission) -> None:
    one_at_a_time(
        "sample or score", submission.track_id
    )  # thresholds must not be raised by two, or while scored
    if submission.sampled_at is None:
        look_for_leaks(submission)
    design_of(submission.track).sample(submission)
    submission.move("judging", sampled_at=submission.sampled_at or clock.now())
    nudge("ask")
    nudge("estimate")
