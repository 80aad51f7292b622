"""Sums over rows with a code are the same, whichever way they are made."""

from __future__ import annotations

import numpy as np
import pytest

from estimators import sums


@pytest.mark.parametrize("shape", [(0, 3), (7, 0), (40, 1), (500, 9)])
def test_few_and_many_numbers_give_the_same_to_the_last_bit(
    shape: tuple[int, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    rng = np.random.default_rng(5)
    rows, code = rng.normal(size=shape), rng.integers(0, 11, shape[0])
    few = sums.by_code(rows, code, 12)
    monkeypatch.setattr(sums, "FEW", 0)
    many = sums.by_code(rows, code, 12)
    assert few.shape == many.shape == (12, shape[1])
    assert np.array_equal(few, many)
    one_by_one = np.zeros((12, shape[1]))
    for at, row in zip(code, rows, strict=True):
        one_by_one[at] += row
    assert few == pytest.approx(one_by_one, abs=1e-12)
