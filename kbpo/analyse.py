"""Keeps the planner's statistics up to date for tables that grow fast.

PostgreSQL's own analysis runs after a minute at the earliest. Until then it plans joins of new rows
as if the tables were as small as before. After ten seconds of answers on a new database each answer
read all earlier ones, and two large submissions were joined by a nested loop. Sessions plan their
prepared statements again after each analysis.
"""

from __future__ import annotations

from django.db import connection

GROWN = """
    SELECT relname FROM pg_class
    WHERE relkind = 'r' AND relnamespace = current_schema()::regnamespace
      AND (pg_relation_size(oid) > 2 * relpages * current_setting('block_size')::bigint
        OR pg_stat_get_mod_since_analyze(oid) > 1000 + greatest(reltuples, 0))
"""
"""Selects tables whose file has more than doubled since their last analysis, including rows that
this transaction wrote; and tables whose rows were all changed, or written into freed space."""


def analyse_grown_tables() -> int:
    """Analyse the tables that have grown or changed (`GROWN`), as this transaction sees them.

    Returns 0, since no row of the pipeline moved. A table that another session analyses is skipped,
    since we would wait until its transaction ends.
    """
    with connection.cursor() as cursor:
        cursor.execute(GROWN)
        if tables := [name for (name,) in cursor.fetchall()]:
            names = ", ".join(connection.ops.quote_name(name) for name in tables)
            cursor.execute(f"ANALYZE (SKIP_LOCKED) {names}")
    return 0
