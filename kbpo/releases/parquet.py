"""The tables of a release as Parquet, beside JSON Lines, where pyarrow is installed.

It is 45 MB and nothing else needs it, so it is no requirement of the service: `pip install pyarrow`.
What is computed from a release is computed from JSON Lines, row by row checked; Parquet is for
those who read large tables by columns.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from scoring.release import Release

try:
    import pyarrow
    import pyarrow.parquet
except ImportError:
    pyarrow = None

IS_THERE = pyarrow is not None


def write_parquet(directory: Path) -> list[str]:
    """Return the names of the files that were written: one beside each table that has rows."""
    written = []
    for path in sorted(directory.glob("*.jsonl")):
        columns = Release(directory).columns(path.stem)
        if columns:
            table = pyarrow.table({name: _array(values) for name, values in columns.items()})
            pyarrow.parquet.write_table(table, path.with_suffix(".parquet"), compression="zstd")
            written.append(f"{path.stem}.parquet")
    return written


def _array(values: list[Any]) -> Any:
    """A column. What is of several types, or an object, is its JSON as text."""
    kinds = {type(value) for value in values if value is not None}
    if dict not in kinds:
        try:
            return pyarrow.array(values)
        except (pyarrow.ArrowInvalid, pyarrow.ArrowTypeError):
            pass
    texts = [None if value is None else json.dumps(value, ensure_ascii=False) for value in values]
    return pyarrow.array(texts, type=pyarrow.string())
