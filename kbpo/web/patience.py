"""Keeps half of a server's threads free where something is locked for long: what people send is
then refused soon, and pages are answered.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

from django.conf import settings
from django.core.exceptions import MiddlewareNotUsed
from django.db import connection
from django.http import HttpRequest, HttpResponse

READ_ONLY = ("GET", "HEAD", "OPTIONS")
PATIENT = 2
"""What one process does at once for people who sent something and waits for locks as long as it
may: half of its threads
"""
SHARE = 10
"""Whatever else is sent meanwhile waits for a lock a tenth as long"""


class PatienceMiddleware:
    """Lets few requests of a process wait long for a lock; reading takes none."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        if not settings.ANSWERS_REQUESTS:
            raise MiddlewareNotUsed
        self.get_response = get_response
        self.places = threading.BoundedSemaphore(PATIENT)

    def __call__(self, request: HttpRequest) -> HttpResponse:
        if request.method in READ_ONLY:
            return self.get_response(request)
        if not self.places.acquire(blocking=False):
            with connection.execute_wrapper(impatiently):
                return self.get_response(request)
        try:
            return self.get_response(request)
        finally:
            self.places.release()


def impatiently(execute: Any, sql: Any, parameters: Any, many: bool, context: Any) -> Any:
    """Return what a statement does that waits for each lock a tenth as long. The limit ends with
    the transaction: the session may be somebody else's then.
    """
    if isinstance(sql, str) and context["cursor"].name is None:  # it declares no cursor
        limit = int(settings.LOCK_SECONDS * 1000 / SHARE)
        sql = f"SET LOCAL lock_timeout = '{limit}ms'; {sql}"
    return execute(sql, parameters, many, context)
