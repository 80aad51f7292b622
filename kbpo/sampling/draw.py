"""Step 4: confirmed submissions get the next batches of their track's design."""

from __future__ import annotations

from itertools import groupby

from kbpo import clock
from kbpo.queue import nudge, one_at_a_time, work_together
from kbpo.sampling.designs import design_of
from kbpo.sampling.development import draw_development
from kbpo.sampling.distribution import recompute_distributions
from kbpo.submissions.models import Submission
from kbpo.tracks.registry import kind_of

AT_ONCE = 8
"""Submissions that are planned together: each reads the whole pool."""


def tick() -> int:
    """Sample the submissions that wait, those of a track together, and return how many were
    sampled.
    """
    return work_together(Submission, "confirmed", _sample, limit=AT_ONCE)


def _sample(submissions: list[Submission]) -> None:
    waiting = sorted(submissions, key=lambda submission: (submission.track_id, submission.pk))
    for track_id, group in groupby(waiting, key=lambda submission: submission.track_id):
        one_at_a_time(
            "sample or score", track_id
        )  # thresholds must not be raised by two, or while scored
        of_track = list(group)
        for submission in of_track:
            if submission.sampled_at is None:
                draw_development(submission)
                recompute_distributions(
                    kind_of(submission.track).find_affected_submissions(submission.pk)
                )
        design_of(of_track[0].track).sample_together(of_track)
        for submission in of_track:
            submission.move("judging", sampled_at=submission.sampled_at or clock.now())
    nudge("ask")
    nudge("estimate")
