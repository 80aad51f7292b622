"""Decides when the steps look for due rows: after anything was written, and after some time.

Which rows are due depends only on the database and the time. PostgreSQL knows which transactions
have ended: while that is unchanged, the database is unchanged, and only time can have made a row
due. So neither steps nor writers have to announce anything, and a look that finds no change costs
one statement. After the last change looks come at every tick at first, then at growing intervals. A
row that becomes due at some moment is found late by a quarter of its wait, by `LONGEST` at most; so
is a row whose worker was killed before it wrote anything.
"""

from __future__ import annotations

from datetime import timedelta

from django.core.cache import cache
from django.db import connection

from kbpo import clock
from kbpo.clock.served import EVERY, record_beat

LONGEST = timedelta(seconds=60)
QUARTER = 4
KEPT = "clock.look"


def is_due() -> bool:
    """Return whether the pipeline's steps should check for work now. A caller that gets True must
    check at once, since the next caller only learns of later changes. All workers share this state;
    if Redis has lost it, they check.
    """
    connection.ensure_connection()  # before its first answer the time would be this machine's
    now, stored = clock.now(), _database_snapshot()
    before, changed_at, looked_at = cache.get(KEPT) or ("", now, now)
    if before != stored:
        changed_at = now
    elif timedelta(0) <= now - looked_at < min(LONGEST, (looked_at - changed_at) / QUARTER):
        return False
    # Before the next line, and before any step: its own heartbeat is no news to the
    # next one.
    record_beat(EVERY / 2)
    cache.set(KEPT, (_database_snapshot(), changed_at, now), None)
    return True


def _database_snapshot() -> str:
    """Return an identifier of the state of the database: which writing transactions have ended.

    Transactions of the server's own housekeeping and of its other databases are included: they
    cause needless looks and hide nothing.
    """
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_current_snapshot()::text")
        return str(cursor.fetchone()[0])
