"""The model: right where it can be, silent where it knows nothing, and blind to the label it
predicts.
"""

import time

import numpy as np
import pytest
from scipy import sparse
from scipy.special import expit

from estimators import crossfit
from estimators.crossfit import cross_fitted_predictions, keyed_folds


def toy(n=300, k=4, seed=0):
    rng = np.random.default_rng(seed)
    x = rng.integers(0, 2, (n, k)).astype(float)
    chance = expit(x @ np.linspace(-2, 2, k))
    return x, (rng.random(n) < chance).astype(float), chance, rng.integers(0, 5, n)


def test_a_label_never_predicts_itself():
    x, f, _, fold = toy()
    g = cross_fitted_predictions(x, f, x, fold, fold, ridge=1.0)
    flipped = f.copy()
    flipped[fold == 2] = 1 - flipped[fold == 2]
    again = cross_fitted_predictions(x, flipped, x, fold, fold, ridge=1.0)
    np.testing.assert_allclose(again[fold == 2], g[fold == 2], atol=1e-6)
    assert np.abs(again[fold != 2] - g[fold != 2]).max() > 0.05


def test_it_finds_what_can_be_found():
    x, f, chance, fold = toy(n=4000)
    assert np.abs(cross_fitted_predictions(x, f, x, fold, fold, ridge=1.0) - chance).mean() < 0.04


def test_the_minimum_has_no_slope():
    x, f, _, _ = toy()
    matrix, w = sparse.csr_array(x), np.ones(f.size)
    for solver in (crossfit._minimise_by_newton, crossfit._minimise_by_lbfgs):
        theta = solver(matrix, f, w, 0.5, np.zeros(5))
        assert np.abs(crossfit._penalised_loss(theta, matrix, f, w, 0.5)[1]).max() < 1e-3


def test_both_solvers_and_both_formats_agree(monkeypatch):
    x, f, _, fold = toy()
    dense = cross_fitted_predictions(x, f, x, fold, fold, ridge=0.7)
    np.testing.assert_allclose(
        cross_fitted_predictions(
            sparse.csr_matrix(x), f, sparse.coo_array(x), fold, fold, ridge=0.7
        ),
        dense,
    )
    monkeypatch.setattr(crossfit, "SMALL", 0)
    np.testing.assert_allclose(
        cross_fitted_predictions(x, f, x, fold, fold, ridge=0.7), dense, atol=1e-4
    )


def test_columns_may_change_places():
    x, f, _, fold = toy()
    order = [2, 0, 3, 1]
    one, other = (
        cross_fitted_predictions(m, f, m, fold, fold, ridge=1.0) for m in (x, x[:, order])
    )
    np.testing.assert_allclose(one, other, atol=1e-9)


def test_missing_labels_teach_nothing():
    x, f, _, fold = toy()
    f[::3] = np.nan
    known = ~np.isnan(f)
    expected = cross_fitted_predictions(x[known], f[known], x, fold[known], fold, ridge=1.0)
    np.testing.assert_allclose(
        cross_fitted_predictions(x, f, x, fold, fold, ridge=1.0), expected, atol=1e-9
    )


def test_without_labels_it_says_a_half():
    x = np.ones((3, 2))
    nothing = np.zeros(0, dtype=int)
    assert (
        cross_fitted_predictions(
            np.zeros((0, 2)), [], x, nothing, np.zeros(3, dtype=int), ridge=1.0
        ).tolist()
        == [0.5] * 3
    )
    one_fold = np.zeros(3, dtype=int)
    assert (
        cross_fitted_predictions(x, np.ones(3), x, one_fold, one_fold, ridge=1.0).tolist()
        == [0.5] * 3
    )


@pytest.mark.parametrize("truth", [0.0, 1.0])
def test_all_right_or_all_wrong_stays_clear_of_certainty(truth):
    x, _, _, fold = toy()
    g = cross_fitted_predictions(
        x, np.full(x.shape[0], truth), x, fold, fold, ridge=1e-6, clip=0.01
    )
    assert np.any(np.abs(g - truth) < 0.011)
    assert np.all(np.abs(g - truth) <= 0.05)
    assert np.all(np.abs(g - truth) >= 0.01 - 1e-12)


def test_a_heavier_ridge_gives_flatter_guesses():
    x, f, _, fold = toy()
    spreads = [
        np.std(cross_fitted_predictions(x, f, x, fold, fold, ridge=ridge))
        for ridge in (0.1, 10, 1000)
    ]
    assert spreads[0] > spreads[1] > spreads[2]


def test_weights_are_as_good_as_repeats():
    x, f, _, fold = toy(n=60)
    twice = np.repeat(np.arange(60), 2)
    repeated = cross_fitted_predictions(x[twice], f[twice], x, fold[twice], fold, ridge=1.0)
    weighted = cross_fitted_predictions(x, f, x, fold, fold, ridge=1.0, weight=np.full(60, 2.0))
    np.testing.assert_allclose(weighted, repeated, atol=1e-8)


def test_folds_belong_to_targets_and_are_about_even():
    names = [f"t{i}" for i in range(5000)]
    fold = keyed_folds(names, 5, key=b"secret")
    np.testing.assert_array_equal(keyed_folds(names[:10], 5, key=b"secret"), fold[:10])
    assert np.all(np.abs(np.bincount(fold) - 1000) < 130)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"ridge": 0.0}, r"ridge must be positive; got 0\.0"),
        ({"clip": 0.5}, r"clip .* got 0\.5"),
        ({"label": np.array([2.0, 0.0])}, r"2\.0"),
        ({"features_all": np.ones((2, 3))}, "features_labelled"),
        ({"features_all": np.array([[np.nan], [0.0]])}, "nan"),
        ({"fold_all": np.array([0.5, 0.5])}, "integer"),
    ],
)
def test_it_names_the_offending_value(change, message):
    whole = np.array([0, 1])
    arguments = {
        "features_labelled": np.ones((2, 1)),
        "label": np.array([1.0, 0.0]),
        "features_all": np.ones((2, 1)),
        "fold_labelled": whole,
        "fold_all": whole,
        "ridge": 1.0,
    } | change
    with pytest.raises(ValueError, match=message):
        cross_fitted_predictions(**arguments)
    with pytest.raises(ValueError, match="k must be at least 2"):
        keyed_folds(["a"], 1, key=b"k")


def test_a_hundred_thousand_sparse_rows_take_seconds_not_minutes():
    rng = np.random.default_rng(1)
    rows, columns = 100_000, 3000
    indices = rng.integers(0, columns, rows * 15)
    x = sparse.csr_array(
        (np.ones(indices.size), indices, np.arange(0, indices.size + 1, 15)), shape=(rows, columns)
    )
    labelled = rng.choice(rows, 5000, replace=False)
    fold = rng.integers(0, 5, rows)
    started = time.process_time()
    g = cross_fitted_predictions(
        x[labelled], rng.integers(0, 2, 5000), x, fold[labelled], fold, ridge=1.0
    )
    assert time.process_time() - started < 30
    assert g.shape == (rows,)
