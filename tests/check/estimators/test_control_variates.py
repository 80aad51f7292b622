"""Ratings and metrics: components, what a metric saves, and means with control variates,
all samples.
"""

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from estimators.components import (
    RequiredJudgments,
    combine_with_prior,
    data_efficiency,
    mean_variance,
    metric_worth,
    required_judgments,
    variance_components,
)
from estimators.control_variates import control_variate_mean, regression_mean

# Three outputs of one system. What two people say of each (both equally likely), and two metrics.
RATINGS = np.array([[0.0, 0.5], [0.25, 1.0], [1.0, 1.0]])
METRICS = np.array([[0.1, 3.0], [0.9, 1.0], [0.7, 4.0]])
F = RATINGS.mean(axis=1)
SIGMA_A2 = float(((RATINGS - F[:, None]) ** 2).mean())


def draws(n):
    """Yield every sample of n independent draws of an output and a person, all equally likely."""
    pairs = list(itertools.product(range(3), range(2)))
    chance = 1 / len(pairs) ** n
    for sample in itertools.product(pairs, repeat=n):
        item, person = np.array(sample).T
        yield chance, item, RATINGS[item, person]


def standardised():
    g = METRICS[:, 0]
    return (g - g.mean()) / g.std()


@pytest.mark.parametrize("n", [3, 4])
def test_algorithm_1_has_the_bias_that_is_written_down(n):
    expected = sum(
        chance * control_variate_mean(y, METRICS[item, 0], METRICS[:, 0], power_tune=False).value
        for chance, item, y in draws(n)
    )
    g = standardised()
    bias = -(n - 1) / n**2 * float(((F - F.mean()) * g**2).mean())
    assert expected == pytest.approx(F.mean() + bias, abs=1e-12)


@pytest.mark.parametrize("n", [3, 4])
def test_a_control_variate_with_a_known_slope_has_the_published_variance_exactly(n):
    g = standardised()
    rho = float((F * g).mean() / F.std())
    slope = float((F * g).mean())
    values = [(chance, (y - slope * g[item]).mean()) for chance, item, y in draws(n)]
    mean = sum(chance * value for chance, value in values)
    variance = sum(chance * (value - mean) ** 2 for chance, value in values)
    planned = mean_variance(n, sigma_f2=float(F.var()), sigma_a2=SIGMA_A2, rho=rho)
    assert mean == pytest.approx(F.mean(), abs=1e-12)
    assert variance == pytest.approx(planned, abs=1e-12)
    alone = mean_variance(n, sigma_f2=float(F.var()), sigma_a2=SIGMA_A2)
    efficiency = data_efficiency(rho, SIGMA_A2 / float(F.var()))
    assert alone / planned == pytest.approx(efficiency, abs=1e-12)


@pytest.mark.parametrize(
    "options",
    [
        {"cross_fit": 4},
        *(
            pytest.param(one, marks=pytest.mark.soak)
            for one in ({}, {"ridge": 0.5, "power_tune": False})
        ),
    ],
)
def test_the_cross_fitted_mean_is_exactly_unbiased_over_all_samples(options):
    expected = sum(
        chance * regression_mean(y, METRICS[item], METRICS, **options).value
        for chance, item, y in draws(4)
    )
    assert expected == pytest.approx(F.mean(), abs=1e-12)


def test_without_anything_to_say_a_metric_leaves_the_mean_and_its_variance_alone():
    y = np.array([0.1, 0.5, 0.9, 0.4])
    for estimate in (
        control_variate_mean(y, np.ones(4), np.ones(9)),
        regression_mean(y, np.ones((4, 2)), np.ones((9, 2))),
        regression_mean(y, np.full((4, 1), np.nan), np.full((9, 1), np.nan)),
    ):
        assert estimate.value == pytest.approx(y.mean())
        assert estimate.variance == pytest.approx(y.var(ddof=1) / 4)
        assert estimate.degrees_of_freedom == 3


def test_an_offset_of_a_metric_changes_nothing():
    rng = np.random.default_rng(3)
    whole, item = rng.uniform(0, 0.5, 60), np.arange(20)
    y = 0.3 + whole[:20] + rng.normal(0, 0.05, 20)

    def found(offset):
        metric = whole + offset
        return [
            control_variate_mean(y, metric[:20], metric).value,
            regression_mean(y, metric[:20, None], metric[:, None]).value,
            metric_worth(y, item, metric[:20]).r,
        ]

    assert found(0.0)[0] != pytest.approx(y.mean(), abs=1e-3)
    assert found(1e6) == pytest.approx(found(0.0), abs=1e-6)


def test_algorithm_1_is_the_published_formula():
    rng = np.random.default_rng(0)
    whole = rng.normal(3, 2, 50)
    y, g = rng.uniform(0, 1, 8), whole[:8]
    z = (g - whole.mean()) / whole.std()
    slope = ((y - y.mean()) * z).mean()
    assert control_variate_mean(y, g, whole, power_tune=False).value == pytest.approx(
        (y - slope * z).mean()
    )


def test_a_missing_metric_is_worth_its_mean():
    rng = np.random.default_rng(1)
    whole = rng.normal(0, 1, (40, 2))
    y = whole[:12, 0] + rng.normal(0, 0.1, 12)
    gaps = whole.copy()
    gaps[3, 1] = np.nan
    filled = gaps.copy()
    filled[3, 1] = np.nanmean(gaps[:, 1])
    with_gaps = regression_mean(y, gaps[:12], gaps, ridge=1.0, power_tune=False)
    with_means = regression_mean(y, filled[:12], gaps, ridge=1.0, power_tune=False)
    assert with_gaps.value == pytest.approx(with_means.value)


@pytest.mark.statistical
@pytest.mark.soak
def test_several_metrics_save_what_they_explain_and_intervals_hold():
    rng = np.random.default_rng(3)
    n, squares, held = 100, np.zeros(2), 0
    for _ in range(1000):
        whole = rng.normal(0, 1, (500, 3))
        f = 0.5 * whole[:, 0] + 0.5 * whole[:, 1] + rng.normal(0, math.sqrt(0.5), 500)
        drawn = rng.integers(0, 500, n)
        y = f[drawn]
        estimate = regression_mean(y, whole[drawn], whole)
        low, high = estimate.confidence_interval(0.8, method="t")
        held += low <= f.mean() <= high
        squares += (np.array([y.mean(), estimate.value]) - f.mean()) ** 2
    assert squares[0] / squares[1] == pytest.approx(2.0, rel=0.12)  # half of the variance explained
    assert 0.76 < held / 1000 < 0.84


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (([0.5, np.nan, 1], [1, 2, 3], [1, 2]), "finite"),
        (([0.5, 1], [1, 2], [1, 2]), "three"),
        (([0.5, 1, 0], [1, 2], [1, 2]), "rows"),
        (([0.5, 1, 0], [1, 2, 3], []), "g_population"),
    ],
)
def test_a_mean_with_a_metric_refuses_what_it_cannot_use(arguments, message):
    with pytest.raises(ValueError, match=message):
        control_variate_mean(*arguments)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"cross_fit": 1}, "1"),
        ({"ridge": -1.0}, r"-1\.0"),
        ({"fold": [0, 1]}, "fold"),
    ],
)
def test_a_mean_with_metrics_names_the_option_that_is_wrong(options, message):
    with pytest.raises(ValueError, match=message):
        regression_mean([0.5, 1, 0], np.ones((3, 1)), np.ones((5, 1)), **options)


def test_metrics_must_have_the_same_columns_everywhere():
    with pytest.raises(ValueError, match="G_population"):
        regression_mean([0.5, 1, 0], np.ones((3, 1)), np.ones((5, 2)))


def every_judging(c):
    """Yield all ways in which c of the two people (with replacement) judge each of the
    three outputs.
    """
    answers = list(itertools.product(range(2), repeat=c))
    for picks in itertools.product(answers, repeat=3):
        values = np.concatenate([RATINGS[z, list(pick)] for z, pick in enumerate(picks)])
        yield 1 / len(answers) ** 3, values, np.repeat(np.arange(3), c)


@pytest.mark.parametrize("c", [2, 3])
def test_both_components_are_exactly_unbiased_over_all_judgings(c):
    total = np.zeros(2)
    for chance, values, item in every_judging(c):
        components = variance_components(values, item)
        total += chance * np.array([components.sigma_f2, components.sigma_a2])
    np.testing.assert_allclose(total, [F.var(ddof=1), SIGMA_A2], atol=1e-12)


def test_components_pool_groups_and_know_what_was_repeated():
    values = [1, 0, 1, 1, 0, 0, 0.5]
    item, group = [0, 0, 1, 1, 2, 2, 3], [0, 0, 0, 0, 1, 1, 1]
    components = variance_components(values, item, group=group)
    spread = ((0.5 - 0.75) ** 2 * 2 + (0 - 0.25) ** 2 * 2) / 2
    assert components.sigma_a2 == pytest.approx(0.5 / 3)
    assert components.sigma_f2 == pytest.approx(spread - 0.5 / 3 * (0.5 * 3 + 1) / 4)
    assert (components.n_items, components.n_judgments, components.n_repeated) == (4, 7, 3)
    with pytest.raises(ValueError, match="item 3 in two"):
        variance_components([1, 0], [3, 3], group=[0, 1])


def test_a_negative_variance_is_told_and_not_clipped():
    components = variance_components([1, 0, 0, 1, 1, 0], [0, 0, 1, 1, 2, 2])
    assert components.sigma_f2 < 0
    assert math.isnan(components.gamma)
    assert any("negative" in warning for warning in components.warnings)


def test_single_judgments_say_nothing_of_people():
    components = variance_components([1, 0, np.nan, 0.5], [0, 1, 2, 3])
    assert math.isnan(components.sigma_a2) and math.isnan(components.sigma_f2)
    assert components.n_items == 3
    assert "No output" in components.warnings[0]
    assert variance_components([], []).n_items == 0


@pytest.mark.statistical
def test_intervals_of_the_components_hold():
    rng = np.random.default_rng(4)
    held = np.zeros(2)
    for _ in range(300):
        f = rng.normal(0.5, 0.2, 150)
        values = (f[:, None] + rng.normal(0, 0.3, (150, 2))).ravel()
        components = variance_components(
            values, np.repeat(np.arange(150), 2), n_resamples=200, rng=rng
        )
        for place, (quantity, truth) in enumerate([("sigma_f2", 0.04), ("sigma_a2", 0.09)]):
            low, high = components.confidence_interval(quantity, 0.8)
            held[place] += low <= truth <= high
    assert np.all(np.abs(held / 300 - 0.8) < 0.08), held


def test_an_interval_needs_resamples_and_a_known_name():
    components = variance_components([1, 0, 1, 1], [0, 0, 1, 1])
    with pytest.raises(ValueError, match="resamples"):
        components.confidence_interval("gamma")
    with pytest.raises(ValueError, match="quantity"):
        components.confidence_interval("delta")
    with pytest.raises(ValueError, match="rng"):
        variance_components([1, 0], [0, 0], n_resamples=5)


def test_a_prior_speaks_alone_before_a_pilot_and_yields_to_what_is_measured():
    prior = combine_with_prior(None, sigma_f2=0.26, sigma_a2=0.32)
    assert (prior.sigma_f2, prior.sigma_a2, prior.n_items) == (0.26, 0.32, 0)
    rng = np.random.default_rng(5)
    f = rng.normal(0, 1, 4000)
    measured = variance_components(
        (f[:, None] + rng.normal(0, 0.5, (4000, 2))).ravel(), np.repeat(np.arange(4000), 2)
    )
    both = combine_with_prior(measured, sigma_f2=0.26, sigma_a2=0.32)
    assert both.sigma_f2 == pytest.approx(measured.sigma_f2, rel=0.01)
    assert both.sigma_a2 == pytest.approx(measured.sigma_a2, rel=0.01)
    single = variance_components([0.2, 0.4], [0, 1])
    assert combine_with_prior(single, sigma_f2=0.26, sigma_a2=0.32).sigma_a2 == 0.32
    with pytest.raises(ValueError, match="strength"):
        combine_with_prior(None, sigma_f2=1, sigma_a2=1, strength=0)


def test_data_efficiency_is_that_of_the_publication():
    assert data_efficiency(0.0, 1.0) == 1
    assert data_efficiency(1.0, 0.95) == pytest.approx((1 + 0.95) / 0.95)
    assert data_efficiency(math.sqrt((1 + 0.4) / 2), 0.4) == pytest.approx(2)
    for rho, gamma in ((1.2, 1.0), (0.5, -0.1), (math.nan, 1.0), (0.5, math.nan)):
        with pytest.raises(ValueError, match="must"):
            data_efficiency(rho, gamma)


def test_the_worth_of_a_metric_is_its_correlation_freed_from_noise():
    rng = np.random.default_rng(6)
    g = rng.normal(0, 1, 20_000)
    f = 0.6 * g + 0.8 * rng.normal(0, 1, 20_000)
    values = (f[:, None] + rng.normal(0, 1, (20_000, 2))).ravel()
    worth = metric_worth(values, np.repeat(np.arange(20_000), 2), g)
    assert worth.rho == pytest.approx(0.6, abs=0.02)
    assert worth.r == pytest.approx(0.6 / math.sqrt(2), abs=0.02)
    expected = data_efficiency(worth.rho, worth.components.gamma)
    assert worth.data_efficiency == pytest.approx(expected)


def test_the_worth_of_a_metric_within_systems_knows_nothing_of_their_level():
    group = np.repeat([0, 1], 4)
    g = np.array([1.0, 2, 3, 4, 11, 12, 13, 14])
    values = np.array([0.1, 0.2, 0.3, 0.4, 0.4, 0.3, 0.2, 0.1])
    worth = metric_worth(values, np.arange(8), g, group=group)
    assert worth.r == pytest.approx(0.0, abs=1e-12)


def test_a_metric_may_be_missing_for_some_outputs_and_constant_for_none():
    values, item = [0.1, 0.9, 0.4, 0.6], [3, 1, 2, 0]
    some = metric_worth(values, item, [np.nan, 0.9, 0.4, 0.1])
    assert some.components.n_items == 3
    assert some.r == pytest.approx(1.0)
    assert math.isnan(metric_worth(values, item, [2.0, 2, 2, 2]).r)
    with pytest.raises(ValueError, match="4 items"):
        metric_worth(values, item, [1.0])
    rng = np.random.default_rng(0)
    resampled = metric_worth(values, item, [0.7, 0.8, 0.3, 0.2], n_resamples=50, rng=rng)
    low, high = resampled.confidence_interval("r", 0.8)
    assert low <= high <= 1 + 1e-12


@given(
    st.floats(0.01, 0.3),
    st.floats(0.0, 1.0),
    st.floats(0.01, 1.0),
    st.floats(-1, 1),
    st.one_of(st.none(), st.integers(5, 3000)),
)
@settings(deadline=None)
def test_required_judgments_are_enough_and_not_one_too_many(half, f2, a2, rho, population):
    needed = required_judgments(half, sigma_f2=f2, sigma_a2=a2, rho=rho, population=population)
    assert isinstance(needed, RequiredJudgments)
    assert needed.half_width <= half * (1 + 1e-9)
    assert needed.judgments == needed.items * needed.per_item
    z = 1.2815515655446004
    if needed.per_item == 1 and needed.items > 1:
        fewer = mean_variance(
            needed.items - 1, sigma_f2=f2, sigma_a2=a2, rho=rho, population=population
        )
        assert z * math.sqrt(fewer) > half * (1 - 1e-9)
    if needed.per_item > 1:
        assert population is not None and needed.everything
        fewer = a2 / (population * (needed.per_item - 1))
        assert z * math.sqrt(fewer) > half * (1 - 1e-9)


def test_more_items_beat_more_people_at_a_price_a_judgment():
    components = {"sigma_f2": 0.26, "sigma_a2": 0.32}
    items = mean_variance(200, **components)
    people = mean_variance(100, **components, per_item=2)
    assert items < people


@pytest.mark.parametrize(
    "arguments",
    [
        {"n_items": 0},
        {"n_items": 10, "population": 5},
        {"n_items": 5, "rho": 2.0},
        {"n_items": 5, "per_item": 0},
        {"n_items": 5, "sigma_a2": -1.0},
    ],
)
def test_planning_refuses_impossible_numbers(arguments):
    with pytest.raises(ValueError, match="must"):
        mean_variance(**({"sigma_f2": 1.0, "sigma_a2": 1.0} | arguments))
    with pytest.raises(ValueError, match="half_width"):
        required_judgments(0.0, sigma_f2=1, sigma_a2=1)
