"""Parts of the API's schema: refusals, pages of lists, and headers that all responses share."""

from __future__ import annotations

from typing import Any

from drf_spectacular.utils import OpenApiParameter, OpenApiResponse

Json = dict[str, Any]

ERROR: Json = {
    "type": "object",
    "description": "Why a request was refused: a code for programs, a sentence for people.",
    "properties": {
        "error": {"type": "string"},
        "detail": {"type": "string"},
        "fields": {"type": "object", "description": "What is wrong with each field"},
    },
    "required": ["error", "detail"],
}
ERROR_ITSELF: Json = {"$ref": "#/components/schemas/Error"}
RETRY_AFTER: Json = {
    "Retry-After": {
        "description": "Seconds after which to come again",
        "required": True,
        "schema": {"type": "integer", "minimum": 0},
    }
}
ETAG: Json = {
    "ETag": {
        "description": "Sent back as If-None-Match, it brings a 304 while nothing has changed",
        "schema": {"type": "string"},
    }
}
SENTENCES = {
    "400": "A parameter, a field or the body is not as it must be.",
    "401": "There is no token, or no good one.",
    "402": "The budget does not allow it.",
    "403": "It is not yours to do, or the token may not do it.",
    "404": "There is no such thing, or it is not yours to see.",
    "409": "It conflicts with the current state.",
    "413": "The body is too large.",
    "415": "The body is of a kind that is not taken here.",
    "422": "The body is valid, but refused as a whole.",
    "429": "These were too many requests.",
    "503": "The service is busy; nothing was changed.",
}


def refusals(*statuses: int) -> dict[int, OpenApiResponse]:
    """Return the responses for refusals that are specific to an operation."""
    return {
        status: OpenApiResponse(ERROR_ITSELF, description=SENTENCES[str(status)])
        for status in statuses
    }


def whole_number_parameter(
    name: str, maximum: int, description: str, *, minimum: int = 1, required: bool = False
) -> OpenApiParameter:
    """Return an integer parameter."""
    number = {"type": "integer", "minimum": minimum, "maximum": maximum}
    return OpenApiParameter(name, number, description=description, required=required)


def page_schema(
    *, item_schema: str = "results", previous: bool = True, is_counted: bool = True
) -> Json:
    """Return the schema of a page of a list: count (null if counting takes too long), rows, and the
    address of the next page.
    """
    link = {"type": "string", "format": "uri-reference", "nullable": True}
    properties: Json = {
        "count": {"type": "integer", "minimum": 0, **({} if is_counted else {"nullable": True})},
        "next": link,
        **({"previous": link} if previous else {}),
        item_schema: {"type": "array", "items": {"type": "object", "additionalProperties": {}}},
    }
    return {
        "type": "object",
        "description": (
            "A page; `next` is null on the last. `page` and `page_size` are refused (400)."
        ),
        "properties": properties,
        "required": list(properties),
    }


def add_common_responses(result: Json, **_: Any) -> Json:
    """Return the schema with the responses that every operation has."""
    result["components"]["schemas"]["Error"] = ERROR
    for path, operations in result["paths"].items():
        for method, operation in operations.items():
            _add_responses(operation, path, method)
    return result


def _add_responses(operation: Json, path: str, method: str) -> None:
    answers = operation["responses"]
    reads, sends = method == "get", "requestBody" in operation
    may_be_public = {} in operation.get("security", [{}])
    statuses = {
        "400": True,
        "401": True,
        "403": not (reads and may_be_public),
        "404": "{" in path,
        "413": sends,
        "415": sends,
        "429": True,
        "503": True,
    }
    for status, is_known in statuses.items():
        if is_known:
            content = {"application/json": {"schema": ERROR_ITSELF}}
            refusal: Json = {"description": SENTENCES[status], "content": content}
            if status in ("429", "503"):
                refusal["headers"] = RETRY_AFTER
            answers.setdefault(status, refusal)
    if reads:
        answers["200"].setdefault("headers", ETAG)
        answers["304"] = {"description": "It is as you know it.", "headers": ETAG}
    operation["responses"] = dict(sorted(answers.items()))
