"""Computes the savings by metrics and judges: the estimates without them, and the share of
judgments that they save.

The variance is proportional to one over the number of judgments, so 1 − V/V′ of them are saved,
with V the variance with and V′ without metrics, but no more than are missing. If a metric increases
the variance, the share is negative, and is printed.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator

import numpy as np

from estimators.control_variates import control_variate_mean
from estimators.design import Design
from estimators.estimate import Estimate
from scoring.arrays import Floats
from scoring.data import Data
from scoring.default import Centred
from scoring.inputs import estimates_for_similar_inputs
from scoring.rated import add_rating_noise_variance
from scoring.score import Key, Score, scores_of_populations, scores_of_systems

UNAIDED = "unaided"
"""The method of the estimates without metrics and judges"""
LATER = "late_judges"
"""The method of the estimates with judges that were added after judgments and use later
labels only"""
ALGORITHM_1 = "algorithm_1"
"""The method of the published estimate with one metric"""
LEAST = 10
"""Number of ratings below which Algorithm 1 is not computed"""
EVEN = 1e-9
"""Probabilities that differ by less are equal, and smaller correlations are rounding errors"""
FEWEST = 30
"""Number of ratings of all systems below which the best metric is not determined"""
MOST = 4
"""Number of metrics and judges whose savings are printed individually"""


def means_without_scorers(
    data: Data, criteria: tuple[str, ...]
) -> dict[Key, tuple[Estimate, Design]]:
    """Return the weighted means of every system, estimated without the help of metrics and judges.
    Empty if no metric or judge is used.
    """
    bare = data.without_scorers()
    if bare is None or not data.judged.size:
        return {}
    return _weighted_means(bare, criteria)


def _weighted_means(data: Data, criteria: Collection[str]) -> dict[Key, tuple[Estimate, Design]]:
    arranged = Centred(data)
    return {
        (data.mean, criterion, kind): add_rating_noise_variance(
            arranged, kind, criterion, arranged.precision(kind, criterion)
        )
        for kind in data.pool.p
        for criterion in criteria
    }


def alternative_estimates(
    data: Data, unaided: dict[Key, tuple[Estimate, Design]]
) -> Iterator[Score]:
    """Yield alternatives to the default estimates: those without metrics and judges, those with
    late judges (`Data.later`), and, for single ratings, the published estimator.
    """
    if data.later is not None:
        means = _weighted_means(data.later, data.later.g)
        yield from scores_of_populations(
            data.later, means, estimates_for_similar_inputs(data.later, means), LATER
        )
    bare = data.without_scorers()
    if bare is not None:
        yield from scores_of_populations(
            bare, unaided, estimates_for_similar_inputs(bare, unaided), UNAIDED
        )
    for key in unaided:
        _, criterion, distribution = key
        for best in best_metrics(data, criterion)[:1] if data.noise else ():
            published = algorithm_1_estimate(data, criterion, distribution, best)
            yield from scores_of_systems(data, published, *key, ALGORITHM_1, count_own_labels=True)


def savings_by_run(
    aided: dict[Key, tuple[Estimate, Design]],
    unaided: dict[Key, tuple[Estimate, Design]],
    data: Data,
) -> dict[tuple[str, str], dict[int, float]]:
    """Return (criterion, distribution) -> submission -> the share of judgments that are saved."""
    return {
        key[1:]: _saved_shares(data, key, aided[key][0], estimate)
        for key, (estimate, _) in unaided.items()
    }


def savings_by_scorer(
    unaided: dict[Key, tuple[Estimate, Design]], data: Data
) -> dict[tuple[str, str], dict[int, dict[int, float]]]:
    """Return (criterion, distribution) -> the metrics and judges that correlate best with people,
    the best first, each with submission -> the share of judgments that it saves by itself
    (`algorithm_1`).
    """
    saved_by: dict[tuple[str, str], dict[int, dict[int, float]]] = {}
    for key in unaided:
        _, criterion, distribution = key
        # Algorithm 1 is for independent draws, and so is what it is held against: `estimate` knows
        # that what is judged of few outputs leaves little open.
        plain = algorithm_1_estimate(data, criterion, distribution, None)
        for metric in best_metrics(data, criterion)[:MOST] if data.noise else ():
            shares = _saved_shares(
                data, key, algorithm_1_estimate(data, criterion, distribution, metric), plain
            )
            if shares:
                saved_by.setdefault(key[1:], {})[data.pool.scorers[metric]] = shares
    return saved_by


def count_unjudged(
    unaided: dict[Key, tuple[Estimate, Design]], data: Data
) -> dict[tuple[str, str], int]:
    """Return (criterion, distribution) -> how many targets of all systems have no judgment yet."""
    missing: dict[tuple[str, str], int] = {}
    for key in unaided:
        rows_missing = _is_unjudged(data, key).any(axis=1)
        missing[key[1:]] = int(np.unique(data.pool.target[rows_missing]).size)
    return missing


def _is_unjudged(data: Data, key: Key) -> np.ndarray:
    """Return (u, m) whether each system could draw each instance and the instance has no verdict
    yet.
    """
    _, criterion, distribution = key
    missing: np.ndarray = (data.pool.p[distribution] > 0).toarray()
    missing[data.judged] &= np.isnan(data.f[criterion])
    missing[:, ~data.shown] = False
    return missing


def _saved_shares(data: Data, key: Key, aided: Estimate, unaided: Estimate) -> dict[int, float]:
    """Return submission -> the share of judgments that metrics and judges save: 1 − V/V′, where V
    is the variance with them and V′ without. At most the share of unjudged targets; submissions
    without both variances are left out.
    """
    shape = np.shape(unaided.value)
    with np.errstate(divide="ignore", invalid="ignore"):
        share = 1 - _interval_variance(aided, shape) / _interval_variance(unaided, shape)
        frame = (data.pool.p[key[2]] > 0).sum(axis=0)
        share = np.minimum(share, _is_unjudged(data, key).sum(axis=0) / np.asarray(frame).ravel())
    defined = data.shown & np.isfinite(share) & ~np.isnan(np.asarray(unaided.value))
    return {data.systems[column]: float(share[column]) for column in np.flatnonzero(defined)}


def _interval_variance(estimate: Estimate, shape: tuple[int, ...]) -> Floats:
    """Return the variance that the confidence intervals use: the estimated or the anticipated one,
    whichever is larger.
    """
    return np.broadcast_to(np.maximum(estimate.variance, estimate.anticipated), shape)


def best_metrics(data: Data, criterion: str) -> list[int]:
    """Return the columns of the metrics and judges that correlate with human judgments under a
    criterion, within systems, the best first; none with too few ratings.
    """
    pool, rating = data.pool, data.f[criterion][:, 0]
    rated = np.flatnonzero(~np.isnan(rating))
    if not pool.scorers or rated.size < FEWEST:
        return []
    rated_rows = data.judged[rated]
    owner = np.asarray(pool.member[rated_rows].argmax(axis=1)).ravel()
    sizes = np.abs(
        [
            _correlation_within_systems(rating[rated], pool.scores[rated_rows, column], owner)
            for column in range(len(pool.scorers))
        ]
    )
    return [int(column) for column in np.argsort(-sizes, kind="stable") if sizes[column] > EVEN]


def _correlation_within_systems(rating: Floats, score: Floats, owner: np.ndarray) -> float:
    """Return the correlation of ratings and scores within systems; 0 if one of them is constant."""
    scored = ~np.isnan(score)
    rating, score, code = rating[scored], score[scored], owner[scored]
    if not code.size:
        return 0.0
    count = np.maximum(np.bincount(code), 1)
    left, right = (
        values - (np.bincount(code, weights=values) / count)[code] for values in (rating, score)
    )
    size = float(np.sqrt((left @ left) * (right @ right)))
    return float(left @ right) / size if size > 0 else 0.0


def algorithm_1_estimate(data: Data, criterion: str, kind: str, metric: int | None) -> Estimate:
    """Return the means by Algorithm 1 of Chaganty, Mussmann and Liang (2018), as published, with
    one metric; without a metric the plain means of the same ratings.

    The algorithm needs simple random samples. The result is NaN for a system whose outputs had
    different probabilities of a rating (for example because other systems wrote the same texts),
    with outputs that the metric has not scored, with fewer than ten ratings, or with equal ratings
    only, whose interval would have no width.
    """
    pool, arranged = data.pool, Centred(data).for_criterion(criterion)
    counted = np.zeros(pool.instance.size, dtype=np.bool_)
    counted[arranged.row] = True
    rating = np.full(pool.instance.size, np.nan)
    rating[data.judged] = data.f[criterion][:, 0]
    m = len(data.systems)
    value, variance, n = np.full(m, np.nan), np.full(m, np.nan), np.zeros(m, dtype=np.int64)
    for column in range(m):
        mine = np.flatnonzero(np.asarray(pool.p[kind][:, [column]].toarray()).ravel())
        drawn = mine[counted[mine] & ~np.isnan(rating[mine])]
        score = np.zeros(pool.instance.size) if metric is None else pool.scores[:, metric]
        even = np.ptp(arranged.pi[mine]) <= EVEN if mine.size else False
        if not even or drawn.size < LEAST or np.isnan(score[mine]).any():
            continue
        estimate = control_variate_mean(rating[drawn], score[drawn], score[mine], power_tune=False)
        if estimate.variance <= EVEN**2:
            continue
        value[column], variance[column], n[column] = estimate.value, estimate.variance, drawn.size
    return Estimate(value, variance, n, np.zeros((1, m)))
