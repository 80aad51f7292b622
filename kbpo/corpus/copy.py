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
    """How many rows were copied. Between two chunks the rows' iterator may use the same
    connection.
    """
    source, total = iter(rows), 0
    sql = f"COPY {table} ({', '.join(columns)}) FROM STDIN"
    while lines := ["\t".join(map(_field, row)) for row in islice(source, chunk)]:
        lines.append("")
        with connection.cursor() as cursor:
            cursor.copy_expert(sql, io.StringIO("\n".join(lines)))
        total += len(lines) - 1
    return total


def _field(value: Any) -> str:
    if isinstance(value, str):
        return value.translate(_ESCAPES) if "\\" in value or not value.isprintable() else value
    if isinstance(value, int | float):
        return repr(value)
    if value is None:
        return "\\N"
    if isinstance(value, list | tuple):
        return "{" + ",".join(map(str, value)) + "}"  # arrays of numbers only
    return str(value).translate(_ESCAPES)
