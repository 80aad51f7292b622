"""What is kept for a while, in Redis: a page that finds nothing there makes it anew.

Redis holds nothing that could be lost. So where it does not answer, nothing was kept; and it is
asked again only some seconds later, so that a page waits for it once and not with every question.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from functools import cache
from typing import Any

from django.core.cache.backends.redis import RedisCache, RedisCacheClient
from redis import Redis
from redis.exceptions import ConnectionError as Away
from redis.exceptions import RedisError

log = logging.getLogger(__name__)

LEFT_ALONE = 5.0
"""Seconds for which nobody asks a Redis that did not answer"""


class KeptClient(RedisCacheClient):
    """Speaks to each server through one client, which takes longer to make than to ask."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._client = cache(Redis)  # called with the connections to a server


class ForgivingCache(RedisCache):
    """Redis, as far as it answers."""

    away_until = 0.0
    """Of this process, on its monotonic clock"""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._class = KeptClient

    def get(self, key: str, default: Any = None, version: int | None = None) -> Any:
        """Return what is kept, the default where that is nothing, or where nobody answers."""
        return self._ask(super().get, key, default, version, instead=default)

    def get_many(self, keys: Any, version: int | None = None) -> dict[str, Any]:
        """Return what is kept of these: nothing where nobody answers."""
        return dict(self._ask(super().get_many, keys, version, instead={}))

    def set(self, key: str, value: Any, *args: Any, **kwargs: Any) -> None:
        """Nothing; the value is kept if Redis answers."""
        self._ask(super().set, key, value, *args, **kwargs)

    def add(self, key: str, value: Any, *args: Any, **kwargs: Any) -> bool:
        """Return whether it was not there, and is now; an error where nobody answers."""
        return bool(self._insist(super().add, key, value, *args, **kwargs))

    def delete(self, key: str, version: int | None = None) -> bool:
        """Return whether it was there; an error where nobody answers."""
        return bool(self._insist(super().delete, key, version))

    def has_key(self, key: str, version: int | None = None) -> bool:
        """Return whether it is there; an error where nobody answers."""
        return bool(self._insist(super().has_key, key, version))

    def _ask(self, call: Callable[..., Any], *args: Any, instead: Any = None, **kwargs: Any) -> Any:
        try:
            return self._insist(call, *args, **kwargs)
        except (RedisError, OSError):
            return instead

    def _insist(self, call: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        if time.monotonic() < ForgivingCache.away_until:
            raise Away("Redis did not answer a moment ago")
        try:
            return call(*args, **kwargs)
        except (RedisError, OSError) as problem:
            ForgivingCache.away_until = time.monotonic() + LEFT_ALONE
            log.warning("Redis does not answer, so nothing is kept: %s", problem)
            raise
