"""A zero that a sparse matrix stores is a zero: it changes no number, and is left where it was."""

import numpy as np
import pytest
from scipy import sparse

from estimators import crossfit, distributions, features, model
from estimators.horvitz_thompson import anticipated_variance

PLAIN = np.array([[0.5, 0.0, 0.2], [0.5, 0.25, 0.0], [0.0, 0.75, 0.3], [0.0, 0.0, 0.5]])


def with_zeros(plain=PLAIN):
    """Every entry stored, the zeros too."""
    rows, columns = np.indices(plain.shape)
    found = sparse.csr_array(
        (plain.ravel(), columns.ravel(), np.arange(0, plain.size + 1, plain.shape[1])),
        shape=plain.shape,
    )
    assert found.nnz == plain.size > np.count_nonzero(plain) and rows.size
    return found


@pytest.fixture
def stored():
    """A matrix with stored zeros, which is the same afterwards."""
    found = with_zeros()
    yield found
    assert found.nnz == PLAIN.size
    np.testing.assert_array_equal(found.data, PLAIN.ravel())
    np.testing.assert_array_equal(found.toarray(), PLAIN)


@pytest.mark.parametrize("target", [None, [0, 0, 1, 2]])
def test_the_anticipated_variance_takes_no_zero_for_a_weight(stored, target):
    pi, g = np.array([0.5, 0.4, 0.0, 1.0]), np.array([0.5, 0.2, 0.6, 0.9])
    arguments = (pi, g, np.array([1.0, 0.0]), np.array([0.5, 0.2]))
    if target:
        pi[:2] = 0.5
    expected = anticipated_variance(sparse.csr_array(PLAIN), *arguments, target=target)
    found = anticipated_variance(stored, *arguments, target=target)
    np.testing.assert_array_equal(found, expected)
    assert np.isfinite(found).tolist() == [
        True,
        False,
        False,
    ]  # the first gives no weight to what cannot be asked


def test_overlaps_are_the_same(stored):
    np.testing.assert_allclose(distributions.overlap(stored), distributions.overlap(PLAIN))


def test_whoever_has_a_stored_zero_predicts_nothing(stored):
    found, expected = (
        features.features(one, target=[0, 0, 1, 2], team=[0, 1, 1], predicate=[0, 1, 0, 1])
        for one in (stored, PLAIN)
    )
    assert found.names == expected.names
    np.testing.assert_allclose(found.matrix.toarray(), expected.matrix.toarray())
    nobody = with_zeros(np.array([[1.0, 0.0], [0.0, 0.0]]))
    with pytest.raises(ValueError, match="row 1 has none"):
        features.features(nobody, target=[0, 1])


def test_a_stored_confidence_of_zero_is_the_least_sure_and_not_none():
    member, sure = np.ones((3, 1)), np.array([[0.0], [0.5], [0.9]])
    found = features.features(member, target=[0, 1, 2], confidence=with_zeros(sure))
    expected = features.features(member, target=[0, 1, 2], confidence=sure)
    np.testing.assert_allclose(found.matrix.toarray(), expected.matrix.toarray())
    standing = found.matrix.toarray()[
        :, [name.startswith("standing") for name in found.names]
    ].ravel()
    assert standing[0] < standing[1] < standing[2]


def test_fits_and_correlations_are_the_same(stored):
    label, fold = np.array([1.0, 0.0, 1.0, 0.0]), np.array([0, 1, 0, 1])
    found, expected = (
        crossfit.predict(one, label, one, fold, fold, ridge=1.0) for one in (stored, PLAIN)
    )
    np.testing.assert_allclose(found, expected, rtol=1e-6)
    g, target = np.array([0.6, 0.4, 0.7, 0.2]), np.array([0, 0, 1, 1])
    assert model.correlation(label, g, target, stored) == model.correlation(
        label, g, target, sparse.csr_array(PLAIN)
    )
