"""Counts what one address, or one name, may do in a while. With Redis all processes count together;
without it each counts by itself, so that an attacker is slowed down all the same.
"""

from __future__ import annotations

import hashlib
import logging
import threading
import time
from dataclasses import dataclass

from django.core.cache import cache

log = logging.getLogger(__name__)

MOST_KEPT = 20_000
"""Counters that one process keeps at most of each limit while Redis is away"""

Counters = dict[str, tuple[int, float]]
"""key -> (how many, the end on this process's monotonic clock)"""
_own: dict[str, Counters] = {}
"""What is limited -> its counters"""
_lock = threading.Lock()


@dataclass(frozen=True)
class Limit:
    """At most so many of something in so many seconds, for each of its keys."""

    what: str
    most: int
    seconds: int

    def is_reached(self, *who: str) -> bool:
        """Return whether the next one is too many. Nothing is counted."""
        return self._read(self._key(who)) >= self.most

    def count(self, *who: str) -> bool:
        """Return whether this one, which is counted, was still within the limit."""
        return self._add(self._key(who)) <= self.most

    def seconds_left(self, *who: str) -> float:
        """Return after how many seconds the count begins anew, at the latest."""
        key = self._key(who)
        end = self._counted_here(key)[1] - time.monotonic()
        try:
            told = getattr(cache, "seconds_left", None)
            return max(end, told(key), 0.0) if told is not None else float(self.seconds)
        except Exception as problem:
            _told(problem)
            return max(end, 0.0)

    def forget(self, *who: str) -> None:
        """Nothing; what was counted is forgotten."""
        key = self._key(who)
        with _lock:
            _own.get(self.what, {}).pop(key, None)
        try:
            cache.delete(key)
        except Exception as problem:
            _told(problem)

    def _key(self, who: tuple[str, ...]) -> str:
        joined = "|".join(part.strip().lower() for part in who)
        return (
            f"limit.{self.what}.{hashlib.sha256(joined.encode(errors='replace')).hexdigest()[:32]}"
        )

    def _counted_here(self, key: str) -> tuple[int, float]:
        return _own.get(self.what, {}).get(key, (0, 0.0))

    def _read(self, key: str) -> int:
        own, end = self._counted_here(key)
        own = own if end > time.monotonic() else 0
        try:
            return max(own, int(cache.get(key) or 0))
        except Exception as problem:
            _told(problem)
            return own

    def _add(self, key: str) -> int:
        try:
            one_more = getattr(cache, "one_more", None)
            if one_more is not None:
                return int(one_more(key, self.seconds))
            return 1 if cache.add(key, 1, self.seconds) else int(cache.incr(key))
        except Exception as problem:
            _told(problem)
            return self._add_here(key)

    def _add_here(self, key: str) -> int:
        now = time.monotonic()
        with _lock:
            counters = _own.setdefault(self.what, {})
            if key not in counters and len(counters) >= MOST_KEPT:
                _make_room(counters, now)
            n, end = counters.get(key, (0, 0.0))
            n, end = (n + 1, end) if end > now else (1, now + self.seconds)
            counters[key] = (n, end)
            return n


def _make_room(counters: Counters, now: float) -> None:
    """Nothing; forgets the counters of one limit that ran out, and where that leaves more than half
    of what is kept those that would run out first. A flood of one limit costs no other its count.
    """
    left = sorted((end, name) for name, (_, end) in counters.items() if end > now)
    kept = {name for _, name in left[-(MOST_KEPT // 2) :]}
    for name in counters.keys() - kept:
        del counters[name]


def _told(problem: Exception) -> None:
    log.warning("Redis does not count, so each process does by itself: %s", problem)
