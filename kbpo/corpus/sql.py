"""Fetches the rows of SQL queries, and copies many rows into a table with COPY."""

from __future__ import annotations

import io
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import islice
from typing import Any

import numpy as np
from django.db import connection, transaction
from numpy.typing import NDArray

Parameters = Sequence[Any] | Mapping[str, Any]
BEGIN = len(b"PGCOPY\n\xff\r\n\0") + 8
"""Header of a binary COPY: a signature, flags, the length of an extension"""
END = 2


def fetch_rows(sql: str, parameters: Parameters) -> list[tuple[Any, ...]]:
    """Return the rows of a parameterised query."""
    with connection.cursor() as cursor:
        cursor.execute(sql, parameters)
        return list(cursor.fetchall())


def fetch_arrays(
    columns: Mapping[str, str], rest: str, parameters: Parameters, *, reals: Sequence[str] = ()
) -> dict[str, NDArray[Any]]:
    """Return the columns of a query (name -> expression) as arrays: integers, except for the
    `reals`. No value may be null; `rest` is the SQL after the columns.

    The numbers arrive as bytes by COPY. Rows of Python numbers need ten times as much memory, and
    creating them takes as long as the query, which matters for millions of rows.
    """
    types = {name: "float8" if name in reals else "int8" for name in columns}
    listed = ", ".join(f"({columns[name]})::{types[name]}" for name in columns)
    body = io.BytesIO()
    with connection.cursor() as cursor:
        query = cursor.mogrify(f"SELECT {listed} {rest}", parameters).decode()
        cursor.copy_expert(f"COPY ({query}) TO STDOUT (FORMAT binary)", body)
    fields = [("columns", ">i2")]
    for place, name in enumerate(columns):
        fields += [
            (f"length {place}", ">i4"),
            (f"value {place}", ">f8" if name in reals else ">i8"),
        ]
    row, numbers = np.dtype(fields), body.getbuffer()[BEGIN:-END]
    rows = np.frombuffer(numbers[: len(numbers) // row.itemsize * row.itemsize], dtype=row)
    lengths = [rows[f"length {place}"] for place in range(len(columns))]
    if len(numbers) % row.itemsize or any((length != 8).any() for length in lengths):
        raise ValueError(f"A number is null in a row of {listed}")
    return {
        name: rows[f"value {place}"].astype(np.float64 if name in reals else np.int64)
        for place, name in enumerate(columns)
    }


@contextmanager
def prefer_indexes(*, of_words: bool = False) -> Iterator[None]:
    """Run the queries inside with plans that use indexes, however frequent the words are, since the
    planner expects to find a word soon by scanning all texts. With `of_words`, scanning an index of
    other columns in order is avoided as well. Parallel workers are disabled, since starting one
    takes longer than reading a few thousand rows.
    """
    chosen = {"enable_seqscan": "off", "max_parallel_workers_per_gather": "0"}
    if of_words:
        chosen["enable_indexscan"] = "off"
    each = ", ".join(["current_setting(%s), set_config(%s, %s, true)"] * len(chosen))
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute(f"SELECT {each}", _set_config_parameters(chosen))
        before = dict(zip(chosen, cursor.fetchone()[::2], strict=True))
        yield
        cursor.execute(f"SELECT {each}", _set_config_parameters(before))


def _set_config_parameters(values: Mapping[str, str]) -> list[str]:
    return [part for name, value in values.items() for part in (name, name, value)]


CHUNK = 5_000
_ESCAPES = str.maketrans({"\\": "\\\\", "\t": "\\t", "\n": "\\n", "\r": "\\r"})


def copy_rows(
    table: str, columns: Sequence[str], rows: Iterable[Sequence[Any]], *, chunk: int = CHUNK
) -> int:
    """Copy rows into a table, and return their number. Between two chunks the iterator of rows may
    use the same connection.
    """
    return copy_lines(
        table, columns, ("\t".join(map(_copy_field, row)) for row in rows), chunk=chunk
    )


def copy_lines(
    table: str, columns: Sequence[str], lines: Iterable[str], *, chunk: int = CHUNK
) -> int:
    """Copy lines in the format of COPY into a table, and return their number. For millions of rows
    this is faster, since columns are formatted together. Texts must have passed `escape_for_copy`.
    """
    source, total = iter(lines), 0
    sql = f"COPY {table} ({', '.join(columns)}) FROM STDIN"
    while block := list(islice(source, chunk)):
        total += len(block)
        block.append("")
        with connection.cursor() as cursor:
            cursor.copy_expert(sql, io.StringIO("\n".join(block)))
    return total


def escape_for_copy(text: str) -> str:
    """Return the text escaped for COPY."""
    return text.translate(_ESCAPES) if "\\" in text or not text.isprintable() else text


def _copy_field(value: Any) -> str:
    if isinstance(value, str):
        return escape_for_copy(value)
    if isinstance(value, int | float):
        return repr(value)
    if value is None:
        return "\\N"
    if isinstance(value, list | tuple):
        return "{" + ",".join(map(str, value)) + "}"  # arrays of numbers only
    return str(value).translate(_ESCAPES)
