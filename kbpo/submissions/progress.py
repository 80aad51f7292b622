"""How far a file has been read, told through the cache: the row itself is locked by the transaction
that reads it.
"""

from __future__ import annotations

import time
from collections.abc import Callable

from django.core.cache import cache

EVERY = 0.5
KEEP = 3600


def progress_of(submission_id: int) -> float:
    """Return the share of the file that was read, from 0 to 1; 0 if unknown."""
    return float(cache.get(_key(submission_id)) or 0.0)


def progress_writer(submission_id: int) -> Callable[[float], None]:
    """Return a function that takes the share that was read and publishes it, at most twice a
    second.
    """
    last = 0.0

    def tell(share: float) -> None:
        nonlocal last
        now = time.monotonic()
        if now - last >= EVERY:
            last = now
            cache.set(_key(submission_id), round(share, 3), KEEP)

    return tell


def _key(submission_id: int) -> str:
    return f"submissions.progress.{submission_id}"
