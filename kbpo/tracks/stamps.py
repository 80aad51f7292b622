"""Tells whether anything changed that everybody is told of a track: its stamp, a word in the cache
that is another one after every change. Who keeps a page with the stamps that it was drawn under
asks no database whether it still holds.

A stamp is replaced once what changed is committed. Where Redis does not answer then, or a process
is killed in between, the old one stays: whoever keeps a page keeps it for a while only.
"""

from __future__ import annotations

import secrets
from typing import Any

from django.core.cache import cache
from django.db import transaction

EVERY = 0
"""In the place of a track: all of them"""
DAY = 86_400


def mark_changed(track: int = EVERY) -> None:
    """Mark everything shown of a track (or of every track) as changed once this transaction
    commits.
    """
    transaction.on_commit(lambda: cache.set(_name(track), _new(), DAY))


def stamps_of(track: int) -> tuple[str, ...]:
    """Return the stamps that a track has now,
    to be read before anything that is kept under them.
    """
    return _stamps(track, cache.get_many(_names(track)))


def cached_with_stamps(key: str, track: int) -> tuple[Any, tuple[str, ...]]:
    """Return the cached value of a key (None if missing), and the track's stamps, in one query of
    the cache.
    """
    found = cache.get_many([key, *_names(track)])
    return found.get(key), _stamps(track, found)


def _stamps(track: int, found: dict[str, Any]) -> tuple[str, ...]:
    """Return the stamps of a track: those that were found, and new ones for what has none."""
    names = _names(track)
    for name in names:
        if name not in found:
            found[name] = _new()
            cache.set(name, found[name], DAY)
    return tuple(found[name] for name in names)


def _names(track: int) -> list[str]:
    return [_name(EVERY), _name(track)]


def _name(track: int) -> str:
    return f"stamp.{track}"


def _new() -> str:
    return secrets.token_hex(8)
