"""Reads the body of a request with strict types. The framework alone takes 0 for false and 5 for a
name.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Mapping
from typing import Any, ClassVar

from drf_spectacular.extensions import OpenApiSerializerExtension
from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.utils.html import is_html_input

WRONG_TYPE = "Each has to be of the type that the schema names."
SHARE = r"^0?\.[0-9]{1,3}$"


@extend_schema_field({"oneOf": [{"type": "string", "pattern": SHARE}, {"type": "number"}]})
class ShareField(serializers.DecimalField):
    """A share to three digits: a number, or a text such as "0.05"."""

    default_error_messages: ClassVar = {"invalid": "Say a share between 0 and 1, such as 0.05."}

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
    said = form(data=request.data)
    said.is_valid(raise_exception=True)
    return dict(said.validated_data)


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
