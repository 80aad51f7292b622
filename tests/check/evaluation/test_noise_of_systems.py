"""People differ on the texts of one system and agree on those of another: intervals know whose."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse

from estimators.ratings import judgment_variance
from scoring.data import Data, Noise, SingleRatings
from scoring.inclusion import Inclusion
from scoring.pool import Pool
from scoring.saved import best_metrics
from scoring.score import default_estimates

TEXTS, TWICE, REPEATS = 60, 18, 120  # TWICE of each of two systems


def rated(rng: Any, f: np.ndarray[Any, Any]) -> Data:
    """One rating, 0 or 1, of every text of two systems, a second one of some; and a metric that
    says the same of all.
    """
    n = f.size
    row = np.concatenate([np.arange(n), np.arange(TWICE), TEXTS + np.arange(TWICE)])
    said = (rng.random(row.size) < f[row]).astype(np.float64)
    count = np.bincount(row)
    mean = np.bincount(row, said) / count
    within = np.where(count > 1, np.bincount(row, (said - mean[row]) ** 2), np.nan)
    drawn = count[row] > 1
    of, nothing, every = np.arange(n), np.zeros(n), np.ones(n, dtype=np.bool_)
    p = sparse.csr_array(np.repeat(np.eye(2) / TEXTS, TEXTS, axis=0))
    pool = Pool(
        systems=[1, 2],
        teams=[1, 2],
        instance=of,
        target=of,
        target_id=of,
        u=nothing,
        document=of,
        stratum=np.zeros(n, dtype=np.int64),
        types=np.full(n, ""),
        subject=of,
        object=of,
        p={"instance": p},
        confidence=p,
        scorers=[1],
        scores=np.full((n, 1), 0.3),
    )
    chance = Inclusion(np.ones(n), every, np.ones(n), 1.0)
    nobody = np.zeros(0, dtype=np.int64)
    return Data(
        pool=pool,
        shown=np.ones(2, dtype=np.bool_),
        judged=of,
        f={"overall": np.tile(mean[:, None], 2)},
        draws={},
        inclusion=chance,
        g={"overall": np.full(n, 0.5)},
        rho={"overall": 0.0},
        mark=np.zeros(n),
        base="overall",
        unweighed="instance",
        facts=None,
        noise={
            "overall": Noise(
                count,
                judgment_variance(said[drawn], row[drawn]),
                SingleRatings(nobody, nobody, np.zeros(0)),
                within=within,
            )
        },
        error={"overall": np.full(n, 0.25)},
    )


def test_intervals_hold_for_the_system_on_which_people_differ() -> None:
    """With one variance for all they held 0.66 of the time for the one, always for the other."""
    rng: Any = np.random.default_rng(3)
    f = np.concatenate([np.full(TEXTS, 0.5), rng.random(TEXTS) < 0.5])
    f[TEXTS:] = np.clip(f[TEXTS:], 0.02, 0.98)
    truth = f.reshape(2, TEXTS).mean(axis=1)
    held, error, told = [], [], []
    for _ in range(REPEATS):
        data = rated(rng, f)
        estimate, _ = default_estimates(data, ("overall",), ())["mean", "overall", "instance"]
        low, high = (np.asarray(end) for end in estimate.confidence_interval(0.8, method="wilson"))
        held.append((low <= truth) & (truth <= high))
        error.append(np.asarray(estimate.value) - truth)
        told.append(np.asarray(estimate.variance))
    assert np.mean(held, axis=0)[0] > 0.73
    ratio = np.sqrt(np.mean(told, axis=0)) / np.std(error, axis=0)
    assert ratio[0] > 0.9 and ratio[1] < 2.2, ratio


def test_a_metric_that_says_the_same_of_all_goes_with_nobody() -> None:
    """The rounding of its mean correlated with ratings, at 1e-17."""
    rng: Any = np.random.default_rng(3)
    assert not any(best_metrics(rated(rng, np.full(2 * TEXTS, 0.5)), "overall") for _ in range(20))
