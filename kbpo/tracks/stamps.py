"""Tracks whether public data of a track has changed, by a stamp in the cache that is replaced after
every change. A cached page stored with its stamps can be checked without the database.

A stamp is replaced once a change is committed. If Redis does not answer then, or a process is
killed in between, the old stamp remains, so pages must be cached for a short time only.
"""

from __future__ import annotations

import secrets
from typing import Any

from django.core.cache import cache
from django.db import transaction

EVERY = 0
"""Stands for all tracks"""
DAY = 86_400


def mark_changed(track: int = EVERY) -> None:
    """Mark all public data of a track (or of every track) as changed once this transaction
    commits.
    """
    transaction.on_commit(lambda: cache.set(_stamp_cache_key(track), _new_stamp(), DAY))


def current_stamps(track: int) -> tuple[str, ...]:
    """Return the current stamps of a track: change markers in the cache, replaced after every
    change. Call this before reading data that is cached with them.
    """
    return _found_and_new_stamps(track, cache.get_many(_stamp_cache_keys(track)))


def cached_with_stamps(key: str, track: int) -> tuple[Any, tuple[str, ...]]:
    """Return the cached value of a key (None if missing), and the track's stamps (change markers),
    in one query of the cache.
    """
    found = cache.get_many([key, *_stamp_cache_keys(track)])
    return found.get(key), _found_and_new_stamps(track, found)


def _found_and_new_stamps(track: int, found: dict[str, Any]) -> tuple[str, ...]:
    """Return the stamps (change markers) of a track: those that were found, and new ones for
    missing stamps.
    """
    names = _stamp_cache_keys(track)
    for name in names:
        if name not in found:
            found[name] = _new_stamp()
            cache.set(name, found[name], DAY)
    return tuple(found[name] for name in names)


def _stamp_cache_keys(track: int) -> list[str]:
    return [_stamp_cache_key(EVERY), _stamp_cache_key(track)]


def _stamp_cache_key(track: int) -> str:
    return f"stamp.{track}"


def _new_stamp() -> str:
    return secrets.token_hex(8)
