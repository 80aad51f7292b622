"""Keeps a server's threads free where people are slow: of one process, two at a time send something
large, and two are sent a long file; whoever comes besides is told to come again.
"""

from __future__ import annotations

import threading
from collections.abc import Callable

from django.conf import settings
from django.core.exceptions import MiddlewareNotUsed
from django.http import HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from django.urls import Resolver404, resolve

from kbpo.web.bodies import size_of, taker_of
from kbpo.web.errors import RETRY_AFTER, page

AT_ONCE = 2
"""What one process does at once of each: half of its threads"""
LARGE = 1 << 20
"""Bytes from which a body or a file is large"""
WAIT = 0.5
"""Seconds for which a place is waited for: most files are small"""
MANY_SEND = "Many large files are sent to us just now, and yours was not read. Send it again soon."
MANY_ASK = "Many large files are being sent just now. Ask for yours again in a minute."


class PlacesMiddleware:
    """Stands before the protection against forged forms, which reads the whole form first."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponseBase]) -> None:
        if not settings.ANSWERS_REQUESTS:
            raise MiddlewareNotUsed
        self.get_response = get_response
        self.sending, self.asking = (threading.BoundedSemaphore(AT_ONCE) for _ in "ab")

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        if not _may_take_long(request):
            return self._answered(request)
        if not self.sending.acquire(timeout=WAIT):
            return _later(request, MANY_SEND)
        try:
            return self._answered(request)
        finally:
            self.sending.release()

    def _answered(self, request: HttpRequest) -> HttpResponseBase:
        """Return the answer; a large file holds a place until it is sent, or its reader has
        gone.
        """
        answer = self.get_response(request)
        if not answer.streaming or int(answer.headers.get("Content-Length", LARGE)) < LARGE:
            return answer
        if not self.asking.acquire(timeout=WAIT):
            answer.close()
            return _later(request, MANY_ASK)
        answer._resource_closers.append(self.asking.release)  # type: ignore[attr-defined]
        return answer


def _may_take_long(request: HttpRequest) -> bool:
    """Return whether a body is large, or goes where files are sent: of these a proxy hands on what
    came so far.
    """
    size = size_of(request)
    if size >= LARGE or not size or request.method != "POST":
        return size >= LARGE
    try:
        return bool(taker_of(request, resolve(request.path_info)))
    except Resolver404:
        return False


def _later(request: HttpRequest, sentence: str) -> HttpResponse:
    answer = page(request, 503, sentence)
    answer["Retry-After"] = str(RETRY_AFTER)
    return answer
