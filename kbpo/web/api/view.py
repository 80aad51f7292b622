"""Base classes of API views, and the parsing of parameters and pages."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from drf_spectacular.utils import OpenApiParameter
from rest_framework import views
from rest_framework.exceptions import ValidationError
from rest_framework.pagination import LimitOffsetPagination
from rest_framework.permissions import AllowAny
from rest_framework.request import Request
from rest_framework.response import Response

from kbpo.web.api.answers import whole_number_parameter
from kbpo.web.table import Table

BIGGEST = 2**31 - 1
"""The greatest number that a parameter may be"""


def one_of(request: Request, name: str, options: Any, fallback: str) -> str:
    """Return the option in a parameter. Raises ValidationError for an unknown one."""
    value = request.query_params.get(name, fallback)
    if value not in options:
        raise ValidationError({name: [f"{value!r} is not one of {', '.join(options)}."]})
    return str(value)


POPULATION = "like or these: whether intervals hold for inputs (documents) like these, or these"


def whole_number(
    request: Request, name: str, fallback: int, most: int = BIGGEST, *, least: int = 0
) -> int:
    """Return the integer in a parameter; the fallback without one. Raises ValidationError."""
    value = request.query_params.get(name)
    if value is None:
        return fallback
    if not (value.isascii() and value.isdecimal() and len(value) < 20):
        raise ValidationError({name: [f"{value[:40]!r} is not a number from {least} to {most}."]})
    if not least <= int(value) <= most:
        raise ValidationError({name: [f"{value} is not a number from {least} to {most}."]})
    return int(value)


def limit_of(request: Request, fallback: int, most: int) -> int:
    """Return the requested number of rows. Raises ValidationError."""
    return whole_number(request, "limit", fallback, most, least=1)


ALWAYS_ALLOWED = ("format",)
PAGE_PARAMETERS = ("page", "page_size", "per_page")
"""What other services page their lists by"""


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


def _refuse_unknown(asked: set[str], known: list[str]) -> None:
    """Raise ValidationError for unknown parameters."""
    for name in sorted(asked.difference(known)):
        there_are = f"There are: {', '.join(known)}." if known else "There are none."
        sentence = f"This is no parameter here. {there_are}"
        if name in PAGE_PARAMETERS and "limit" in known:  # who asks for page=2 would get the first
            sentence = "This is no parameter here: say `limit`, and follow `next` of the answer."
        raise ValidationError({name[:40]: [sentence]})


MOST_PER_PAGE = 1000
PAGING = [
    whole_number_parameter("limit", MOST_PER_PAGE, "How many there are on a page"),
    whole_number_parameter("offset", BIGGEST, "How many are left out before it", least=0),
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
    limit_of(request, at_once, MOST_PER_PAGE)
    whole_number(request, "offset", 0, BIGGEST)
    pages = LimitOffsetPagination()
    pages.default_limit, pages.max_limit = at_once, MOST_PER_PAGE
    return pages, pages.paginate_queryset(rows, request, view=view) or []


def list_table(table: Table, request: Request, view: APIView) -> Response:
    """Return the page of a table by `limit` and `offset`. Raises ValidationError."""
    pages, page = paginate(table.rows, request, view)
    return pages.get_paginated_response(table.records(page))
