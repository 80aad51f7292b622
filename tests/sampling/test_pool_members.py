"""Who predicts an instance: whoever gives it weight under any distribution, and nobody by a zero
that is stored.
"""

from __future__ import annotations

import numpy as np
from scipy import sparse

from scoring.arrays import Matrix
from scoring.pool import Pool


def stored(table: list[list[float]]) -> Matrix:
    """A matrix that stores every entry, zeros too."""
    values = np.array(table)
    column = np.tile(np.arange(values.shape[1]), values.shape[0])
    return sparse.csr_array(
        (values.ravel(), column, np.arange(0, values.size + 1, values.shape[1])), shape=values.shape
    )


def pool(**p: Matrix) -> Pool:
    ids = np.arange(3)
    return Pool(
        systems=[7, 8],
        teams=[1, 2],
        instance=ids,
        target=np.array([0, 1, 1]),
        target_id=np.arange(2),
        u=np.array([0.2, 0.7]),
        document=ids,
        stratum=ids,
        types=np.array(["PER|ORG"] * 3),
        subject=ids,
        object=ids,
        p=dict(p),
        confidence=stored([[0.0, 1.0]] * 3),
    )


def test_a_stored_zero_makes_nobody_a_member() -> None:
    p = stored([[1.0, 0.0], [0.0, 0.5], [0.0, 0.5]])
    made = pool(instance=p)
    assert made.member.toarray().tolist() == [[1, 0], [0, 1], [0, 1]]
    assert made.member.nnz == 3 and p.nnz == 6
    assert made.by_target("instance").toarray().tolist() == [[1.0, 0.0], [0.0, 1.0]]


def test_weight_under_any_distribution_makes_a_member() -> None:
    made = pool(
        instance=stored([[1.0, 0.0], [0.0, 0.0], [0.0, 1.0]]),
        relation=stored([[0.5, 0.0], [0.5, 0.0], [0.0, 1.0]]),
    )
    assert made.member.toarray().tolist() == [[1, 0], [1, 0], [0, 1]]
    assert (made.member.data == 1).all()


def test_sorting_the_members_leaves_the_weights_alone() -> None:
    p = sparse.csr_array(
        (np.array([0.25, 0.75]), np.array([1, 0]), np.array([0, 2, 2, 2])), shape=(3, 2)
    )
    made = pool(instance=p)
    made.member.sort_indices()
    assert p.toarray().tolist()[0] == [0.75, 0.25] and p.data.tolist() == [0.25, 0.75]
