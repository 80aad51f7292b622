"""What a page of ours may load and be loaded by: a Content-Security-Policy on every answer."""

from __future__ import annotations

from collections.abc import Callable

from django.http import HttpRequest, HttpResponse

OURS = "default-src 'self'; img-src 'self' data:; object-src 'none'; base-uri 'self'"
"""Scripts, styles, fonts and requests come from the site itself, and none stand in a page"""
UNFRAMED = "frame-ancestors 'none'; form-action 'self'"
"""Task pages in a marketplace's frame say in its place who may frame them"""
HEADER = "Content-Security-Policy"


class PolicyMiddleware:
    """Adds the policy to all that we answer: pages, files and redirects."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        response = self.get_response(request)
        response[HEADER] = f"{OURS}; {response.headers.get(HEADER, UNFRAMED)}"
        return response
