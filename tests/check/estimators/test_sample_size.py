"""Tests of estimators.sample_size: known sizes, the planned variance by hand, and a search that
looks everywhere.
"""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from estimators import distributions, joint, sample_size
from tests.check.estimators.universe import universes

NAN = float("nan")
NOBODY = {"P": np.zeros((0, 1)), "system": np.zeros(0, dtype=int), "label": [], "overlap": [[0.25]]}
COPIES = {
    "P_new_support": [[0.5, 0.5], [0.5, 0.5]],
    "P": np.full((4, 2), 0.5),
    "system": [0] * 4,
    "label": [1, 1, 1, 0],
    "overlap": np.full((2, 2), 0.5),
}


def test_the_sizes_that_the_literature_knows():
    assert sample_size.labels_for_half_width(0.03, 0.8) == 456
    assert sample_size.half_width_of_proportion(500, 0.8) == pytest.approx(0.0287, abs=5e-5)
    assert sample_size.labels_for_half_width(0.03, 0.8, p=0) == 1


@given(st.floats(0.001, 0.4), st.floats(0.5, 0.99), st.floats(0.05, 0.95))
def test_the_size_for_a_half_width_is_the_smallest_that_reaches_it(width, level, p):
    n = sample_size.labels_for_half_width(width, level, p, tolerance=0)
    assert sample_size.half_width_of_proportion(n, level, p) <= width * (1 + 1e-12)
    assert n == 1 or sample_size.half_width_of_proportion(n - 1, level, p) > width * (1 - 1e-12)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((0, 0.8), "got 0"),
        ((-0.1, 0.8), r"-0\.1"),
        ((0.03, 80), "got 80"),
        ((0.03, 0.8, 1.5), r"1\.5"),
    ],
)
def test_impossible_half_widths_are_named(arguments, message):
    with pytest.raises(ValueError, match=message):
        sample_size.labels_for_half_width(*arguments)
    with pytest.raises(ValueError, match="got 0"):
        sample_size.half_width_of_proportion(0, 0.8)
    with pytest.raises(ValueError, match="tolerance"):
        sample_size.labels_for_half_width(0.03, 0.8, tolerance=-1)


def test_a_system_alone_needs_one_over_the_target_under_the_published_bound():
    support = np.full((4, 1), 0.25)
    find = sample_size.required_samples
    assert find(support, **NOBODY, target_variance=0.01, bounds=(0, 500)) == 100
    assert (
        find(support, **NOBODY, target_variance=0.01, bounds=(0, 500), own_term="largest_variance")
        == 25
    )
    assert find(support, **NOBODY, target_variance=0.01, bounds=(0, 60)) == 60
    assert find(support, **NOBODY, target_variance=0.01, bounds=(200, 300)) == 200


def test_a_copy_of_a_labelled_system_may_need_no_draw():
    # Four labels, three right: the variance is 3/16/4, and 4 more draws halve the old part and add
    # (1/2)²/4.
    planned = sample_size.planned_variance([0, 4], **COPIES)
    assert planned == pytest.approx([3 / 64, 3 / 256 + 1 / 16])
    assert sample_size.required_samples(**COPIES, target_variance=0.05, bounds=(0, 500)) == 0


def test_the_search_finds_a_size_that_a_bisection_would_miss():
    # At 0 draws the target is met; a few draws of unknown quality make it worse, many make it good
    # again.
    planned = sample_size.planned_variance(np.arange(200), **COPIES)
    assert planned[0] < planned[4] > planned[100]
    assert sample_size.required_samples(**COPIES, target_variance=planned[0], bounds=(0, 199)) == 0
    low = int(np.flatnonzero(planned[1:] <= planned[0])[0]) + 1
    assert (
        sample_size.required_samples(**COPIES, target_variance=planned[0], bounds=(1, 199)) == low
    )


def test_what_nobody_drew_from_must_be_drawn_from():
    reach = {**COPIES, "P_new_support": [[0.5, 0.5], [0.0, 0.5]], "P": [[0.5, 0.5]] * 4}
    assert np.isinf(sample_size.planned_variance([0], **reach))
    unlabelled = {**COPIES, "label": [NAN] * 4}
    assert sample_size.planned_variance([0, 5], **unlabelled) == pytest.approx([np.inf, 1 / 5])


def test_duplicate_draws_and_missing_labels_change_nothing_that_they_should_not():
    more = {**COPIES, "P": np.full((6, 2), 0.5), "system": [0] * 6, "label": [1, NAN, 1, 1, NAN, 0]}
    sizes = [0, 1, 7, 50]
    assert sample_size.planned_variance(sizes, **more) == pytest.approx(
        sample_size.planned_variance(sizes, **COPIES)
    )


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"target_variance": 0}, "got 0"),
        ({"bounds": (5, 2)}, r"got \(5, 2\)"),
        ({"bounds": (-1, 2)}, r"got \(-1, 2\)"),
        ({"system": [0, 0, 0, 1]}, "less than 1"),
        ({"P_new_support": [[0.5, 0.5], [0.5, 0.25]]}, r"sum to 1; got 0\.75"),
        ({"P_new_support": [[0.5], [0.5]]}, r"shape \(N, 2\)"),
        ({"own_term": "none"}, "got 'none'"),
        ({"label": [[1, 1]] * 4}, "one dimension"),
    ],
)
def test_bad_plans_are_named(change, message):
    with pytest.raises(ValueError, match=message):
        sample_size.required_samples(
            **{**COPIES, "target_variance": 0.05, "bounds": (0, 9), **change}
        )
    with pytest.raises(ValueError, match="whole numbers"):
        sample_size.planned_variance([-1], **COPIES)


@settings(max_examples=40, deadline=None)
@given(universe=universes(4, 3), seed=st.integers(0, 999), size=st.integers(1, 30))
def test_the_plan_is_theorem_2_with_a_bound_for_the_new_draws(universe, seed, size):
    P, truth = universe
    rng = np.random.default_rng(seed)
    system = np.repeat([0, 1], [4, 3])
    rows = np.array([rng.choice(4, p=P[:, j]) for j in system])
    overlap = distributions.pairwise_overlap(P)
    weight = joint.mixture_weights(overlap, [4, 3, size])[2]
    q = P @ weight
    expected = 0.0
    for j, n in ((0, 4), (1, 3)):
        drawn = rows[system == j]
        h = np.where(
            P[drawn, 2] > 0, P[drawn, 2] * truth[drawn] / np.where(q[drawn] > 0, q[drawn], 1), 0
        )
        expected += weight[j] ** 2 / n * h.var()
    own = P[:, 2] > 0
    expected += weight[2] ** 2 / size * (P[own, 2] * (P[own, 2] / q[own]) ** 2).sum()
    arguments = (P, P[rows], system, truth[rows], overlap)
    assert sample_size.planned_variance([size], *arguments) == pytest.approx([expected])
    sharp = sample_size.planned_variance([size], *arguments, own_term="largest_variance")
    assert sharp <= expected + 1e-12


@settings(max_examples=40, deadline=None)
@given(universe=universes(5, 2), size=st.integers(1, 20))
def test_the_sharp_bound_is_the_largest_variance_over_all_truths(universe, size):
    P, _ = universe
    overlap = distributions.pairwise_overlap(P)
    row = np.flatnonzero(P[:, 0])[:1]
    arguments = (P, P[row], [0], [0], overlap)
    weight = joint.mixture_weights(overlap, [1, size])[1]
    h = P[:, 1] / np.where(P[:, 1] > 0, P @ weight, 1)
    truths = (np.arange(2**5)[:, None] >> np.arange(5)) & 1
    variances = (truths * h**2) @ P[:, 1] - ((truths * h) @ P[:, 1]) ** 2
    sharp = sample_size.planned_variance([size], *arguments, own_term="largest_variance")[0]
    assert sharp >= weight[1] ** 2 / size * variances.max() - 1e-12


@settings(max_examples=40, deadline=None)
@given(
    universe=universes(4, 3),
    seed=st.integers(0, 999),
    target=st.floats(0.001, 0.3),
    low=st.integers(0, 70),
    own_term=st.sampled_from(sample_size.OWN_TERMS),
)
def test_the_size_required_is_the_first_that_will_do(universe, seed, target, low, own_term):
    P, truth = universe
    rng = np.random.default_rng(seed)
    system = np.repeat([0, 1], [6, 2])
    rows = np.array([rng.choice(4, p=P[:, j]) for j in system])
    arguments = (P, P[rows], system, truth[rows], distributions.pairwise_overlap(P))
    planned = sample_size.planned_variance(np.arange(low, 301), *arguments, own_term=own_term)
    enough = np.flatnonzero(planned <= target * (1 + sample_size.TARGET_TOLERANCE))
    expected = low + enough[0] if enough.size else 300
    found = sample_size.required_samples(
        *arguments, target_variance=target, bounds=(low, 300), own_term=own_term
    )
    assert found == expected
