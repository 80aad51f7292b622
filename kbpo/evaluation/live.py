"""Makes the interval that may be watched: of a submission's guaranteed number, while answers come
in.

An interval that is made anew after every answer is wrong sooner or later. An *interim interval* is
the interval of the moment with a variance of at least the planned one, and 1.62 times as wide (80
%; 1.38 times for 95 %): so all of a stage together miss about as rarely as the level says
(`estimators.intervals.interim_factor`). The first one is made once the variance is at most five
times the planned one; a plan that is raised later makes the factor larger.
"""

from __future__ import annotations

from statistics import NormalDist

import numpy as np

from estimators.estimate import Estimate
from estimators.intervals import interim_factor, score_interval
from kbpo.evaluation.models import LEAST, InterimInterval
from kbpo.sampling.designs.base import target_variance
from kbpo.submissions.models import Submission
from scoring.data import Data

FIRST = 5.0
"""So many times the planned variance the first interim interval may have"""


def store_interim_interval(
    submission: Submission, data: Data, found: Estimate
) -> InterimInterval | None:
    """Store and return the interim interval of a submission's guaranteed number. Returns None
    before the first one is due, and where no judgment has arrived since the last one.
    """
    column = data.systems.index(submission.pk)

    def own(name: str) -> float:
        return float(np.broadcast_to(getattr(found, name), np.shape(found.value))[column])

    value, variance = own("value"), max(own("variance"), own("anticipated"))
    planned = target_variance(submission, submission.plan["chosen"])
    n = _counted(submission, data, column)
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
        quantile = interim_factor(span, level) * NormalDist().inv_cdf(0.5 + level / 2)
        low, high = score_interval(
            value,
            max(variance, planned),
            own("n"),
            anticipated=own("anticipated"),
            total_g=own("total_g"),
            confidence_level=2 * NormalDist().cdf(quantile) - 1,
            half_step=own("half_step"),
            agreed=own("agreed"),
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


def _counted(submission: Submission, data: Data, column: int) -> int:
    """Return how many targets of the submission have a judgment in the sample."""
    pool, judged = data.pool, data.judged
    mine = np.asarray(pool.member[judged][:, [column]].toarray()).ravel() > 0
    counts = (
        mine
        & data.inclusion.drawn[pool.target[judged]]
        & ~np.isnan(data.f[submission.track.criterion][:, column])
    )
    return int(np.unique(pool.target[judged[counts]]).size)
