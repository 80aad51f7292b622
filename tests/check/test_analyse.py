"""The planner knows of what was just stored, before PostgreSQL's own analysis comes."""

from __future__ import annotations

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from kbpo import celery
from kbpo.analyse import analyse_grown_tables

FILL = """
    INSERT INTO clock_heartbeat (at, pauses)
    SELECT now(), '[]' FROM generate_series(1, 2000)
"""


def run(sql: str) -> None:
    with connection.cursor() as cursor:
        cursor.execute(sql)


def analysed() -> bool:
    """Whether a call analyses the table."""
    with CaptureQueriesContext(connection) as queries:
        analyse_grown_tables()
    return any(
        "ANALYZE" in query["sql"] and "clock_heartbeat" in query["sql"]
        for query in queries.captured_queries
    )


def expected_rows() -> int:
    with connection.cursor() as cursor:
        cursor.execute("EXPLAIN (FORMAT JSON) SELECT FROM clock_heartbeat WHERE at <= now()")
        return int(cursor.fetchone()[0][0]["Plan"]["Plan Rows"])


@pytest.mark.django_db
def test_a_transaction_plans_with_what_it_has_just_stored() -> None:
    run(FILL)
    assert expected_rows() < 2000
    assert analysed()
    assert expected_rows() == 2000
    assert not analysed(), "nothing has changed since"


def test_analysis_comes_before_and_after_a_step_that_fills_tables(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    ran: list[str] = []

    def noted(path: str) -> object:
        def call() -> int:
            ran.append(path)
            return int(path == celery.PIPELINE["reap"])

        return call

    monkeypatch.setattr(celery, "import_string", noted)
    celery.step("plan")
    assert ran == [celery.PIPELINE[name] for name in ("analyse", "plan")]
    ran.clear()
    celery.step("reap")
    assert ran == [celery.PIPELINE[name] for name in ("analyse", "reap", "analyse")]
