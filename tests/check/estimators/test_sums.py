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
    few = sums.sum_by_code(rows, code, 12)
    monkeypatch.setattr(sums, "FEW", 0)
    many = sums.sum_by_code(rows, code, 12)
    assert few.shape == many.shape == (12, shape[1])
    assert np.array_equal(few, many)
    one_by_one = np.zeros((12, shape[1]))
    for at, row in zip(code, rows, strict=True):
        one_by_one[at] += row
    assert few == pytest.approx(one_by_one, abs=1e-12)


@pytest.mark.parametrize("targets", [1, 6, 40, 4000])
def test_squares_of_sums_over_targets_are_those_of_rows_and_what_rows_of_a_target_share(
    targets: int,
) -> None:
    rng = np.random.default_rng(targets)
    target = rng.integers(0, targets, 90)
    row = np.sort(rng.choice(90, 60, replace=False))
    term, odds = rng.normal(size=60), rng.uniform(size=targets)
    support = sums.Support.from_rows(row, target)
    whole = np.bincount(target[row], weights=term, minlength=targets)
    assert term @ term + support.sum_cross_products(term) == pytest.approx(whole @ whole)
    chance = odds[target[row]]
    weighed = support.sum_cross_products(term, chance[support.several])
    assert (chance * term) @ term + weighed == pytest.approx(odds @ whole**2)
    single = np.bincount(target[row], minlength=targets)[target[row]] == 1
    assert not single[support.several].any() and single.sum() + support.several.size == 60


@pytest.mark.parametrize("n_codes", [40, 100_000])
def test_codes_that_are_present_are_found_whether_or_not_they_are_sorted(n_codes: int) -> None:
    code = np.random.default_rng(3).integers(0, n_codes, 300)
    found, place = sums.occurring_codes(code, n_codes)
    expected, at = np.unique(code, return_inverse=True)
    assert found.tolist() == expected.tolist() and place.tolist() == at.tolist()
    nothing = sums.occurring_codes(np.zeros(0, dtype=np.int64), n_codes)
    assert [part.size for part in nothing] == [0, 0]


def test_a_support_counts_each_target_once() -> None:
    rng = np.random.default_rng(4)
    target = rng.integers(0, 30, 200)
    for size in (0, 1, 25, 150):
        rows = np.sort(rng.choice(200, size, replace=False))
        support = sums.Support.from_rows(rows, target)
        assert support.n_targets == len(set(target[rows].tolist()))
