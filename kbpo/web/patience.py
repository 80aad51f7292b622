"""Keeps a server's threads free where something is locked for long: two requests that send
something wait as long as they may, others soon give up, and pages that need no lock are answered.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from contextlib import AbstractContextManager
from decimal import Decimal
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
"""Where a request of this process gave up just now, others wait for a lock a tenth as long as a
session does: a hundredth of what the patient do"""
OF_PARTS = ("SAVEPOINT ", "RELEASE SAVEPOINT ", "ROLLBACK TO SAVEPOINT ")
"""Where a statement failed nothing but the last of these is heard. None of them waits."""


class PatienceMiddleware:
    """Lets few requests of a process wait long for a lock. Reading takes locks too, now and then:
    when a token was used last, which messages were read.
    """

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        if not settings.ANSWERS_REQUESTS:
            raise MiddlewareNotUsed
        self.get_response = get_response
        self.places = threading.BoundedSemaphore(PATIENT)
        self.hurried_until = 0.0
        """On this process's monotonic clock"""

    def __call__(self, request: HttpRequest) -> HttpResponse:
        if request.method in READ_ONLY or not self.places.acquire(blocking=False):
            return self._soon(request)
        try:
            with waits(settings.LOCK_SECONDS):
                return self._noted(self.get_response(request))
        finally:
            self.places.release()

    def _soon(self, request: HttpRequest) -> HttpResponse:
        """The answer to a request that waits as long as its session does, a tenth of what the
        patient do. What gives up in a hurry prolongs no hurry: others find out how things are.
        """
        if time.monotonic() < self.hurried_until:
            with waits(settings.SHORT_LOCK_SECONDS / SHARE):
                return self.get_response(request)
        return self._noted(self.get_response(request))

    def _noted(self, answer: HttpResponse) -> HttpResponse:
        if getattr(answer, "waited_for_lock", False):
            self.hurried_until = time.monotonic() + float(settings.LOCK_SECONDS)
        return answer


def waits(seconds: Decimal) -> AbstractContextManager[None]:
    """Within it each statement waits so long for a lock. The limit ends with its transaction: the
    session may be somebody else's then.
    """
    limit = f"SET LOCAL lock_timeout = '{int(seconds * 1000)}ms'; "

    def limited(execute: Any, sql: Any, parameters: Any, many: bool, context: Any) -> Any:
        is_plain = isinstance(sql, str) and not sql.startswith(OF_PARTS)
        if is_plain and context["cursor"].name is None:  # it declares no cursor
            sql = limit + sql
        return execute(sql, parameters, many, context)

    return connection.execute_wrapper(limited)
