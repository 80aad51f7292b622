"""Pages for what went wrong: a sentence, what became of the thing, what to do. Never a
traceback.
"""

from __future__ import annotations

from django.http import HttpRequest, HttpResponse, JsonResponse
from django.shortcuts import render

SENTENCES = {
    400: (
        "This request could not be understood",
        "Nothing was changed. Go back, reload the page and try again.",
    ),
    403: (
        "This page is not yours to see",
        "Nothing was changed. Log in with another account, or go back to the leaderboard.",
    ),
    404: (
        "There is no such page",
        "It may have been withdrawn or renamed. The leaderboard knows everything public.",
    ),
    500: (
        "We could not finish this",
        "Nothing that was saved before is lost, and we were told. Try again in a minute.",
    ),
}


def page(request: HttpRequest, status: int, sentence: str = "") -> HttpResponse:
    """The page (or, under /api/, the JSON) that says what happened and what to do."""
    title, advice = SENTENCES[status]
    if request.path.startswith("/api/"):
        return JsonResponse({"error": title, "detail": sentence or advice}, status=status)
    context = {"title": title, "sentence": sentence or advice, "status": status}
    return render(request, "error.html", context, status=status)


def bad_request(request: HttpRequest, exception: Exception) -> HttpResponse:
    return page(request, 400)


def forbidden(request: HttpRequest, exception: Exception) -> HttpResponse:
    return page(request, 403, str(exception) if str(exception) else "")


def not_found(request: HttpRequest, exception: Exception) -> HttpResponse:
    told = exception.args[0] if exception.args and isinstance(exception.args[0], str) else ""
    return page(request, 404, told if told and "match" not in told else "")


def failed(request: HttpRequest) -> HttpResponse:
    return page(request, 500)
