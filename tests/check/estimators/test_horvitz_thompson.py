"""Difference, centred and Hájek estimates: by hand, by enumeration of all samples, and at the
edges.
"""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

from estimators.design import Design, estimate_difference
from estimators.horvitz_thompson import (
    anticipated_variance,
    anticipated_variances,
    centred_difference_estimate,
    difference_estimate,
    hajek_estimate,
    iid_inclusion_probabilities,
)
from estimators.sums import Support

METHODS = (difference_estimate, centred_difference_estimate)
guesses = st.floats(0.01, 0.99)


def subsets(n):
    return (np.array(bits, dtype=bool) for bits in itertools.product([False, True], repeat=n))


@st.composite
def universes(draw):
    """Up to six predictions of two systems on up to four targets, with labels, guesses and
    probabilities.
    """
    n = draw(st.integers(1, 6))
    target = np.array(draw(st.lists(st.integers(0, 3), min_size=n, max_size=n)))
    p = np.array(draw(st.lists(st.tuples(guesses, st.floats(0, 1)), min_size=n, max_size=n)))
    f = np.array(draw(st.lists(st.integers(0, 1), min_size=n, max_size=n)), dtype=float)
    g = np.array(draw(st.lists(guesses, min_size=n, max_size=n)))
    chance = np.array(draw(st.lists(st.floats(0.1, 1.0), min_size=4, max_size=4)))
    return p / np.maximum(p.sum(axis=0), 1e-9), f, g, chance, target


@given(universes())
@settings(deadline=None, max_examples=60)
def test_the_difference_estimate_and_its_variance_are_exactly_unbiased(universe):
    p, f, g, chance, target = universe
    mean, second, variance = np.zeros(2), np.zeros(2), np.zeros(2)
    for asked in subsets(4):
        probability = np.prod(np.where(asked, chance, 1 - chance))
        rows = asked[target]
        estimate = difference_estimate(
            p[rows], chance[target][rows], f[rows], g[rows], p.T @ g, target=target[rows]
        )
        mean += probability * estimate.value
        second += probability * estimate.value**2
        variance += probability * estimate.variance
    np.testing.assert_allclose(mean, p.T @ f, atol=1e-9)
    np.testing.assert_allclose(variance, second - mean**2, atol=1e-8)


@given(universes(), st.permutations([0, 1, 2, 3]))
@settings(deadline=None, max_examples=40)
def test_names_of_targets_and_order_of_systems_do_not_matter(universe, names):
    p, f, g, chance, target = universe
    renamed = np.array(names)[target]
    for method in METHODS:
        one = method(p, chance[target], f, g, p.T @ g, target=target)
        other = method(p[:, ::-1], chance[target], f, g, (p.T @ g)[::-1], target=renamed)
        np.testing.assert_allclose(one.value, other.value[::-1], atol=1e-12)
        np.testing.assert_allclose(one.variance, other.variance[::-1], atol=1e-12)


@given(universes())
@settings(deadline=None, max_examples=40)
def test_every_label_known_for_certain_gives_the_truth_without_variance(universe):
    p, f, g, _, target = universe
    everything = p, np.ones(len(f)), f, g, p.T @ g
    for estimate in (
        difference_estimate(*everything, target=target),
        centred_difference_estimate(*everything, total_p=p.sum(axis=0)),
    ):
        np.testing.assert_allclose(estimate.value, p.T @ f, atol=1e-9)
        np.testing.assert_allclose(estimate.variance, 0, atol=1e-12)


@given(universes(), st.floats(0.5, 0.99))
@settings(deadline=None, max_examples=40)
def test_the_interval_contains_the_point(universe, level):
    p, f, g, chance, target = universe
    for method in METHODS:
        estimate = method(p, chance[target], f, g, p.T @ g, target=target)
        low, high = estimate.confidence_interval(level, method="wilson")
        clipped = np.clip(estimate.value, 0, 1)
        assert np.all((low <= clipped) & (clipped <= high))


def test_terms_of_one_target_are_summed_before_they_are_squared():
    p, pi, f, g = np.full(2, 0.5), np.full(2, 0.5), np.array([1.0, 0.0]), np.full(2, 0.5)
    apart = difference_estimate(p, pi, f, g, 0.5)
    together = difference_estimate(p, pi, f, g, 0.5, target=np.array([0, 0]))
    assert apart.value == together.value == 0.5
    assert apart.variance == pytest.approx(2 * 0.5 * 0.5**2)
    assert together.variance == 0
    assert (apart.n, together.n) == (2, 1)
    assert together.influence.shape == (1,)


def test_the_anticipated_variance_comes_along_and_widens_the_interval():
    p, pi, f, g = np.full((4, 2), 0.25), np.full(4, 0.5), np.ones(4), np.full(4, 0.5)
    for method in METHODS:
        estimate = method(p, pi, f, g, 0.5, anticipated=[0.0, 0.2])
        assert estimate.anticipated.tolist() == [0, 0.2]
        low, high = estimate.confidence_interval(method="wilson")
        assert (high - low)[1] > (high - low)[0]


def test_hajek_is_centred_with_a_constant_guess():
    rng = np.random.default_rng(1)
    p, pi = rng.dirichlet(np.ones(20)), rng.uniform(0.1, 1, 20)
    f = rng.integers(0, 2, 20).astype(float)
    one, other = (
        hajek_estimate(p, pi, f),
        centred_difference_estimate(p, pi, f, np.full(20, 0.3), 0.3),
    )
    assert one.value == pytest.approx(other.value)
    assert one.variance == pytest.approx(other.variance)


def test_hajek_by_hand():
    estimate = hajek_estimate(np.array([0.2, 0.3]), np.array([0.5, 1.0]), np.array([1.0, 0.0]))
    assert estimate.value == pytest.approx(0.4 / 0.7)
    assert estimate.variance == pytest.approx(0.5 * (0.4 * (1 - 0.4 / 0.7)) ** 2)


def test_missing_labels_are_missing_and_never_wrong():
    p, pi, g = np.full(3, 0.25), np.full(3, 0.5), np.full(3, 0.4)
    with_missing = difference_estimate(p, pi, np.array([1.0, np.nan, 0.0]), g, 0.4)
    without = difference_estimate(p[:2], pi[:2], np.array([1.0, 0.0]), g[:2], 0.4)
    assert with_missing.value == pytest.approx(without.value)
    assert with_missing.variance == pytest.approx(without.variance)
    assert with_missing.n == 2
    assert with_missing.influence[1] == 0


def test_without_labels_the_model_speaks_and_the_interval_says_so():
    empty = np.array([])
    for method in METHODS:
        estimate = method(empty, empty, empty, empty, 0.7)
        assert (estimate.value, estimate.n) == (0.7, 0)
        assert estimate.confidence_interval(method="wilson") == (0, 1)
    nothing = hajek_estimate(empty, empty, empty)
    assert np.isnan(nothing.value)
    assert np.isnan(nothing.variance)


def test_a_system_whose_support_has_no_label_is_undefined_beside_one_that_has():
    estimate = hajek_estimate(
        np.array([[0.5, 0.0], [0.5, 0.0]]), np.array([0.5, 0.5]), np.array([1.0, 0.0])
    )
    assert estimate.value[0] == 0.5
    assert np.isnan(estimate.value[1])
    assert estimate.n.tolist() == [2, 0]


@pytest.mark.parametrize("truth", [0.0, 1.0])
def test_all_right_or_all_wrong_does_not_give_a_point(truth):
    low, high = hajek_estimate(
        np.full(50, 1 / 100), np.full(50, 0.5), np.full(50, truth)
    ).confidence_interval(method="wilson")
    assert 0.01 < high - low < 0.1
    assert truth in (low, high)


def test_labels_may_depend_on_the_system():
    p, f = np.full((2, 2), 0.5), np.array([[1.0, 0.0], [1.0, np.nan]])
    estimate = hajek_estimate(p, np.full(2, 0.5), f)
    assert estimate.value.tolist() == [1.0, 0.0]
    assert estimate.n.tolist() == [2, 1]


def test_identical_systems_agree_and_their_difference_is_certain():
    rng = np.random.default_rng(5)
    p = np.repeat(rng.dirichlet(np.ones(8))[:, None], 2, axis=1)
    pi, f, g = (
        rng.uniform(0.2, 0.9, 8),
        rng.integers(0, 2, 8).astype(float),
        rng.uniform(0.1, 0.9, 8),
    )
    one, twin = (centred_difference_estimate(p[:, i], pi, f, g, p[:, i] @ g) for i in (0, 1))
    assert estimate_difference(one, twin, Design(pi)).variance == 0


def test_nested_systems_share_variance():
    pi, f, g = np.full(4, 0.5), np.array([1.0, 0, 1, 0]), np.full(4, 0.5)
    p = np.array([[0.25, 0.5], [0.25, 0.5], [0.25, 0.0], [0.25, 0.0]])
    outer, inner = (difference_estimate(p[:, i], pi, f, g, 0.5) for i in (0, 1))
    apart = outer.variance + inner.variance
    assert estimate_difference(outer, inner, Design(pi)).variance < apart


@given(universes())
@settings(deadline=None, max_examples=40)
def test_the_anticipated_variance_is_the_expected_one_when_the_model_is_right(universe):
    p, _, g, chance, _ = universe
    pi = np.linspace(chance[0], 1.0, len(g))
    expected = np.zeros(2)
    for truth in itertools.product([0.0, 1.0], repeat=len(g)):
        f = np.array(truth)
        likely = np.prod(np.where(f == 1, g, 1 - g))
        expected += likely * np.sum((1 / pi - 1)[:, None] * (p * (f - g)[:, None]) ** 2, axis=0)
    np.testing.assert_allclose(
        anticipated_variance(p, pi, g, np.array([]), np.array([])), expected, atol=1e-9
    )


def test_what_can_never_be_asked_has_infinite_anticipated_variance():
    assert (
        anticipated_variance(
            np.array([1.0]), np.array([0.0]), np.array([0.5]), np.array([]), np.array([])
        )
        == np.inf
    )


def test_inclusion_by_draws_is_the_chance_of_any_draw():
    P = np.array([[0.5, 0.0], [0.25, 1.0], [0.25, 0.0]])
    np.testing.assert_allclose(
        iid_inclusion_probabilities(P, np.array([2, 0])), [0.75, 0.4375, 0.4375]
    )
    np.testing.assert_allclose(iid_inclusion_probabilities(P, np.array([0, 3])), [0, 1, 0])
    np.testing.assert_allclose(
        iid_inclusion_probabilities(P, np.array([1, 0]), target=np.array([1, 0, 1])),
        [0.75, 0.25, 0.75],
    )


@given(st.lists(st.floats(0, 1), min_size=1, max_size=5), st.integers(0, 30))
def test_more_draws_never_lower_the_chance(column, n):
    P = np.array(column)[:, None] / max(sum(column), 1)
    assert np.all(
        iid_inclusion_probabilities(P, np.array([n + 1]))
        >= iid_inclusion_probabilities(P, np.array([n]))
    )


def test_tiny_probabilities_keep_their_digits():
    assert iid_inclusion_probabilities(np.array([[1e-18]]), np.array([10]))[0] == pytest.approx(
        1e-17
    )


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"p": [-0.1, 0.5]}, r"-0\.1"),
        ({"pi": [0.0, 0.5]}, r"0\.0"),
        ({"label": [2.0, 1.0]}, r"2\.0"),
        ({"g": [1.5, 0.5]}, r"1\.5"),
        ({"p": [np.nan, 0.5]}, "nan"),
        ({"pi": [0.5]}, r"\(2,\)"),
        ({"label": [1.0, 0, 1]}, "label must have 2 rows"),
        ({"target": [0, 0], "pi": [0.5, 0.4]}, "one number a target"),
        ({"total_g": [0.1, 0.2, 0.3]}, "totals"),
    ],
)
def test_it_names_the_offending_value(change, message):
    arguments = {
        "p": [0.5, 0.5],
        "pi": [0.5, 0.5],
        "label": [1.0, 0.0],
        "g": [0.5, 0.5],
        "total_g": 0.5,
    } | change
    with pytest.raises(ValueError, match=message):
        difference_estimate(**{name: np.array(value) for name, value in arguments.items()})


@pytest.mark.statistical
@pytest.mark.parametrize("skill", [0.0, 0.8])
def test_the_centred_interval_covers_as_often_as_it_says(skill):
    rng = np.random.default_rng(11)
    N, repeats = 1500, 700
    p = rng.dirichlet(np.ones(N))
    f = (rng.random(N) < 0.7).astype(float)
    g = np.clip(0.5 + skill * (0.75 * f + 0.25 * rng.random(N) - 0.5), 0.05, 0.95)
    pi = np.minimum(1, 150 * np.sqrt(p) / np.sqrt(p).sum())
    truth, hits, values = p @ f, 0, []
    for _ in range(repeats):
        s = rng.random(N) < pi
        estimate = centred_difference_estimate(p[s], pi[s], f[s], g[s], p @ g)
        low, high = estimate.confidence_interval(0.8, method="wilson")
        hits += low <= truth <= high
        values.append(estimate.value)
    assert abs(np.mean(values) - truth) < 4 * np.std(values) / np.sqrt(repeats) + 0.002
    assert 0.75 < hits / repeats < 0.86


@pytest.mark.statistical
def test_a_model_that_promises_too_much_does_not_lift_the_interval():
    rng = np.random.default_rng(12)
    N, repeats = 2000, 500
    p, f = np.full(N, 1 / N), (rng.random(N) < 0.1).astype(float)
    hits = 0
    for _ in range(repeats):
        s = rng.random(N) < 0.1
        low, high = centred_difference_estimate(
            p[s], np.full(s.sum(), 0.1), f[s], np.full(s.sum(), 0.5), 0.5
        ).confidence_interval(0.8, method="wilson")
        hits += low <= f.mean() <= high
    assert 0.75 < hits / repeats < 0.87


@pytest.mark.parametrize("rho", [0.0, 0.3, 1.0])
def test_systems_given_one_by_one_have_the_anticipated_variance_of_their_table(rho):
    rng = np.random.default_rng(8)
    p = sparse.random_array((70, 3), density=0.5, rng=rng, format="csc")
    pi, g, target = rng.uniform(0.1, 1, 70), rng.uniform(size=70), rng.integers(0, 30, 70)
    labels = (rng.integers(0, 2, 9), rng.uniform(size=9))
    whole = anticipated_variance(p, pi, g, *labels, target=target, correlation=rho)
    spread = p.toarray() * np.sqrt(g * (1 - g) * (1 / pi - 1))[:, None]
    sums = np.stack([np.bincount(target, weights=one) for one in spread.T], axis=1)
    scale = anticipated_variance([1.0], [0.5], [0.5], *labels) / 0.25
    by_hand = scale * (rho * (sums**2).sum(axis=0) + (1 - rho) * (spread**2).sum(axis=0))
    np.testing.assert_allclose(whole, by_hand)
    spans = list(zip(p.indptr, p.indptr[1:], strict=False))
    own = [(Support.from_rows(p.indices[a:b], target), p.data[a:b]) for a, b in spans]
    alone = anticipated_variances(own, pi, g, *labels, correlation=rho)
    np.testing.assert_allclose(alone, by_hand)
