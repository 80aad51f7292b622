"""Keeps the planner's statistics of tables that grow fast.

PostgreSQL's own analysis comes after a minute at the earliest. Until then it plans joins of what
was just stored as if the tables were as small as before: after ten seconds of answers on a new
database each answer read all earlier ones, and two large submissions were joined by a nested loop.
Sessions plan their prepared statements anew after each analysis.
"""

from __future__ import annotations

from django.db import connection

GROWN = """
    SELECT relname FROM pg_class
    WHERE relkind = 'r' AND relnamespace = current_schema()::regnamespace
      AND (pg_relation_size(oid) > 2 * relpages * current_setting('block_size')::bigint
        OR pg_stat_get_mod_since_analyze(oid) > 1000 + greatest(reltuples, 0))
"""
"""Tables whose file has more than doubled since their last analysis, which also a transaction sees
of what it has just written; and those whose rows were all changed, or written into freed space."""


def analyse() -> int:
    """Analyse the tables that have grown or changed (`GROWN`), as this transaction sees them.

    Returns 0: nothing of the pipeline moved. A table that somebody else analyses is left to them:
    inside a transaction they would keep us waiting until it ends.
    """
    with connection.cursor() as cursor:
        cursor.execute(GROWN)
        if tables := [name for (name,) in cursor.fetchall()]:
            names = ", ".join(connection.ops.quote_name(name) for name in tables)
            cursor.execute(f"ANALYZE (SKIP_LOCKED) {names}")
    return 0
