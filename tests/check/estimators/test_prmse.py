"""PRMSE: exact over all ratings of a tiny universe, by hand,
and with the warnings that belong to it.
"""

import itertools
import math

import numpy as np
import pytest

from estimators.prmse import (
    prmse,
    rater_correlation,
)

N, RATERS = 10_000, 50
GROUPS = {0.40: 1.14, 0.55: 0.99, 0.65: 0.91, 0.80: 0.83}
"""Correlation of raters: sd of their ratings (Loukina et al. 2020, section 4)"""

TRUE = np.array([1.0, 2.0, 4.0])  # three true scores, drawn with equal chance
SCORE = np.array([1.5, 1.5, 3.0])  # the machine's
ERRORS = (-0.5, 0.5)  # each rating is off by one of these


def rate(truth, sd, rng):
    """Return (N, 50) ratings from 1 to 6 with this standard deviation: true score plus error.

    Rounding to whole numbers adds a variance of about 1/12, so the error before rounding has less.
    """
    noise = np.sqrt(max(sd**2 - truth.var() - 1 / 12, 0.0))
    return np.clip(np.round(truth[:, None] + rng.normal(0, noise, (truth.size, RATERS))), 1, 6)


@pytest.mark.parametrize("counts", [(2, 2, 2), (1, 2, 2), (2, 1, 1), (3, 1, 2)])
def test_both_variances_and_the_error_are_exactly_unbiased_with_unequal_ratings(counts):
    totals, states = np.zeros(3), 0
    for drawn in itertools.product(range(3), repeat=3):
        rows = np.array(drawn)
        for errors in itertools.product(ERRORS, repeat=sum(counts)):
            human = np.full((3, max(counts)), np.nan)
            off = iter(errors)
            for row, count in enumerate(counts):
                human[row, :count] = [TRUE[rows[row]] + next(off) for _ in range(count)]
            found = prmse(human, SCORE[rows])
            totals += [found.error_variance, found.true_score_variance, found.mse]
            states += 1
    np.testing.assert_allclose(
        totals / states, [0.25, TRUE.var(), ((TRUE - SCORE) ** 2).mean()], atol=1e-12
    )


def test_the_formula_by_hand_with_a_response_of_one_rating():
    found = prmse([[3, 4], [2, np.nan], [5, 4], [1, 2]], [3.0, 2.0, 4.0, 2.0])
    noise = 1.5 / 3
    means, counts = np.array([3.5, 2, 4.5, 1.5]), np.array([2, 1, 2, 2])
    grand = (counts * means).sum() / 7
    spread = ((counts * (means - grand) ** 2).sum() - 3 * noise) / (7 - 13 / 7)
    mse = ((counts * (means - [3, 2, 4, 2]) ** 2).sum() - 4 * noise) / 7
    assert found.error_variance == pytest.approx(noise)
    assert found.true_score_variance == pytest.approx(spread)
    assert found.mse == pytest.approx(mse)
    assert found.value == pytest.approx(1 - mse / spread)
    assert (found.n, found.n_multiple) == (4, 3)


def test_responses_without_any_rating_do_not_count():
    human, score = [[3.0, 4], [2, 2], [5, 4]], [3.0, 2.0, 4.0]
    more = prmse([*human, [np.nan, np.nan]], [*score, 99.0])
    assert more.value == prmse(human, score).value
    assert more.n == 3
    assert math.isnan(prmse(np.empty((0, 2)), []).value)


def test_single_ratings_are_undefined_unless_the_error_variance_is_known():
    alone = prmse([1.0, 2, 4], TRUE)
    assert math.isnan(alone.value)
    assert any("undefined" in warning for warning in alone.warnings)
    known = prmse([1.0, 2, 4], TRUE, error_variance=0.25)
    spread = (np.var([1, 2, 4]) * 3 - 2 * 0.25) / 2
    assert known.value == pytest.approx(1 + 0.25 / spread)
    assert not any("ratings, so" in warning for warning in known.warnings)


def test_values_out_of_bounds_are_shown_and_told():
    above = prmse([[3, 4], [2, 2], [5, 4], [1, 2]], [3.5, 2.0, 4.5, 1.5])
    assert above.value > 1 and any("above 1" in warning for warning in above.warnings)
    negative = prmse([[1, 5], [5, 1], [1, 5]], [3.0, 3, 3])
    assert negative.true_score_variance < 0 and math.isnan(negative.value)
    assert any("negative" in warning for warning in negative.warnings)
    useless = prmse([[1, 1], [2, 2], [3, 3]], [3.0, 2.0, 1.0])
    assert useless.value < 0


def rated(rng, n=1200, r=0.8, shift=0.0, more=1.0):
    truth = rng.normal(0, math.sqrt(r), n)
    first = truth + rng.normal(0, math.sqrt(1 - r), n)
    other = shift + more * (truth + rng.normal(0, math.sqrt(1 - r), n))
    return np.column_stack([first, other]), truth


def told(warnings, word):
    return any(word in warning for warning in warnings)


def test_warnings_are_those_of_the_guidelines():
    rng = np.random.default_rng(0)
    human, truth = rated(rng)
    truth = truth + rng.normal(0, 0.3, truth.size)
    assert len(prmse(human, truth).warnings) == 1  # never PRMSE alone: always said
    few = human[:600]
    assert not told(prmse(few, truth[:600]).warnings, "Only")  # 500 do where raters agree
    doubtful, true = rated(rng, r=0.5)
    assert told(prmse(doubtful[:600], true[:600]).warnings, "1,000 are recommended")
    assert told(prmse(human, truth, random_subset=False).warnings, "at random")
    assert told(prmse(rated(rng, shift=0.4)[0], truth).warnings, "severe")
    assert told(prmse(rated(rng, more=1.6)[0], truth).warnings, "spread")
    apart = human.copy()
    apart[:600, 0] = apart[600:, 1] = np.nan
    assert told(prmse(apart, truth).warnings, "another set")
    partial = human.copy()
    partial[:, 1] = rng.normal(0, 1, len(human))
    assert told(prmse(partial, truth).warnings, "agree with the machine")


@pytest.mark.parametrize("offset", [-1e8, 1e8, 0.1])
def test_an_offset_of_all_scores_changes_nothing(offset):
    ratings, machine = np.array([[1.0, 2], [2, 2], [3, 3], [4, 5], [2, 3]]), np.arange(5.0)
    expected = prmse(ratings, machine)
    shifted = prmse(ratings + offset, machine + offset)
    for name in ("value", "mse", "true_score_variance", "error_variance"):
        assert getattr(shifted, name) == pytest.approx(getattr(expected, name), abs=1e-7), name
    assert shifted.warnings == expected.warnings


def test_equal_ratings_leave_it_undefined_and_say_why():
    constant = prmse(np.full((7, 3), 0.1), np.arange(7.0))
    assert constant.true_score_variance == 0 and math.isnan(constant.value)
    assert told(constant.warnings, "All ratings are equal")


@pytest.mark.statistical
def test_raters_of_the_simulation_correlate_as_published():
    rng = np.random.default_rng(17)
    truth = rng.normal(3.844, 0.74, N)
    for r, sd in GROUPS.items():
        assert rater_correlation(rate(truth, sd, rng)[:, :6]) == pytest.approx(r, abs=0.02)


@pytest.mark.statistical
def test_prmse_is_that_of_the_true_scores_whatever_the_raters_are_like():
    rng = np.random.default_rng(1)
    for r in (0.4, 0.8):
        human, truth = rated(rng, n=40_000, r=r)
        machine = 0.7 * truth + rng.normal(0, 0.2 * math.sqrt(r), truth.size)
        expected = 1 - ((truth - machine) ** 2).mean() / truth.var()
        assert prmse(human, machine).value == pytest.approx(expected, abs=0.03)


@pytest.mark.statistical
def test_bootstrap_intervals_hold():
    rng = np.random.default_rng(2)
    held = 0
    for _ in range(200):
        human, truth = rated(rng, n=300)
        machine = truth + rng.normal(0, 0.4, truth.size)
        found = prmse(human, machine, n_resamples=200, rng=rng)
        assert found.replicates is not None
        low, high = found.replicates.confidence_interval(0.8, method="percentile")
        held += low[0] <= 1 - 0.16 / 0.8 <= high[0]
    assert 0.73 < held / 200 < 0.87


def test_the_correlation_of_raters_counts_pairs_by_what_they_share():
    human = np.array([[1, 2, np.nan], [2, 3, np.nan], [3, 3, 1], [4, 5, 2], [np.nan, 1, 3]])
    pairs = [([1, 2, 3, 4], [2, 3, 3, 5], 4), ([3, 5, 1], [1, 2, 3], 3)]
    total = sum(n * np.corrcoef(a, b)[0, 1] for a, b, n in pairs)
    assert rater_correlation(human) == pytest.approx(total / 7)
    assert math.isnan(rater_correlation(np.ones((3, 2))))


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: prmse([[1, 2]], [1, 2]), "system"),
        (lambda: prmse([[1, np.inf]], [1]), "infinite"),
        (lambda: prmse([[1, 2]], [np.nan]), "nan"),
        (lambda: prmse([[1, 2]], [1], error_variance=-1.0), r"-1\.0"),
        (lambda: prmse([[1, 2]], [1], n_resamples=3), "rng"),
        (lambda: rater_correlation([1, 2]), r"\(N, R\)"),
    ],
)
def test_it_names_what_it_cannot_use(call, message):
    with pytest.raises(ValueError, match=message):
        call()
