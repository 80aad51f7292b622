"""The noise of those who rate, and judges who rate many outputs: exact over all that may happen."""

import itertools

import numpy as np
import pytest

from estimators.design import Design, estimate_difference
from estimators.estimate import Estimate
from estimators.horvitz_thompson import centred_difference_estimate, difference_estimate
from estimators.ratings import (
    Crossed,
    JudgeEffect,
    add_judge_effect,
    anticipated_rating_variance,
    estimate_with_rating_noise,
    expected_rating_error,
    judge_effect,
    judgment_variance,
    rating_design,
    rating_variance_of_outputs,
    verdict_variance,
)

# Three outputs, two systems; what two people say of each, a model's guess, chances to be asked.
RATINGS = np.array([[0.0, 0.5], [0.25, 1.0], [0.75, 1.0]])
F = RATINGS.mean(axis=1)
SPREAD = RATINGS.var(axis=1)
P = np.array([[0.5, 0.0], [0.5, 0.4], [0.0, 0.6]])
G = np.array([0.3, 0.4, 0.9])


def outcomes(pi, c):
    """Yield chance, who was asked (3,), and the judgments (3, c), over all that may happen."""
    picks = list(itertools.product(range(2), repeat=c))
    for asked in itertools.product([False, True], repeat=3):
        taken = np.array(asked)
        chance = float(np.prod(np.where(taken, pi, 1 - pi)))
        if chance == 0:
            continue
        rated = np.flatnonzero(taken)
        for answers in itertools.product(picks, repeat=rated.size):
            judgments = np.full((3, c), np.nan)
            for row, pick in zip(rated, answers, strict=True):
                judgments[row] = RATINGS[row, list(pick)]
            yield chance / len(picks) ** rated.size, taken, judgments


@pytest.mark.parametrize("opposed", [False, True])
@pytest.mark.parametrize("pi", [(0.3, 0.6, 0.9), (1.0, 0.5, 1.0), (1.0, 1.0, 1.0)])
@pytest.mark.parametrize("c", [1, 2])
def test_the_mean_and_its_variance_and_covariance_are_exactly_unbiased(pi, c, opposed):
    """Also where a rating of the second output is one of the first system, and its contrary for the
    second system: they were compared there.
    """
    chances = np.array(pi)
    sign = np.ones((3, 2))
    if opposed:
        sign[1, 1] = -1.0
    f = np.where(sign > 0, F[:, None], 1 - F[:, None])
    g = np.where(sign > 0, G[:, None], 1 - G[:, None])
    mean, second = np.zeros(2), np.zeros((2, 2))
    variance, covariance, difference_variance = np.zeros(2), np.zeros((2, 2)), 0.0
    for chance, taken, judgments in outcomes(chances, c):
        rows = np.flatnonzero(taken)
        ratings = judgments[rows]
        # One judgment: the spread is known. Two: it is told by the two themselves.
        spread = SPREAD[rows] if c == 1 else ratings.var(axis=1, ddof=1)
        sample = P[rows], chances[rows]
        said = ratings.mean(axis=1)[:, None]
        said = np.where(sign[rows] > 0, said, 1 - said)
        alone = difference_estimate(
            *sample, said, g[rows], (P * g).sum(axis=0), target=rows, n_targets=3
        )
        estimate = estimate_with_rating_noise(
            alone, *sample, np.full(rows.size, c), spread, sign=sign[rows], target=rows
        )
        design = rating_design(chances[rows], target=rows, n_targets=3)
        mean += chance * estimate.value
        second += chance * np.outer(estimate.value, estimate.value)
        variance += chance * estimate.variance
        covariance += chance * design.covariance(estimate.influence)
        first, other = (
            Estimate(estimate.value[i], 0.0, 1, estimate.influence[:, i]) for i in (0, 1)
        )
        difference_variance += chance * estimate_difference(first, other, design).variance
    exact = second - np.outer(mean, mean)
    np.testing.assert_allclose(mean, (P * f).sum(axis=0), atol=1e-12)
    np.testing.assert_allclose(variance, np.diag(exact), atol=1e-12)
    np.testing.assert_allclose(covariance, exact, atol=1e-12)
    assert difference_variance == pytest.approx(
        exact[0, 0] + exact[1, 1] - 2 * exact[0, 1], abs=1e-12
    )


def test_where_everything_was_judged_only_people_are_left_in_the_variance():
    quarter = np.full(4, 0.25)
    label = np.array([1.0, 0.5, 0.25, 1.0])
    alone = centred_difference_estimate(quarter, np.ones(4), label, np.full(4, 0.5), 0.5)
    assert alone.variance == 0
    noisy = estimate_with_rating_noise(alone, quarter, np.ones(4), np.array([1, 1, 2, 2]), 0.2)
    assert noisy.variance == pytest.approx(0.2 / 16 * (1 + 1 + 0.5 + 0.5))
    assert noisy.value == alone.value
    assert noisy.degrees_of_freedom == 3


def test_an_output_of_two_systems_and_two_rows_of_one_are_one_judgment():
    p, pi = np.array([0.25, 0.25, 0.5]), np.full(3, 0.5)
    target = np.array([0, 0, 1])
    alone = difference_estimate(p, pi, np.full(3, 0.5), np.full(3, 0.5), 0.5, target=target)
    noisy = estimate_with_rating_noise(alone, p, pi, np.ones(3), 0.1, target=target)
    assert noisy.variance == pytest.approx(0.1 * (0.5**2 + 0.5**2) / 0.5)
    assert noisy.influence.shape == (4,)


def test_without_judgments_nothing_is_added():
    half = np.full(2, 0.5)
    alone = difference_estimate(half, half, np.array([1.0, np.nan]), half, 0.5)
    noisy = estimate_with_rating_noise(alone, half, half, np.array([1, 0]), 0.1)
    assert noisy.variance == pytest.approx(alone.variance + 0.1 * 0.25 / 0.5)


def test_the_design_keeps_the_documents_of_the_first_rows():
    design = Design(np.array([0.75, 0.5]), cluster=[0, -1], beta=0.5, n_clusters=2)
    both = rating_design([0.75, 0.5], design=design)
    influence = np.array([0.2, -0.1])
    assert both.variance(np.concatenate([influence, np.zeros(2)])) == pytest.approx(
        design.variance(influence)
    )


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("count", [1.0], r"\(2,\)"),
        ("sigma_a2", -0.5, r"-0\.5"),
        ("sigma_a2", [0.1, 0.1, 0.1], "sigma_a2"),
        ("pi", [0.0, 1.0], r"0\.0"),
        ("sign", [0.5, 1.0], "sign"),
        ("design", Design(np.ones(3)), "2 rows"),
    ],
)
def test_noise_names_the_offending_value(name, value, message):
    half = np.full(2, 0.5)
    alone = difference_estimate(half, half, half, half, 0.5)
    arguments = {"p": half, "pi": half, "count": np.ones(2), "sigma_a2": 0.1} | {name: value}
    with pytest.raises(ValueError, match=message):
        estimate_with_rating_noise(alone, **arguments)


LEVELS = (-0.1, 0.1)


@pytest.mark.parametrize(
    "pattern",
    [
        [(0, 0), (1, 0), (2, 1), (3, 1)],  # one judgment an output
        [(0, 0), (1, 0), (1, 1), (2, 1)],  # one output has two
        [(0, 0), (1, 0), (2, 0), (2, 1), (3, 2)],
    ],
)
def test_what_judges_differ_by_is_exactly_unbiased_over_all_ways_to_hand_out(pattern):
    item, judge = np.array(pattern).T
    f = np.array([0.3, -0.2, 0.5, 0.1])
    n_judges = judge.max() + 1
    values = []
    for order in itertools.permutations(range(4)):
        for levels in itertools.product(LEVELS, repeat=int(n_judges)):
            outputs = np.array(order)[item]
            residual = f[outputs] + np.array(levels)[judge]
            values.append(judge_effect(residual, judge, outputs).sigma_j2)
    assert np.mean(values) == pytest.approx(0.01, abs=1e-12)


@pytest.mark.parametrize("pi", [(0.4, 0.7, 1.0), (1.0, 1.0, 1.0)])
@pytest.mark.parametrize(
    "pattern",
    [
        [(0, 0), (1, 0), (2, 1)],  # one judgment an output
        [(0, 0), (0, 1), (1, 0), (2, 1)],  # one output has two
        [(0, 0), (0, 1), (1, 0), (1, 1), (2, 0), (2, 1)],  # two each
    ],
)
def test_the_variance_with_judges_is_exactly_unbiased(pi, pattern):
    chances, noise = np.array(pi), 0.2
    item, judge = np.array(pattern).T
    count = np.bincount(item)
    p = np.array([0.5, 0.3, 0.2])
    effect = JudgeEffect(sigma_j2=0.01, n_judges=2, n_judgments=item.size, n_pairs=1)
    mean = second = variance = 0.0
    for asked in itertools.product([False, True], repeat=3):
        rows = np.flatnonzero(asked)
        chance = float(np.prod(np.where(asked, chances, 1 - chances)))
        if not chance:
            continue
        chance /= 2 ** (2 + item.size)
        sample, given = (p[rows], chances[rows]), np.array(asked)[item]
        place = np.searchsorted(rows, item[given])
        alone = difference_estimate(*sample, F[rows], G[rows], p @ G)
        for levels in itertools.product(LEVELS, repeat=2):
            for errors in itertools.product((-noise, noise), repeat=item.size):
                # Ratings may leave [0, 1] here; the estimate is linear in them.
                said = np.array(levels)[judge] + np.array(errors)
                moved = p[rows] / chances[rows] * (np.bincount(item, said) / count)[rows]
                influence = alone.influence + moved
                raw = Estimate(
                    alone.value + moved.sum(),
                    float(np.sum((1 - chances[rows]) * influence**2)),
                    rows.size,
                    influence,
                )
                noisy = estimate_with_rating_noise(raw, *sample, count[rows], 0.01 + noise**2)
                crossed = add_judge_effect(noisy, *sample, judge[given], place, effect)
                mean += chance * noisy.value
                second += chance * noisy.value**2
                variance += chance * crossed.estimate.variance
    assert mean == pytest.approx(p @ F, abs=1e-12)
    assert variance == pytest.approx(second - mean**2, abs=1e-12)


def test_judges_of_two_systems_cancel_in_their_difference():
    p = np.array([[0.5, 0], [0.5, 0], [0, 0.5], [0, 0.5]])
    effect = JudgeEffect(sigma_j2=0.04, n_judges=2, n_judgments=4, n_pairs=2)
    alone = Estimate(np.full(2, 0.5), np.full(2, 0.001), np.full(2, 2), np.zeros((4, 2)))
    crossed = add_judge_effect(alone, p, np.ones(4), [0, 1, 0, 1], [0, 1, 2, 3], effect)
    assert isinstance(crossed, Crossed)
    np.testing.assert_allclose(crossed.covariance, [[0, 0.02], [0.02, 0]])


def test_an_effect_that_is_not_seen_changes_nothing():
    effect = judge_effect([0.5, -0.5, 0.5, -0.5], [0, 0, 1, 1], [0, 1, 2, 3])
    assert effect.sigma_j2 < 0 and effect.n_pairs == 2
    alone = Estimate(0.5, 0.01, 4, np.zeros(4), degrees_of_freedom=3)
    crossed = add_judge_effect(alone, np.full(4, 0.25), np.ones(4), [0, 0, 1, 1], range(4), effect)
    assert crossed.estimate.variance == 0.01 and crossed.telling is False
    assert crossed.estimate.degrees_of_freedom == 3
    unknown = judge_effect([0.5, np.nan, 0.1], [0, 0, 1], [0, 1, 2])
    assert np.isnan(unknown.sigma_j2) and unknown.n_judgments == 2
    assert judge_effect([], [], []).n_judges == 0


def test_rows_and_residuals_that_do_not_fit_are_refused():
    alone = Estimate(0.5, 0.01, 1, np.zeros(1))
    effect = JudgeEffect(0.1, 1, 1, 0)
    with pytest.raises(ValueError, match="below 1"):
        add_judge_effect(alone, np.ones(1), np.ones(1), [0], [1], effect)
    with pytest.raises(ValueError, match="residual"):
        judge_effect([np.inf], [0], [0])


def study(rng, n_judges, n=100, bias=0.15):
    """Return a sample of ratings by few judges who have levels of their own,
    with its two intervals.
    """
    f = rng.normal(0.5, 0.15, n)
    judge = np.arange(n) % n_judges
    levels = rng.normal(0, bias, n_judges)
    y = f + levels[judge] + rng.normal(0, 0.1, n)
    rows = np.arange(n)
    p = np.full(n, 1 / n)
    residual = y - y.mean()
    variance = float(residual @ residual / n / (n - 1))
    alone = Estimate(float(y.mean()), variance, n, residual / n, degrees_of_freedom=n - 1)
    effect = judge_effect(residual, judge, rows)
    crossed = add_judge_effect(alone, p, np.ones(n), judge, rows, effect)
    return alone, crossed.estimate


@pytest.mark.statistical
@pytest.mark.parametrize(
    "n_judges", [4, *(pytest.param(n, marks=pytest.mark.soak) for n in (8, 25))]
)
def test_intervals_hold_with_few_judges_who_rate_many(n_judges):
    rng = np.random.default_rng(n_judges)
    held = np.zeros(2)
    for _ in range(2000):
        for place, estimate in enumerate(study(rng, n_judges)):
            low, high = estimate.confidence_interval(0.8, method="t")
            held[place] += low <= 0.5 <= high
    naive, crossed = held / 2000
    assert 0.775 < crossed < 0.83, crossed
    assert naive < crossed - 0.04


def shares(n_systems, n_judges, share, repeats):
    """Return how often 80 % intervals hold where judges' levels make up this share
    of V beside 1.
    """
    rng = np.random.default_rng(n_judges)
    n = 25
    system = np.repeat(np.arange(n_systems), n)
    p = np.equal.outer(system, np.arange(n_systems)) / n
    rows, held = np.arange(system.size), 0.0
    for _ in range(repeats):
        judge = rng.permutation(rows.size) % n_judges
        levels = rng.normal(0, np.sqrt(share * n_judges / n), n_judges)
        y = rng.normal(0, 1, rows.size) + levels[judge]
        value = p.T @ y
        left = y - value[system]
        influence = p * left[:, None]
        variance = (left**2 @ p) / (n - 1)
        degrees = np.full(n_systems, n - 1.0)
        count = np.full(n_systems, n)
        alone = Estimate(value, variance, count, influence, degrees_of_freedom=degrees)
        effect = judge_effect(left, judge, rows)
        crossed = add_judge_effect(alone, p, np.ones(rows.size), judge, rows, effect)
        low, high = crossed.estimate.confidence_interval(0.8, method="t")
        held += float(((low <= 0) & (high >= 0)).mean()) / repeats
    return held


@pytest.mark.statistical
@pytest.mark.parametrize(
    ("n_judges", "share"),
    [(5, 1.0), *(pytest.param(*one, marks=pytest.mark.soak) for one in ((5, 0.2), (10, 1.0)))],
)
def test_few_judges_whose_levels_are_a_part_of_the_variance_do_not_widen_too_much(n_judges, share):
    held = shares(n_systems=6, n_judges=n_judges, share=share, repeats=1500)
    assert 0.78 < held < 0.835, held  # 0.86 to 0.88 if all of V had the judges' degrees of freedom


def test_degrees_of_freedom_are_the_judges_as_far_as_the_variance_rests_on_them():
    p, judge, rows = np.full(4, 0.25), [0, 0, 1, 1], np.arange(4)
    # Loads ½ and ½; a fourth of σ_j² is in the variance of the ratings already.
    found = []
    for level, noise in ((0.0, 0.0), (1e-9, 0.0), (0.02, 0.0), (0.02, 0.01), (1e9, 0.0)):
        alone = Estimate(0.5, 0.01 + level / 4, 4, np.zeros(4), degrees_of_freedom=3)
        effect = JudgeEffect(level, 2, 4, 2, noise)
        crossed = add_judge_effect(alone, p, np.ones(4), judge, rows, effect)
        found.append(crossed.estimate.degrees_of_freedom)
    none, little, some, noisy, all_of_it = found
    assert none == 3
    assert little == pytest.approx(3, abs=1e-5)
    # Half of V = 0.01 + 0.02/2 is theirs, with one degree of freedom.
    assert some == pytest.approx(0.02**2 / (0.01**2 / 3 + 0.01**2))
    assert noisy == pytest.approx(0.02**2 / (0.01**2 / 3 + 0.015**2))
    assert all_of_it == pytest.approx(1, rel=1e-3)


@pytest.mark.parametrize("c", [1, 2])
def test_what_is_anticipated_is_the_expectation_of_what_is_realised(c):
    chances = np.array([0.3, 0.6, 1.0])
    realised = np.zeros(2)
    for chance, taken, judgments in outcomes(chances, c):
        rows = np.flatnonzero(taken)
        sample = P[rows], chances[rows], judgments[rows].mean(axis=1), G[rows], P.T @ G
        found = difference_estimate(*sample, target=rows, n_targets=3)
        realised += chance * np.asarray(found.variance)
    error = (F - G) ** 2 + SPREAD / c
    assert anticipated_rating_variance(P, chances, error) == pytest.approx(realised, abs=1e-12)


def test_what_a_few_ratings_show_is_drawn_to_what_all_show():
    rating = np.array([1.0, 1.0, 1.0, 0.0, np.nan])
    guess = np.array([1.0, 1.0, 1.0, 0.5, 0.5])
    together = (0.25 + 0.25) / 5
    expected = [5 * together / 8, (0.25 + 5 * together) / 6, together]
    assert expected_rating_error(rating, guess, [0, 0, 0, 1, 1], 3) == pytest.approx(expected)


def test_what_can_never_be_asked_has_no_bound_and_what_weighs_nothing_no_part():
    found = anticipated_rating_variance([[0.5, 0.0], [0.5, 1.0]], [0.0, 1.0], [0.1, 0.1])
    assert found.tolist() == [np.inf, 0.0]
    with pytest.raises(ValueError, match="error"):
        anticipated_rating_variance([[1.0]], [0.5], [-0.1])
    with pytest.raises(ValueError, match="rating"):
        expected_rating_error([[1.0]], [[0.5]], [0])


def census(rating, item, v):
    """Return the 80 % interval of the mean of outputs that were all rated,
    given what people differ by.
    """
    count = np.bincount(item)
    mean = np.bincount(item, rating) / count
    p, sure = np.full(count.size, 1 / count.size), np.ones(count.size)
    alone = centred_difference_estimate(p, sure, mean, np.full(count.size, 0.5), 0.5)
    return estimate_with_rating_noise(alone, p, sure, count, v).confidence_interval(0.8, method="t")


def test_annotator_noise_is_pooled_over_the_pairs():
    rng = np.random.default_rng(5)
    rating = rng.choice([0.0, 0.5, 1.0], size=(30, 2), p=[0.2, 0.3, 0.5])
    squares = (rating[:, 0] - rating[:, 1]) ** 2 / 2
    pairs = np.repeat(np.arange(30), 2)
    weight = squares.var(ddof=1) / squares.mean() ** 2 / 10
    expected = (squares.sum() + weight * rating.var(ddof=1)) / (30 + weight)
    assert 0.1 < weight < 1
    assert judgment_variance(rating.ravel(), pairs) == pytest.approx(expected)
    binary = np.ones((30, 2))
    binary[:7, 0] = 0.0
    assert judgment_variance(binary.ravel(), pairs) == pytest.approx(7.5 / (2 * 30.5))
    assert judgment_variance(np.ones(60), pairs) > 0, "30 pairs that agree leave some noise"
    assert judgment_variance(np.tile([0.0, 1.0], 30), pairs) == 0.25
    with pytest.raises(ValueError, match="rating must be in"):
        judgment_variance([1.5], [0])
    with pytest.raises(ValueError, match="item must have shape"):
        judgment_variance([0.5], [0, 1])


def test_below_twenty_pairs_annotator_noise_is_not_separable():
    rating = np.tile([0.0, 1.0], 20)
    assert np.isnan(judgment_variance(rating[:38], np.repeat(np.arange(19), 2)))
    assert np.isfinite(judgment_variance(rating, np.repeat(np.arange(20), 2)))
    rating[-1] = np.nan
    assert np.isnan(judgment_variance(rating, np.repeat(np.arange(20), 2)))


def test_the_variance_of_verdicts_is_an_upper_bound_of_the_noise_in_them():
    """Exactly, over all ratings that three outputs may get, each by one person."""
    every = [RATINGS[range(3), list(picks)] for picks in itertools.product(range(2), repeat=3)]
    expected = np.mean([verdict_variance(y[:, None], np.ones((3, 1))) for y in every])
    assert expected > SPREAD.mean()
    two = verdict_variance(
        np.array([[0.2, 0.2], [0.4, 0.4], [0.9, np.nan]]), [[1, 1], [0, 1], [1, 1]]
    )
    assert two == pytest.approx([(0.245 + 0.25) / 2, (0.02 + 0.25) / 2])
    with pytest.raises(ValueError, match="verdict and member"):
        verdict_variance([0.5], [1])


@pytest.mark.statistical
@pytest.mark.parametrize("second", [20, pytest.param(40, marks=pytest.mark.soak)])
@pytest.mark.parametrize("alike", [0.5, pytest.param(2.0, marks=pytest.mark.soak), 20.0])
def test_intervals_of_a_census_hold_with_second_opinions_drawn_at_random(second, alike):
    rng = np.random.default_rng([second, int(2 * alike)])
    n, repeats, held = 100, 600, 0
    levels = np.array([0.0, 0.5, 1.0])
    for _ in range(repeats):
        chance = rng.dirichlet(np.array([0.2, 0.3, 0.5]) * alike, n)
        item = np.array([*range(n), *range(second)])
        at = (rng.random((item.size, 1)) > chance.cumsum(axis=1)[item]).sum(axis=1)
        rating = levels[np.minimum(at, 2)]
        drawn = item < second
        low, high = census(rating, item, judgment_variance(rating[drawn], item[drawn]))
        held += low <= float((chance @ levels).mean()) <= high
    assert abs(held / repeats - 0.8) < 0.03 + 3 * np.sqrt(0.8 * 0.2 / repeats)


def test_people_differ_on_the_outputs_of_one_system_and_agree_on_those_of_another():
    within, count = np.array([0.5, 0.0, 0.5, 0.0, 0.0]), np.array([2, 2, 3, 1, 0])
    member = np.array([[1, 0], [0, 1], [1, 1], [0, 1], [0, 0]])
    seen = 1.0 / 4  # of one degree of freedom
    of_first, of_second = (0.1 * (w / seen + 6) / (3 + 6) for w in (1.0, 0.5))
    mean = (of_first + of_second) / 2
    found = rating_variance_of_outputs(within, count, member, 0.1)
    np.testing.assert_allclose(found, [of_first, of_second, mean, of_second, 0.1])
    alone = rating_variance_of_outputs(within, count, np.ones((5, 1)), 0.1)
    np.testing.assert_allclose(alone, 0.1)
    assert rating_variance_of_outputs([], [], np.zeros((0, 2)), 0.1).size == 0
    with pytest.raises(ValueError, match="as many rows"):
        rating_variance_of_outputs(within, count[:2], member, 0.1)


def test_a_rating_by_somebody_unknown_has_its_share_of_the_weight_of_an_output():
    half, sure = np.full(2, 0.5), np.ones(2)
    alone = Estimate(0.5, 0.01, 2, np.zeros(4))
    effect = JudgeEffect(sigma_j2=0.04, n_judges=1, n_judgments=2, n_pairs=1)
    crossed = add_judge_effect(alone, half, sure, [0, 0], [0, 1], effect, count=[2, 2])
    assert crossed.estimate.variance == pytest.approx(0.01 + 0.04 * (0.5**2 - 2 * 0.25**2))
    with pytest.raises(ValueError, match="count"):
        add_judge_effect(alone, half, sure, [0, 0], [0, 1], effect, count=[1, 0])
