"""Systems all of whose labels agree: their variance is what the model expects, and what rounding
leaves of terms that are none says nothing of how they go together.
"""

from __future__ import annotations

import numpy as np

from estimators.design import Design
from estimators.estimate import Estimate
from scoring.compare import covariance_of

EXPECTED = np.array([1e-4, 4e-4, 9e-4])


def _estimate(influence: np.ndarray) -> Estimate:
    return Estimate(np.ones(3), np.zeros(3), np.full(3, 4), influence, anticipated=EXPECTED)


def test_the_last_digits_of_labels_that_agree_make_no_systems_go_together() -> None:
    last = np.array([[1.0, -1.0], [1.0, -1.0], [-1.0, 1.0], [1.0, -1.0]]) * 1e-17
    influence = np.column_stack([last, [0.01, -0.01, 0.02, 0.0]])
    found = covariance_of(_estimate(influence), Design(np.full(4, 0.5)), np.arange(3))
    np.testing.assert_allclose(found, np.diag(EXPECTED), rtol=1e-12)


def test_systems_whose_labels_differ_go_together_as_they_did() -> None:
    term = np.array([0.01, -0.01, 0.02, 0.0])
    influence = np.column_stack([term, 2 * term, -term])
    found = covariance_of(_estimate(influence), Design(np.full(4, 0.5)), np.arange(3))
    np.testing.assert_allclose(np.diagonal(found), [3e-4, 12e-4, 9e-4], rtol=1e-12)
    assert found[0, 1] > 0 > found[0, 2]
    np.testing.assert_allclose(found[0, 1] ** 2, found[0, 0] * found[1, 1], rtol=1e-12)
