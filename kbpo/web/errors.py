"""Error pages: a sentence, the current state, and what to do. Never a traceback."""

from __future__ import annotations

import errno
import logging
import sys
from collections.abc import Callable
from urllib.parse import unquote

from django.db import InterfaceError, OperationalError
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.shortcuts import render
from django.template.loader import render_to_string
from psycopg2.errors import InvalidCursorName

log = logging.getLogger(__name__)

NO_TEXT = "The text has invalid characters, such as NUL. Nothing was changed."
DISK_FULL = "Our disk is full. Nothing was stored or lost. Try again in an hour."
NO_ROOM = (errno.ENOSPC, errno.EDQUOT)
RETRY_AFTER = 10
"""Seconds after which a program may retry a request that was refused as too busy"""

SENTENCES = {
    400: (
        "This request could not be understood",
        "Nothing was changed. Go back, reload the page and try again.",
    ),
    403: (
        "You may not see this page",
        "Nothing was changed. Log in with another account, or go back to the leaderboard.",
    ),
    404: (
        "There is no such page",
        "It may have been withdrawn or renamed. The leaderboard links to everything public.",
    ),
    413: (
        "This is too large",
        "Nothing was stored. Log in before an upload; compress or split larger files.",
    ),
    500: (
        "We could not finish this",
        "The error is logged, and nothing saved is lost. Try again in a minute.",
    ),
    503: (
        "This is taking too long",
        "The service is busy, and nothing was changed. Try again in a minute.",
    ),
}

CODES = {
    400: "invalid",
    403: "forbidden",
    404: "not_found",
    413: "too_large",
    500: "failed",
    503: "busy",
}
"""HTTP status -> error code for programs"""
MODEL_NAMES = {"submissions": "run", "tracks": "track"}
"""Last but one part of an API address -> the name of the object in the last part"""


def error_page(request: HttpRequest, status: int, sentence: str = "") -> HttpResponse:
    """Return the error page, or JSON under /api/ and for scripts."""
    title, advice = SENTENCES[status]
    if request.path.startswith("/api/"):
        detail = sentence or (
            _unknown_address_sentence(request.path) if status == 404 else f"{title}. {advice}"
        )
        return JsonResponse({"error": CODES[status], "detail": detail}, status=status)
    if is_script(request):
        return JsonResponse({"error": sentence or advice}, status=status)
    context = {"title": title, "sentence": sentence or advice, "status": status}
    return render(request, "error.html", context, status=status)


def retry_later(request: HttpRequest, sentence: str) -> HttpResponse:
    """Return a 503 page that states when to try again."""
    answer = error_page(request, 503, sentence)
    answer["Retry-After"] = str(RETRY_AFTER)
    return answer


def _unknown_address_sentence(path: str) -> str:
    """Return the sentence for an unknown API address, which names the object that the address seems
    to mean.
    """
    _, _, kind, name, *rest = [*unquote(path).split("/"), "", ""]
    if kind in MODEL_NAMES and name and not any(rest):
        return f"There is no {MODEL_NAMES[kind]} {name[:60]}."
    return f"There is no such address, {path[:200]}. /api/schema/ lists them all."


def is_script(request: HttpRequest) -> bool:
    """Return whether a page's script sent the request and expects JSON."""
    return request.headers.get("Accept") == "application/json"


def bad_request(request: HttpRequest, exception: Exception) -> HttpResponse:
    return error_page(request, 400)


def forbidden(request: HttpRequest, exception: Exception) -> HttpResponse:
    return error_page(request, 403, str(exception) if str(exception) else "")


def not_found(request: HttpRequest, exception: Exception) -> HttpResponse:
    sentence = exception.args[0] if exception.args and isinstance(exception.args[0], str) else ""
    return error_page(request, 404, sentence if sentence and "match" not in sentence else "")


def server_error(request: HttpRequest) -> HttpResponse:
    """Return the page of a bug, or of a busy service if the database timed out."""
    error = sys.exc_info()[1]
    answer = None if error is None else _response_to(request, error)
    return error_page(request, 500) if answer is None else answer


def has_invalid_text(error: BaseException) -> bool:
    """Return whether the error comes from invalid text: a NUL, which PostgreSQL cannot store, or a
    lone surrogate.
    """
    if isinstance(error, UnicodeEncodeError):
        return "surrogates" in error.reason
    return isinstance(error, ValueError) and "NUL (0x00)" in str(error)


def _response_to(request: HttpRequest, error: BaseException) -> HttpResponse | None:
    """Return the response to an expected error, which is logged in one line; None for an error that
    may be a bug.
    """
    if is_busy(error):
        answer = busy_page(request, error)
    elif isinstance(error, OSError) and error.errno in NO_ROOM:
        _log_error(logging.ERROR, 503, request, error)
        answer = retry_later(request, DISK_FULL)
    elif has_invalid_text(error):
        _log_error(logging.WARNING, 400, request, error)
        answer = error_page(request, 400, NO_TEXT)
    else:
        return None
    answer._has_been_logged = True  # type: ignore[attr-defined]
    return answer


def _log_error(level: int, status: int, request: HttpRequest, error: BaseException) -> None:
    path = request.path.encode("unicode_escape").decode()  # on one line, whatever it holds
    log.log(level, "%s %s %s: %s", status, request.method, path, str(error).partition("\n")[0])


class Crowded(Exception):
    """Raised if too many expensive requests run at once; the client should try again later."""


def is_busy(error: BaseException) -> bool:
    """Return whether the database was unavailable or too slow (lock, statement timeout, deadlock,
    full disk, lost connection), or the process is at its limit.
    """
    return isinstance(_original_exception(error), OperationalError | InterfaceError | Crowded)


def _original_exception(error: BaseException) -> BaseException:
    """Return the original exception, which Django hides when it closes a cursor that could not be
    opened.
    """
    hidden = error.__context__ if isinstance(error, InvalidCursorName) else None
    return error if hidden is None else hidden


def busy_page(request: HttpRequest, error: BaseException) -> HttpResponse:
    """Return a 503 page. It makes no database query, not even for the user."""
    error = _original_exception(error)
    _log_error(logging.WARNING, 503, request, error)
    title, advice = SENTENCES[503]
    response: HttpResponse
    if request.path.startswith("/api/"):
        response = JsonResponse({"error": "busy", "detail": advice}, status=503)
    elif is_script(request):
        response = JsonResponse({"error": advice}, status=503)
    else:
        context = {"title": title, "sentence": advice, "status": 503}
        response = HttpResponse(render_to_string("error.html", context), status=503)
    response["Retry-After"] = str(RETRY_AFTER)
    return response


class ErrorMiddleware:
    """Turns expected exceptions of views into error pages."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        return self.get_response(request)

    def process_exception(self, request: HttpRequest, error: Exception) -> HttpResponse | None:
        return _response_to(request, error)


class OneLine(logging.Filter):
    """Removes the traceback from log records of responses below 500 and of suspicious requests."""

    def filter(self, record: logging.LogRecord) -> bool:
        status = getattr(record, "status_code", 0)
        if 0 < status < 500 or record.name.startswith("django.security"):
            record.exc_info = record.exc_text = None
        return True
