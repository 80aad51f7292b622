"""The floor of recall and F1 is the exact mean of the squared error, over all labels the model
believes in and all samples.
"""

import itertools

import numpy as np
import pytest
from scipy import sparse

from estimators.anticipated import (
    Belief,
    combine_variances,
    f1_weights,
    overconfidence_factor,
    variance_beyond_targets,
)
from estimators.design import Design
from estimators.estimate import Estimate
from estimators.horvitz_thompson import anticipated_variance, difference_estimate
from estimators.recall import add_anticipated_variance, estimate_recall, f1_of_recall

U = np.array([[0.3, 0.0], [0.1, 0.25], [0.0, 0.2]])
V = np.array([0.2, 0.1, 0.3])
SHARE = np.array([0.6, 0.4])
G, POOL_G = np.array([0.5, 0.3, 0.7]), np.array([0.6, 0.9, 0.7])


def belief(target, pi, correlation=0.0, g=G, pool_g=POOL_G, pool_weight=V, c=1.0):
    chance = np.asarray(pi, dtype=float)[np.asarray(target)]
    return Belief(
        chance,
        np.asarray(g),
        np.asarray(pool_g),
        np.asarray(pool_weight),
        np.asarray(target),
        correlation,
        c,
    )


def expected(target, pi):
    """Return the mean squared error over all (f, f°) with P(f° = 1) = g° and P(f = 1 | f° = 1) =
    g/g°, and samples.
    """
    total, n, t = np.zeros(2), len(target), len(pi)
    for whole in itertools.product((0, 1), repeat=n):
        for part in itertools.product(*((0, 1) if one else (0,) for one in whole)):
            ratio = G / POOL_G
            chance = np.prod(np.where(whole, POOL_G, 1 - POOL_G))
            chance *= np.prod(np.where(whole, np.where(part, ratio, 1 - ratio), 1.0))
            terms = (
                U * (np.array(part) - G)[:, None]
                - SHARE * (V * (np.array(whole) - POOL_G))[:, None]
            )
            for asked in itertools.product((0, 1), repeat=t):
                p_asked = np.prod(np.where(asked, pi, 1 - np.asarray(pi)))
                factor = (np.asarray(asked) / pi - 1)[np.asarray(target)]
                total += chance * p_asked * (terms * factor[:, None]).sum(axis=0) ** 2
    return total


@pytest.mark.parametrize("target, pi", [([0, 1, 2], [0.5, 0.2, 0.8]), ([0, 0, 1], [0.4, 0.25])])
def test_the_floor_is_the_exact_mean_of_the_squared_error(target, pi):
    found = belief(target, pi).variance(sparse.csr_array(U), SHARE)
    np.testing.assert_allclose(found, expected(target, np.asarray(pi)))


def test_for_what_a_system_predicts_alone_it_is_the_floor_of_precision():
    rng = np.random.default_rng(3)
    own, pi, g = (
        rng.random((6, 2)) * (rng.random((6, 2)) < 0.7),
        rng.uniform(0.2, 0.9, 3),
        rng.uniform(0.1, 0.9, 6),
    )
    target = np.array([0, 0, 1, 1, 1, 2])
    for rho in (0.0, 0.4, 1.0):
        one = belief(target, pi, rho, g, g, np.zeros(6), c=2.0).variance(
            sparse.csr_array(own), [0.0, 0.0]
        )
        other = 2 * anticipated_variance(
            own, pi[target], g, [1.0], [0.5], target=target, correlation=rho
        )
        np.testing.assert_allclose(one, other)


def test_errors_of_a_target_add_up_whatever_their_sign():
    """One predicts a, another b, of one pair: if a is right, b is wrong, and the recall of the
    first is off by both.
    """
    one = belief([0, 0], [0.5], 1.0, [0.5, 0.5], [0.5, 0.5], [1.0, 1.0]).variance(
        sparse.csr_array([[1.0], [0.0]]), [0.5]
    )
    assert one.tolist() == [0.25]  # (½ · ½ + ½ · ½)² · (1/½ − 1)


def test_what_can_never_be_asked():
    own = sparse.csr_array(np.array([[1.0, 0.0], [0.0, 1.0]]))
    found = belief([0, 1], [0.5, 0.0], 0.0, [0.5, 0.5], [0.5, 0.5], [1.0, 1.0]).variance(
        own, [0.5, 0.5]
    )
    assert found[0] == pytest.approx(
        0.25 * 0.25 + 0.25 * 0.25
    )  # of the other's claim the model's own error
    assert found[1] == np.inf


def test_a_lucky_sample_does_not_make_recall_certain():
    """All residuals vanish, nothing was missed: the realised variance is 0, the interval is not a
    point.
    """
    members, half = np.ones((4, 1)), np.full(4, 0.5)
    found = estimate_recall(members[:2], half[:2], [1, 1], np.ones(2), [3.0], 3.0, [0, 0], 2)
    assert found.recall.variance[0] == 0
    guesses = np.full(4, 0.75)
    floored = add_anticipated_variance(
        found, np.vstack([members[:3], [[0]]]), half, guesses, [1, 1], np.full(2, 0.98)
    ).recall
    # r = 1: of what the system predicts nothing is uncertain about recall but what only others
    # predict.
    assert floored.anticipated[0] == pytest.approx(0.75 * 0.25 / 9)
    low, high = floored.confidence_interval(0.8, method="wilson")
    assert low[0] < 0.95 and high[0] == 1


def test_documents_keep_their_whole_variance():
    """Where there is no document route, the variance of M is all documents': the floor must not
    leave half of it out.
    """
    members = np.array([[1.0], [1.0]])
    found = estimate_recall(
        members, np.full(2, 0.5), [1, 1], np.full(2, 0.5), [1.0], 1.0, [3, 0, 1], 30
    )
    alone = found.recall.influence[2:, 0]
    documents = 0.9 * 3 / 2 * np.sum((alone - alone.mean()) ** 2)
    assert variance_beyond_targets(found.recall.influence, found.design, 2)[0] == pytest.approx(
        documents
    )
    floored = add_anticipated_variance(
        found, members, [0.5, 0.5], [0.5, 0.5], [1, 0], [0.5, 0.5]
    ).recall
    assert floored.anticipated[0] > documents


def test_the_floor_of_f1_is_that_of_its_own_influence():
    """If every label is as surprising as the model expects, realised and anticipated agree in the
    mean.
    """
    rng = np.random.default_rng(8)
    n, pi, g = 400, np.full(400, 0.5), np.full(400, 0.5)
    members = (rng.random((n, 2)) < [0.5, 0.8]).astype(float)
    members[members.sum(axis=1) == 0] = 1
    p = members / members.sum(axis=0)
    ratios = []
    for _ in range(60):
        f, rows = (rng.random(n) < g).astype(float), np.flatnonzero(rng.random(n) < pi)
        precision = difference_estimate(p[rows], pi[rows], f[rows], g[rows], p.T @ g)
        found = estimate_recall(
            members[rows], pi[rows], f[rows], g[rows], members.T @ g, g.sum(), [0, 0, 0], 3
        )
        both = f1_of_recall(precision, found.recall, found.design)
        by_p, by_r = f1_weights(precision, found.recall)
        truth = found.totals.pool.value + found.unseen.value
        own = sparse.csr_array(p * by_p + members * by_r / truth)
        floor = belief(np.arange(n), pi, 0.0, g, g, np.ones(n)).variance(
            own, by_r * found.recall.value / truth
        )
        ratios.append(both.variance / floor)
    np.testing.assert_allclose(np.mean(ratios, axis=0), 1, atol=0.03)


def test_beyond_targets_is_nothing_without_documents():
    design = Design(np.array([0.5, 0.25]))
    assert variance_beyond_targets(np.array([[1.0], [2.0]]), design, 2).tolist() == [0.0]


def test_the_weights_of_f1_where_both_are_zero():
    zero = Estimate(np.zeros(1), np.zeros(1), 1, np.zeros((1, 1)))
    assert [one.tolist() for one in f1_weights(zero, zero)] == [[0.5], [0.5]]


def test_a_model_that_is_too_sure_is_scaled_up():
    assert overconfidence_factor([1, 0, np.nan], [0.1, 0.9, 0.5]) == pytest.approx(0.81 / 0.09)
    assert overconfidence_factor([1, 1], [0.9, 0.9]) == 1.0
    assert overconfidence_factor([[1, 0], [0, 1]], [[0.2], [0.8]]) == pytest.approx(
        (0.64 + 0.04 + 0.64 + 0.04) / 0.64
    )


@pytest.mark.statistical
def test_where_few_targets_weigh_most_the_combined_variance_is_nearer_than_the_larger_of_the_two():
    rng = np.random.default_rng(8)
    n, repeats = 300, 400
    pi = np.clip(rng.beta(0.5, 1.5, n), 0.02, 1.0)
    error = rng.normal(0, 0.4, n)
    exact = float(((1 / pi - 1) * error**2).sum())
    expected = 1.1 * exact
    combined, larger = [], []
    for _ in range(repeats):
        drawn = rng.random(n) < pi
        z = (error / pi)[drawn, None]
        realised = float(((1 - pi[drawn]) * z[:, 0] ** 2).sum())
        combined.append(combine_variances([expected], z, pi[drawn])[0] / exact)
        larger.append(max(expected, realised) / exact)
    assert abs(np.mean(combined) - 1) < 0.1 < np.mean(larger) - 1
    assert np.std(combined) < 0.5 * np.std(larger)


def test_an_infinite_expectation_stays():
    assert combine_variances([np.inf, 1.0], np.zeros((2, 2)), [0.5, 0.5]).tolist() == [np.inf, 1.0]
