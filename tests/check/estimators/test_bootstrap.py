"""Tests of estimators.bootstrap: what is resampled, the three intervals by hand, and how often they
cover.
"""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from estimators import bootstrap, joint

METHODS = bootstrap.METHODS


def rng(seed: int = 0) -> np.random.Generator:
    return np.random.default_rng(seed)


def mean_of(values: np.ndarray) -> bootstrap.Statistic:
    return lambda weights: weights @ values / weights.sum(axis=1)


@given(stratum=st.lists(st.integers(0, 3), min_size=1, max_size=20), seed=st.integers(0, 99))
def test_every_resample_has_each_stratum_at_its_size(stratum, seed):
    weights = bootstrap.resample_weights(len(stratum), 5, rng=rng(seed), stratum=stratum)
    sizes = np.bincount(stratum)
    for row in weights:
        assert np.bincount(stratum, weights=row).tolist() == sizes.tolist()


def test_a_cluster_comes_and_goes_whole():
    weights = bootstrap.resample_weights(5, 50, rng=rng(), cluster=[4, 4, 9, 9, 9])
    assert (weights[:, 0] == weights[:, 1]).all()
    assert (weights[:, 2] == weights[:, 4]).all()
    assert set((weights[:, 0] + weights[:, 2]).tolist()) == {2.0}


def test_weights_are_multinomial():
    weights = bootstrap.resample_weights(3, 20_000, rng=rng())
    assert weights.mean(axis=0) == pytest.approx([1, 1, 1], abs=0.03)
    assert weights.var(axis=0) == pytest.approx([2 / 3] * 3, abs=0.03)


def test_the_intervals_by_hand():
    result = bootstrap.Bootstrap(10.0, np.arange(0.0, 101.0), 0.0)
    assert result.confidence_interval(0.8, "percentile") == pytest.approx((10, 90))
    assert result.confidence_interval(0.8, "basic") == pytest.approx((20 - 90, 20 - 10))
    assert np.median(result.replicates) == 50
    even = bootstrap.Bootstrap(50.0, np.arange(0.0, 101.0), 0.0)
    assert even.confidence_interval(0.8, "bca") == pytest.approx((10, 90))
    skewed = bootstrap.Bootstrap(50.0, np.arange(0.0, 101.0), 0.1)
    low, high = skewed.confidence_interval(0.8, "bca")
    assert low > 10
    assert high > 90


def test_the_acceleration_of_a_mean_is_its_skewness():
    values = rng(3).exponential(size=40)
    result = bootstrap.bootstrap(mean_of(values), 40, rng=rng(), n_resamples=10)
    centred = values - values.mean()
    assert result.acceleration == pytest.approx(
        (centred**3).sum() / (6 * (centred**2).sum() ** 1.5)
    )


def test_replicates_of_a_joint_precision_are_weights_times_terms():
    P, system, label, overlap = (
        np.full((30, 1), 0.1),
        np.zeros(30, dtype=int),
        np.arange(30) % 3 == 0,
        [[0.1]],
    )
    terms = joint.joint_terms(P, system, label * 1.0, overlap)
    result = bootstrap.bootstrap(
        lambda weights: weights @ terms, 30, rng=rng(), stratum=system, n_resamples=4000
    )
    assert result.value == pytest.approx([1 / 3])
    assert result.standard_error**2 == pytest.approx(
        joint.precision_variance(P, system, label * 1.0, overlap), rel=0.1
    )
    low, high = result.confidence_interval()
    assert low.shape == high.shape == (1,)


def test_chunks_do_not_change_the_replicates(monkeypatch):
    values = rng(1).random(10)
    whole = bootstrap.bootstrap(mean_of(values), 10, rng=rng(7), n_resamples=20)
    monkeypatch.setattr(bootstrap, "ENTRIES_AT_A_TIME", 10)
    piecewise = bootstrap.bootstrap(mean_of(values), 10, rng=rng(7), n_resamples=20)
    assert piecewise.replicates == pytest.approx(whole.replicates)
    assert piecewise.acceleration == pytest.approx(whole.acceleration)


def test_only_bca_leaves_units_out():
    seen = []
    result = bootstrap.bootstrap(
        lambda w: seen.append(w) or w.mean(axis=1), 6, rng=rng(), n_resamples=5
    )
    result.confidence_interval(method="basic")
    result.confidence_interval(method="percentile")
    assert sum(len(w) for w in seen) == 1 + 5
    result.confidence_interval(method="bca")
    result.confidence_interval(method="bca")
    assert sum(len(w) for w in seen) == 1 + 5 + 6


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("right", [0.0, 1.0])
def test_all_right_or_all_wrong_is_a_point(method, right):
    result = bootstrap.bootstrap(mean_of(np.full(8, right)), 8, rng=rng())
    assert result.confidence_interval(0.9, method) == (right, right)


@pytest.mark.parametrize("method", METHODS)
@given(values=st.lists(st.floats(0, 1), min_size=5, max_size=30), shift=st.floats(-3, 3))
def test_intervals_follow_a_shift(method, values, shift):
    array = np.array(values)
    here = bootstrap.bootstrap(mean_of(array), len(array), rng=rng(2), n_resamples=50)
    there = bootstrap.bootstrap(mean_of(array + shift), len(array), rng=rng(2), n_resamples=50)
    if np.ptp(array) > 1e-6 and method != "bca":
        expected = np.array(here.confidence_interval(0.8, method)) + shift
        assert np.array(there.confidence_interval(0.8, method)) == pytest.approx(expected, abs=1e-9)
    assert here.confidence_interval(0.8, method).low <= here.confidence_interval(0.8, method).high


def test_undefined_replicates_are_left_out_and_an_undefined_value_has_no_interval():
    result = bootstrap.Bootstrap(0.5, np.array([0.4, np.nan, 0.6]), 0.0)
    assert result.confidence_interval(0.5, "percentile") == pytest.approx((0.45, 0.55))
    assert np.isnan(bootstrap.Bootstrap(np.nan, np.array([0.1]), 0.0).confidence_interval()).all()


def test_bad_arguments_are_named():
    with pytest.raises(ValueError, match="cluster 1 in two"):
        bootstrap.resample_weights(2, 1, rng=rng(), stratum=[0, 1], cluster=[1, 1])
    with pytest.raises(ValueError, match="n_resamples must be a whole number of 1 or more; got 0"):
        bootstrap.resample_weights(2, 0, rng=rng())
    with pytest.raises(ValueError, match="got 0"):
        bootstrap.bootstrap(mean_of(np.zeros(0)), 0, rng=rng())
    with pytest.raises(ValueError, match="one a resample"):
        bootstrap.bootstrap(lambda weights: weights.sum(), 3, rng=rng())
    with pytest.raises(ValueError, match="got 'normal'"):
        bootstrap.Bootstrap(0.5, np.array([0.4]), 0.0).confidence_interval(0.8, "normal")
    with pytest.raises(ValueError, match="got 80"):
        bootstrap.Bootstrap(0.5, np.array([0.4]), 0.0).confidence_interval(80)


@pytest.mark.statistical
def test_intervals_cover_as_often_as_they_say_and_need_the_clusters():
    source, repeats, documents = rng(4), 400, 40
    hits = dict.fromkeys([*METHODS, "by instance"], 0)
    cluster = np.repeat(np.arange(documents), 5)
    for _ in range(repeats):
        values = np.repeat(source.random(documents), 5) + 0.2 * source.standard_normal(
            5 * documents
        )
        result = bootstrap.bootstrap(
            mean_of(values), values.size, rng=source, n_resamples=200, cluster=cluster
        )
        ignorant = bootstrap.bootstrap(mean_of(values), values.size, rng=source, n_resamples=200)
        for name, (low, high) in {
            **{method: result.confidence_interval(0.8, method) for method in METHODS},
            "by instance": ignorant.confidence_interval(0.8),
        }.items():
            hits[name] += low <= 0.5 <= high
    for method in METHODS:
        assert 0.74 < hits[method] / repeats < 0.85, method
    assert hits["by instance"] / repeats < 0.6
