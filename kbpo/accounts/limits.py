"""Rate limits by address or name, counted in a table that all processes share."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from datetime import timedelta
from math import ceil

from kbpo import clock
from kbpo.accounts.models import LimitCount
from kbpo.prepared import Prepared

COUNT = Prepared("""
    WITH ended AS (
        DELETE FROM accounts_limitcount WHERE key IN (
            SELECT key FROM accounts_limitcount
            WHERE ends_at <= %(now)s::timestamptz AND key <> %(key)s::text
            ORDER BY ends_at LIMIT 2 FOR UPDATE SKIP LOCKED)
    )
    INSERT INTO accounts_limitcount AS c (key, n, ends_at)
    VALUES (%(key)s::text, 1, %(ends)s::timestamptz)
    ON CONFLICT (key) DO UPDATE SET
        n = CASE WHEN c.ends_at > %(now)s::timestamptz THEN c.n + 1 ELSE 1 END,
        ends_at = CASE WHEN c.ends_at > %(now)s::timestamptz THEN c.ends_at
            ELSE excluded.ends_at END
    RETURNING n
""")
"""Increments a count. Deletes up to two expired counts, so that the table stays small."""


@dataclass(frozen=True)
class Limit:
    """A limit on how often an action may happen: `most` times in some seconds, counted for each
    key.
    """

    what: str
    most: int
    seconds: int

    def count_action(self, *who: str) -> bool:
        """Count an action, and return whether it was within the limit."""
        now = clock.now()
        ends = now + timedelta(seconds=self.seconds)
        row = COUNT.fetch_first(key=self._key(who), now=now, ends=ends)
        assert row is not None
        return int(row[0]) <= self.most

    def seconds_until_allowed(self, *who: str) -> int:
        """Return the seconds until the next action is allowed; 0 if it is allowed now."""
        now = clock.now()
        counted = LimitCount.objects.filter(key=self._key(who), n__gte=self.most, ends_at__gt=now)
        row = counted.first()
        return 0 if row is None else max(1, ceil((row.ends_at - now).total_seconds()))

    def seconds_until_retry(self, *who: str) -> int:
        """Return the seconds until a refused action may be repeated, at least 1."""
        return max(1, self.seconds_until_allowed(*who))

    def reset_count(self, *who: str) -> None:
        """Reset the count of a key."""
        LimitCount.objects.filter(key=self._key(who)).delete()

    def _key(self, who: tuple[str, ...]) -> str:
        """Return a hash of the key, so that the table contains no names."""
        joined = "|".join(part.strip().lower() for part in who)
        return f"{self.what}.{hashlib.sha256(joined.encode(errors='replace')).hexdigest()[:32]}"
