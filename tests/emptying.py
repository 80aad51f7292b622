"""Empties the database after a test that committed: the tables that hold rows, in one transaction.
And vacuums those that have grown by what tests rolled back, for autovacuum is off (migrated.py).

Django's own way (`flush`) truncates every table and makes every permission anew, which costs half
a second a test and takes locks that wait for any request still under way.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from functools import cache
from time import monotonic, sleep
from typing import Any

import pytest
from django.db import connection, connections
from django.test import TransactionTestCase
from pytest_django.plugin import blocking_manager_key

STAY = frozenset({"django_migrations", "django_content_type", "auth_permission"})
"""What migrating wrote, and every test needs."""
PATIENCE = 20.0
"""Seconds that a transaction of another thread may take to end before its connection is cut."""

MOST_BYTES = 1 << 20
"""Of a table's dead rows, from which on it is vacuumed"""


@pytest.hookimpl(wrapper=True)
def pytest_runtest_teardown(item: pytest.Item) -> Iterator[None]:
    """Nothing; where a test used the database, tables that have grown are vacuumed after it."""
    yield
    if {"db", "transactional_db"} & set(getattr(item, "fixturenames", ())):
        with item.config.stash[blocking_manager_key].unblock():
            _vacuum()


def _vacuum() -> None:
    """Nothing; each table with so many dead rows is small again."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT relname FROM pg_class WHERE relkind = 'r' AND pg_relation_size(oid) > %s"
            " AND relnamespace = 'public'::regnamespace",
            [MOST_BYTES],
        )
        for (table,) in cursor.fetchall():
            cursor.execute(f'VACUUM "{table}"')


@pytest.fixture(scope="session")
def django_db_modify_db_settings(django_db_modify_db_settings_parallel_suffix: None) -> None:
    """Commits of tests do not wait for the disk: no test cuts the power of this database."""
    for name in connections:
        options = connections[name].settings_dict.setdefault("OPTIONS", {})
        asked = options.get("options", "")
        options["options"] = f"{asked} -c synchronous_commit=off".strip()


@pytest.fixture(scope="session", autouse=True)
def _fast_emptying() -> Any:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(TransactionTestCase, "_fixture_teardown", lambda _: empty())
        yield


def empty() -> None:
    """Empties every table but those that migrating filled. Foreign keys and triggers rest."""
    _wait_for_others()
    if not (tables := filled()):
        return
    with connection.cursor() as cursor:
        cursor.execute(
            "BEGIN; SET LOCAL session_replication_role = replica; "
            + "".join(f'DELETE FROM "{table}"; ' for table in tables)
            + "COMMIT"
        )


def filled() -> list[str]:
    """The tables that hold rows, but for those that migrating filled."""
    with connection.cursor() as cursor:
        cursor.execute(_filled_query(connection.settings_dict["NAME"]))
        return [table for (table,) in cursor.fetchall()]


@cache
def _filled_query(database: str) -> str:
    """Names the tables that hold at least one row."""
    with connection.cursor() as cursor:
        names = connection.introspection.table_names(cursor)
    return " UNION ALL ".join(
        f"SELECT '{name}' WHERE EXISTS (SELECT FROM \"{name}\")"
        for name in names
        if name not in STAY
    )


def _wait_for_others() -> None:
    """Waits until nobody else is in the middle of a transaction: what they write would stay."""
    end = monotonic() + PATIENCE
    others = (
        "FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()"
        " AND backend_type = 'client backend' AND state <> 'idle'"
    )
    with connection.cursor() as cursor:
        while monotonic() < end:
            cursor.execute("SELECT count(*) " + others)
            if cursor.fetchone() == (0,):
                return
            sleep(0.01)
        cursor.execute("SELECT state, wait_event, now() - xact_start, query " + others)
        warnings.warn(f"A test left a transaction open: {cursor.fetchall()}", stacklevel=1)
        cursor.execute("SELECT pg_terminate_backend(pid) " + others)
