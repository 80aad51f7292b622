"""Error responses of the API: always `{"error": code, "detail": sentence}`, never a traceback."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import islice
from typing import Any

from django.conf import settings
from django.core.exceptions import PermissionDenied
from django.http import Http404
from django.urls import reverse
from rest_framework.exceptions import (
    APIException,
    NotAuthenticated,
    ParseError,
    Throttled,
    ValidationError,
)
from rest_framework.response import Response
from rest_framework.views import exception_handler

from annotation.desk.experts import CannotAsk
from kbpo.money.spend import OverBudget
from kbpo.sampling.confirm import CannotConfirm
from kbpo.sampling.order import CannotOrder
from kbpo.scores.bring import CannotTake
from kbpo.submissions import receive

MOST_SENTENCES = 10
"""Sentences about fields that one answer has in words"""


class Refused(APIException):
    """A valid request that is refused, with a code and a sentence."""

    status_code = 409
    default_code = "refused"

    def __init__(self, detail: str, code: str = "refused", status: int = 409, **more: Any) -> None:
        super().__init__(detail, code)
        self.status_code = status
        self.more = more


def no_team() -> Refused:
    """Return the refusal for users without a team that may submit."""
    ask = settings.SITE_URL.rstrip("/") + reverse("ask")
    return Refused(f"You belong to no team that submits. Ask for one at {ask}.", "no_team", 403)


REFUSALS: dict[type[Exception], tuple[str, int]] = {
    CannotAsk: ("cannot_ask", 409),
    CannotConfirm: ("cannot_confirm", 409),
    CannotOrder: ("cannot_order", 409),
    CannotTake: ("cannot_take", 422),
    receive.CannotChange: ("cannot_change", 409),
    receive.CannotReceive: ("refused", 409),
    OverBudget: ("over_budget", 402),
}
"""What the rooms below decline -> its code and status over the API"""


def _as_refusal(exception: Exception) -> Exception:
    """Return the API's refusal for an exception of the rooms below; other exceptions as
    they are.
    """
    for kind, (code, status) in REFUSALS.items():
        if isinstance(exception, kind):
            more: dict[str, Any] = {}
            if isinstance(exception, OverBudget):
                more["left"] = str(exception.left)
            if isinstance(exception, receive.CannotReceive):
                code = exception.code
                more |= {"same_as": exception.same_as} if exception.same_as else {}
            return Refused(str(exception), code, status, **more)
    return exception


def handle(exception: Exception, context: dict[str, Any]) -> Response | None:
    """Return the response to an exception; None (a logged 500) for a bug."""
    exception = _as_refusal(exception)
    if isinstance(exception, RecursionError):  # nothing of ours is as deep
        exception = ParseError("What was sent is nested too deep.")
    response = exception_handler(exception, context)
    if response is None:
        return None
    if isinstance(exception, ValidationError):
        fields = response.data if isinstance(response.data, dict) else {"": response.data}
        response.data = {
            "error": "invalid",
            "detail": " ".join(islice(_sentences("", fields), MOST_SENTENCES)),
            "fields": fields,
        }
    elif isinstance(exception, Http404 | PermissionDenied):
        sentence = _not_found_sentence(str(exception.args[0])) if exception.args else ""
        code = "not_found" if isinstance(exception, Http404) else "forbidden"
        fallback = "There is nothing here, or it is not yours to see."
        response.data = {
            "error": code,
            "detail": sentence or fallback,
        }
    else:
        code = exception.default_code if isinstance(exception, APIException) else "error"
        told_code = (
            getattr(exception.detail, "code", code) if isinstance(exception, APIException) else code
        )
        response.data = {
            "error": told_code,
            "detail": _refusal_sentence(exception, response),
            **getattr(exception, "more", {}),
        }
    return response


def _not_found_sentence(sentence: str) -> str:
    """Return the sentence for a missing object, in the words of the API."""
    found = re.fullmatch(r"No (\w+) matches the given query\.", sentence)
    return f"There is no such {found[1].lower()}, or it is not yours to see." if found else sentence


def _refusal_sentence(exception: Exception, response: Response) -> str:
    """Return the sentence of a refusal, in plain words where the framework's are not."""
    if isinstance(exception, NotAuthenticated):
        return "This takes a token of yours. Make one on your account page."
    detail = str(response.data.get("detail", ""))
    if not isinstance(exception, Throttled):
        return detail
    own = detail.partition(" Expected available in")[0]
    sentence = "These were too many requests." if own == Throttled.default_detail else own
    if own.rpartition(". ")[2].startswith(("Come again ", "Try again ", "Wait ")):
        return own
    seconds = int(response["Retry-After"])
    return f"{sentence} Come again in {seconds} second{'' if seconds == 1 else 's'}."


def _sentences(place: str, complaint: Any) -> Iterator[str]:
    """Yield the errors of a field, nested ones with their place."""
    if isinstance(complaint, dict):
        for key, part in complaint.items():
            inner = f"{place}[{key}]" if isinstance(key, int) else f"{place}.{key}".strip(".")
            yield from _sentences(inner, part)
    elif isinstance(complaint, list | tuple):
        for index, part in enumerate(complaint):
            is_part = isinstance(part, dict)
            yield from _sentences(f"{place}[{index}]" if is_part else place, part)
    else:
        yield f"{place}: {complaint}".strip(": ")
