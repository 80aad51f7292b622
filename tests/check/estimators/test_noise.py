"""Crowd scores and expert checks: unbiased whatever the crowd's errors depend on."""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from estimators.design import Design
from estimators.estimate import Estimate
from estimators.horvitz_thompson import centred_difference_estimate, difference_estimate
from estimators.noise import (
    LEAST_DOUBT,
    correct_by_expert_checks,
    expert_design,
    expert_probabilities,
    ppi_estimate,
)

unit = st.floats(0, 1)
chances = st.floats(0.2, 1.0)


@st.composite
def universes(draw):
    """Four predictions on three targets (two share one), two systems."""
    column = lambda values, n=4: np.array(draw(st.lists(values, min_size=n, max_size=n)))  # noqa: E731
    p = np.column_stack([column(unit), column(unit)])
    truth = column(st.integers(0, 1)).astype(float)
    return p, truth, column(unit), column(unit), column(chances, 3), column(chances, 3)


TARGET = np.array([0, 1, 2, 1])


def outcomes(pi, e):
    """Yield chance, labelled and checked, for everything that may happen to three targets: 0 no, 1
    label, 2 check.
    """
    for state in itertools.product(range(3), repeat=3):
        s = np.array(state)
        yield (
            np.prod(np.choose(s, [1 - pi, pi * (1 - e), pi * e])),
            (s >= 1)[TARGET],
            (s == 2)[TARGET],
        )


@given(universes())
@settings(deadline=None, max_examples=40)
def test_the_estimate_its_variance_and_the_covariances_are_exactly_unbiased(universe):
    p, truth, crowd, g, pi, e = universe
    mean, second, variance, covariance = (
        np.zeros(2),
        np.zeros((2, 2)),
        np.zeros(2),
        np.zeros((2, 2)),
    )
    for chance, rows, checked in outcomes(pi, e):
        expert = np.where(checked, truth, np.nan)[rows]
        sample = p[rows], pi[TARGET][rows], crowd[rows], g[rows], expert, e[TARGET][rows]
        estimate = ppi_estimate(*sample, p.T @ g, target=TARGET[rows])
        design = expert_design(sample[1], sample[5], target=TARGET[rows])
        mean += chance * estimate.value
        second += chance * np.outer(estimate.value, estimate.value)
        variance += chance * estimate.variance
        covariance += chance * design.covariance(estimate.influence)
    exact = second - np.outer(mean, mean)
    np.testing.assert_allclose(mean, p.T @ truth, atol=1e-9)
    np.testing.assert_allclose(variance, np.diag(exact), atol=1e-8)
    np.testing.assert_allclose(covariance, exact, atol=1e-8)


def test_the_variance_is_the_published_sum_of_three():
    rng = np.random.default_rng(0)
    p, pi, e = rng.uniform(0, 1, 9), rng.uniform(0.2, 1, 9), rng.uniform(0.2, 1, 9)
    c, g, f = rng.uniform(0, 1, 9), rng.uniform(0, 1, 9), rng.integers(0, 2, 9).astype(float)
    checked = rng.random(9) < 0.5
    estimate = ppi_estimate(p, pi, c, g, np.where(checked, f, np.nan), e, 3.0)
    a = p / pi
    expected = np.sum(a**2 * (1 - pi) * (c - g) ** 2)
    a, pi, c, g, f, e = (array[checked] for array in (a, pi, c, g, f, e))
    expected += np.sum((a / e) ** 2 * (1 - e * pi) * (f - c) ** 2)
    expected += 2 * np.sum(a**2 / e * (1 - pi) * (c - g) * (f - c))
    assert estimate.variance == pytest.approx(expected)
    assert estimate.n == 9


def test_without_checks_and_with_all_checks_it_is_the_difference_estimate():
    p, pi, g = np.full(4, 0.25), np.full(4, 0.5), np.full(4, 0.5)
    crowd, truth = np.array([1.0, 1, 0, 0]), np.array([1.0, 0, 0, 0])
    nothing, always = np.full(4, np.nan), np.ones(4)
    for expert, label in ((nothing, crowd), (truth, truth)):
        estimate, plain = (
            ppi_estimate(p, pi, crowd, g, expert, always, 0.5),
            difference_estimate(p, pi, label, g, 0.5),
        )
        assert estimate.value == pytest.approx(plain.value)
        assert estimate.variance == pytest.approx(plain.variance)


def test_without_labels_the_model_speaks():
    empty = np.array([])
    estimate = ppi_estimate(empty, empty, empty, empty, empty, empty, 0.6)
    assert (estimate.value, estimate.variance, estimate.n) == (0.6, 0, 0)


def test_a_missing_crowd_score_leaves_the_row_out():
    half = np.full(2, 0.5)
    estimate = ppi_estimate(
        half, half, np.array([1.0, np.nan]), half, np.array([np.nan, 1.0]), half, 0.5
    )
    assert estimate.n == 1
    assert estimate.influence[[1, 3]].tolist() == [0, 0]


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("crowd", [1.5, 0.0], r"1\.5"),
        ("expert", [np.nan, -1.0], r"-1\.0"),
        ("expert_probability", [0.0, 1.0], r"0\.0"),
        ("pi", [0.5], r"\(2,\)"),
    ],
)
def test_it_names_the_offending_value(name, value, message):
    half = np.full(2, 0.5)
    arguments = dict.fromkeys(("p", "pi", "crowd", "g", "expert", "expert_probability"), half)
    with pytest.raises(ValueError, match=message):
        ppi_estimate(**(arguments | {name: np.array(value)}), total_g=0.5)


@given(st.lists(st.floats(0.001, 5), min_size=1, max_size=20), st.floats(0.01, 25))
def test_checks_add_up_to_the_budget(weights, budget):
    e = expert_probabilities(np.array(weights), np.full(len(weights), 0.2), budget=budget)
    assert np.all((e > 0) & (e <= 1))
    assert e.sum() == pytest.approx(min(budget, len(weights)))
    uncapped = e < 1
    ratio = e[uncapped] / np.array(weights)[uncapped]
    np.testing.assert_allclose(ratio, ratio[:1].repeat(ratio.size))


def test_more_weight_and_more_doubt_are_checked_more():
    e = expert_probabilities(np.array([1.0, 2.0, 1.0]), np.array([0.04, 0.04, 0.16]), budget=1.0)
    np.testing.assert_allclose(e, [0.2, 0.4, 0.4])


def test_nobody_is_beyond_checking_and_nothing_is_checked_for_nobody():
    e = expert_probabilities(
        np.array([[1.0, 0], [0, 1.0], [0, 0]]), np.array([0.0, 0.25, 0.25]), budget=0.5
    )
    assert e[0] / e[1] == pytest.approx(np.sqrt(LEAST_DOUBT / 0.25))
    assert e[2] == 0


@pytest.mark.parametrize(
    ("doubt", "budget", "message"), [(0.3, 1.0, r"0\.3"), (0.2, 0.0, r"0\.0"), (-0.1, 1.0, "-0")]
)
def test_it_refuses_impossible_doubts_and_budgets(doubt, budget, message):
    with pytest.raises(ValueError, match=message):
        expert_probabilities(np.ones(1), np.array([doubt]), budget=budget)


@pytest.mark.statistical
def test_doubt_and_weight_beat_checking_at_random():
    rng = np.random.default_rng(3)
    n = 400
    p, q = rng.dirichlet(np.ones(n)), rng.uniform(0.5, 1, n)
    crowd = np.ones(n)
    truth = (rng.random(n) < q).astype(float)
    spread = []
    for e in (np.full(n, 0.2), expert_probabilities(p, q * (1 - q), budget=0.2 * n)):
        values = []
        for _ in range(500):
            expert = np.where(rng.random(n) < e, truth, np.nan)
            values.append(ppi_estimate(p, np.ones(n), crowd, q, expert, e, p @ q).value)
        assert abs(np.mean(values) - p @ truth) < 4 * np.std(values) / np.sqrt(500)
        spread.append(np.var(values))
    assert spread[1] < 0.85 * spread[0]


def test_any_estimate_of_the_crowd_is_corrected_by_the_same_term():
    rng = np.random.default_rng(5)
    p, pi, e = rng.uniform(0, 1, (9, 2)), rng.uniform(0.2, 1, 9), rng.uniform(0.2, 1, 9)
    crowd, truth = (
        rng.integers(0, 2, (9, 2)).astype(float),
        rng.integers(0, 2, (9, 2)).astype(float),
    )
    truth[rng.random(9) < 0.4] = np.nan
    alone = centred_difference_estimate(p, pi, crowd, np.full(9, 0.5), 0.5)
    both = correct_by_expert_checks(alone, Design(pi), p, pi, crowd, truth, e)
    for column in range(2):
        added = np.nansum(p[:, column] / pi / e * (truth - crowd)[:, column])
        assert both.value[column] == pytest.approx(alone.value[column] + added)
        one = centred_difference_estimate(p[:, column], pi, crowd[:, column], np.full(9, 0.5), 0.5)
        single = correct_by_expert_checks(
            one, Design(pi), p[:, column], pi, crowd[:, column], truth[:, column], e
        )
        assert single.value == pytest.approx(both.value[column])
        assert single.variance == pytest.approx(both.variance[column])
    np.testing.assert_array_equal(both.n, alone.n)


def test_documents_keep_their_clusters_beside_the_checks():
    labelled = Design(np.array([0.5, 0.6, 0.7]), cluster=np.array([0, 1, -1]), beta=0.5)
    both = expert_design(labelled.pi, np.full(3, 0.25), design=labelled)
    z = np.array([1.0, -2.0, 0.5])
    assert both.variance(np.concatenate([z, np.zeros(3)])) == pytest.approx(labelled.variance(z))
    y = np.array([0.0, 0.0, 2.0])
    assert both.variance(np.concatenate([z, y])) == pytest.approx(labelled.variance(z) + 0.75 * 4)
    nothing = Estimate(0.5, 0.0, 3, np.zeros(3))
    unchecked = np.full(3, np.nan)
    with pytest.raises(ValueError, match="3 rows"):
        expert_design(labelled.pi, np.full(3, 0.25), design=Design(np.array([0.5])))
    same = correct_by_expert_checks(
        nothing, labelled, np.ones(3), labelled.pi, np.ones(3), unchecked, np.ones(3)
    )
    assert (same.value, same.variance) == (0.5, 0.0)


PEOPLE = np.array([[0.0, 0.5], [0.25, 1.0], [0.5, 1.0]])
"""What each of two people, or one of them as often as the other, would say of three outputs"""
ASKED = np.array([1, 2, 1])


def ratings_of():
    """Yield chance and (3,) mean rating, over everybody who may be asked about three outputs."""
    ways = [list(itertools.product(range(2), repeat=c)) for c in ASKED]
    for picks in itertools.product(*ways):
        crowd = np.array([PEOPLE[z, list(pick)].mean() for z, pick in enumerate(picks)])
        yield 1 / np.prod([len(way) for way in ways]), crowd


@pytest.mark.parametrize(
    ("pi", "e"),
    [
        ([0.3, 0.6, 0.8], [0.2, 0.5, 0.9]),
        pytest.param([0.3, 0.6, 0.8], np.ones(3), marks=pytest.mark.soak),
        pytest.param(np.ones(3), [0.2, 0.5, 0.9], marks=pytest.mark.soak),
        (np.ones(3), np.ones(3)),
    ],
)
def test_of_single_ratings_the_expert_takes_out_also_what_people_differ_by(pi, e):
    """Whoever was asked, one person or two: the mean is what the expert would have said of all, and
    the variance needs no term for people.
    """
    p, pi, e = np.array([[0.2, 0.5], [0.3, 0.1], [0.5, 0.4]]), np.array(pi), np.array(e)
    expert, g = np.array([0.5, 0.3, 1.0]), np.array([0.4, 0.5, 0.8])
    total, target = p.T @ g, np.arange(3)
    mean, variance, second = np.zeros(2), np.zeros(2), np.zeros((2, 2))
    for likely, crowd in ratings_of():
        for state in itertools.product(range(3), repeat=3):
            s = np.array(state)
            chance = likely * np.prod(np.choose(s, [1 - pi, pi * (1 - e), pi * e]))
            rows, said = s >= 1, np.where(s == 2, expert, np.nan)
            found = ppi_estimate(
                p[rows],
                pi[rows],
                crowd[rows],
                g[rows],
                said[rows],
                e[rows],
                total,
                target=target[rows],
                n_targets=3,
            )
            mean += chance * found.value
            second += chance * np.outer(found.value, found.value)
            variance += chance * found.variance
    np.testing.assert_allclose(mean, p.T @ expert, atol=1e-12)
    np.testing.assert_allclose(variance, np.diag(second) - mean**2, atol=1e-12)
