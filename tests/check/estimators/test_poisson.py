"""Which targets are asked: thresholds, uniforms and the order."""

import hashlib

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize

from estimators.horvitz_thompson import hajek_estimate
from estimators.poisson import (
    asking_order,
    is_selected,
    joint_multipliers,
    keyed_uniforms,
    next_planned_variance,
    planned_variance,
    water_fill,
    water_fill_multiplier,
)


@st.composite
def plans(draw):
    n = draw(st.integers(1, 12))

    def column(low, high):
        return np.array(draw(st.lists(st.floats(low, high), min_size=n, max_size=n)))

    return column(0.01, 1), column(0, 1), column(0.06, 0.25), draw(st.floats(1e-4, 1))


@given(plans())
@settings(deadline=None)
def test_thresholds_never_sink_and_meet_the_target_without_waste(plan):
    p, old, v, wanted = plan
    pi = water_fill(p, old, v, target_variance=wanted)
    assert np.all(pi >= old)
    assert np.all(pi <= 1)
    reached = planned_variance(p, pi, v)
    assert reached <= wanted * (1 + 1e-9)
    if np.any(pi > old):
        assert reached == pytest.approx(wanted, rel=1e-6)


@given(plans())
@settings(deadline=None)
def test_the_multiplier_makes_the_thresholds(plan):
    p, old, v, wanted = plan
    chosen = water_fill_multiplier(p, old, v, target_variance=wanted)
    pi = water_fill(p, old, v, target_variance=wanted)
    np.testing.assert_allclose(
        pi, np.maximum(old, np.minimum(1.0, chosen * p * np.sqrt(v))), rtol=1e-12
    )
    assert (chosen == 0) == (planned_variance(p, old, v) <= wanted)


def test_the_multiplier_refuses_no_variance():
    with pytest.raises(ValueError, match="target_variance must be positive; got 0"):
        water_fill_multiplier([0.5], [0.0], 0.25, target_variance=0)


@given(plans(), st.integers(0, 10**6))
@settings(deadline=None)
def test_no_other_thresholds_meet_the_target_with_fewer_questions(plan, seed):
    p, old, v, wanted = plan
    best = water_fill(p, old, v, target_variance=wanted)
    rng = np.random.default_rng(seed)
    other = np.maximum(old, np.clip(best * np.exp(0.3 * rng.normal(size=p.size)), 1e-12, 1))
    if planned_variance(p, other, v) <= wanted:
        assert other.sum() >= best.sum() - 1e-9


@given(plans())
@settings(deadline=None)
def test_a_smaller_target_raises_every_threshold(plan):
    p, old, v, wanted = plan
    wide = water_fill(p, old, v, target_variance=wanted)
    narrow = water_fill(p, old, v, target_variance=wanted / 3)
    assert np.all(narrow >= wide * (1 - 1e-9))


@given(plans())
@settings(deadline=None)
def test_what_is_met_already_costs_nothing(plan):
    p, old, v, wanted = plan
    once = water_fill(p, old, v, target_variance=wanted)
    np.testing.assert_array_equal(water_fill(p, once, v, target_variance=wanted * (1 + 1e-9)), once)


def test_by_hand_with_one_target_capped():
    # s = (2, 1, 1): λ = 1 would cap the first; the others then share 2 (1/π − 1) = 2 at π = ½.
    pi = water_fill(np.array([4.0, 2.0, 2.0]), np.zeros(3), 0.25, target_variance=2.0)
    np.testing.assert_allclose(pi, [1.0, 0.5, 0.5])


def test_predictions_of_one_target_share_its_threshold():
    p, target = np.array([0.3, 0.4, 0.5]), np.array([7, 7, 2])
    pi = water_fill(p, np.zeros(3), 0.25, target_variance=0.05, target=target)
    np.testing.assert_allclose(pi, pi[0])  # √(0.3² + 0.4²) = 0.5
    assert planned_variance(p, pi, 0.25, target=target) == pytest.approx(0.05)


def test_a_prediction_without_weight_is_not_asked_for():
    assert water_fill(
        np.array([0.0, 1.0]), np.array([0.0, 0.0]), 0.25, target_variance=0.25
    ).tolist() == [0.0, 0.5]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"target_variance": 0.0}, r"0\.0"),
        ({"pi_old": np.array([0.5, 1.5])}, r"1\.5"),
        ({"p": np.array([0.5, -1.0])}, r"-1\.0"),
        ({"v": -0.2}, r"-0\.2"),
        ({"target": np.array([0, 0]), "pi_old": np.array([0.5, 0.4])}, "one number a target"),
    ],
)
def test_it_names_the_offending_value(change, message):
    arguments = {
        "p": np.full(2, 0.5),
        "pi_old": np.zeros(2),
        "v": 0.25,
        "target_variance": 0.1,
    } | change
    with pytest.raises(ValueError, match=message):
        water_fill(arguments.pop("p"), arguments.pop("pi_old"), arguments.pop("v"), **arguments)


def test_uniforms_are_the_same_for_ever_and_differ_by_key_and_name():
    names = [f"doc-{i}" for i in range(100)]
    u = keyed_uniforms(names, key=b"one")
    np.testing.assert_array_equal(keyed_uniforms(names[::-1], key=b"one")[::-1], u)
    assert not np.isin(keyed_uniforms(names, key=b"two"), u).any()
    assert np.unique(u).size == 100
    assert (
        keyed_uniforms(["7"], key=b"one")
        == keyed_uniforms([7], key=b"one")
        == keyed_uniforms([b"7"], key=b"one")
    )
    by_hand = hashlib.blake2b(b"doc-0", key=b"one", digest_size=8).hexdigest()
    assert u[0] == (int(by_hand, 16) >> 11) / 2**53


def test_no_name_gives_no_number_and_no_key_is_refused():
    assert keyed_uniforms([], key=b"k").size == 0
    for key in (b"", b"x" * 65):
        with pytest.raises(ValueError, match="1 to 64 bytes"):
            keyed_uniforms(["a"], key=key)


@pytest.mark.statistical
def test_uniforms_are_uniform():
    u = np.sort(keyed_uniforms(range(20_000), key=b"secret"))
    assert np.abs(u - np.arange(0.5, u.size) / u.size).max() < 1.95 / np.sqrt(
        u.size
    )  # Kolmogorov, 1 in 1,000


def test_raising_a_threshold_keeps_what_was_asked():
    u = keyed_uniforms(range(1000), key=b"k")
    assert np.all(is_selected(u, np.full(1000, 0.5)) >= is_selected(u, np.full(1000, 0.3)))


def test_any_prefix_of_the_order_is_a_sample_with_proportional_probabilities():
    rng = np.random.default_rng(2)
    u, pi = rng.random(500), rng.uniform(0, 1, 500)
    order = asking_order(u, pi)
    assert sorted(order) == np.flatnonzero(is_selected(u, pi)).tolist()
    share = (u / pi)[order[99]]
    np.testing.assert_array_equal(np.sort(order[:100]), np.flatnonzero(u <= pi * share))


def test_a_uniform_number_of_one_is_refused():
    with pytest.raises(ValueError, match="below 1"):
        is_selected(np.array([1.0]), np.array([1.0]))


@given(st.floats(1e-6, 1), st.floats(0, 10), st.floats(1e-6, 1))
def test_every_stage_plans_for_less_than_the_one_before(planned, anticipated, wanted):
    goal = next_planned_variance(planned, anticipated, target_variance=wanted)
    assert 0.24 * planned < goal < planned
    assert goal >= next_planned_variance(planned, anticipated + 1, target_variance=wanted)


def test_a_stage_goes_for_what_the_model_lacks_but_not_for_more_than_a_quarter():
    assert next_planned_variance(0.04, 0.05, target_variance=0.02) == pytest.approx(0.995 * 0.016)
    assert next_planned_variance(0.04, np.inf, target_variance=0.02) == pytest.approx(0.995 * 0.01)
    assert next_planned_variance(0.04, np.inf, target_variance=0.02, most=8.0) == pytest.approx(
        0.995 * 0.005
    )


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"planned": 0.0}, "planned"),
        ({"planned": np.inf}, "planned"),
        ({"target_variance": -1.0}, r"target_variance.*-1\.0"),
        ({"anticipated": np.nan}, "nan"),
    ],
)
def test_a_goal_cannot_be_had_from_nonsense(change, message):
    arguments = {"planned": 0.04, "anticipated": 0.04, "target_variance": 0.02} | change
    with pytest.raises(ValueError, match=message):
        next_planned_variance(**arguments)


@pytest.mark.statistical
@pytest.mark.soak
def test_stopping_on_what_is_expected_is_unbiased_and_asks_less_than_chasing_what_was_realised():
    """One system of 2,000 predictions, 70 in 100 right; at a target of 0.0004 about 416 labels are
    needed.
    """
    n, wanted = 2000, 0.0004
    p, rng = np.full(n, 1 / n), np.random.default_rng(5)

    def asked(variance_of):
        u, f = rng.random(n), (rng.random(n) < 0.7).astype(float)
        pi, goal = np.zeros(n), 4 * wanted
        for _ in range(50):
            pi = water_fill(p, pi, 0.25, target_variance=goal)
            chosen = is_selected(u, pi)
            found = hajek_estimate(p[chosen], pi[chosen], f[chosen])
            if variance_of(found) <= wanted:
                return chosen.sum(), found.value - f.mean()
            goal = next_planned_variance(
                planned_variance(p, pi, 0.25), variance_of(found), target_variance=wanted
            )
        raise AssertionError("never met")

    expected, larger = (
        np.array([asked(rule) for _ in range(300)])
        for rule in (lambda one: one.anticipated, lambda one: max(one.variance, one.anticipated))
    )
    assert expected[:, 0].mean() <= larger[:, 0].mean()
    # p (1 − p)(1/π − 1)/n = 0.0004 at π = 0.208
    assert 0.93 * 416 < expected[:, 0].mean() < 1.1 * 416
    assert abs(expected[:, 1].mean()) < 3 * np.sqrt(wanted / 300)


def test_systems_that_are_planned_together_come_to_their_goals_with_the_fewest_questions():
    """Held against a solver of the convex problem itself."""
    rng = np.random.default_rng(8)
    sizes = np.array([rng.random(12) * (rng.random(12) < 0.7) for _ in range(3)]) / 12
    old, goals = rng.random(12) * 0.2, np.array([0.01, 0.02, 0.03])

    def raised(multipliers):
        return np.maximum(old, np.minimum(1, np.sqrt(multipliers**2 @ sizes**2)))

    def variances(multipliers):
        return sizes**2 @ (1 / np.maximum(raised(multipliers), 1e-9) - 1)

    alone = np.array(
        [
            water_fill_multiplier(one, old, 1.0, target_variance=goal)
            for one, goal in zip(sizes, goals, strict=True)
        ]
    )
    found = joint_multipliers(variances, goals, alone, (sizes**2).sum(axis=1))
    assert (variances(found) <= goals * 1.001).all()
    best = minimize(
        lambda pi: pi.sum(),
        np.maximum(raised(alone), 1e-3),
        jac=lambda pi: np.ones(12),
        bounds=[(max(low, 1e-4), 1) for low in old],
        constraints=[
            {
                "type": "ineq",
                "fun": lambda pi, at=at: goals[at] - sizes[at] ** 2 @ (1 / pi - 1),
                "jac": lambda pi, at=at: sizes[at] ** 2 / pi**2,
            }
            for at in range(3)
        ],
        method="SLSQP",
        options={"maxiter": 500, "ftol": 1e-10},
    )
    predicted = sizes.any(axis=0)
    assert best.success
    assert raised(found)[predicted].sum() == pytest.approx(best.x[predicted].sum(), rel=2e-3)
    one_by_one = old
    for size, goal in zip(sizes, goals, strict=True):
        one_by_one = water_fill(size, one_by_one, 1.0, target_variance=goal)
    assert raised(found)[predicted].sum() < one_by_one[predicted].sum()


@pytest.mark.filterwarnings("error")
def test_a_goal_of_next_to_nothing_is_planned_for_without_a_warning():
    def variances(multipliers):
        return np.full(2, 1e-3) / (1 + multipliers)

    found = joint_multipliers(variances, [1e-315, 1e-3], [1.0, 1.0], [1e-2, 1e-2])
    assert np.isfinite(found).all() and found[0] > found[1]
