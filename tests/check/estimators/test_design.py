"""Variances and covariances from influences, against every sample that could have been drawn."""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from estimators.design import Design, estimate_difference, rescale_to_design, target_probabilities
from estimators.estimate import Estimate

reals = st.floats(-2, 2).map(lambda x: round(x, 3))


def subsets(n):
    return (np.array(bits, dtype=bool) for bits in itertools.product([False, True], repeat=n))


@st.composite
def small_universes(draw):
    n = draw(st.integers(1, 6))
    y = draw(st.lists(st.tuples(reals, reals), min_size=n, max_size=n))
    pi = draw(st.lists(st.floats(0.1, 1.0), min_size=n, max_size=n))
    return np.array(y), np.array(pi)


@given(small_universes())
@settings(deadline=None, max_examples=40)
def test_under_poisson_sampling_variances_and_covariances_are_exactly_unbiased(universe):
    y, pi = universe
    mean, second, estimated = np.zeros(2), np.zeros((2, 2)), np.zeros((2, 2))
    for taken in subsets(len(pi)):
        chance = np.prod(np.where(taken, pi, 1 - pi))
        z = y[taken] / pi[taken, None]
        total = z.sum(axis=0)
        mean += chance * total
        second += chance * np.outer(total, total)
        estimated += chance * Design(pi[taken]).covariance(z)
    np.testing.assert_allclose(mean, y.sum(axis=0), atol=1e-9)
    np.testing.assert_allclose(estimated, second - np.outer(mean, mean), atol=1e-8)


def test_documents_alone_give_the_textbook_variance_of_a_sampled_total():
    counts = np.array([3.0, 0.0, 5.0, 1.0])
    n, big_n = 4, 10
    z = counts * big_n / n
    design = Design(np.full(n, n / big_n), cluster=np.arange(n), beta=n / big_n)
    assert design.variance(z) == pytest.approx(big_n**2 * (1 - n / big_n) * counts.var(ddof=1) / n)


def test_two_stage_documents_that_were_certain_add_nothing():
    z = np.array([7.0, 2.0, 4.0])
    beta = np.array([1.0, 0.5, 0.5])
    certain = Design(beta, cluster=np.arange(3), beta=beta).variance(z)
    alone = Design(beta[1:], cluster=np.arange(2), beta=beta[1:]).variance(z[1:])
    assert certain == pytest.approx(alone)


def test_covariance_is_bilinear_and_agrees_with_variance():
    rng = np.random.default_rng(3)
    pi = rng.uniform(0.4, 1, 8)
    design = Design(pi, cluster=np.array([0, 0, 1, -1, -1, 2, 2, 1]), beta=0.3)
    a, b = rng.normal(size=(2, 8))
    both = np.column_stack([a, b])
    np.testing.assert_allclose(np.diag(design.covariance(both)), design.variance(both))
    assert design.covariance(a, b) == pytest.approx(design.covariance(both)[0, 1])
    expected = design.variance(a) + design.variance(b) - 2 * design.covariance(a, b)
    assert design.variance(a - b) == pytest.approx(expected)


@given(small_universes(), st.randoms(use_true_random=False))
@settings(deadline=None, max_examples=30)
def test_the_order_of_the_rows_does_not_matter(universe, random):
    z, pi = universe
    order = list(range(len(pi)))
    random.shuffle(order)
    np.testing.assert_allclose(
        Design(pi[order]).variance(z[order]), Design(pi).variance(z), rtol=1e-9, atol=1e-12
    )


def test_what_was_certain_has_no_variance():
    assert Design(np.ones(3)).variance(np.array([1.0, -2.0, 3.0])) == 0
    assert (
        Design(np.ones(2), cluster=np.array([0, 1]), beta=1.0).variance(np.array([1.0, 5.0])) == 0
    )


def test_no_row_has_no_variance_and_one_document_no_defined_one():
    assert Design(np.array([])).variance(np.array([])) == 0
    assert np.isnan(
        Design(np.array([0.5]), cluster=np.array([0]), beta=0.5).variance(np.array([1.0]))
    )


def test_a_document_without_any_row_counts_as_drawn():
    z, pi, code = np.array([2.0, 4.0]), np.array([0.5, 0.5]), np.array([0, 1])
    two = Design(pi, cluster=code, beta=0.5).variance(z)
    three = Design(pi, cluster=code, beta=0.5, n_clusters=3).variance(z)
    assert two == pytest.approx(0.5 * 2 * 2.0)
    assert three == pytest.approx(0.5 * 1.5 * 8.0)


def test_a_contrast_with_a_twin_is_certain():
    rows = np.array([[0.1], [0.3]])
    a = Estimate(np.array([0.4]), np.array([0.05]), np.array([2]), rows)
    same = estimate_difference(a, a, Design(np.array([0.5, 0.5])))
    assert same.value == 0
    assert same.variance == 0
    assert same.n == 2


def test_a_contrast_of_disjoint_systems_adds_variances():
    design = Design(np.array([0.5, 0.25]))
    a = Estimate(0.4, design.variance([0.2, 0.0]), 1, np.array([0.2, 0.0]))
    b = Estimate(0.3, design.variance([0.0, 0.4]), 1, np.array([0.0, 0.4]))
    assert estimate_difference(a, b, design).variance == pytest.approx(a.variance + b.variance)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"pi": [0.5, 0.0]}, r"0\.0"),
        ({"pi": [0.5, 1.2]}, r"1\.2"),
        ({"pi": [0.5], "cluster": [0]}, "go together"),
        ({"pi": [0.5], "cluster": [-2], "beta": 0.5}, "-2"),
        ({"pi": [0.5], "cluster": [3], "beta": 0.5, "n_clusters": 2}, "at least 4"),
        ({"pi": [0.5], "cluster": [0.5], "beta": 0.5}, "integer"),
    ],
)
def test_it_refuses_impossible_designs(arguments, message):
    with pytest.raises(ValueError, match=message):
        Design(**{name: np.array(v) if isinstance(v, list) else v for name, v in arguments.items()})


def test_it_refuses_influences_of_another_length():
    with pytest.raises(ValueError, match="2 rows"):
        Design(np.array([0.5, 0.5])).variance(np.zeros(3))


def test_a_target_has_one_probability_and_one_that_nobody_names_is_certain():
    pi = target_probabilities(np.array([0.5, 0.2, 0.5]), np.array([0, 3, 0]), n_targets=5)
    assert pi.tolist() == [0.5, 1.0, 1.0, 0.2, 1.0]
    assert Design(pi).variance(np.array([2.0, 9.0, 9.0, 0.0, 9.0])) == 2.0


def test_rows_of_one_target_cannot_disagree_about_its_probability():
    with pytest.raises(ValueError, match=r"target 1 has .*0\.4"):
        target_probabilities(np.array([0.4, 0.5]), np.array([1, 1]))
    with pytest.raises(ValueError, match=r"0\.0"):
        target_probabilities(np.array([0.0]), np.array([0]))


def test_an_influence_keeps_its_variance_on_a_common_design():
    rng = np.random.default_rng(0)
    own, common = rng.uniform(0, 0.5, 9), rng.uniform(0.5, 1, 9)
    z = rng.normal(size=(9, 2))
    np.testing.assert_allclose(
        Design(common).variance(rescale_to_design(z, own, common)),
        np.sum((1 - own)[:, None] * z**2, axis=0),
    )
    with pytest.raises(ValueError, match="as many rows"):
        rescale_to_design(z, own[:3], common)
