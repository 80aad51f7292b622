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

from kbpo.web.errors import RETRY_AFTER, page

AT_ONCE = 2
"""What one process does at once of each: half of its threads"""
LARGE = 1 << 20
"""Bytes from which a body or a file is large"""
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
        if _number(request.META.get("CONTENT_LENGTH")) < LARGE:
            return self._answered(request)
        if not self.sending.acquire(blocking=False):
            return _later(request, MANY_SEND)
        try:
            return self._answered(request)
        finally:
            self.sending.release()

    def _answered(self, request: HttpRequest) -> HttpResponseBase:
        """The answer; a large file holds a place until it is sent, or its reader has gone."""
        answer = self.get_response(request)
        if not answer.streaming or _number(answer.headers.get("Content-Length", LARGE)) < LARGE:
            return answer
        if not self.asking.acquire(blocking=False):
            answer.close()
            return _later(request, MANY_ASK)
        answer._resource_closers.append(self.asking.release)  # type: ignore[attr-defined]
        return answer


def _number(said: object) -> int:
    text = str(said or "")
    return int(text) if text.isdecimal() else 0


def _later(request: HttpRequest, sentence: str) -> HttpResponse:
    answer = page(request, 503, sentence)
    answer["Retry-After"] = str(RETRY_AFTER)
    return answer
