"""What migrating makes, made once and copied: migrating takes ten seconds of a processor, a copy a
third of one.

The database that is copied stays on the server for the next run. Its name follows from the
migrations, so that a changed one is migrated anew.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any

import django
import pytest
from django.apps import apps
from django.core.management import call_command
from django.db import connection

KEPT = "kbpo_migrated_"
"""What the names of databases that are copied begin with"""
NO_AUTOVACUUM = "autovacuum_enabled = off, toast.autovacuum_enabled = off"
"""Set for every table: autovacuum between two tests finds a table empty, and PostgreSQL then plans
the joins of the next test for one row. Some took half a minute.
"""


@pytest.fixture(scope="session")
def django_db_setup(
    django_test_environment: None, django_db_blocker: Any, django_db_modify_db_settings: None
) -> Iterator[None]:
    """The database of this process's tests."""
    database = connection.settings_dict
    name = database["TEST"]["NAME"] or f"test_{database['NAME']}"
    with django_db_blocker.unblock():
        copy_to(name)
    with speaking_to(name):
        yield
    with django_db_blocker.unblock():
        drop(name)


@contextmanager
def speaking_to(name: str, **where: Any) -> Iterator[None]:
    """Nothing; this process's Django is connected to that database, perhaps of another server."""
    before = dict(connection.settings_dict)
    connection.close()
    connection.settings_dict.update(where | {"NAME": name})
    try:
        yield
    finally:
        connection.close()
        connection.settings_dict.update({key: before[key] for key in {"NAME", *where}})


def copy_to(name: str) -> None:
    """Nothing; there is a database of this name, which was just migrated and has no rows."""
    kept = KEPT + _state()
    with connection._nodb_cursor() as cursor:
        # Others may be migrating: the right to do so is the server's to give,
        # however long it takes.
        cursor.execute("SET lock_timeout = 0; SET statement_timeout = 0")
        cursor.execute("SELECT pg_advisory_lock(hashtext(%s))", [KEPT])
        cursor.execute("SELECT datname FROM pg_database WHERE starts_with(datname, %s)", [KEPT])
        names = {found for (found,) in cursor.fetchall()}
        if kept not in names:
            for former in names:
                cursor.execute(f"DROP DATABASE {former} WITH (FORCE)")
            cursor.execute(f"CREATE DATABASE {KEPT}")
            with speaking_to(KEPT):
                call_command("migrate", verbosity=0)
                _switch_autovacuum_off()
            cursor.execute(f"ALTER DATABASE {KEPT} RENAME TO {kept}")
        cursor.execute(f"DROP DATABASE IF EXISTS {name} WITH (FORCE)")
        cursor.execute(f"CREATE DATABASE {name} TEMPLATE {kept}")


def drop(name: str) -> None:
    """Nothing; there is no database of this name."""
    with connection._nodb_cursor() as cursor:
        cursor.execute(f"DROP DATABASE IF EXISTS {name} WITH (FORCE)")


def _switch_autovacuum_off() -> None:
    """Nothing; tables are vacuumed by the tests alone (emptying.py)."""
    with connection.cursor() as cursor:
        for table in connection.introspection.table_names(cursor):
            cursor.execute(f'ALTER TABLE "{table}" SET ({NO_AUTOVACUUM})')


@cache
def _state() -> str:
    """A digest of all migrations, and of what is done besides."""
    found = hashlib.sha256((django.get_version() + NO_AUTOVACUUM).encode())
    for app in apps.get_app_configs():
        found.update(app.label.encode())
        for file in sorted(Path(app.path, "migrations").glob("*.py")):
            found.update(file.read_bytes())
    return found.hexdigest()[:16]
