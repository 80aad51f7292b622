"""Hand-written statements that run with every question; PostgreSQL plans each once a session.

To plan the search for a worker's next question takes longer than to run it, and to compile a query
in Django takes longer than both. A session identifies a statement by the hash of its text, so a
changed statement is a new one; all of them are lost when the connection is closed.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from functools import cached_property
from hashlib import sha256
from typing import Any, Generic, TypeVar
from weakref import WeakKeyDictionary

from django.db import connection, models

_KNOWN: WeakKeyDictionary[Any, set[str]] = WeakKeyDictionary()
"""Connection -> the names of the statements that are prepared in its session"""


class Prepared:
    """A statement with parameters as `%(name)s`. If the type of a parameter is not clear, a cast
    states it, as `%(names)s::text[]`.
    """

    def __init__(self, sql: str) -> None:
        names = dict.fromkeys(re.findall(r"%\((\w+)\)s", sql))
        self.sql = sql % {name: f"${number}" for number, name in enumerate(names, start=1)}
        self.name = f"kbpo_{sha256(self.sql.encode()).hexdigest()[:24]}"
        given = ", ".join(f"%({name})s" for name in names)
        self._call = f"EXECUTE {self.name} ({given})" if names else f"EXECUTE {self.name}"

    def fetch_all(self, **values: Any) -> list[tuple[Any, ...]]:
        """Return the rows of the statement with these parameters."""
        connection.ensure_connection()
        self._prepare(connection.connection)
        with connection.cursor() as cursor:
            cursor.execute(self._call, values)
            return list(cursor.fetchall())

    def fetch_first(self, **values: Any) -> tuple[Any, ...] | None:
        """Return the first row; None if there is none."""
        return next(iter(self.fetch_all(**values)), None)

    def execute(self, **values: Any) -> int:
        """Execute a statement that returns no rows, and return the number of rows that it wrote."""
        connection.ensure_connection()
        self._prepare(connection.connection)
        with connection.cursor() as cursor:
            cursor.execute(self._call, values)
            return int(cursor.rowcount)

    def _prepare(self, opened: Any) -> None:
        """Prepare the statement in the session, where it survives a rollback."""
        known = _KNOWN.setdefault(opened, set())
        if self.name not in known:
            # Bypasses Django, so that a page's number of statements does not depend on the session.
            with connection.wrap_database_errors, opened.cursor() as cursor:
                cursor.execute(f"PREPARE {self.name} AS {self.sql}")
            known.add(self.name)


Row = TypeVar("Row", bound=models.Model)


class Columns(Generic[Row]):
    """The columns of a model in a hand-written statement, under an alias, and the conversion of
    their values.
    """

    def __init__(self, model: type[Row], alias: str) -> None:
        self.model = model
        fields = model._meta.concrete_fields
        self._names = [field.attname for field in fields]
        self.sql = ", ".join(f'{alias}."{field.column}"' for field in fields)
        self.n = len(fields)

    @cached_property
    def _field_converters(self) -> list[tuple[int, Callable[..., Any]]]:
        """Return (index, function) for each function that converts a column's database value to its
        field's value.
        """
        found = []
        for at, field in enumerate(self.model._meta.concrete_fields):
            for convert in field.get_db_converters(connection):
                found.append((at, convert))
        return found

    def row(self, values: Sequence[Any]) -> Row:
        """Return the model instance with these values, converted as Django does."""
        told = list(values)
        for at, convert in self._field_converters:
            told[at] = convert(told[at], None, connection)
        return self.model.from_db(connection.alias, self._names, told)
