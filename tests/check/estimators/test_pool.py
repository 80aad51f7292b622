"""Tests of the published recall: θ by hand and by document, ν by census and by simulation, and
their product.
"""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from estimators import distributions, joint
from tests.check.estimators.universe import shares

NAN = float("nan")
# Two groups that share nothing: systems 0 and 1 predict a, b (1 only b); system 2 predicts c, d.
# All is true but d.
GROUPS = shares([[1, 1, 0, 0], [0, 1, 0, 0], [0, 0, 1, 1]])
TRUTH = np.array([1, 1, 1, 0])


def census(P: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return draws that contain every instance exactly as often as its probability says, for P in
    twelfths.
    """
    times = np.rint(12 * P).astype(int)
    pairs = [(x, j) for j in range(P.shape[1]) for x in range(len(P)) for _ in range(times[x, j])]
    rows, system = np.array(pairs).T
    return rows, system


def test_pool_recall_is_the_share_of_the_true_instances_found():
    result = joint.pool_recall([1, 1, 0, 1])
    assert result.value == 0.75
    assert result.variance == pytest.approx(0.75 * 0.25 / 4)
    assert result.n == 4
    assert joint.pool_recall([1, 0], [3, 1]).value == 0.75
    assert joint.pool_recall([1, 0, 0], [3, 1, 0]).n == 2


def test_documents_are_the_clusters():
    # r = (1/4 + 1/4) (1/4), then (-3/4 + 1/4) / 4: ±1/8; twice their squares is 1/16.
    result = joint.pool_recall([1, 1, 0, 1], document=[7, 7, 9, 9])
    assert result.variance == pytest.approx(2 * 2 / 64)
    assert result.influence.shape == (2,)
    assert joint.pool_recall(
        [1, 1, 0, 1], document=[7, 7, 9, 9], n_documents=4
    ).variance == pytest.approx(1 / 32)
    assert joint.pool_recall([1, 1, 0, 1], document=[7, 7, 9, 9], n_documents=2).variance == 0
    empty_third = joint.pool_recall([1, 1, 0, 1], document=[7, 7, 9, 9], n_annotated=3)
    assert empty_third.variance == pytest.approx(3 / 2 * 2 / 64)


def test_pool_recall_at_the_edges():
    nothing = joint.pool_recall([])
    assert np.isnan([nothing.value, nothing.variance]).all()
    assert nothing.n == 0
    assert np.isnan(joint.pool_recall([1, 0], document=[3, 3]).variance)
    assert joint.pool_recall([1, 1]).variance == 0
    assert joint.pool_recall([0, 0]).value == 0


def test_where_all_agree_half_a_label_that_does_not_is_the_floor():
    """Three facts of two documents, all of them predicted, do not say that all facts are."""
    p = 1 - 0.5 / 3
    theta = joint.pool_recall([1, 1, 1], document=[0, 0, 1], n_documents=9)
    assert theta.variance == 0 and theta.anticipated == pytest.approx(p * (1 - p) / 3)
    assert joint.pool_recall([1, 1, 1], document=[0, 0, 1], n_documents=2).anticipated == 0
    assert joint.pool_recall([1, 1, 0], document=[0, 0, 1], n_documents=9).anticipated == 0
    nu = joint.pooled_recall(np.ones((3, 1)), [0, 0, 0], [1, 1, 0], [[1.0]], np.ones((3, 1)))
    assert nu.variance[0] == 0 and nu.anticipated[0] == pytest.approx(0.75 * 0.25 / 2)
    both = joint.joint_recall(
        np.ones((3, 1)),
        [0, 0, 0],
        [1, 1, 0],
        [[1.0]],
        np.ones((3, 1)),
        [1, 1, 1],
        document=[0, 0, 1],
        n_documents=9,
    )
    a, b = theta.anticipated, float(nu.anticipated[0])
    assert both.variance[0] == 0 and both.anticipated[0] == pytest.approx(a + b + a * b)
    low, high = both.confidence_interval(0.8, method="wilson")
    assert low[0] < 0.9 and high[0] == 1


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"predicted_by_any": [0, 2]}, "must be 0 or 1; got"),
        ({"weight": [1, -1]}, r"-1\.0"),
        ({"weight": [1]}, r"shape \(2,\)"),
        ({"document": [0, 1], "n_annotated": 1}, "at least 2, the documents that occur; got 1"),
        ({"document": [0, 1], "n_documents": 1}, "at least 2, the documents annotated; got 1"),
        ({"n_documents": 5}, "need document"),
    ],
)
def test_bad_pools_are_named(change, message):
    with pytest.raises(ValueError, match=message):
        joint.pool_recall(**{"predicted_by_any": [0, 1], **change})


def test_on_a_census_pooled_recall_is_exact_under_common_support():
    rows, system = census(GROUPS)
    member = GROUPS[rows] > 0
    result = joint.pooled_recall(
        GROUPS[rows], system, TRUTH[rows], distributions.pairwise_overlap(GROUPS), member
    )
    assert result.value == pytest.approx([2 / 3, 1 / 3, 1 / 3])
    without = joint.pooled_recall(GROUPS[rows], system, TRUTH[rows], None, member)
    assert without.variance.tolist() == result.variance.tolist()


def test_per_system_support_forgets_what_the_system_cannot_reach():
    rows, system = census(GROUPS)
    result = joint.pooled_recall(
        GROUPS[rows],
        system,
        TRUTH[rows],
        distributions.pairwise_overlap(GROUPS),
        GROUPS[rows] > 0,
        support="per_system",
    )
    assert result.value == pytest.approx([1, 1 / 2, 1])


def test_weights_change_what_recall_counts():
    rows, system = census(GROUPS)
    heavy_c = np.array([1, 1, 2, 5.0])[rows]
    result = joint.pooled_recall(
        GROUPS[rows],
        system,
        TRUTH[rows],
        distributions.pairwise_overlap(GROUPS),
        GROUPS[rows] > 0,
        weight=heavy_c,
    )
    assert result.value == pytest.approx([1 / 2, 1 / 4, 1 / 2])


def test_without_a_true_draw_pooled_recall_is_undefined():
    overlap = distributions.pairwise_overlap(GROUPS)
    for label in ([0, 0], [NAN, NAN], [0, NAN]):
        result = joint.pooled_recall(GROUPS[[0, 2]], [0, 2], label, overlap, GROUPS[[0, 2]] > 0)
        assert np.isnan(result.value).all()
        assert np.isnan(result.variance).all()


def test_bad_recall_arguments_are_named():
    arguments = {
        "P": GROUPS[[0]],
        "system": [0],
        "label": [1],
        "overlap": distributions.pairwise_overlap(GROUPS),
    }
    with pytest.raises(ValueError, match="got 'own'"):
        joint.pooled_recall(**arguments, membership=[[1, 0, 0]], support="own")
    with pytest.raises(ValueError, match=r"membership must have shape \(1, 3\)"):
        joint.pooled_recall(**arguments, membership=[[1, 0]])
    with pytest.raises(ValueError, match="label must have one dimension"):
        joint.pooled_recall(**{**arguments, "label": [[1, 0, 0]]}, membership=[[1, 0, 0]])


@settings(max_examples=40, deadline=None)
@given(
    label=st.lists(st.sampled_from([0, 1, NAN]), min_size=12, max_size=12),
    order=st.permutations(range(3)),
)
def test_renaming_systems_renames_the_recall(label, order):
    rng = np.random.default_rng(3)
    system, order = np.repeat([0, 1, 2], 4), np.array(order)
    rows = np.array([rng.choice(4, p=GROUPS[:, j]) for j in system])
    P, overlap = GROUPS[rows], distributions.pairwise_overlap(GROUPS)
    here = joint.pooled_recall(P, system, label, overlap, P > 0)
    there = joint.pooled_recall(
        P[:, order], np.argsort(order)[system], label, overlap[order][:, order], P[:, order] > 0
    )
    assert there.value == pytest.approx(here.value[order], nan_ok=True)
    assert there.variance == pytest.approx(here.variance[order], nan_ok=True, abs=1e-14)


def test_joint_recall_is_the_product_with_the_variance_of_lemma_1():
    rows, system = census(GROUPS)
    arguments = (
        GROUPS[rows],
        system,
        TRUTH[rows],
        distributions.pairwise_overlap(GROUPS),
        GROUPS[rows] > 0,
    )
    theta = joint.pool_recall([1, 1, 0, 1], document=[7, 7, 9, 9])
    nu = joint.pooled_recall(*arguments)
    result = joint.joint_recall(*arguments, [1, 1, 0, 1], document=[7, 7, 9, 9])
    assert result.value == pytest.approx(0.75 * nu.value)
    first_order = 0.75**2 * nu.variance + nu.value**2 * theta.variance
    assert result.variance == pytest.approx(first_order + theta.variance * nu.variance)
    assert (result.influence**2).sum(axis=0) == pytest.approx(first_order)
    assert result.influence.shape == (len(rows) + 2, 3)


def test_f1_of_joint_precision_and_recall_fits_together():
    rows, system = census(GROUPS)
    arguments = (GROUPS[rows], system, TRUTH[rows], distributions.pairwise_overlap(GROUPS))
    recall = joint.joint_recall(*arguments, GROUPS[rows] > 0, [1, 1, 0, 1], document=[7, 7, 9, 9])
    precision = joint.joint_precision(*arguments)
    result = joint.joint_f1(precision, recall)
    assert result.value == pytest.approx(
        2 * precision.value * recall.value / (precision.value + recall.value)
    )
    assert (result.variance > 0).all()


@pytest.mark.statistical
def test_joint_recall_covers_under_common_support_and_per_system_is_too_large():
    rng = np.random.default_rng(11)
    size, n, documents, repeats = 400, 120, 40, 300
    document = rng.integers(0, documents, size)
    truth = rng.random(size) < 0.7
    left, right = document % 2 == 0, document % 2 == 1
    P = shares([list((rng.random(size) < 0.5) * group * 1) for group in (left, left, right, right)])
    overlap, member = distributions.pairwise_overlap(P), P > 0
    recall = (member & truth[:, None]).sum(axis=0) / truth.sum()
    system = np.repeat(np.arange(4), n)
    hits, common, own = 0.0, [], []
    for _ in range(repeats):
        rows = np.concatenate([rng.choice(size, n, p=P[:, j]) for j in range(4)])
        seen = rng.choice(documents, 20, replace=False)
        found = np.flatnonzero(np.isin(document, seen) & truth)
        arguments = (
            P[rows],
            system,
            truth[rows] * 1.0,
            overlap,
            member[rows],
            member[found].any(axis=1),
        )
        options = {"document": document[found], "n_annotated": 20, "n_documents": documents}
        result = joint.joint_recall(*arguments, **options)
        low, high = result.confidence_interval(0.8)
        hits += np.mean((low <= recall) & (recall <= high))
        common.append(result.value)
        own.append(joint.joint_recall(*arguments, support="per_system", **options).value)
    assert np.mean(common, axis=0) == pytest.approx(recall, rel=0.03)
    assert (np.mean(own, axis=0) > 1.7 * recall).all()
    assert 0.75 < hits / repeats < 0.85
