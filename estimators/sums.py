"""Sums over the rows that share a code, in the order of the rows."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy import sparse

from estimators.checks import FloatArray, IntArray

FEW = 20_000
"""Up to this many numbers, a loop over the columns is faster than building a matrix"""

SPARSE = 16
"""If the codes are this many times more than the rows, sorting the rows is faster than scanning all
codes"""


def sum_by_code(rows: FloatArray, code: IntArray, n_codes: int) -> FloatArray:
    """Return (n_codes, …) sums of the ``rows`` (n, …) with each code.

    Examples
    --------
    >>> import numpy as np
    >>> sum_by_code(np.array([1.0, 2.0, 4.0]), np.array([0, 1, 0]), 3).tolist()
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


def occurring_codes(code: IntArray, n_codes: int) -> tuple[IntArray, IntArray]:
    """Return the codes below ``n_codes`` that occur, ascending, and the index of each row's code
    among them. Equivalent to ``np.unique``, without sorting if the codes are dense.

    Examples
    --------
    >>> import numpy as np
    >>> found, place = occurring_codes(np.array([4, 1, 4]), 5)
    >>> found.tolist(), place.tolist()
    ([1, 4], [1, 0, 1])
    """
    if code.size * SPARSE < n_codes:
        codes, place = np.unique(code, return_inverse=True)
        return codes.astype(np.int64), place.astype(np.int64)
    has = np.zeros(n_codes, dtype=np.bool_)
    has[code] = True
    codes = np.flatnonzero(has)
    place_of = np.empty(n_codes, dtype=np.int64)
    place_of[codes] = np.arange(codes.size)
    return codes, place_of[code]


def encode_pairs(first: IntArray, second: IntArray) -> IntArray:
    """Return a code of each pair of whole numbers: 0, 1, … in the ascending order of the pairs.

    Examples
    --------
    >>> import numpy as np
    >>> encode_pairs(np.array([7, 3, 7]), np.array([1, 2, 1])).tolist()
    [1, 0, 1]
    """
    left = np.unique(first, return_inverse=True)[1].astype(np.int64)
    right = np.unique(second, return_inverse=True)[1].astype(np.int64)
    pairs = left * (int(right.max(initial=0)) + 1) + right
    codes: IntArray = np.unique(pairs, return_inverse=True)[1].astype(np.int64)
    return codes


@dataclass(frozen=True, eq=False)
class Support:
    """The rows that one system predicts (its support), and which of them share a target with
    another of them.

    Most targets have one row of a system. The square of a sum over a target's rows is then the
    square of one row, so sums of such squares treat targets separately only if they have several
    rows.

    Attributes
    ----------
    row : (n,) array
        Ascending.
    several : (k,) array
        Positions in ``row`` of those that share a target, target by target.
    begins : array
        Where each target begins in ``several``.

    Examples
    --------
    >>> import numpy as np
    >>> # rows 0 and 3 have target 7
    >>> support = Support.from_rows(np.array([0, 2, 3]), np.array([7, 7, 5, 7]))
    >>> support.several.tolist()
    [0, 2]
    >>> support.sum_cross_products(np.array([1.0, 10.0, 2.0]))  # (1 + 2)² − 1² − 2²
    4.0
    """

    row: IntArray
    several: IntArray
    begins: IntArray

    @classmethod
    def from_rows(cls, row: IntArray, target: IntArray) -> Support:
        """Return the rows of one system (its support) with their target codes, given the codes (N,)
        of all rows.
        """
        code = target[row]
        several = np.flatnonzero(np.bincount(code)[code] > 1) if row.size else np.zeros(0, np.int64)
        several = several[np.argsort(code[several], kind="stable")]
        begins = np.diff(code[several], prepend=-1) != 0
        return cls(np.asarray(row, dtype=np.int64), several, np.flatnonzero(begins))

    @property
    def n_targets(self) -> int:
        """Return the number of distinct targets of the rows."""
        return self.row.size - self.several.size + self.begins.size

    def sum_cross_products(self, term: FloatArray, weight: FloatArray | None = None) -> float:
        """Return the products of the terms v (n,) of every two different rows with the same target,
        summed over ordered pairs: ``Σ_τ w [(Σ_{x∈τ} v)² − Σ_{x∈τ} v²]``.

        ``weight`` has one value for each row of ``several``, equal within a target; 1 if left out.
        """
        if not self.several.size:
            return 0.0
        values = term[self.several]
        totals = np.add.reduceat(values, self.begins)
        if weight is None:
            return float(totals @ totals - values @ values)
        return float((weight[self.begins] * totals) @ totals - (weight * values) @ values)
