"""Answers 304 where a program has what it asks for already."""

from __future__ import annotations

from django.http import HttpRequest, HttpResponseBase
from django.middleware.http import ConditionalGetMiddleware


class UnchangedMiddleware(ConditionalGetMiddleware):
    """Gives every answer of the API an ETag, and none that is as the program knows it. Pages carry
    their own.
    """

    def process_response(
        self, request: HttpRequest, response: HttpResponseBase
    ) -> HttpResponseBase:
        """Return the answer, or 304."""
        if not request.path.startswith("/api/"):
            return response
        return super().process_response(request, response)
