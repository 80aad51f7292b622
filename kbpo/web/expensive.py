"""Limits expensive requests: two at a time for each process, and one export for each session.
Others get a 503, so that threads remain for all other pages.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from functools import partial, wraps
from hashlib import sha256
from typing import Any, Concatenate, ParamSpec, cast

from django.conf import settings
from django.contrib.auth.hashers import PBKDF2PasswordHasher
from django.core.cache import cache
from django.http import HttpRequest, StreamingHttpResponse
from django.http.response import HttpResponseBase

from kbpo.web.errors import Crowded
from kbpo.web.http import client_address

P = ParamSpec("P")
View = Callable[Concatenate[HttpRequest, P], HttpResponseBase]

AT_ONCE = 2
"""Number of expensive requests that one process computes at once: half of its threads"""
WAIT = 0.5
"""Seconds that a request waits for its turn; most expensive requests take less"""
LONGEST_EXPORT = 600
"""Seconds after which an export no longer counts as running, in case its process was killed"""
SLOTS = threading.BoundedSemaphore(AT_ONCE)


@contextmanager
def hold_slot(seconds: float) -> Iterator[None]:
    """Hold one of the process's slots for an expensive computation.

    Raises `Crowded` if none is free within `seconds`. Only processes that serve requests are
    limited.
    """
    if not settings.ANSWERS_REQUESTS:
        yield
        return
    if not SLOTS.acquire(timeout=seconds):
        raise Crowded("Too many expensive requests at once")
    try:
        yield
    finally:
        SLOTS.release()


def limit_concurrency(view: View[P]) -> View[P]:
    """Wrap a view so that it occupies a slot while it computes its response."""

    @wraps(view)
    def view_in_slot(
        request: HttpRequest, /, *args: P.args, **kwargs: P.kwargs
    ) -> HttpResponseBase:
        with hold_slot(WAIT):
            return view(request, *args, **kwargs)

    return view_in_slot


def limit_exports(view: View[P]) -> View[P]:
    """Return the view of a file, limited to one at a time for each session. A streamed file holds a
    slot only while a part is computed, so that slow clients block nobody.
    """

    @wraps(view)
    def view_with_export_limit(
        request: HttpRequest, /, *args: P.args, **kwargs: P.kwargs
    ) -> HttpResponseBase:
        if not settings.ANSWERS_REQUESTS:
            return view(request, *args, **kwargs)
        session: Any = request.session
        token = request.headers.get("Authorization")
        who = token or session.session_key or client_address(request)
        key = f"export:{sha256(who.encode(errors='replace')).hexdigest()}"
        if not _register_export(key):
            raise Crowded("Another export of this session is in flight")
        try:
            with hold_slot(WAIT):
                answer = view(request, *args, **kwargs)
        except BaseException:
            _unregister_export(key)
            raise
        if answer.streaming:
            stream = cast(StreamingHttpResponse, answer)
            stream.streaming_content = _compute_in_slots(
                cast(Iterable[bytes], stream.streaming_content)
            )
            answer._resource_closers.append(partial(_unregister_export, key))  # type: ignore[attr-defined]
        else:
            _unregister_export(key)
        return answer

    return view_with_export_limit


def _compute_in_slots(parts: Iterable[bytes]) -> Iterator[bytes]:
    """Yield the parts of a file, each computed while a slot is held."""
    rest = iter(parts)
    while True:
        with SLOTS:
            part = next(rest, None)
        if part is None:
            return
        yield part


def _register_export(key: str) -> bool:
    """Return whether the session has no other export, and register this one. Waits a moment, since
    a client may request the next file before we finish the last.
    """
    until = time.monotonic() + WAIT
    try:
        while not cache.add(key, 1, LONGEST_EXPORT):
            if time.monotonic() > until:
                return False
            time.sleep(0.05)
    except Exception:  # the cache does not answer: the slots still limit what is computed
        return True
    return True


def _unregister_export(key: str) -> None:
    with suppress(Exception):
        cache.delete(key)


PATIENCE = 5.0
"""Seconds that a log-in waits for its turn; hashing takes a third of a second"""


class LimitedHasher(PBKDF2PasswordHasher):
    """Django's default hasher, limited in concurrency; the hashes are the same."""

    def encode(self, password: str, salt: str, iterations: int | None = None) -> str:
        with hold_slot(PATIENCE):
            return super().encode(password, salt, iterations)
