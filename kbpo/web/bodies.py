"""Limits uploads and large downloads: bodies that are too large are refused before they are read,
and each process handles two large uploads and two large downloads at a time.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

from django.conf import settings
from django.contrib.auth.views import redirect_to_login
from django.core.exceptions import MiddlewareNotUsed
from django.http import HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from django.urls import Resolver404, ResolverMatch, resolve

from kbpo.accounts.models import User
from kbpo.web.errors import error_page, retry_later

MEGABYTE = 1 << 20
FORM_FIELDS_LIMIT = MEGABYTE
"""Greatest number of bytes of a form in addition to its file"""
JUDGING, LONGEST_ANSWER = "/annotate/", MEGABYTE
"""Prefix of the pages for answers, and the greatest size of an answer or a draft, which are stored
as sent
"""
TOO_LONG = "Your answer was not stored: it is longer than one megabyte."
API = "api-"
"""Prefix of API route names; the API authenticates before it reads the body"""
UPLOADS = ("submit", "api-submissions")
"""Route names of pages that accept files of researchers"""
OF_ADMINS = (
    "api-judges",
    "desk-annotations",
    "desk-corpora",
    "desk-forms",
    "desk-scores",
    "desk-track-judgments",
)
"""Route names of pages that accept files of admins only"""


class BodyLimitMiddleware:
    """Runs before the CSRF protection, which reads the whole form."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        return self.get_response(request)

    def process_view(
        self, request: HttpRequest, view: Any, args: Any, kwargs: Any
    ) -> HttpResponse | None:
        """Return a 413 for a body that this page does not accept from this visitor. On pages for
        files, to which a proxy forwards the body as it arrives, bodies of other visitors are not
        read at all; otherwise strangers who send slowly could occupy all threads.
        """
        size = body_size(request)
        if request.path.startswith(JUDGING):
            return error_page(request, 413, TOO_LONG) if size > LONGEST_ANSWER else None
        name = receiving_page(request, request.resolver_match)
        may_send, most = bool(name) and _may_send_files(request, name), 0
        if may_send:
            most = settings.UPLOAD_LIMIT_MB * MEGABYTE + FORM_FIELDS_LIMIT
        if size > max(int(settings.DATA_UPLOAD_MAX_MEMORY_SIZE), most):
            return error_page(request, 413)
        if not size or not name or name.startswith(API) or may_send:
            return None
        if request.user.is_authenticated:
            return error_page(request, 403)
        return redirect_to_login(request.get_full_path())


def body_size(request: HttpRequest) -> int:
    """Return the declared size of the request body."""
    length = str(request.META.get("CONTENT_LENGTH") or "")
    return int(length) if length.isdecimal() else 0


def receiving_page(request: HttpRequest, match: ResolverMatch | None) -> str:
    """Return the name of the upload page or API address of this request; empty if it takes no
    files.
    """
    name = match.url_name if match is not None and request.method == "POST" else None
    return name if name is not None and name in UPLOADS + OF_ADMINS else ""


def _may_send_files(request: HttpRequest, name: str) -> bool:
    """Return whether this visitor may send files. The API checks the token and its user before it
    reads the body; a page cannot.
    """
    if name.startswith(API) and request.headers.get("Authorization"):
        return True
    user = request.user
    return isinstance(user, User) and (user.is_staff or (name in UPLOADS and user.is_researcher))


AT_ONCE = 2
"""Number of large uploads, and of large downloads, that one process handles at a time: half of its
threads
"""
LARGE = MEGABYTE
"""Bytes from which a body or a file counts as large"""
WAIT = 0.5
"""Seconds to wait for a slot, since most files are small"""
MANY_SEND = "Too many uploads at the moment; your file was not read. Try again soon."
MANY_ASK = "Too many downloads at the moment. Try again in a minute."


class PlacesMiddleware:
    """Runs before the CSRF protection, which reads the whole form."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponseBase]) -> None:
        if not settings.ANSWERS_REQUESTS:
            raise MiddlewareNotUsed
        self.get_response = get_response
        self.sending, self.asking = (threading.BoundedSemaphore(AT_ONCE) for _ in "ab")

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        if not _may_take_long(request):
            return self._respond(request)
        if not self.sending.acquire(timeout=WAIT):
            return retry_later(request, MANY_SEND)
        try:
            return self._respond(request)
        finally:
            self.sending.release()

    def _respond(self, request: HttpRequest) -> HttpResponseBase:
        """Return the response. A large file occupies one of the limited download slots until it has
        been sent or the client disconnects; without a free slot the client is told to retry later.
        """
        answer = self.get_response(request)
        if not answer.streaming or int(answer.headers.get("Content-Length", LARGE)) < LARGE:
            return answer
        if not self.asking.acquire(timeout=WAIT):
            answer.close()
            return retry_later(request, MANY_ASK)
        answer._resource_closers.append(self.asking.release)  # type: ignore[attr-defined]
        return answer


def _may_take_long(request: HttpRequest) -> bool:
    """Return whether a body is large or is an upload, which a proxy may pass on slowly."""
    size = body_size(request)
    if size >= LARGE or not size or request.method != "POST":
        return size >= LARGE
    try:
        return bool(receiving_page(request, resolve(request.path_info)))
    except Resolver404:
        return False
