"""Remembers for a while what was read of single things: who sees the database as it is at one
moment asks for nothing twice.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, TypeVar

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")
_READ: ContextVar[dict[Hashable, dict[Any, Any]] | None] = ContextVar("_READ", default=None)
"""What is read -> of what -> what was found; none where nothing is remembered"""


@contextmanager
def caching_reads() -> Iterator[None]:
    """Cache what `each` reads inside: for callers that do not write and need no changes that others
    make meanwhile.
    """
    token = _READ.set({})
    try:
        yield
    finally:
        _READ.reset(token)


def read_cached(
    what: Hashable, keys: Collection[K], read: Callable[[list[K]], Mapping[K, V]]
) -> dict[K, V]:
    """Return the values that `read` finds for some keys, in the order of the keys and without
    missing ones. `what` identifies the query. The values must not be changed.
    """
    memory = _READ.get()
    known = {} if memory is None else memory.setdefault(what, {})
    missing = [key for key in dict.fromkeys(keys) if key not in known]
    if missing:
        fresh = read(missing)
        known.update({key: fresh.get(key) for key in missing})
    return {key: known[key] for key in keys if known[key] is not None}
