"""Tests of estimators.joint's precision: by hand, by all possible samples of a tiny universe, and
at the edges.
"""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from estimators import distributions, joint, mixture
from estimators.estimate import Estimate
from tests.check.estimators.universe import samples, shares, universes

NAN = float("nan")
# System 0 predicts a and b, system 1 b alone.
NESTED = np.array([[0.5, 0.0], [0.5, 1.0]])
METHODS = ("heuristic", "balance", "uniform")


def test_the_heuristic_weights_are_labels_times_overlap():
    weight = joint.mixture_weights([[0.5, 0.25, 0], [0.25, 0.25, 0], [0, 0, 1]], [100, 300, 50])
    assert weight == pytest.approx(np.array([[0.4, 0.6, 0], [0.25, 0.75, 0], [0, 0, 1]]))


def test_a_system_without_labels_gets_no_weight_and_the_others_share_it():
    overlap = [[0.5, 0.25], [0.25, 0.25]]
    assert joint.mixture_weights(overlap, [0, 10]).tolist() == [[0, 1], [0, 1]]
    assert joint.mixture_weights(overlap, [0, 10], method="uniform").tolist() == [[0, 1], [0, 1]]
    assert joint.mixture_weights(overlap, [0, 0], method="balance").tolist() == [[0, 0], [0, 0]]
    assert joint.mixture_weights(np.eye(2), [0, 10]).tolist() == [[0, 0], [0, 1]]


@pytest.mark.parametrize("method", METHODS)
def test_all_systems_at_once_are_what_they_are_one_by_one(method, monkeypatch):
    """Labels that are missing for some systems only, a system without draws, one that shares
    nothing.
    """
    monkeypatch.setattr(mixture, "ENTRIES_AT_A_TIME", 20)
    rng = np.random.default_rng(8)
    universe = rng.random((30, 5)) * (rng.random((30, 5)) < 0.4)
    universe[:, 4] = 0
    universe = np.concatenate([universe, [[0, 0, 0, 0, 1.0]]])
    universe /= universe.sum(axis=0)
    system = np.repeat([0, 1, 2, 4], 6)
    rows = np.concatenate([rng.choice(31, 6, p=universe[:, i]) for i in (0, 1, 2, 4)])
    label = np.where(rng.random((24, 5)) < 0.3, np.nan, rng.random((24, 5)) < 0.5)
    draws = mixture.check_draws(
        universe[rows], system, label, distributions.pairwise_overlap(universe), method=method
    )
    blocks = list(draws.inverse_proposals(method))
    assert len(blocks) == 6
    together = np.concatenate([block for _, block in blocks])
    known = ~np.isnan(draws.label)
    for i in range(5):
        alone = draws.inverse_proposal(i, known[:, i], method)
        np.testing.assert_allclose(together[:, i], alone, rtol=1e-13)
        np.testing.assert_allclose(
            draws.centred(draws.P, together > 0, ddof=1)[:, i],
            draws.centred(draws.P[:, i], alone > 0, ddof=1),
            rtol=1e-12,
        )


def test_the_proposal_mixes_the_columns():
    mixed = joint.proposal_probabilities(NESTED, [[0.4, 0.6], [0.25, 0.75]])
    assert mixed == pytest.approx(np.array([[0.2, 0.125], [0.8, 0.875]]))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"method": "best"}, "got 'best'"),
        ({"overlap": [[1, 0.5], [0.4, 1]]}, r"symmetric; got 0\.5 and 0\.4"),
        ({"overlap": [[1, -0.5], [-0.5, 1]]}, "at least 0"),
        ({"n": [1, -2]}, r"-2\.0"),
        ({"n": [1, 2, 3]}, r"shape \(3, 3\)"),
    ],
)
def test_bad_mixtures_are_named(change, message):
    arguments = {"overlap": np.eye(2), "n": [1, 2], **change}
    with pytest.raises(ValueError, match=message):
        joint.mixture_weights(**arguments)


def test_weights_that_are_no_weights_make_no_proposal():
    with pytest.raises(ValueError, match=r"row 1 sums to 0\.75"):
        joint.proposal_probabilities(NESTED, [[1, 0], [0.25, 0.5]])
    with pytest.raises(ValueError, match=r"W \(m, m\)"):
        joint.proposal_probabilities(NESTED, [[1.0]])


def test_simple_precision_is_the_mean_of_a_systems_own_labels():
    result = joint.simple_precision([1, 0, 1, 1, NAN, NAN], [0, 0, 0, 1, 1, 2], 3)
    assert result.value[:2] == pytest.approx([2 / 3, 1])
    assert result.variance[:2] == pytest.approx([2 / 27, 0])
    assert np.isnan([result.value[2], result.variance[2]]).all()
    assert result.n.tolist() == [3, 1, 0]
    assert result.influence[:, 0] == pytest.approx([1 / 9, -2 / 9, 1 / 9, 0, 0, 0])
    assert joint.simple_precision([1, 0, 1], [0, 0, 0], 1, ddof=1).variance == pytest.approx(
        [1 / 9]
    )


def test_simple_precision_of_nothing_is_undefined():
    result = joint.simple_precision([], np.array([], dtype=int), 2)
    assert np.isnan(result.value).all()
    with pytest.raises(ValueError, match="got 2"):
        joint.simple_precision([1], [2], 2)
    with pytest.raises(ValueError, match="m must be"):
        joint.simple_precision([1], [0], 0)
    with pytest.raises(ValueError, match="one dimension"):
        joint.simple_precision([[1]], [0], 1)


def test_joint_precision_by_hand():
    # w_0 = (1/2, 1/2), q_0 = (1/4, 3/4); w_1 = (1/3, 2/3), q_1(b) = 5/6. Draws: a (right) of 0, b
    # (right) of 1.
    result = joint.joint_precision(NESTED, [0, 1], [1, 1], distributions.pairwise_overlap(NESTED))
    assert result.value == pytest.approx([1 / 2 * 2 + 1 / 2 * 2 / 3, 2 / 3 * 6 / 5])
    assert result.n.tolist() == [2, 1]


def test_with_one_system_joint_is_simple():
    label, system = [1, 0, 1, NAN, 1], [0] * 5
    P = np.full((5, 1), 0.1)
    simple, both = (
        joint.simple_precision(label, system, 1),
        joint.joint_precision(P, system, label, [[0.1]]),
    )
    assert both.value == pytest.approx(simple.value)
    assert both.variance == pytest.approx(simple.variance)
    assert both.influence == pytest.approx(simple.influence)


def test_disjoint_systems_learn_nothing_from_each_other():
    P = np.array([[0.5, 0], [0.5, 0], [0, 0.2], [0, 0.2], [0, 0.2]])
    system, label, overlap = [0, 0, 1, 1, 1], [1, 0, 1, 1, 0], np.diag([0.5, 0.2])
    for method in METHODS:
        result = joint.joint_precision(P, system, label, overlap, method=method)
        assert result.value == pytest.approx([1 / 2, 2 / 3])
        assert result.variance == pytest.approx(joint.simple_precision(label, system, 2).variance)


def test_identical_systems_share_all_labels():
    P = np.full((6, 2), 0.1)
    result = joint.joint_precision(P, [0, 0, 1, 1, 1, 1], [1, 0, 1, 1, 0, 1], np.full((2, 2), 0.1))
    assert result.value == pytest.approx([4 / 6, 4 / 6])
    assert result.influence[:, 0] == pytest.approx(result.influence[:, 1])


@pytest.mark.parametrize("right", [0, 1])
def test_all_right_or_all_wrong(right):
    P = NESTED[[0, 1, 1, 1]]
    result = joint.joint_precision(
        P, [0, 0, 1, 1], [right] * 4, distributions.pairwise_overlap(NESTED)
    )
    if right:
        assert (result.value > 0).all()
    else:
        assert result.value.tolist() == [0, 0]
        assert result.variance.tolist() == [0, 0]


def test_without_any_label_everything_is_undefined():
    result = joint.joint_precision(
        NESTED, [0, 1], [NAN, NAN], distributions.pairwise_overlap(NESTED)
    )
    assert np.isnan(result.value).all()
    assert np.isnan(result.variance).all()
    assert result.n.tolist() == [0, 0]


def test_a_missing_label_is_as_if_never_drawn():
    overlap = distributions.pairwise_overlap(NESTED)
    kept = joint.joint_precision(NESTED[[0, 1, 1]], [0, 0, 1], [1, 0, 1], overlap)
    more = joint.joint_precision(
        NESTED[[0, 1, 1, 0, 1]], [0, 0, 1, 0, 1], [1, 0, 1, NAN, NAN], overlap
    )
    assert more.value == pytest.approx(kept.value)
    assert more.variance == pytest.approx(kept.variance)
    assert more.influence[3:].tolist() == [[0, 0], [0, 0]]


def test_an_undrawn_system_is_scored_by_what_it_shares():
    # System 1 is drawn from alone: of system 0 it reaches b, half of its probability.
    result = joint.joint_precision(
        NESTED[[1, 1]], [1, 1], [1, 1], distributions.pairwise_overlap(NESTED)
    )
    assert result.value == pytest.approx([0.5, 1])
    apart = joint.joint_precision([[1.0, 0.0]], [0], [1], np.eye(2))
    assert apart.value[0] == 1
    assert np.isnan(apart.value[1])


def test_a_column_of_labels_for_each_system_judges_it_alone():
    P, overlap = NESTED[[0, 1, 1]], distributions.pairwise_overlap(NESTED)
    label = np.array([[1, NAN], [1, 0], [1, 0]])
    result = joint.joint_precision(P, [0, 0, 1], label, overlap)
    assert result.value[0] == pytest.approx(
        joint.joint_precision(P, [0, 0, 1], [1, 1, 1], overlap).value[0]
    )
    assert result.value[1] == 0


def test_uneven_numbers_of_draws_stay_unbiased_and_finite():
    rng = np.random.default_rng(5)
    P, truth = shares([[1, 1, 1, 0], [0, 1, 2, 1]]), np.array([1, 0, 1, 1])
    system = np.repeat([0, 1], [20_000, 1])
    rows = np.array([rng.choice(4, p=P[:, j]) for j in system])
    result = joint.joint_precision(P[rows], system, truth[rows], distributions.pairwise_overlap(P))
    assert np.isfinite(result.variance).all()
    assert result.value[0] == pytest.approx(2 / 3, abs=0.02)


def test_draws_that_cannot_be_are_refused():
    overlap = distributions.pairwise_overlap(NESTED)
    with pytest.raises(ValueError, match=r"got 0\.0 for draw 0"):
        joint.joint_precision(NESTED, [1, 1], [1, 1], overlap)
    with pytest.raises(ValueError, match=r"1\.5"):
        joint.joint_precision([[1.5, 0.0], [0.5, 1.0]], [0, 1], [1, 1], overlap)
    with pytest.raises(ValueError, match=r"2\.0"):
        joint.joint_precision(NESTED, [0, 1], [1, 2], overlap)
    with pytest.raises(ValueError, match="less than 2; got 2"):
        joint.joint_precision(NESTED, [0, 2], [1, 1], overlap)
    with pytest.raises(ValueError, match=r"shape \(2,\)"):
        joint.joint_precision(NESTED, [0, 1], [1, 1, 1], overlap)
    with pytest.raises(ValueError, match="overlap of system 1"):
        joint.joint_precision(NESTED, [0, 1], [1, 1], [[1, 0], [0, 0]])
    with pytest.raises(ValueError, match="overlap is needed"):
        joint.joint_precision(NESTED, [0, 1], [1, 1], None)
    assert np.isfinite(
        joint.joint_precision(NESTED, [0, 1], [1, 1], None, method="balance").value
    ).all()
    with pytest.raises(ValueError, match="two dimensions"):
        joint.joint_precision([1.0], [0], [1], [[1.0]])


@settings(max_examples=25, deadline=None)
@given(universe=universes(), method=st.sampled_from(METHODS))
def test_over_all_samples_joint_precision_is_unbiased_and_so_is_its_variance(universe, method):
    P, truth = universe
    overlap = distributions.pairwise_overlap(P)
    mean, square, predicted = np.zeros(2), np.zeros(2), np.zeros(2)
    for probability, rows, system in samples(P, (2, 2)):
        result = joint.joint_precision(P[rows], system, truth[rows], overlap, method=method, ddof=1)
        mean += probability * result.value
        square += probability * result.value**2
        predicted += probability * result.variance
    assert mean == pytest.approx(P.T @ truth, abs=1e-12)
    assert predicted == pytest.approx(square - mean**2, abs=1e-12)


@settings(max_examples=50, deadline=None)
@given(universe=universes(4, 3), data=st.data())
def test_renaming_systems_renames_the_results(universe, data):
    P, truth = universe
    system = np.array(data.draw(st.lists(st.integers(0, 2), min_size=4, max_size=12)))
    rows = np.array([data.draw(st.sampled_from(np.flatnonzero(P[:, j]).tolist())) for j in system])
    order = np.array(data.draw(st.permutations(range(3))))
    here = joint.joint_precision(P[rows], system, truth[rows], distributions.pairwise_overlap(P))
    there = joint.joint_precision(
        P[rows][:, order],
        np.argsort(order)[system],
        truth[rows],
        distributions.pairwise_overlap(P[:, order]),
    )
    assert there.value == pytest.approx(here.value[order], nan_ok=True)
    assert there.variance == pytest.approx(here.variance[order], abs=1e-14, nan_ok=True)
    assert there.influence == pytest.approx(here.influence[:, order], abs=1e-12, nan_ok=True)


@settings(max_examples=50, deadline=None)
@given(
    universe=universes(4, 2),
    n=st.tuples(st.integers(1, 5), st.integers(1, 5)),
    seed=st.integers(0, 99),
)
def test_variance_is_the_square_of_the_influence_and_the_terms_sum_to_the_value(universe, n, seed):
    P, truth = universe
    rng = np.random.default_rng(seed)
    system = np.repeat([0, 1], n)
    rows = np.array([rng.choice(4, p=P[:, j]) for j in system])
    arguments = (P[rows], system, truth[rows], distributions.pairwise_overlap(P))
    result = joint.joint_precision(*arguments)
    assert joint.precision_variance(*arguments) == pytest.approx((result.influence**2).sum(axis=0))
    assert joint.joint_terms(*arguments).sum(axis=0) == pytest.approx(result.value)
    low, high = result.confidence_interval(0.8)
    assert ((low <= result.value) & (result.value <= high)).all()


def test_theorem_2_term_by_term():
    P, system, label = NESTED[[0, 1, 1, 1, 1]], np.array([0, 0, 0, 1, 1]), np.array([1, 1, 0, 0, 1])
    W = joint.mixture_weights(distributions.pairwise_overlap(NESTED), [3, 2])
    ratio = P * label[:, None] / joint.proposal_probabilities(P, W)
    by_hand = [
        sum(
            W[i, j] ** 2
            / n
            * (np.mean(ratio[system == j, i] ** 2) - np.mean(ratio[system == j, i]) ** 2)
            for j, n in ((0, 3), (1, 2))
        )
        for i in (0, 1)
    ]
    assert joint.precision_variance(
        P, system, label, distributions.pairwise_overlap(NESTED)
    ) == pytest.approx(by_hand)


def test_a_lone_draw_of_a_stranger_does_not_spoil_the_unbiased_variance():
    P = np.array([[0.5, 0], [0.5, 0], [0, 1.0]])
    result = joint.joint_precision(P, [0, 0, 1], [1, 0, 1], np.diag([0.5, 1]), ddof=1)
    assert result.variance[0] == pytest.approx(0.25)
    assert np.isnan(result.variance[1])


def test_f1_is_the_harmonic_mean_with_the_joint_variance():
    nan = np.full(3, NAN)
    precision = Estimate(
        np.array([0.5, 0, NAN]),
        np.array([0.02, 0.01, NAN]),
        np.array([2, 2, 0]),
        np.column_stack([[0.1, -0.1], [0.1, 0], nan[:2]]),
    )
    recall = Estimate(
        np.array([0.25, 0, 0.5]),
        np.array([0.01, 0, 0]),
        np.array([3, 3, 3]),
        np.column_stack([[0.06, 0, 0.08], [0, 0, 0], [0, 0, 0]]),
    )
    result = joint.joint_f1(precision, recall)
    by_p, by_r = 2 * 0.25**2 / 0.75**2, 2 * 0.5**2 / 0.75**2
    assert result.value == pytest.approx([1 / 3, 0, NAN], nan_ok=True)
    assert result.influence[:, 0] == pytest.approx(
        [by_p * 0.1 + by_r * 0.06, -by_p * 0.1, by_r * 0.08]
    )
    assert result.variance[0] == pytest.approx((result.influence[:, 0] ** 2).sum())
    assert result.variance[1] == pytest.approx(0.25 * 0.01)
    assert np.isnan(result.variance[2])
    assert result.n.tolist() == [2, 2, 0]
    with pytest.raises(ValueError, match="do not fit"):
        joint.joint_f1(recall, precision)


def test_f1_keeps_the_second_order_part_of_recall():
    half = Estimate(0.5, 0.01, 10, np.array([0.1]))
    wider = Estimate(0.5, 0.014, 10, np.array([0.1]))
    assert joint.joint_f1(half, half).variance == pytest.approx(0.01)
    assert joint.joint_f1(half, wider).variance == pytest.approx(0.01 + 0.25 * 0.004)


@pytest.mark.statistical
def test_intervals_of_joint_precision_cover_as_often_as_they_say():
    rng = np.random.default_rng(20171)
    m, size, n, repeats = 4, 300, 100, 400
    truth = rng.random(size) < 0.6
    P = shares([list(rng.integers(1, 4, size) * (rng.random(size) < 0.4)) for _ in range(m)])
    overlap, target = distributions.pairwise_overlap(P), P.T @ truth
    hits, errors = np.zeros(m), []
    system = np.repeat(np.arange(m), n)
    for _ in range(repeats):
        rows = np.concatenate([rng.choice(size, n, p=P[:, j]) for j in range(m)])
        result = joint.joint_precision(P[rows], system, truth[rows].astype(float), overlap)
        low, high = result.confidence_interval(0.8)
        hits += (low <= target) & (target <= high)
        errors.append(result.value - target)
    mean, spread = np.mean(errors, axis=0), np.std(errors, axis=0) / np.sqrt(repeats)
    assert (np.abs(mean) < 4 * spread).all()
    assert 0.76 < hits.mean() / repeats < 0.84
