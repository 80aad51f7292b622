"""Response tables that are learned, and distributions of delays."""

import numpy as np
import pytest

from estimators.onthejob.delays import Empirical, ShiftedLogNormal, delay_model
from estimators.onthejob.people import Quality, symmetric_response_table


def test_a_symmetric_table_has_the_quality_on_its_diagonal():
    table = symmetric_response_table(4, 0.7)
    np.testing.assert_allclose(table.sum(axis=1), 1)
    assert table[0].tolist() == pytest.approx([0.7, 0.1, 0.1, 0.1])


@pytest.mark.parametrize(("n_labels", "quality"), [(1, 0.5), (2, 1.0), (2, 0.0)])
def test_an_impossible_table_is_refused(n_labels, quality):
    with pytest.raises(ValueError, match="n_labels must be"):
        symmetric_response_table(n_labels, quality)


@pytest.mark.parametrize("tied", [True, False])
def test_the_prior_is_the_published_table(tied):
    np.testing.assert_allclose(Quality(3, tied=tied).table(), symmetric_response_table(3, 0.7))


def test_a_tied_table_is_the_mean_of_a_beta_distribution():
    quality = Quality(2)
    for right in (0.9, 0.8, 0.4):
        quality.update(worker=0, response=1, posterior=np.array([1 - right, right]))
    assert quality.table()[0, 0] == pytest.approx((7 + 2.1) / (10 + 3))
    anybody = (7 + 2.1) / 13
    assert quality.table(0)[1, 1] == pytest.approx((10 * anybody + 2.1) / (10 + 3))
    assert quality.table(1)[0, 0] == pytest.approx(anybody)


def test_a_table_by_label_finds_which_labels_are_missed():
    rng = np.random.default_rng(0)
    true = np.array([[0.95, 0.05], [0.4, 0.6]])
    quality = Quality(2, tied=False)
    for _ in range(2000):
        label = int(rng.integers(2))
        quality.update(0, int(rng.random() < true[label, 1]), np.eye(2)[label])
    np.testing.assert_allclose(quality.table(), true, atol=0.04)


def test_the_empirical_tail_has_only_delays_that_have_not_passed():
    delays = Empirical([1.0, 2.0, 4.0, 8.0])
    drawn = {delays.draw(u, elapsed=3.0) for u in np.linspace(0, 0.999, 50)}
    assert drawn == {4.0, 8.0}
    assert delays.expected(3.0) == 6.0
    assert delays.expected(0.0) == 3.75
    assert delays.draw(1 - np.exp(-1), elapsed=9.0) == pytest.approx(9 + 3.75)


def test_a_delay_that_is_reached_this_instant_is_no_exponential():
    assert Empirical([1.0]).draw(0.5, elapsed=(0.3 + 1.0) - 0.3) == pytest.approx(1.0)


def test_the_expected_maximum_equals_enumeration():
    values = np.array([1.0, 2.0, 6.0, 7.0])
    largest = np.maximum(values[:, None], values).mean()
    assert Empirical(values).expected_max(2) == pytest.approx(largest, abs=0.05)
    assert Empirical(values).expected_max(0) == 0


def test_a_shifted_log_normal_has_the_moments_it_was_fitted_to():
    values = np.random.default_rng(1).lognormal(0.5, 0.6, size=400) + 2
    fitted = ShiftedLogNormal.fit(values)
    draws = np.array([fitted.draw(u) for u in (np.arange(4000) + 0.5) / 4000])
    assert fitted.mean == pytest.approx(values.mean())
    assert draws.mean() == pytest.approx(values.mean(), rel=0.01)
    assert draws.var() == pytest.approx(values.var(), rel=0.05)
    assert draws.min() >= 0.9 * values.min()


def test_the_log_normal_tail_equals_what_is_left_of_many_draws():
    delays = ShiftedLogNormal(0.5, 0.0, 0.8)
    draws = np.sort(delays.quantile((np.arange(20000) + 0.5) / 20000))
    tail = draws[draws > 2.0]
    for share in (0.1, 0.5, 0.9):
        expected = tail[int(share * len(tail))]
        assert delays.draw(share, elapsed=2.0) == pytest.approx(expected, rel=0.01)


def test_quantiles_give_the_prior():
    delays = ShiftedLogNormal.from_quantiles(10.0, 15.0)
    assert delays.quantile(np.array([0.5, 0.9])).tolist() == pytest.approx([10.0, 15.0])
    with pytest.raises(ValueError, match="median and p90"):
        ShiftedLogNormal.from_quantiles(2.0, 1.0)


def test_the_prior_counts_until_thirty_answers_are_there():
    prior, values = Empirical([5.0]), np.arange(1.0, 31.0)
    assert delay_model(values[:29], prior) is prior
    assert delay_model(values, prior).mean == pytest.approx(15.5)


def test_delays_that_are_all_equal_have_no_log_normal():
    with pytest.raises(ValueError, match="must not all be equal"):
        ShiftedLogNormal.fit([1.0, 1.0])
    with pytest.raises(ValueError, match="at least one"):
        Empirical([])
