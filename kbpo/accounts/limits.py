"""Counts what one address, or one name, may do in a while. With Redis all processes count together;
without it those of one machine do, in a file (`kbpo.accounts.counters`), so that an attacker is let
in no oftener.
"""

from __future__ import annotations

import hashlib
import logging
from dataclasses import dataclass
from math import ceil

from django.conf import settings
from django.core.cache import cache

from kbpo.accounts.counters import Counters

log = logging.getLogger(__name__)

own = Counters(settings.VAR / "limits.sqlite")
"""What is counted while Redis is away"""


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
        left = own.seconds_left(key, self.seconds)
        try:
            told = getattr(cache, "seconds_left", None)
            return max(left, told(key)) if told is not None else float(self.seconds)
        except Exception as problem:
            _told(problem)
            return left

    def wait(self, *who: str) -> int:
        """Return the seconds until one who was refused may come again, at least 1: the count may
        have ended since.
        """
        return max(1, ceil(self.seconds_left(*who)))

    def pause(self, *who: str) -> int:
        """Return the seconds until the next one is let in; 0 where it is now."""
        return self.wait(*who) if self.is_reached(*who) else 0

    def forget(self, *who: str) -> None:
        """Nothing; what was counted is forgotten."""
        key = self._key(who)
        own.forget(key)
        try:
            cache.delete(key)
        except Exception as problem:
            _told(problem)

    def _key(self, who: tuple[str, ...]) -> str:
        joined = "|".join(part.strip().lower() for part in who)
        return (
            f"limit.{self.what}.{hashlib.sha256(joined.encode(errors='replace')).hexdigest()[:32]}"
        )

    def _read(self, key: str) -> int:
        counted = own.read(key, self.seconds)
        try:
            return max(counted, int(cache.get(key) or 0))
        except Exception as problem:
            _told(problem)
            return counted

    def _add(self, key: str) -> int:
        try:
            one_more = getattr(cache, "one_more", None)
            if one_more is not None:
                return int(one_more(key, self.seconds))
            return 1 if cache.add(key, 1, self.seconds) else int(cache.incr(key))
        except Exception as problem:
            _told(problem)
            return own.add(self.what, key, self.seconds)


def _told(problem: Exception) -> None:
    log.warning("Redis does not count, so the processes of each machine do: %s", problem)
