"""Estimates and their intervals."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from estimators.estimate import Estimate, replace_columns
from estimators.intervals import score_interval, t_to_normal_quantile_ratio, wilson_interval

levels = st.floats(0.05, 0.99)


def test_the_wald_interval_is_value_plus_and_minus_z_standard_errors():
    low, high = Estimate(0.5, 0.01, 100, np.zeros(1)).confidence_interval(0.95, method="wald")
    assert (low, high) == pytest.approx((0.5 - 0.195996, 0.5 + 0.195996), abs=1e-5)


def test_the_t_interval_uses_students_quantile():
    low, _ = Estimate(0.0, 1.0, 5, np.zeros(1), degrees_of_freedom=4.0).confidence_interval(
        0.95, method="t"
    )
    assert low == pytest.approx(-2.776445, abs=1e-5)


def test_the_default_level_is_eighty_percent():
    low, high = Estimate(0.0, 1.0, 5, np.zeros(1)).confidence_interval()
    assert high - low == pytest.approx(2 * 1.2815516)


def test_estimates_may_be_arrays_over_systems():
    estimate = Estimate(
        np.array([0.2, 0.9]), np.array([0.01, 0.0]), np.array([10, 10]), np.zeros((3, 2))
    )
    for method in ("wald", "t", "wilson"):
        low, high = estimate.confidence_interval(method=method)
        assert low.shape == high.shape == (2,)
        assert low[1] == high[1] == 0.9


def test_it_refuses_an_unknown_method_and_an_impossible_level():
    estimate = Estimate(0.5, 0.01, 10, np.zeros(1))
    with pytest.raises(ValueError, match="'bayes'"):
        estimate.confidence_interval(method="bayes")
    with pytest.raises(ValueError, match=r"1\.0"):
        estimate.confidence_interval(1.0)


def test_an_interval_of_next_to_nothing_is_the_whole_without_a_warning():
    with np.errstate(all="raise"):
        assert wilson_interval(0.3, 1e-300) == pytest.approx((0, 1), abs=1e-12)
        assert wilson_interval(0.3, 1e-12) == pytest.approx((0, 1), abs=1e-11)


def test_wilson_agrees_with_a_published_example():
    # Newcombe (1998), table I: 81 of 263 at 95 %: 0.2553 to 0.3662.
    assert wilson_interval(81 / 263, 263, 0.95) == pytest.approx((0.2553, 0.3662), abs=5e-5)


def test_wilson_refuses_what_is_no_proportion():
    with pytest.raises(ValueError, match=r"1\.5"):
        wilson_interval(1.5, 10)
    with pytest.raises(ValueError, match="n_effective must be positive"):
        wilson_interval(0.5, 0)


@given(
    st.floats(-0.5, 1.5),
    st.floats(0, 1),
    st.floats(0, 1),
    st.integers(1, 1000),
    st.floats(0, 1),
    levels,
)
def test_the_interval_contains_the_clipped_estimate_and_stays_in_the_unit_interval(
    v, var, a, n, g, level
):
    low, high = score_interval(v, var, n, anticipated=a, total_g=g, confidence_level=level)
    assert 0 <= low <= min(max(v, 0), 1) <= high <= 1


@given(st.floats(0, 1), st.floats(1e-6, 0.2), st.integers(1, 1000), levels)
def test_the_interval_grows_with_the_level_and_with_the_variance(v, var, n, level):
    low, high = score_interval(v, var, n, confidence_level=level)
    for wider in (
        score_interval(v, var, n, confidence_level=level + (1 - level) / 2),
        score_interval(v, 0.0, n, confidence_level=level, anticipated=var * 1.5),
    ):
        assert wider.high - wider.low >= high - low - 1e-12


@given(st.floats(0.0, 1), st.floats(1e-5, 0.1), st.integers(1, 500), levels)
def test_wrong_and_right_are_mirror_images(v, var, n, level):
    low, high = score_interval(v, var, n, confidence_level=level)
    mirrored = score_interval(1 - v, var, n, confidence_level=level)
    assert (1 - high, 1 - low) == pytest.approx(tuple(mirrored), abs=1e-9)


def test_no_variance_is_the_point_and_no_label_is_everything():
    assert score_interval(0.3, 0.0, 7) == (0.3, 0.3)
    assert score_interval(0.3, 0.0, 0) == (0.0, 1.0)
    assert score_interval(0.3, math.nan, 7) == (0.0, 1.0)
    assert score_interval(0.3, 0.01, 1, degrees_of_freedom=0.0) == (0.0, 1.0)
    assert all(math.isnan(end) for end in score_interval(math.nan, 0.0, 0))


def test_all_right_is_not_certain_while_the_model_doubts():
    low, high = score_interval(1.0, 0.0, 50, anticipated=0.0004)
    assert low < 0.97
    assert high == 1.0


def test_a_negative_variance_is_refused():
    with pytest.raises(ValueError, match=r"-0\.1"):
        score_interval(0.5, -0.1, 10)


@pytest.mark.statistical
@pytest.mark.parametrize("p", [0.02, 0.3, 0.97])
def test_the_interval_of_a_simple_proportion_covers_as_often_as_it_says(p):
    rng = np.random.default_rng(7)
    n, repeats = 200, 4000
    value = rng.binomial(n, p, repeats) / n
    smooth = (value * n + 0.5) / (n + 1)
    low, high = score_interval(
        value, value * (1 - value) / n, n, anticipated=smooth * (1 - smooth) / n
    )
    assert 0.76 < np.mean((low <= p) & (p <= high)) < 0.92


def test_some_systems_of_several_are_replaced_and_the_others_kept():
    three = Estimate(
        np.array([0.2, 0.5, 0.9]),
        np.array([0.01, 0.02, 0.03]),
        np.array([10, 20, 30]),
        np.arange(6.0).reshape(2, 3),
        degrees_of_freedom=4.0,
        anticipated=np.array([0.1, 0.2, 0.3]),
        total_g=np.array([0.3, 0.4, 0.5]),
    )
    own = Estimate(
        0.7, 0.5, 3, np.array([8.0, 9.0]), degrees_of_freedom=1.0, anticipated=0.6, total_g=0.8
    )
    found = replace_columns(three, {1: own})
    assert found.value.tolist() == [0.2, 0.7, 0.9]
    assert found.variance.tolist() == [0.01, 0.5, 0.03]
    assert found.n.tolist() == [10, 3, 30]
    assert found.influence.tolist() == [[0.0, 8.0, 2.0], [3.0, 9.0, 5.0]]
    assert (found.anticipated.tolist(), found.total_g.tolist()) == (
        [0.1, 0.6, 0.3],
        [0.3, 0.8, 0.5],
    )
    assert found.degrees_of_freedom == 4.0
    assert (
        three.value.tolist() == [0.2, 0.5, 0.9] and three.influence[0, 1] == 1.0
    )  # the old one is as it was


def test_one_number_for_all_systems_becomes_one_each_where_a_system_is_replaced():
    two = Estimate(np.array([0.2, 0.5]), np.array([0.01, 0.02]), 10, np.zeros((1, 2)))
    found = replace_columns(two, {0: Estimate(0.4, 0.04, 3, np.ones(1), anticipated=0.05)})
    assert (found.n.tolist(), found.anticipated.tolist()) == ([3, 10], [0.05, 0.0])
    assert replace_columns(two, {}) is two


def test_students_quantile_tends_to_the_normal_one():
    assert t_to_normal_quantile_ratio(np.inf, 0.8) == 1.0
    assert t_to_normal_quantile_ratio(1e7, 0.8) == pytest.approx(1.0, abs=1e-6)
    assert t_to_normal_quantile_ratio(1, 0.8) > t_to_normal_quantile_ratio(2, 0.8) > 1
