"""Slows down those who guess passwords: a few failures for a name from an address, then a pause."""

from __future__ import annotations

import hashlib
from contextlib import suppress

from django.core.cache import cache
from django.http import HttpRequest

MOST = 8
PAUSE = 15 * 60


def is_paused(request: HttpRequest, name: str) -> bool:
    """Whether this address has failed too often for this name in the last quarter of an hour."""
    with suppress(Exception):  # without a cache nobody is slowed down, and everybody can log in
        return int(cache.get(_key(request, name)) or 0) >= MOST
    return False


def count_failure(request: HttpRequest, name: str) -> None:
    """Nothing; one more failure is remembered."""
    with suppress(Exception):
        key = _key(request, name)
        if not cache.add(key, 1, PAUSE):
            cache.incr(key)


def forgive(request: HttpRequest, name: str) -> None:
    """Nothing; the failures are forgotten, because the right password was given."""
    with suppress(Exception):
        cache.delete(_key(request, name))


def _key(request: HttpRequest, name: str) -> str:
    who = f"{request.META.get('REMOTE_ADDR', '')}|{name.strip().lower()}"
    return f"web.login.{hashlib.sha256(who.encode()).hexdigest()[:32]}"
