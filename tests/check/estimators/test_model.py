"""The model g: no label predicts itself, more agreement is believed more, and a warm start changes
nothing.
"""

import numpy as np
import pytest
from scipy import sparse
from scipy.optimize import minimize
from scipy.special import expit

from estimators import model
from estimators.features import LEAST_ROWS, RIDGE, Claims, Features, prediction_features
from estimators.horvitz_thompson import anticipated_variance
from estimators.poisson import planned_variance


def world(rng, n=400, m=4):
    """Return membership, labels, targets and folds: every further system that agrees makes a
    statement likelier.
    """
    member = rng.random((n, m)) < 0.5
    member[np.flatnonzero(~member.any(axis=1)), 0] = True
    target = np.arange(n) // 2
    label = (rng.random(n) < expit(member.sum(axis=1) * 1.2 - 3)).astype(float)
    return member, label, target, rng.integers(0, 5, n)[target]


def test_agreement_makes_a_statement_likelier():
    member, label, target, fold = world(np.random.default_rng(1))
    g = model.fit_and_predict(member, label, fold, target=target).g
    votes = member.sum(axis=1)
    assert g[votes == 4].mean() > g[votes == 1].mean() + 0.3


def test_it_beats_the_mean_on_labels_it_has_not_seen():
    rng = np.random.default_rng(2)
    member, label, target, fold = world(rng, n=1000)
    some = np.where(rng.random(1000) < 0.3, label, np.nan)
    g = model.fit_and_predict(member, some, fold, target=target).g
    unseen = np.isnan(some)
    assert np.mean((label - g)[unseen] ** 2) < 0.9 * label[unseen].var()


def test_no_label_predicts_itself():
    rng = np.random.default_rng(3)
    member, label, target, fold = world(rng)
    first = model.fit_and_predict(member, label, fold, target=target).g
    turned = np.where(fold == 2, 1 - label, label)
    second = model.fit_and_predict(member, turned, fold, target=target).g
    np.testing.assert_allclose(first[fold == 2], second[fold == 2], atol=1e-4)
    assert np.abs(first - second)[fold != 2].max() > 0.05


def test_it_is_the_minimum_that_it_says_it_is():
    rng = np.random.default_rng(4)
    member, label, target, fold = world(rng, n=120)
    found = prediction_features(member, target=target, confidence=rng.random(member.shape))
    fitted = model.fit_ridge_logistic(found, label, fold)
    x, learn = found.matrix.toarray(), fold != 1

    def loss(beta):
        eta = x[learn] @ beta
        halves = np.logaddexp(0, beta[0]) - 0.5 * beta[0]
        return (
            np.sum(np.logaddexp(0, eta) - label[learn] * eta)
            + halves
            + 0.5 * found.penalty @ beta**2
        )

    other = minimize(loss, np.zeros(x.shape[1]), method="BFGS", options={"gtol": 1e-6}).x
    assert loss(fitted.coefficients[1]) <= loss(other) + 1e-6
    np.testing.assert_allclose(expit(x @ fitted.coefficients[1]), expit(x @ other), atol=1e-3)


def test_a_warm_start_with_fewer_systems_changes_nothing():
    rng = np.random.default_rng(5)
    member, label, target, fold = world(rng)
    early = np.flatnonzero(member[:, :3].any(axis=1))
    codes = np.unique(target[early], return_inverse=True)[1]
    before = model.fit_and_predict(member[early, :3], label[early], fold[early], target=codes)
    cold = model.fit_and_predict(member, label, fold, target=target)
    warm = model.fit_and_predict(member, label, fold, target=target, start=before)
    np.testing.assert_allclose(warm.g, cold.g, atol=1e-4)


@pytest.mark.parametrize("seed", [4, 6, 9])
def test_the_order_of_rows_changes_no_digit(seed):
    """Nor does a processor that adds up in another order: what is printed is the same everywhere.
    Steps that ended early, or were halved for a loss that was only rounded, gave 1e-8 (seed 4).
    """
    random, n, n_systems = np.random.default_rng(seed), 1500, 6
    membership = (random.random((n, n_systems)) < 0.1 + 0.8 * random.random(n_systems)) * 1.0
    membership[membership.sum(axis=1) == 0, 0] = 1.0
    confidence = random.random((n, n_systems)) * membership
    worth = membership @ random.normal(size=n_systems) * 2 + random.normal(size=n)
    label = np.where(random.random(n) < 0.2, worth > worth.mean(), np.nan)
    fold, predicate = np.arange(n) % 5, random.integers(0, 12, n)

    def fitted(rows):
        return model.fit_and_predict(
            membership[rows],
            label[rows],
            fold[rows],
            target=np.arange(n),
            confidence=confidence[rows],
            predicate=predicate[rows],
        ).g

    order = random.permutation(n)
    np.testing.assert_allclose(fitted(order), fitted(np.arange(n))[order], rtol=0, atol=1e-13)


def test_without_labels_it_knows_nothing():
    member, label, target, fold = world(np.random.default_rng(6), n=40)
    assert (
        model.fit_and_predict(member, np.full(40, np.nan), fold, target=target).g.tolist()
        == [0.5] * 40
    )
    lonely = np.where(fold == fold[0], label, np.nan)
    assert model.fit_and_predict(member, lonely, fold, target=target).g[0] == 0.5


@pytest.mark.parametrize("value", [0.0, 1.0])
def test_labels_that_all_agree_leave_it_inside_the_open_interval(value):
    member, _, target, fold = world(np.random.default_rng(7), n=60)
    g = model.fit_and_predict(member, np.full(60, value), fold, target=target).g
    assert g.min() >= 0.02
    assert g.max() <= 0.98


def test_sparse_and_dense_arguments_give_the_same():
    rng = np.random.default_rng(8)
    member, label, target, fold = world(rng)
    confidence = np.where(member, rng.random(member.shape), np.nan)
    cells = sparse.csr_array(member.astype(float))
    stored = cells.copy()
    stored.data = confidence[cells.nonzero()]
    dense = model.fit_and_predict(member, label, fold, target=target, confidence=confidence).g
    np.testing.assert_array_equal(
        dense, model.fit_and_predict(cells, label, fold, target=target, confidence=stored).g
    )


def test_only_the_order_of_confidences_counts():
    member = np.ones((5, 1))
    first = prediction_features(
        member, target=range(5), confidence=np.array([[0.1], [0.2], [0.2], [0.9], [np.nan]])
    )
    again = prediction_features(
        member, target=range(5), confidence=np.array([[1.0], [5.0], [5.0], [70.0], [np.nan]])
    )
    column = first.names.index("standing 0")
    assert first.matrix.toarray()[:, column].tolist() == [-0.75, 0.0, 0.0, 0.75, 0.0]
    np.testing.assert_array_equal(first.matrix.toarray(), again.matrix.toarray())


def test_a_confidence_that_is_not_stored_is_none():
    member, table = (
        np.ones((4, 2)),
        np.array([[0.1, np.nan], [np.nan, 0.3], [0.7, 0.9], [np.nan, 0.2]]),
    )
    row, system = np.nonzero(~np.isnan(table))
    stored = sparse.csr_array((table[row, system], (row, system)), shape=(4, 2))
    dense, thin = (
        prediction_features(member, target=range(4), confidence=one).matrix.toarray()
        for one in (table, stored)
    )
    np.testing.assert_array_equal(dense, thin)
    none = prediction_features(
        member, target=range(4), confidence=sparse.csr_array((4, 2))
    ).matrix.toarray()
    assert none[:, -2:].tolist() == [[0.0, 0.0]] * 4


def test_every_family_has_its_columns_and_penalties():
    rng = np.random.default_rng(9)
    n = 3 * LEAST_ROWS
    codes = np.repeat([0, 1, 2], LEAST_ROWS)
    rare = np.append(np.zeros(n - 1, dtype=int), 1)
    found = prediction_features(
        np.ones((n, 2)),
        target=np.arange(n),
        team=[0, 0],
        confidence=rng.random((n, 2)),
        predicate=codes,
        types=rare,
        subject=codes,
        object=codes,
        numbers=rng.random((n, 2)),
    )
    assert found.matrix.shape == (n, len(found.names)) == (n, found.penalty.size)
    assert [name for name in found.names if name.startswith("predicate")] == [
        f"predicate {k}" for k in range(3)
    ]
    assert [name for name in found.names if name.startswith("types")] == ["types 0"], (
        "a rare code has no column"
    )
    assert found.penalty[list(found.names).index("number 1")] == RIDGE["number"]
    votes = found.matrix.toarray()[
        :, [found.names.index("votes systems"), found.names.index("votes teams")]
    ]
    np.testing.assert_allclose(votes[0], [np.log(2), 0])


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"label": [1.0]}, "label must have shape"),
        ({"label": [2.0, 1.0, 0.0]}, "label must be in"),
        ({"fold": [0, 1, 0]}, "target 0 lies in several"),
        ({"membership": [[1], [0], [1]]}, "row 1 has none"),
        ({"confidence": [[1.0, 2.0]] * 3}, "confidence must have the shape"),
        ({"confidence": sparse.csr_array([[1.0], [0.0]])}, "confidence must have the shape"),
        ({"numbers": [1.0, 2.0, 3.0]}, "numbers must have shape"),
        ({"predicate": [0.5, 1.0, 2.0]}, "predicate must hold integer codes"),
    ],
)
def test_it_names_what_is_wrong(change, message):
    right = {
        "membership": [[1], [1], [1]],
        "label": [1.0, 0.0, 1.0],
        "fold": [0, 0, 1],
        "target": [0, 0, 1],
    }
    with pytest.raises(ValueError, match=message):
        model.fit_and_predict(**{**right, **change})


def test_a_fit_wants_as_many_labels_as_rows():
    found = Features(sparse.csr_array(np.ones((2, 1))), np.zeros(1), ("1",))
    with pytest.raises(ValueError, match="label must have shape"):
        model.fit_ridge_logistic(found, [1.0], [0, 1])


def test_correlation_is_found_in_simulated_errors():
    rng = np.random.default_rng(10)
    n, rho = 4000, 0.5
    common = np.repeat(rng.random(n) < rho, 2)
    label = np.where(common, np.repeat(rng.random(n) < 0.3, 2), rng.random(2 * n) < 0.3).astype(
        float
    )
    target, one = np.repeat(np.arange(n), 2), np.ones((2 * n, 1))
    assert abs(model.error_correlation(label, np.full(2 * n, 0.3), target, one) - rho) < 0.05


def test_correlation_counts_only_what_one_system_predicts_together():
    label, g, target = [1.0, 0.0, 1.0, 0.0], np.full(4, 0.5), [0, 0, 1, 1]
    apart = np.array([[1, 0], [0, 1], [1, 0], [0, 1]])
    assert model.error_correlation(label, g, target, apart) == 1.0, "no pair: the careful prior"
    assert model.error_correlation(label, g, target, np.ones((4, 1)), prior=(1.0, 0.0)) == 0.0


def test_few_pairs_hardly_move_the_careful_prior():
    assert model.error_correlation([1.0, 0.0], [0.5, 0.5], [0, 0], np.ones((2, 1))) > 0.85


def test_expected_error_plans_what_is_anticipated():
    rng = np.random.default_rng(11)
    p, g, target = rng.random(40), rng.uniform(0.1, 0.9, 40), np.arange(40) // 3
    p, pi = p / p.sum(), np.full(40, 0.3)
    v = model.expected_error(p, g, target, correlation=0.4, floor=0.0)
    anticipated = anticipated_variance(p, pi, g, [], [], target=target, correlation=0.4)
    np.testing.assert_allclose(planned_variance(p, pi, v, target=target), anticipated)


def test_correlation_only_matters_where_targets_are_shared():
    p, g = np.full(4, 0.25), np.full(4, 0.5)
    alone = [
        anticipated_variance(p, np.full(4, 0.5), g, [], [], target=range(4), correlation=rho)
        for rho in (0, 1)
    ]
    shared = [
        anticipated_variance(p, np.full(4, 0.5), g, [], [], target=[0] * 4, correlation=rho)
        for rho in (0, 1)
    ]
    assert alone[0] == alone[1] == shared[0]
    assert shared[1] == pytest.approx(4 * shared[0])


def test_what_can_never_be_asked_stays_infinite():
    half = [0.5, 0.5]
    for rho in (0.0, 0.5, 1.0):
        assert (
            anticipated_variance(half, [0.5, 0.0], half, [], [], target=[0, 1], correlation=rho)
            == np.inf
        )


def test_a_pool_tells_the_model_all_that_is_free_and_can_leave_out_nothing():
    rng = np.random.default_rng(6)
    n, m = 60, 3
    told = {
        "membership": np.maximum(rng.integers(0, 2, (n, m)), [1, 0, 0]),
        "target": np.arange(n),
        "team": np.array([0, 0, 1]),
        "confidence": rng.random((n, m)),
        "predicate": rng.integers(0, 3, n),
        "types": rng.integers(0, 2, n),
        "subject": rng.integers(0, 5, n),
        "object": rng.integers(0, 5, n),
    }
    found, same = Claims(**told).features(), prediction_features(**told)
    assert found.names == same.names
    np.testing.assert_array_equal(found.matrix.toarray(), same.matrix.toarray())
    for name in told:
        with pytest.raises(TypeError, match=name):
            Claims(**{key: value for key, value in told.items() if key != name})
