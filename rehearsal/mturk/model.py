"""What botocore's own service model says of a call: requests are checked by it, answers are shaped
by it.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from functools import cache
from typing import Any

from botocore.model import ListShape, OperationModel, ServiceModel, Shape, StructureShape
from botocore.session import get_session
from botocore.validate import ParamValidator

TARGET = "MTurkRequesterServiceV20170117."


class Invalid(Exception):
    """A request that the service model does not allow; the text says where."""


@cache
def service() -> ServiceModel:
    """Return the model of the requester service as boto3 ships it."""
    return get_session().get_service_model("mturk")


def operation(name: str) -> OperationModel:
    """Return the model of an operation. Raises Invalid if there is none of that name."""
    if name not in service().operation_names:
        raise Invalid(f"There is no operation {name}.")
    return service().operation_model(name)


def check(name: str, request: Any) -> None:
    """Raise Invalid for a request that boto3 could not have sent."""
    if not isinstance(request, dict):
        raise Invalid("The request is no JSON object.")
    shape = operation(name).input_shape
    if unknown := set(request) - set(shape.members):
        raise Invalid(f"Unknown parameter {sorted(unknown)[0]}.")
    report = ParamValidator().validate(request, shape)
    if report.has_errors():
        raise Invalid(report.generate_report())
    _check_enums(request, shape)


def _check_enums(value: Any, shape: Shape) -> None:
    """The client does not look at these; the service does."""
    if isinstance(shape, StructureShape):
        for member, part in value.items():
            _check_enums(part, shape.members[member])
    elif isinstance(shape, ListShape):
        for entry in value:
            _check_enums(entry, shape.member)
    elif getattr(shape, "enum", None) and value not in shape.enum:
        raise Invalid(f"{value!r} is none of {', '.join(shape.enum)}.")


def shaped(name: str, answer: Mapping[str, Any]) -> dict[str, Any]:
    """Return the answer as JSON. Raises KeyError for what the model does not know: then this
    endpoint is wrong.
    """
    shape = operation(name).output_shape
    as_json: dict[str, Any] = _shape(answer, shape)
    return as_json


def _shape(value: Any, shape: Shape) -> Any:
    if isinstance(shape, StructureShape):
        return {
            key: _shape(part, shape.members[key]) for key, part in value.items() if part is not None
        }
    if isinstance(shape, ListShape):
        return [_shape(member, shape.member) for member in value]
    if shape.type_name == "timestamp":
        return value.timestamp() if isinstance(value, datetime) else float(value)
    return value
