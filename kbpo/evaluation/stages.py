"""Ends the stages of submissions whose samples are judged, and stores interim intervals meanwhile.

An interval that is recomputed after every answer excludes the truth sooner or later. An *interim
interval* is the current interval with a variance of at least the planned one, and 1.62 times as
wide (80 %; 1.38 times for 95 %), so that all intervals of a stage together cover the truth with
about the stated probability (`estimators.intervals.interim_width_factor`). The first one is stored
once the variance is at most five times the planned one; a plan that is raised later makes the
factor larger.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from statistics import NormalDist

import numpy as np

from estimators.estimate import Estimate
from estimators.intervals import interim_width_factor, score_interval
from kbpo import clock
from kbpo.evaluation.latest import half_width
from kbpo.evaluation.leaderboard import headline_figures
from kbpo.evaluation.models import LEAST, Evaluation, InterimInterval
from kbpo.evaluation.score import ranking_order
from kbpo.queue import wake_step
from kbpo.sampling.designs import design_of
from kbpo.sampling.designs.base import Realised, target_variance_of_submission
from kbpo.sampling.models import SampleBatch
from kbpo.submissions.models import Submission
from kbpo.tracks.models import Track
from kbpo.tracks.registry import kind_of
from scoring.build import Computed, figure_of_score
from scoring.compare import is_rank_decided
from scoring.data import Data
from scoring.inputs import expected_variance_of_means
from scoring.score import DEFAULT, Key
from scoring.words import figure_text


def lock_judging(ended_submissions: Iterable[Submission]) -> list[Submission]:
    """Lock and return the submissions that are still being judged, in primary-key order."""
    # Not their keys, so that pages can write rows that refer to them meanwhile.
    locked = Submission.objects.select_for_update(of=("self",), no_key=True).select_related("track")
    return list(
        locked.filter(
            pk__in=[submission.pk for submission in ended_submissions], status="judging"
        ).order_by("pk")
    )


def end_finished_stages(
    track: Track, computed: Computed, ended_submissions: list[Submission]
) -> None:
    """Move submissions whose stage has ended to the board or to their next stage."""
    realised = _realised_variances(track, computed)
    _store_variances(track, realised, ended_submissions)
    for submission in ended_submissions:
        ranked = _is_ranked(track, computed, submission)
        _move_to_board_or_next_stage(submission, realised.get(submission.pk), ranked)


def _guaranteed_key(track: Track) -> Key:
    return kind_of(track).measures.mean, track.criterion, track.distribution


def _realised_variances(track: Track, computed: Computed) -> dict[int, Realised]:
    """Return, for each submission with a guaranteed number, the realised and anticipated variance
    and the half-width of the printed interval.
    """
    data, key = computed.data, _guaranteed_key(track)
    if key not in computed.shown_estimates:  # nothing was drawn
        return {}
    estimate = computed.shown_estimates[key][0]
    variance = np.broadcast_to(estimate.variance, np.shape(estimate.value))
    anticipated = expected_variance_of_means(data, key, computed.estimates[key][0])
    printed = {
        row.column: half_width(figure_of_score(data, row)[1], track)
        for row in computed.scores
        if (row.quantity, row.criterion, row.distribution, row.method) == (*key, DEFAULT)
    }
    return {
        submission: Realised(
            float(variance[column]), float(anticipated[column]), printed[column] or 0.0
        )
        for column, submission in enumerate(data.systems)
        if not math.isnan(variance[column])
    }


def _store_variances(
    track: Track, realised: dict[int, Realised], ended_submissions: list[Submission]
) -> None:
    """Store the current variances in the last settled batch of each system, and at the end of a
    stage the final ones.
    """
    ended = {submission.pk for submission in ended_submissions}
    batches = SampleBatch.objects.test_part().filter(
        submission__in=realised, distribution__kind=track.distribution
    )
    last = {batch.submission_id: batch for batch in batches.order_by("stage")}
    for submission, batch in last.items():
        if batch.settled_at is not None:
            realised[submission].store_in_batch(batch, is_stage_end=submission in ended)


def _is_ranked(track: Track, computed: Computed, submission: Submission) -> bool:
    """Return whether a submission's rank is decided, on a track where that ends judging."""
    key, data, found = _guaranteed_key(track), computed.data, computed.shown_estimates
    if not track.ends_when_ranked or submission.pk not in data.systems or key not in found:
        return False
    column = data.systems.index(submission.pk)
    batches = SampleBatch.objects.test_part().filter(submission=submission)
    stage = batches.filter(settled_at__isnull=False).count()
    return is_rank_decided(
        ranking_order(kind_of(track)), data, key, found[key], column, max(1, stage)
    )


def _move_to_board_or_next_stage(
    submission: Submission, realised: Realised | None, ranked: bool
) -> None:
    """Move a submission to the board, or to its next stage."""
    design = design_of(submission.track)
    why = design.reason_to_stop(submission, realised)
    if not why and ranked:
        why = "ranked"
    if not why:
        submission.move("confirmed")
        wake_step("draw")
        return
    submission.move("scored", tells=False, scored_at=clock.now(), stage_reason=why)
    wake_step("give_back")
    wake_step("plan")


def store_interim_intervals(
    track: Track, computed: Computed, ended_submissions: list[Submission]
) -> None:
    """Store interim intervals of the guaranteed numbers of submissions that are being judged."""
    key = _guaranteed_key(track)
    if key not in computed.shown_estimates:
        return
    judging = Submission.objects.filter(track=track, status="judging").select_related("track")
    for submission in {row.pk: row for row in (*judging, *ended_submissions)}.values():
        if submission.pk in computed.data.systems:
            store_interim_interval(submission, computed.data, computed.shown_estimates[key][0])


def notify_teams(evaluation: Evaluation, ended_submissions: list[Submission]) -> None:
    """Notify the teams of runs that reached the board, with the headline figure."""
    headline_of = (
        headline_figures(evaluation, [submission.pk for submission in ended_submissions])
        if ended_submissions
        else {}
    )
    for submission in ended_submissions:
        if submission.pk not in headline_of:
            submission.notify_team()
            continue
        quantity, figure = headline_of[submission.pk]
        interval = "" if figure.is_exact else ", with the interval at 80 %"
        sentence = f"{quantity.label} {figure_text(figure)}{interval}."
        ends = {"low80": figure.low80, "high80": figure.high80}
        submission.notify_team(
            sentence, score={"quantity": quantity.name, "value": figure.value, **ends}
        )


FIRST = 5.0
"""Greatest multiple of the planned variance at the first interim interval"""


def store_interim_interval(
    submission: Submission, data: Data, estimate: Estimate
) -> InterimInterval | None:
    """Store and return the interim interval of a submission's guaranteed number; None before the
    first one is due, and if no judgment has arrived since the last one.
    """
    column = data.systems.index(submission.pk)

    def value_of_system(name: str) -> float:
        return float(np.broadcast_to(getattr(estimate, name), np.shape(estimate.value))[column])

    value, variance = (
        value_of_system("value"),
        max(value_of_system("variance"), value_of_system("anticipated")),
    )
    planned = target_variance_of_submission(submission, submission.plan["chosen"])
    n = _count_judged_targets(submission, data, column)
    if np.isnan(value) or n < LEAST or not 0 <= variance < np.inf:
        return None
    earlier = submission.interim_intervals.order_by("made_at", "pk")
    if earlier.filter(order=submission.orders, n__gte=n).exists():
        return None
    first = earlier.first()
    if first is None and variance > FIRST * planned:
        return None
    span = max(FIRST, (first.variance if first is not None else variance) / planned)
    ends: dict[float, tuple[float, float]] = {}
    for level in (0.8, 0.95):
        quantile = interim_width_factor(span, level) * NormalDist().inv_cdf(0.5 + level / 2)
        low, high = score_interval(
            value,
            max(variance, planned),
            value_of_system("n"),
            anticipated=value_of_system("anticipated"),
            total_g=value_of_system("total_g"),
            confidence_level=2 * NormalDist().cdf(quantile) - 1,
            half_step=value_of_system("half_step"),
            agreed=value_of_system("agreed"),
        )
        ends[level] = float(low), float(high)
    return InterimInterval.objects.create(
        submission=submission,
        order=submission.orders,
        n=n,
        value=min(max(value, ends[0.8][0]), ends[0.8][1]),
        variance=max(variance, planned),
        low80=ends[0.8][0],
        high80=ends[0.8][1],
        low95=ends[0.95][0],
        high95=ends[0.95][1],
    )


def _count_judged_targets(submission: Submission, data: Data, column: int) -> int:
    """Return how many targets of the submission have a judgment that is in the sample."""
    pool, judged = data.pool, data.judged
    mine = np.asarray(pool.member[judged][:, [column]].toarray()).ravel() > 0
    counts = (
        mine
        & data.inclusion.drawn[pool.target[judged]]
        & ~np.isnan(data.f[submission.track.criterion][:, column])
    )
    return int(np.unique(pool.target[judged[counts]]).size)
