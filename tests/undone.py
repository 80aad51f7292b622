"""A block of a test whose writes are taken back,
so that the next one begins with the same world.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress

from django.db import transaction


class _Undone(Exception):
    pass


@contextmanager
def undone() -> Iterator[None]:
    """Nothing; what the block wrote to the database is taken back at its end."""
    with suppress(_Undone), transaction.atomic():
        yield
        raise _Undone
