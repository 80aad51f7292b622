"""Intervals that may be watched: right at all times at once, and never growing."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from estimators import confidence_sequences
from estimators.confidence_sequences import betting, empirical_bernstein

BOTH = [betting, empirical_bernstein]
streams = st.lists(st.floats(0, 1), min_size=1, max_size=40).map(np.array)


@pytest.mark.parametrize("method", BOTH)
@given(x=streams, level=st.floats(0.5, 0.99))
@settings(deadline=None, max_examples=40)
def test_every_interval_lies_inside_the_one_before(method, x, level):
    low, high = method(x, confidence_level=level)
    assert low.shape == high.shape == x.shape
    assert np.all((low >= 0) & (high <= 1) & (low <= high))
    assert np.all(np.diff(low) >= 0)
    assert np.all(np.diff(high) <= 0)


@pytest.mark.parametrize("method", BOTH)
@given(x=streams, cut=st.integers(1, 40))
@settings(deadline=None, max_examples=30)
def test_what_comes_later_does_not_change_what_was_said(method, x, cut):
    whole, start = method(x), method(x[:cut])
    np.testing.assert_allclose(whole.low[:cut], start.low, atol=1e-12)
    np.testing.assert_allclose(whole.high[:cut], start.high, atol=1e-12)


@pytest.mark.parametrize("method", BOTH)
@given(x=streams)
@settings(deadline=None, max_examples=30)
def test_wrong_and_right_are_mirror_images(method, x):
    one, other = method(x), method(1 - x)
    np.testing.assert_allclose(one.low, 1 - other.high, atol=1.1e-3)


@pytest.mark.parametrize("method", BOTH)
def test_a_higher_level_is_never_narrower(method):
    x = np.tile([1.0, 0.0, 1.0], 60)
    wide, narrow = method(x, confidence_level=0.95), method(x, confidence_level=0.8)
    assert wide.high[-1] - wide.low[-1] > narrow.high[-1] - narrow.low[-1]


@pytest.mark.parametrize("method", BOTH)
def test_other_bounds_only_stretch_it(method):
    x = np.tile([1.0, 0.0, 1.0], 30)
    plain, stretched = method(x), method(4 * x - 1, bounds=(-1, 3))
    np.testing.assert_allclose(stretched.low, 4 * plain.low - 1, atol=1e-9)
    np.testing.assert_allclose(stretched.high, 4 * plain.high - 1, atol=1e-9)


@pytest.mark.parametrize("method", BOTH)
def test_nothing_seen_is_nothing_said_and_one_term_says_little(method):
    assert method(np.array([])).low.size == 0
    low, high = method(np.array([1.0]))
    assert high[0] - low[0] > 0.5


@pytest.mark.parametrize("value", [0.0, 1.0])
def test_all_right_or_all_wrong_closes_in_on_the_end(value):
    low, high = betting(np.full(300, value), confidence_level=0.9)
    assert low[-1] <= value <= high[-1]
    assert high[-1] - low[-1] < 0.03


def test_the_first_step_by_hand():
    # The first bet is the square root of 2 log(2/α)/(¼ log 2), cut to ½/m: a candidate m falls as
    # soon as 1 + λ(1 − m) reaches 2/α.
    alpha, m = 0.5, np.linspace(0, 1, 1001)
    bet = np.minimum(np.sqrt(2 * np.log(4) / (0.25 * np.log(2))), 0.5 / np.maximum(m, 1e-12))
    left = m[1 + bet * (1 - m) < 4]
    assert betting(np.array([1.0]), confidence_level=1 - alpha).low[0] == pytest.approx(
        left[0] - 0.001
    )


def test_blocks_of_time_do_not_change_anything(monkeypatch):
    x = np.random.default_rng(0).random(200)
    whole = betting(x)
    monkeypatch.setattr(confidence_sequences, "BLOCK", 7 * 1001)
    np.testing.assert_allclose(betting(x).low, whole.low)
    np.testing.assert_allclose(betting(x).high, whole.high)


@pytest.mark.parametrize("method", BOTH)
def test_terms_that_drift_apart_keep_the_last_interval(method):
    low, high = method(np.concatenate([np.zeros(400), np.ones(2000)]), confidence_level=0.5)
    assert np.all(low <= high)
    assert low[-1] == low[-2]


def test_betting_is_the_narrower_one():
    x = (np.random.default_rng(1).random(400) < 0.9).astype(float)
    bets, bernstein = betting(x), empirical_bernstein(x)
    assert bets.high[-1] - bets.low[-1] < bernstein.high[-1] - bernstein.low[-1]


@pytest.mark.parametrize("method", BOTH)
@pytest.mark.parametrize(
    ("x", "options", "message"),
    [
        ([0.5, 1.5], {}, r"1\.5"),
        ([np.nan], {}, "nan"),
        ([0.5], {"planned_n": 0}, "planned_n"),
        ([0.5], {"bounds": (1, 0)}, "increasing"),
        ([0.5], {"confidence_level": 1.0}, r"1\.0"),
        ([[0.5]], {}, "one dimension"),
    ],
)
def test_it_names_the_offending_value(method, x, options, message):
    with pytest.raises(ValueError, match=message):
        method(np.array(x), **options)


@pytest.mark.statistical
@pytest.mark.parametrize("method", BOTH)
@pytest.mark.parametrize("p", [0.05, 0.6])
def test_it_hardly_ever_misses_however_often_one_looks(method, p):
    rng, repeats, misses = np.random.default_rng(5), 300, 0
    options = {"grid": 200} if method is betting else {}
    for _ in range(repeats):
        low, high = method((rng.random(300) < p).astype(float), confidence_level=0.9, **options)
        misses += bool(np.any((low > p) | (high < p)))
    assert misses / repeats < 0.1 + 3 * np.sqrt(0.09 / repeats)
