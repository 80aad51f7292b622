"""Writes the tables of a release as Parquet, in addition to JSON Lines.

Computations from a release use the JSON Lines, with every row checked; Parquet is for reading large
tables by column. The files are written if `requirements-parquet.txt` is installed.
"""

from __future__ import annotations

import json
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from scoring.release import Release

WITHOUT = (
    "There are no files of Parquet: pyarrow was not installed where it was made"
    " (pip install -r requirements-parquet.txt)."
)


def pyarrow_version() -> str | None:
    """Return the version of pyarrow, which writes Parquet; None if it is not installed."""
    return version("pyarrow") if find_spec("pyarrow") else None


def write_parquet(directory: Path) -> list[str]:
    """Write a Parquet file for each table that has rows, and return their names; none without
    pyarrow.
    """
    if pyarrow_version() is None:
        return []
    # Every process of the site loads this module; 40 MB of memory are for the one that writes.
    import pyarrow
    import pyarrow.parquet

    written = []
    for path in sorted(directory.glob("*.jsonl")):
        columns = Release(directory).columns(path.stem)
        if columns:
            table = pyarrow.table({name: _as_column(values) for name, values in columns.items()})
            pyarrow.parquet.write_table(table, path.with_suffix(".parquet"), compression="zstd")
            written.append(f"{path.stem}.parquet")
    return written


def _as_column(values: list[Any]) -> Any:
    """Return values as a column of Parquet. Values of several types, or objects, are stored as JSON
    text.
    """
    import pyarrow

    kinds = {type(value) for value in values if value is not None}
    if dict not in kinds:
        try:
            return pyarrow.array(values)
        except (pyarrow.ArrowInvalid, pyarrow.ArrowTypeError):
            pass
    texts = [None if value is None else json.dumps(value, ensure_ascii=False) for value in values]
    return pyarrow.array(texts, type=pyarrow.string())
