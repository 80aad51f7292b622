"""Sums over the rows that share a code, in the order of the rows."""

from __future__ import annotations

import numpy as np
from scipy import sparse

from estimators.checks import FloatArray, IntArray

FEW = 20_000
"""Up to so many numbers, going through the rows once a column is quicker than making a matrix"""


def by_code(rows: FloatArray, code: IntArray, n_codes: int) -> FloatArray:
    """Return (n_codes, …) sums of the ``rows`` (n, …) that carry each code.

    Examples
    --------
    >>> import numpy as np
    >>> by_code(np.array([1.0, 2.0, 4.0]), np.array([0, 1, 0]), 3).tolist()
    [5.0, 2.0, 0.0]
    """
    if rows.ndim == 1:
        return np.bincount(code, weights=rows, minlength=n_codes).astype(np.float64)
    if rows.ndim == 2 and 0 < rows.size <= FEW:  # the same sums, without a matrix
        columns = [np.bincount(code, weights=column, minlength=n_codes) for column in rows.T]
        return np.stack(columns, axis=1).astype(np.float64, copy=False)
    chooser = sparse.csr_array(
        (np.ones(code.size), (code, np.arange(code.size))), shape=(n_codes, code.size)
    )
    total: FloatArray = chooser @ rows
    return total


def code_pairs(first: IntArray, second: IntArray) -> IntArray:
    """Return a code of each pair of whole numbers: 0, 1, … in the ascending order of the pairs.

    Examples
    --------
    >>> import numpy as np
    >>> code_pairs(np.array([7, 3, 7]), np.array([1, 2, 1])).tolist()
    [1, 0, 1]
    """
    left = np.unique(first, return_inverse=True)[1].astype(np.int64)
    right = np.unique(second, return_inverse=True)[1].astype(np.int64)
    pairs = left * (int(right.max(initial=0)) + 1) + right
    codes: IntArray = np.unique(pairs, return_inverse=True)[1].astype(np.int64)
    return codes
