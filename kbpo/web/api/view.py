"""Base classes of API views, and the parsing of parameters and pages."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator, Mapping
from itertools import islice
from typing import Any, ClassVar

from django.conf import settings
from django.core.exceptions import PermissionDenied
from django.http import Http404
from django.urls import reverse
from drf_spectacular.extensions import OpenApiSerializerExtension
from drf_spectacular.utils import OpenApiParameter, extend_schema_field
from rest_framework import serializers, views
from rest_framework.exceptions import (
    APIException,
    NotAuthenticated,
    ParseError,
    Throttled,
    ValidationError,
)
from rest_framework.pagination import LimitOffsetPagination
from rest_framework.permissions import AllowAny
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.utils.html import is_html_input
from rest_framework.views import exception_handler

from annotation.desk.experts import CannotAsk
from kbpo.money.spend import OverBudget
from kbpo.sampling.confirm import CannotConfirm, CannotOrder
from kbpo.scores.bring import CannotTake
from kbpo.submissions import receive
from kbpo.web.api.answers import whole_number_parameter
from kbpo.web.components.figures import plural
from kbpo.web.table import Table

BIGGEST = 2**31 - 1
"""The greatest number that a parameter may be"""


def option_in(request: Request, name: str, options: Any, fallback: str) -> str:
    """Return the option in a parameter. Raises ValidationError for an unknown one."""
    value = request.query_params.get(name, fallback)
    if value not in options:
        raise ValidationError({name: [f"{value!r} is not one of {', '.join(options)}."]})
    return str(value)


POPULATION = "like or these: whether intervals hold for inputs (documents) like these, or these"


def whole_number(
    request: Request, name: str, fallback: int, maximum: int = BIGGEST, *, minimum: int = 0
) -> int:
    """Return the integer in a parameter; the fallback without one. Raises ValidationError."""
    value = request.query_params.get(name)
    if value is None:
        return fallback
    if not (value.isascii() and value.isdecimal() and len(value) < 20):
        raise ValidationError(
            {name: [f"{value[:40]!r} is not a number from {minimum} to {maximum}."]}
        )
    if not minimum <= int(value) <= maximum:
        raise ValidationError({name: [f"{value} is not a number from {minimum} to {maximum}."]})
    return int(value)


def page_limit(request: Request, fallback: int, maximum: int) -> int:
    """Return the requested number of rows. Raises ValidationError."""
    return whole_number(request, "limit", fallback, maximum, minimum=1)


ALWAYS_ALLOWED = ("format",)
PAGE_PARAMETERS = ("page", "page_size", "per_page")
"""Paging parameters of other services, for a helpful refusal"""


class APIView(views.APIView):
    """A view that refuses parameters that its schema does not describe."""

    def initial(self, request: Request, *args: Any, **kwargs: Any) -> None:
        """Raise ValidationError for a parameter that is not documented, after permissions were
        checked.
        """
        super().initial(request, *args, **kwargs)
        unknown = set(request.query_params).difference(ALWAYS_ALLOWED)
        if unknown and hasattr(self, _method(request)):
            _refuse_unknown(unknown, list(self._allowed_parameters(request)))

    def _allowed_parameters(self, request: Request) -> Iterator[str]:
        """Yield the names of the allowed parameters."""
        extended = getattr(getattr(self, _method(request)), "kwargs", {}).get("schema")
        if extended is None:
            return
        schema = extended()
        schema.view, schema.method = self, request.method
        for parameter in schema.get_override_parameters():
            if not isinstance(parameter, OpenApiParameter):
                yield from parameter().fields
            elif parameter.location == OpenApiParameter.QUERY:
                yield parameter.name


class PublicView(APIView):
    """A view that needs no token."""

    permission_classes = [AllowAny]


def _method(request: Request) -> str:
    """Return the name of the view method that handles the request; `get` handles HEAD too."""
    return "get" if request.method == "HEAD" else str(request.method).lower()


def _refuse_unknown(requested: set[str], known_names: list[str]) -> None:
    """Raise ValidationError for unknown parameters."""
    for name in sorted(requested.difference(known_names)):
        there_are = f"There are: {', '.join(known_names)}." if known_names else "There are none."
        sentence = f"This is no parameter here. {there_are}"
        if (
            name in PAGE_PARAMETERS and "limit" in known_names
        ):  # who asks for page=2 would get the first
            sentence = "This is no parameter here: use `limit`, and follow `next` of the answer."
        raise ValidationError({name[:40]: [sentence]})


MOST_PER_PAGE = 1000
PAGING = [
    whole_number_parameter("limit", MOST_PER_PAGE, "How many there are on a page"),
    whole_number_parameter("offset", BIGGEST, "How many are left out before it", minimum=0),
]


def paginate(
    rows: Any,
    request: Request,
    view: APIView,
    *,
    at_once: int = 100,
) -> tuple[LimitOffsetPagination, list[Any]]:
    """Return the pagination by `limit` and `offset`, and its rows: at most 1,000. Raises
    ValidationError.
    """
    page_limit(request, at_once, MOST_PER_PAGE)
    whole_number(request, "offset", 0, BIGGEST)
    pages = LimitOffsetPagination()
    pages.default_limit, pages.max_limit = at_once, MOST_PER_PAGE
    return pages, pages.paginate_queryset(rows, request, view=view) or []


def list_table(table: Table, request: Request, view: APIView) -> Response:
    """Return the page of a table by `limit` and `offset`. Raises ValidationError."""
    pages, page = paginate(table.rows, request, view)
    return pages.get_paginated_response(table.records(page))


WRONG_TYPE = "Each has to be of the type that the schema names."
SHARE = r"^0?\.[0-9]{1,3}$"


@extend_schema_field({"oneOf": [{"type": "string", "pattern": SHARE}, {"type": "number"}]})
class ShareField(serializers.DecimalField):
    """A share to three digits: a number, or a text such as "0.05"."""

    default_error_messages: ClassVar = {"invalid": "Give a share between 0 and 1, such as 0.05."}

    def __init__(self, **options: Any) -> None:
        super().__init__(max_digits=4, decimal_places=3, **options)


class RequestBody(serializers.Serializer[Any]):
    """The body of a request, as a form or as JSON."""

    def to_internal_value(self, data: Any) -> Any:
        """Return the validated data; a JSON value of another type is an error."""
        if isinstance(data, Mapping) and not is_html_input(data):
            wrong = {
                name: [field.error_messages.get("invalid", WRONG_TYPE)]
                for name, field in self.fields.items()
                if data.get(name) is not None and not _is_of_type(field, data[name])
            }
            if wrong:
                raise serializers.ValidationError(wrong)
        return super().to_internal_value(data)


class StrictBody(RequestBody):
    """The body of a request that spends money: unknown fields are refused, so that no limit is
    ignored.
    """

    def to_internal_value(self, data: Any) -> Any:
        """Return the validated data; an unknown field is an error."""
        if isinstance(data, Mapping):
            known = f"There is no such field here. There are: {', '.join(self.fields)}."
            unknown = {str(name)[:40]: [known] for name in data if name not in self.fields}
            if unknown:
                raise serializers.ValidationError(unknown)
        return super().to_internal_value(data)


class StrictBodyInSchema(OpenApiSerializerExtension):  # type: ignore[no-untyped-call]
    """Adds to the schema that such a body has no other fields."""

    target_class = StrictBody
    match_subclasses = True

    def map_serializer(self, auto_schema: Any, direction: Any) -> dict[str, Any]:
        found = auto_schema._map_serializer(self.target, direction, bypass_extensions=True)
        return {**found, "additionalProperties": False}


def read_body(form: type[RequestBody], request: Request) -> dict[str, Any]:
    """Return the validated body of a request. Raises ValidationError."""
    body = form(data=request.data)
    body.is_valid(raise_exception=True)
    return dict(body.validated_data)


def _is_of_type(field: Any, value: Any) -> bool:
    """Return whether a JSON value has the type of a field."""
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    if isinstance(field, ShareField):
        return is_number or (isinstance(value, str) and re.fullmatch(SHARE, value) is not None)
    if isinstance(field, serializers.BooleanField):
        return isinstance(value, bool)
    if isinstance(field, serializers.IntegerField):
        return is_number and (isinstance(value, int) or value.is_integer())
    if isinstance(field, serializers.FloatField):
        return is_number and abs(value) <= sys.float_info.max
    if isinstance(field, serializers.ListField):
        return isinstance(value, list) and all(
            member is None or _is_of_type(field.child, member) for member in value
        )
    return isinstance(value, str) if isinstance(field, serializers.CharField) else True


MOST_SENTENCES = 10
"""Greatest number of sentences about fields in one refusal"""


class Refused(APIException):
    """Raised for a valid request that is refused, with a code and a sentence."""

    status_code = 409
    default_code = "refused"

    def __init__(self, detail: str, code: str = "refused", status: int = 409, **more: Any) -> None:
        super().__init__(detail, code)
        self.status_code = status
        self.more = more


def no_team_refusal() -> Refused:
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
"""Exception of the rooms below -> its code and HTTP status"""


def _as_refusal(exception: Exception) -> Exception:
    """Return the API's refusal for an exception of the rooms below; other exceptions unchanged."""
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


def handle_exception(exception: Exception, context: dict[str, Any]) -> Response | None:
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
        sentence = str(exception.args[0]) if exception.args else ""
        if model := re.fullmatch(r"No (\w+) matches the given query\.", sentence):
            sentence = f"There is no such {model[1].lower()}, or it is not yours to see."
        response.data = {
            "error": "not_found" if isinstance(exception, Http404) else "forbidden",
            "detail": sentence or "There is nothing here, or it is not yours to see.",
        }
    else:
        code = "error"
        if isinstance(exception, APIException):
            code = getattr(exception.detail, "code", exception.default_code)
        response.data = {
            "error": code,
            "detail": _refusal_sentence(exception, response),
            **getattr(exception, "more", {}),
        }
    return response


def _refusal_sentence(exception: Exception, response: Response) -> str:
    """Return a refusal as a sentence; technical messages of the framework are replaced by plain
    words.
    """
    if isinstance(exception, NotAuthenticated):
        return "This needs a token. Make one on your account page."
    detail = str(response.data.get("detail", ""))
    if not isinstance(exception, Throttled):
        return detail
    own = detail.partition(" Expected available in")[0]
    sentence = "These were too many requests." if own == Throttled.default_detail else own
    if own.rpartition(". ")[2].startswith(("Come again ", "Try again ", "Wait ")):
        return own
    seconds = int(response["Retry-After"])
    return f"{sentence} Come again in {plural(seconds, 'second')}."


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
