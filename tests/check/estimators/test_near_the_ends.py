"""Precisions near 0 and 1: the board's interval of the centred estimate keeps its promise, with any
model.
"""

from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import norm

from estimators.horvitz_thompson import anticipated_variance, centred_difference_estimate

N, ASKED, REPEATS = 1500, 150, 300
pytestmark = pytest.mark.statistical


def guesses(model, f, share, rng):
    """What a model makes of it: knows much, knows the share alone, knows nothing,
    or says anything."""
    if model == "random":
        return rng.uniform(0.02, 0.98, N)
    if model == "good":
        return np.clip(np.where(rng.random(N) < 0.7, f, share), 0.02, 0.98)
    return np.full(N, share if model == "constant" else 0.5)


def samples(share, model, *, floored=True):
    """The estimates of REPEATS samples, and the truth."""
    rng = np.random.default_rng(23)
    f = np.zeros(N)
    f[rng.choice(N, round(share * N), replace=False)] = 1
    p = rng.dirichlet(np.full(N, 4.0))
    g, truth = guesses(model, f, share, rng), p @ f
    pi = np.minimum(1, ASKED * p)
    found = []
    for _ in range(REPEATS):
        s = rng.random(N) < pi
        estimate = centred_difference_estimate(p[s], pi[s], f[s], g[s], p @ g)
        if floored:
            estimate = replace(estimate, anticipated=anticipated_variance(p, pi, g, f[s], g[s]))
        found.append(estimate)
    return found, truth


def ends(found, level):
    return np.array([one.confidence_interval(level, method="wilson") for one in found]).T


@pytest.mark.parametrize("model", ["good", "constant", "ignorant"])
@pytest.mark.parametrize(
    "share", [0.01, 0.96, *(pytest.param(one, marks=pytest.mark.soak) for one in (0.04, 0.99))]
)
def test_the_interval_holds_the_truth_at_least_as_often_as_it_says(share, model):
    found, truth = samples(share, model)
    for level in (0.8, 0.95):
        low, high = ends(found, level)
        assert np.mean((low <= truth) & (truth <= high)) > level - 3 * np.sqrt(
            level * (1 - level) / REPEATS
        )
        if model != "ignorant":  # and is far from as wide as that of a half
            assert np.mean(high - low) < 0.5 * 2 * norm.ppf(0.5 + level / 2) * np.sqrt(0.25 / ASKED)


@pytest.mark.parametrize("share", [0.0, 1.0])
def test_what_no_label_speaks_against_is_in_the_interval(share):
    """With a model every other estimate of a system that is always right is below 1, and its
    interval of 95 % was too.
    """
    found, _ = samples(share, "random")
    inside = [0 < one.value < 1 for one in found]
    assert 0.2 < np.mean(inside) < 0.8, "or the test says nothing"
    for level in (0.8, 0.95):
        low, high = ends(found, level)
        assert ((low <= share) & (share <= high)).all()


@pytest.mark.parametrize("share", [0.01, 0.99])
def test_the_variance_that_was_seen_would_not_do_alone(share):
    found, truth = samples(share, "constant", floored=False)
    low, high = ends(found, 0.8)
    assert np.mean((low <= truth) & (truth <= high)) < 0.76
