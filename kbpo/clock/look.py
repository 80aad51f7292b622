"""When the steps look for what is due: after anything was written, and when a while has passed.

What a step finds due follows from what is stored and from the time. PostgreSQL says which
transactions have ended: while that is the same, all that is stored is the same, and only time can
have made something due. So no step, and nobody who writes, has to say what to look for; a look
that finds the same costs one statement. After the last change looks come at every tick at first,
then at growing intervals. What waits for a moment is found late by a quarter of the wait, by
`LONGEST` at most; so is what a killed worker left without having written anything.
"""

from __future__ import annotations

from datetime import timedelta

from django.core.cache import cache
from django.db import connection

from kbpo import clock
from kbpo.clock.served import EVERY, beat

LONGEST = timedelta(seconds=60)
QUARTER = 4
KEPT = "clock.look"


def is_due() -> bool:
    """Return whether the steps should look for work now. A caller that gets True must look at once:
    the next caller only learns of later changes. All workers share this state; where Redis has lost
    it, they look.
    """
    connection.ensure_connection()  # before its first answer the time would be this machine's
    now, stored = clock.now(), _stored()
    before, changed_at, looked_at = cache.get(KEPT) or ("", now, now)
    if before != stored:
        changed_at = now
    elif timedelta(0) <= now - looked_at < min(LONGEST, (looked_at - changed_at) / QUARTER):
        return False
    # Before the next line, and so early that no step beats: a look's own beat is no news to the
    # next one.
    beat(EVERY / 2)
    cache.set(KEPT, (_stored(), changed_at, now), None)
    return True


def _stored() -> str:
    """Return an identifier of the state of the database: which writing transactions have
    ended.

    Those of the server's own housekeeping and of its other databases count, too: they cause
    looks and hide nothing.
    """
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_current_snapshot()::text")
        return str(cursor.fetchone()[0])
