"""No text of a file begins a formula in a spreadsheet, and one module writes all of them."""

from __future__ import annotations

import csv
import io
import re
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path

import pytest

from kbpo.web.table import csv_download

WEB = Path(__file__).resolve().parents[3] / "kbpo" / "web"


@pytest.mark.parametrize(
    "text", ["=1+1", "+1", "-1", "@cmd", "\t=1", "\r=1", "\n=1", "＝1+1", "'=1"]
)
def test_a_text_that_would_begin_a_formula_is_quoted(text: str) -> None:
    response = csv_download("a.csv", ["name"], [[text]])
    _, row = csv.reader(io.StringIO(response.content.decode(), newline=""))
    assert row == ["'" + text]


def test_numbers_empty_cells_and_times_stay_what_they_are() -> None:
    cells = [-1, -0.25, Decimal("-0.50"), "", None, "a-b", datetime(2026, 1, 2, tzinfo=UTC)]
    response = csv_download("a.csv", list("abcdefg"), [cells])
    _, row = csv.reader(io.StringIO(response.content.decode()))
    assert row == ["-1", "-0.25", "-0.50", "", "", "a-b", "2026-01-02T00:00:00+00:00"]


def test_no_other_module_of_the_web_writes_such_files() -> None:
    writes = re.compile(r"\bcsv\.(writer|DictWriter)\b")
    writers = [path for path in WEB.rglob("*.py") if writes.search(path.read_text())]
    assert [path.relative_to(WEB).as_posix() for path in writers] == ["table.py"]
