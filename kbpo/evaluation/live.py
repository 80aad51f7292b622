"""Makes the interval that may be watched: of a submission's guaranteed number, while answers come
in.

A final interval holds at the end of judging. Looked at after every answer it would miss sooner or
later, so a page that refreshes itself shows *interim intervals*: the same estimate with the same
variance, but with a quantile under which all of an order together miss no more often than the level
says (`estimators/repeated.py`). One stands until there is so much more information that the next is
due, so the page changes in steps: from a hundred judgments on about three. Each of these is at most
1.5 times as wide as an interval made for its moment alone, also where nearly all claims are asked;
while it stands, what is shown is wider than one made then would be (`benchmarks/peeking.py`).
What was once shut out stays out.

It is an approximation of large samples, with something kept back for what is rough in smaller ones:
fewer than ten judgments have none. They are planned for the variance that was ordered; once that is
reached, the last one has been stored.
"""

from __future__ import annotations

from statistics import NormalDist

import numpy as np

from estimators.estimate import Estimate
from estimators.intervals import score_interval
from estimators.repeated import critical_value, drawn_in, is_due, pace
from kbpo.evaluation.models import LEAST, InterimInterval
from kbpo.instances.models import Label
from kbpo.sampling.designs.base import target_variance
from kbpo.submissions.models import Submission
from scoring.data import Data

LEVELS = (80, 95)


def store_interim_interval(
    submission: Submission, data: Data, found: Estimate
) -> InterimInterval | None:
    """Return the interim interval of a submission's guaranteed number, stored; None as long as the
    last one stands. `found` are the estimates of all systems.
    """
    column = data.systems.index(submission.pk)
    value, variance = (float(_of(column, found, attribute)) for attribute in ("value", "variance"))
    variance = max(variance, float(_of(column, found, "anticipated")))
    n, before = _counted(submission, data, column)
    intervals = list(submission.interim_intervals.filter(order=submission.orders).order_by("n"))
    goal = target_variance(submission, submission.plan["chosen"])
    if np.isnan(value) or n < LEAST or not 0 < variance < np.inf:
        return None
    judged, times = (
        [interval.n for interval in intervals],
        [min(1.0, goal / interval.variance) for interval in intervals],
    )
    now = min(1.0, goal / variance)
    if not is_due(judged, times, n, now):
        return None
    early, growth, continuity = pace([*judged, n], [*times, now])
    ends: dict[int, tuple[float, float]] = {}
    quantiles: dict[int, float] = {}
    for level in LEVELS:
        quantiles[level] = critical_value(
            times,
            [getattr(interval, f"quantile{level}") for interval in intervals],
            now,
            confidence_level=level / 100,
            early=early,
            growth=growth,
        )
        watched = min(2 * NormalDist().cdf(quantiles[level]) - 1, 1 - 1e-9)
        ends[level] = drawn_in(
            _interval(found, column, watched, continuity),
            value,
            _interval(found, column, level / 100, 0.0),
            n,
        )
        if intervals:  # what was once shut out stays out
            last = getattr(intervals[-1], f"low{level}"), getattr(intervals[-1], f"high{level}")
            ends[level] = _both(ends[level], last)
    return InterimInterval.objects.create(
        submission=submission,
        order=submission.orders,
        n=n,
        n_before=before,
        value=min(max(value, ends[80][0]), ends[80][1]),
        variance=variance,
        quantile80=quantiles[80],
        quantile95=quantiles[95],
        low80=ends[80][0],
        high80=ends[80][1],
        low95=ends[95][0],
        high95=ends[95][1],
    )


def _of(column: int, estimate: Estimate, name: str) -> float:
    return float(np.broadcast_to(getattr(estimate, name), np.shape(estimate.value))[column])


def _interval(
    estimate: Estimate, column: int, level: float, continuity: float
) -> tuple[float, float]:
    """The interval that the board would print at this level, with ends that are moved outwards by a
    part of one judgment.
    """
    low, high = score_interval(
        _of(column, estimate, "value"),
        _of(column, estimate, "variance"),
        _of(column, estimate, "n"),
        anticipated=_of(column, estimate, "anticipated"),
        total_g=_of(column, estimate, "total_g"),
        confidence_level=level,
        half_step=_of(column, estimate, "half_step"),
        continuity=continuity,
        agreed=_of(column, estimate, "agreed"),
    )
    return float(low), float(high)


def _both(now: tuple[float, float], before: tuple[float, float]) -> tuple[float, float]:
    """What two intervals share; the earlier one if that is nothing, which is as rare as a miss."""
    low, high = max(now[0], before[0]), min(now[1], before[1])
    return (low, high) if low <= high else before


def _counted(submission: Submission, data: Data, column: int) -> tuple[int, int]:
    """The submission's targets whose judgments count now, and how many of them were judged before
    it was sampled.
    """
    pool, judged = data.pool, data.judged
    mine = np.asarray(pool.member[judged][:, [column]].toarray()).ravel() > 0
    counts = (
        mine
        & data.inclusion.drawn[pool.target[judged]]
        & ~np.isnan(data.f[submission.track.criterion][:, column])
    )
    targets = np.unique(pool.target_id[pool.target[judged[counts]]]).tolist()
    old = Label.objects.filter(target__in=targets, created_at__lt=submission.sampled_at).exclude(
        method="nonresponse"
    )
    return len(targets), old.values("target").distinct().count()
