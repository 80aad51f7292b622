"""A page is read at one moment: what it tells twice is the same number, whatever is judged or paid
while it is made.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import wraps
from typing import Concatenate, ParamSpec, TypeVar

from django.db import connection, transaction
from django.http import HttpRequest
from django.http.response import HttpResponseBase

from kbpo.corpus.remembered import remembering

P = ParamSpec("P")
R = TypeVar("R", bound=HttpResponseBase)


def at_one_moment(
    view: Callable[Concatenate[HttpRequest, P], R],
) -> Callable[Concatenate[HttpRequest, P], R]:
    """Return the view, all of whose queries see the database as it is at the first of them. Only
    what asks is read so, and writes nothing: a view that changes something has to see what others
    have just changed.
    """

    @wraps(view)
    def read(request: HttpRequest, /, *args: P.args, **kwargs: P.kwargs) -> R:
        if request.method not in ("GET", "HEAD"):
            return view(request, *args, **kwargs)
        with one_moment():
            return view(request, *args, **kwargs)

    return read


@contextmanager
def one_moment() -> Iterator[None]:
    """In it all queries see the same, and the database refuses to write; what was read of a thing
    is not asked for again (`each`). Within a transaction of somebody else's the database is not
    told.
    """
    if connection.in_atomic_block:
        with remembering():
            yield
        return
    with transaction.atomic(), remembering():
        with connection.cursor() as cursor:
            cursor.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY")
        yield
