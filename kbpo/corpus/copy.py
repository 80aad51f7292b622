"""Copies rows into a table with COPY, some thousands at a time, so that no more than those are ever
held.
"""

from __future__ import annotations

import io
from collections.abc import Iterable, Sequence
from itertools import islice
from typing import Any

from django.db import connection

CHUNK = 5_000
_ESCAPES = str.maketrans({"\\": "\\\\", "\t": "\\t", "\n": "\\n", "\r": "\\r"})


def copy(
    table: str, columns: Sequence[str], rows: Iterable[Sequence[Any]], *, chunk: int = CHUNK
) -> int:
    """Return how many rows were copied. Between two chunks the rows' iterator may use the same
    connection.
    """
    return copy_lines(table, columns, ("\t".join(map(_field, row)) for row in rows), chunk=chunk)


def copy_lines(
    table: str, columns: Sequence[str], lines: Iterable[str], *, chunk: int = CHUNK
) -> int:
    """Return how many rows were copied, each a line as COPY reads it: for a million rows, whose
    columns are written faster all at once than one by one. Texts in it have to be `escaped`.
    """
    source, total = iter(lines), 0
    sql = f"COPY {table} ({', '.join(columns)}) FROM STDIN"
    while block := list(islice(source, chunk)):
        total += len(block)
        block.append("")
        with connection.cursor() as cursor:
            cursor.copy_expert(sql, io.StringIO("\n".join(block)))
    return total


def escaped(text: str) -> str:
    """Return the text as COPY reads it back."""
    return text.translate(_ESCAPES) if "\\" in text or not text.isprintable() else text


def _field(value: Any) -> str:
    if isinstance(value, str):
        return escaped(value)
    if isinstance(value, int | float):
        return repr(value)
    if value is None:
        return "\\N"
    if isinstance(value, list | tuple):
        return "{" + ",".join(map(str, value)) + "}"  # arrays of numbers only
    return str(value).translate(_ESCAPES)
