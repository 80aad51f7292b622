"""What every address of the API does before it answers."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from drf_spectacular.utils import OpenApiParameter
from rest_framework import views
from rest_framework.exceptions import ValidationError
from rest_framework.permissions import AllowAny
from rest_framework.request import Request

EVERYWHERE = ("format",)
OTHERS_PAGES = ("page", "page_size", "per_page")
"""What other services page their lists by"""


class APIView(views.APIView):
    """An address that takes the parameters that its schema describes, and no others: what another
    was to choose would not be chosen.
    """

    def initial(self, request: Request, *args: Any, **kwargs: Any) -> None:
        """Raise ValidationError for a parameter that is not documented, after permissions were
        checked.
        """
        super().initial(request, *args, **kwargs)
        unknown = set(request.query_params).difference(EVERYWHERE)
        if unknown and hasattr(self, _method(request)):
            _refuse(unknown, list(self._described(request)))

    def _described(self, request: Request) -> Iterator[str]:
        """Yield the names of the parameters that a request may have."""
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
    """An address that everybody may read without a token."""

    permission_classes = [AllowAny]


def _method(request: Request) -> str:
    """Return the name of the view method that handles the request; `get` handles HEAD too."""
    return "get" if request.method == "HEAD" else str(request.method).lower()


def _refuse(asked: set[str], known: list[str]) -> None:
    """Raise ValidationError for unknown parameters."""
    for name in sorted(asked.difference(known)):
        there_are = f"There are: {', '.join(known)}." if known else "There are none."
        sentence = f"This is no parameter here. {there_are}"
        if name in OTHERS_PAGES and "limit" in known:  # who asks for page=2 would get the first
            sentence = "This is no parameter here: say `limit`, and follow `next` of the answer."
        raise ValidationError({name[:40]: [sentence]})
