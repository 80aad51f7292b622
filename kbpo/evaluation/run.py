"""Step 10: labels, samples and probabilities become an Evaluation with its report; debounced."""

from __future__ import annotations

import logging
import time
from collections.abc import Iterable
from datetime import timedelta

from django.conf import settings

from kbpo import clock
from kbpo.evaluation.correction import counted_expert_checks
from kbpo.evaluation.data import load_data
from kbpo.evaluation.due import Seen, is_scoring_due, remember_that_counts_match
from kbpo.evaluation.models import Evaluation, Rescoring
from kbpo.evaluation.score import make_details, make_report
from kbpo.evaluation.stages import (
    end_finished_stages,
    lock_judging,
    notify_teams,
    store_interim_intervals,
)
from kbpo.evaluation.store import reduce_evaluations_since, store_evaluation
from kbpo.queue import handle_rows, take_transaction_lock
from kbpo.sampling.draw import freeze_withdrawn_batches
from kbpo.sampling.models import SampleBatch
from kbpo.submissions.models import Submission
from kbpo.tracks.models import Track
from kbpo.tracks.recall import recall_criteria
from kbpo.tracks.registry import kind_of
from scoring.build import Computed

log = logging.getLogger(__name__)

REST = 5
"""Multiple of the last scoring's duration for which a live score is not computed again, so that
scoring never occupies a worker"""


def tick() -> int:
    """Score the tracks whose scores are out of date, and return how many were examined. Nothing is
    written if no data has changed.
    """
    for track in Track.objects.filter(rescoring__isnull=True).exclude(status="draft"):
        Rescoring.objects.get_or_create(track=track, defaults={"status": "watching"})
    now = clock.now()
    stale = []
    for row in Rescoring.objects.filter(status="watching").select_related("track"):
        try:
            if is_scoring_due(row, now):
                stale.append(row.pk)
        except (
            Exception
        ):  # one track's bug must not keep the others waiting: `handle_rows` notes it
            log.exception("Track %s could not be looked at", row.track_id)
            stale.append(row.pk)
    return (
        handle_rows(Rescoring, "watching", _score_if_changed, filters={"pk__in": stale})
        if stale
        else 0
    )


def _score_if_changed(rescoring: Rescoring) -> None:
    """Score a track if the data on which its scores depend have changed."""
    seen = Seen.read_current(rescoring)
    seconds = score_track(rescoring.track, seen.ended).seconds if seen.is_stale else 0.0
    rescoring.move("watching", state=seen.state | {"signs": seen.signs})
    rescoring.next_try_at = clock.now() + timedelta(
        seconds=max(float(settings.DEBOUNCE_SECONDS), REST * seconds)
    )
    rescoring.save(update_fields=["next_try_at"])
    if seen.counted:
        remember_that_counts_match(rescoring)


def score_track(track: Track, ended_submissions: Iterable[Submission] = ()) -> Evaluation:
    """Score a track and return the new evaluation. Submissions with enough judgments move to the
    board, others to their next stage. Earlier evaluations of the day that ended no stage are
    reduced.
    """
    began = time.monotonic()
    take_transaction_lock("sample or score", track.pk)
    freeze_withdrawn_batches(track)
    done = lock_judging(ended_submissions)
    SampleBatch.objects.filter(submission__in=done, settled_at__isnull=True).update(
        settled_at=clock.now()
    )
    data, kind = load_data(track), kind_of(track)
    computed = Computed.from_data(
        data,
        counted_expert_checks(track, data),
        kind.measures.criterion_names(),
        recall_criteria(track),
        kind.measures.published,
    )
    end_finished_stages(track, computed, done)
    previous = track.evaluations.order_by("-number").first()
    reduce_evaluations_since(track, clock.now().replace(hour=0, minute=0, second=0, microsecond=0))
    standing = set(Submission.objects.filter(track=track).on_board().values_list("pk", flat=True))
    evaluation = Evaluation(
        track=track,
        number=1 + (previous.number if previous is not None else 0),
        stage_end=bool(done),
        standing=sorted(standing),
    )
    report = make_report(track, computed, standing)
    details = make_details(track, computed, standing)
    if not track.hides_test:
        store_interim_intervals(track, computed, done)
    store_evaluation(evaluation, report, details, began)
    notify_teams(evaluation, [submission for submission in done if submission.status == "scored"])
    return evaluation
