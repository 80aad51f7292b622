"""Refuses bodies that are too large before a byte of them is read: else anybody fills the disk."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from django.conf import settings
from django.http import HttpRequest, HttpResponse

from kbpo.accounts.models import User
from kbpo.web.errors import page

MEGABYTE = 1 << 20
BESIDE_THE_FILE = MEGABYTE
"""What a form may say besides its file, in bytes"""
JUDGING, LONGEST_ANSWER = "/annotate/", MEGABYTE
"""Where people answer, and what an answer or a draft has at most: each is kept as it was sent"""
UPLOADS = ("submit", "api-submissions")
"""Names of the pages that take files of researchers"""
OF_ADMINS = (
    "api-judges",
    "api-track-judgments",
    "desk-annotations",
    "desk-corpora",
    "desk-forms",
    "desk-scores",
    "desk-track-judgments",
)
"""Names of those that take files of admins alone"""


class BodyLimitMiddleware:
    """Stands before the protection against forged forms, which reads the whole form first."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        return self.get_response(request)

    def process_view(
        self, request: HttpRequest, view: Any, args: Any, kwargs: Any
    ) -> HttpResponse | None:
        """A 413 for a body that this page does not take from this visitor."""
        try:
            size = int(request.META.get("CONTENT_LENGTH") or 0)
        except ValueError:
            size = 0
        if request.path.startswith(JUDGING):
            return page(request, 413) if size > LONGEST_ANSWER else None
        if size <= settings.DATA_UPLOAD_MAX_MEMORY_SIZE or size <= _most(request):
            return None
        return page(request, 413)


def _most(request: HttpRequest) -> int:
    """Return how many bytes this visitor may send to this page.

    The API looks at the token before it reads anything, and at whose it is; a page cannot.
    """
    match = request.resolver_match
    name = match.url_name if match is not None and request.method == "POST" else None
    takes_it = (name in UPLOADS and _is_researcher(request)) or (
        name in UPLOADS + OF_ADMINS and (_is_admin(request) or _has_token(request, name))
    )
    if takes_it:
        return settings.UPLOAD_LIMIT_MB * MEGABYTE + BESIDE_THE_FILE
    return int(settings.DATA_UPLOAD_MAX_MEMORY_SIZE)


def _has_token(request: HttpRequest, name: str) -> bool:
    return name.startswith("api-") and bool(request.headers.get("Authorization"))


def _is_researcher(request: HttpRequest) -> bool:
    return isinstance(request.user, User) and request.user.is_researcher


def _is_admin(request: HttpRequest) -> bool:
    return isinstance(request.user, User) and request.user.is_staff
