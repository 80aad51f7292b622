"""Numbers that are fetched as arrays are those of the rows."""

from __future__ import annotations

import numpy as np
import pytest

from kbpo.corpus.sql import fetch_arrays, fetch_rows

pytestmark = pytest.mark.django_db
COLUMNS = {"whole": "n::int - 3", "real": "n / 7.0", "hashed": "hashtextextended('a' || n, 0)"}


@pytest.mark.parametrize("n", [0, 1, 5000])
def test_arrays_hold_what_the_rows_hold(n: int) -> None:
    rest = "FROM generate_series(1, %(n)s) AS series(n)"
    found = fetch_arrays(COLUMNS, rest, {"n": n}, reals=("real",))
    rows = fetch_rows(f"SELECT {', '.join(COLUMNS.values())} {rest}", {"n": n})
    assert [list(map(float, column)) for column in zip(*rows, strict=True)] == [
        found[name].astype(np.float64).tolist() for name in COLUMNS if n
    ]
    assert {name: values.dtype for name, values in found.items()} == {
        "whole": np.int64,
        "real": np.float64,
        "hashed": np.int64,
    }


@pytest.mark.parametrize("nulls", ["n", "CASE WHEN n > 1 THEN n END"])
def test_a_number_that_is_not_there_is_refused(nulls: str) -> None:
    column = {"n": f"nullif({nulls}, 2)"}
    with pytest.raises(ValueError, match="null in a row"):
        fetch_arrays(column, "FROM generate_series(1, 12) AS series(n)", [])
