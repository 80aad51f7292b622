"""Pairwise preferences: rates and strengths by hand, against a library and a plain optimiser,
with coverage.
"""

import itertools

import choix
import numpy as np
import pytest
from scipy.optimize import minimize

from estimators.preferences import Preferences, bradley_terry, win_rates

TRUE = np.array([0.8, 0.2, -0.3, -0.7])


def drawn(rng, n, nu=0.0, theta=TRUE, per_input=1, shared=0.0):
    """Return judgments of random pairs under Davidson's model, and their inputs."""
    m = theta.size
    pairs = np.array(list(itertools.permutations(range(m), 2)))[rng.integers(0, m * (m - 1), n)]
    inputs = np.arange(n) // per_input
    moods = rng.normal(0, shared, (n // per_input + 1, m))[inputs] if shared else np.zeros((n, m))
    rows = np.arange(n)
    half = (theta[pairs[:, 0]] + moods[rows, pairs[:, 0]]) / 2
    half -= (theta[pairs[:, 1]] + moods[rows, pairs[:, 1]]) / 2
    weight = np.column_stack([np.exp(half), np.full(n, nu), np.exp(-half)])
    edges = np.cumsum(weight / weight.sum(axis=1, keepdims=True), axis=1)
    kind = (rng.random(n)[:, None] > edges).sum(axis=1)
    return pairs[:, 0], pairs[:, 1], np.array([1.0, 0.5, 0.0])[kind], inputs


def test_win_rates_count_every_opponent_alike_and_ties_half():
    left, right = [0, 0, 0, 1, 2], [1, 1, 2, 2, 0]
    rates = win_rates(left, right, [1, 0.5, 0, 1, 0.5])
    assert isinstance(rates, Preferences)
    first_pair, second_pair = 0.75, (0 + 0.5) / 2
    expected = [
        (first_pair + second_pair) / 2,
        (1 - first_pair + 1) / 2,
        (1 - second_pair + 0) / 2,
    ]
    np.testing.assert_allclose(rates.value, expected)
    assert rates.tie == pytest.approx(0.4)
    assert rates.n.tolist() == [4, 3, 3]


@pytest.mark.parametrize("c", [1, 2])
def test_rates_are_exactly_unbiased_over_all_that_people_may_say(c):
    pairs = np.array([[0, 1], [0, 2], [1, 2]])
    left, right = np.repeat(pairs, c, axis=0).T
    chances = np.repeat([[0.2, 0.3, 0.5], [0.6, 0.3, 0.1], [0.4, 0.0, 0.6]], c, axis=0)
    expected = chances[::c] @ [0.0, 0.5, 1.0]  # of each pair, for the one on the left
    truth = [(expected[0] + expected[1]) / 2, (1 - expected[0] + expected[2]) / 2]
    mean, second, told = np.zeros(3), np.zeros((3, 3)), np.zeros((3, 3))
    for said in itertools.product(range(3), repeat=left.size):
        chance = float(np.prod(chances[np.arange(left.size), said]))
        if chance:
            rates = win_rates(left, right, np.array(said) / 2)
            mean += chance * rates.value
            second += chance * np.outer(rates.value, rates.value)
            told += chance * rates.covariance
    np.testing.assert_allclose(mean, [*truth, 1.5 - sum(truth)], atol=1e-12)
    # Each pair's own mean is taken out of its c judgments, and all 3c are the clusters: of pairs
    # that were judged once or twice the variance is too small.
    exact = second - np.outer(mean, mean)
    np.testing.assert_allclose(told, exact * (1 - 1 / c) * 3 * c / (3 * c - 1), atol=1e-12)


def test_rates_do_not_depend_on_which_side_a_system_was_shown():
    rng = np.random.default_rng(0)
    left, right, outcome, inputs = drawn(rng, 60, nu=0.5)
    for function in (win_rates, bradley_terry):
        one = function(left, right, outcome, cluster=inputs)
        other = function(right, left, 1 - outcome, cluster=inputs)
        np.testing.assert_allclose(one.value, other.value, atol=1e-9)
        np.testing.assert_allclose(one.covariance, other.covariance, atol=1e-9)


def test_without_ties_strengths_are_those_of_a_library():
    rng = np.random.default_rng(1)
    left, right, outcome, _ = drawn(rng, 300)
    wins = [(a, b) if won == 1 else (b, a) for a, b, won in zip(left, right, outcome, strict=True)]
    expected = choix.opt_pairwise(4, wins)
    ours = bradley_terry(left, right, outcome)
    np.testing.assert_allclose(ours.value, expected - expected.mean(), atol=1e-5)
    assert ours.tie == 0
    penalised = choix.opt_pairwise(4, wins, alpha=0.5)
    np.testing.assert_allclose(
        bradley_terry(left, right, outcome, penalty=1.0).value,
        penalised - penalised.mean(),
        atol=1e-4,
    )


def test_with_ties_strengths_are_those_of_a_plain_optimiser():
    rng = np.random.default_rng(2)
    left, right, outcome, _ = drawn(rng, 400, nu=0.8)

    def loss(x):
        theta = np.append(x[:3], -x[:3].sum())
        half = (theta[left] - theta[right]) / 2
        weight = np.column_stack([np.exp(half), np.full(half.size, np.exp(x[3])), np.exp(-half)])
        chance = weight / weight.sum(axis=1, keepdims=True)
        return -np.log(chance[np.arange(half.size), (2 - 2 * outcome).astype(int)]).sum()

    best = minimize(loss, np.zeros(4), method="BFGS", options={"gtol": 1e-8}).x
    ours = bradley_terry(left, right, outcome)
    np.testing.assert_allclose(ours.value[:3], best[:3], atol=1e-5)
    assert ours.tie == pytest.approx(np.exp(best[3]), rel=1e-5)
    assert ours.value.sum() == pytest.approx(0, abs=1e-9)


@pytest.mark.statistical
@pytest.mark.parametrize("shared", [0.0, 1.5])
@pytest.mark.soak
def test_intervals_hold_also_where_judgments_of_one_input_go_together(shared):
    rng = np.random.default_rng(3)
    inputs_of_truth = drawn(rng, 200_000, nu=0.6, per_input=8, shared=shared)
    truth_rates = win_rates(*inputs_of_truth[:3]).value
    truth = bradley_terry(*inputs_of_truth[:3]).value
    held, repeats = np.zeros((3, 4)), 250
    for _ in range(repeats):
        left, right, outcome, inputs = drawn(rng, 480, nu=0.6, per_input=8, shared=shared)
        rates = win_rates(left, right, outcome, cluster=inputs)
        strengths = bradley_terry(left, right, outcome, cluster=inputs)
        single = bradley_terry(left, right, outcome)
        for place, (estimate, exact) in enumerate(
            ((rates, truth_rates), (strengths, truth), (single, truth))
        ):
            low, high = estimate.confidence_interval(0.8)
            held[place] += (low <= exact) & (exact <= high)
    covered = held.mean(axis=1) / repeats
    assert np.all(np.abs(covered[:2] - 0.8) < 0.045), covered
    if shared:
        assert covered[2] < 0.76  # taken for independent they do not


@pytest.mark.parametrize("inputs", [2, 20])
def test_inputs_that_agree_by_luck_make_no_strength_surer_than_its_judgments(inputs):
    """Of each input two of three people said the same: the interval had no width."""
    n = 3 * inputs
    left, right, outcome = [0] * n, [1] * n, [1.0, 1.0, 0.0] * inputs
    alike = bradley_terry(left, right, outcome, cluster=np.repeat(np.arange(inputs), 3))
    # The difference is log(2), its variance 1/(n p (1 − p)) by Fisher's information.
    contrast = np.array([1.0, -1.0])
    assert alike.value @ contrast == pytest.approx(np.log(2))
    assert contrast @ alike.covariance @ contrast == pytest.approx(1 / (n * 2 / 9))


def test_inputs_count_with_their_own_number_of_degrees():
    """Where inputs differ more than judgments would, it is the sum over them, times k/(k − 1)."""
    left, right = [0] * 6, [1] * 6
    outcome, cluster = [1.0, 1.0, 1.0, 0.0, 0.0, 1.0], [0, 0, 0, 1, 1, 2]
    found = bradley_terry(left, right, outcome, cluster=cluster)
    p = 4 / 6
    score = np.array([3 * (1 - p), -2 * p, 1 - p])
    contrast = np.array([1.0, -1.0])
    expected = (score @ score) * 3 / 2 / (6 * p * (1 - p)) ** 2
    assert contrast @ found.covariance @ contrast == pytest.approx(expected)


def test_ranks_come_from_all_pairs_at_once():
    rng = np.random.default_rng(4)
    left, right, outcome, inputs = drawn(rng, 3000, nu=0.3)
    comparison, ranks = bradley_terry(left, right, outcome, cluster=inputs).compare(
        rng=rng, confidence_level=0.95
    )
    assert comparison.different[0, 3]
    assert ranks.best[0] == 1 and ranks.worst[3] == 4
    few = bradley_terry(left[:30], right[:30], outcome[:30], penalty=0.1)
    _, wide = few.compare(rng=rng, confidence_level=0.95)
    assert wide.best.min() == 1 and wide.worst.max() == 4


def test_a_system_that_always_wins_has_no_strength_without_a_penalty():
    left, right, outcome = [0, 0, 1, 2], [1, 2, 2, 1], [1, 1, 1, 1]
    with pytest.raises(ValueError, match=r"system\(s\) 0"):
        bradley_terry(left, right, outcome)
    shrunk = bradley_terry(left, right, outcome, penalty=0.1)
    assert shrunk.value[0] == shrunk.value.max() and np.isfinite(shrunk.covariance).all()
    rates = win_rates(left, right, outcome)
    low, high = rates.confidence_interval(0.8)
    assert rates.value[0] == 1 and high[0] == 1 and 0 < low[0] < 0.9
    # One tie joins it to the others.
    assert np.isfinite(bradley_terry([*left, 0], [*right, 1], [*outcome, 0.5]).value).all()


@pytest.mark.parametrize("outcome", [[1, 1, 0.5, 1], [0.5, 0.5, 0.5, 0.5]])
def test_without_a_loss_or_with_ties_alone_strengths_have_no_end(outcome):
    with pytest.raises(ValueError, match="do not exist"):
        bradley_terry([0, 0, 0, 0], [1, 1, 1, 1], outcome)


def test_who_was_never_judged_has_no_rate_and_one_cluster_no_interval():
    rates = win_rates([0], [1], [1.0], n_systems=3)
    assert np.isnan(rates.value[2])
    assert np.isnan(rates.covariance).all()
    low, high = rates.confidence_interval(0.8)
    assert np.isnan(low[2]) and high[0] == 1
    missing = win_rates([0, 0, 1], [1, 1, 0], [1.0, np.nan, 0.0])
    assert missing.n.tolist() == [2, 2] and missing.n_clusters == 2


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (([0], [1], [0.7]), r"0\.7"),
        (([0], [0], [1.0]), "system 0 twice"),
        (([0, 1], [1], [1.0, 0.0]), "left|right"),
        (([-1], [1], [1.0]), "-1"),
    ],
)
def test_it_names_what_it_cannot_use(arguments, message):
    for function in (win_rates, bradley_terry):
        with pytest.raises(ValueError, match=message):
            function(*arguments)
    with pytest.raises(ValueError, match="n_systems"):
        win_rates([0], [3], [1.0], n_systems=2)
    with pytest.raises(ValueError, match="penalty"):
        bradley_terry([0, 1], [1, 0], [1.0, 1.0], penalty=-1)
