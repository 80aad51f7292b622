"""Reads the fields of a raw answer."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, TypeVar

from annotation.interfaces.base import BadAnswer

Json = TypeVar("Json", list[Any], dict[str, Any])
GARBLED = (
    "The answer did not arrive as it was sent. Nothing of it was lost here: please send it again."
)


def text_of(raw: Mapping[str, Any], name: str) -> str:
    """Return the first value of a form field. Raises BadAnswer if it is not a text."""
    values = raw.get(name) or [""]
    value = values[0] if isinstance(values, list) else values
    if not isinstance(value, str):
        raise BadAnswer("The answer did not arrive as it was sent. Please choose again.")
    return value.strip()


def json_of(raw: Mapping[str, Any], name: str, kind: type[Json]) -> Json:
    """Return a form field parsed as JSON of this type; an empty one if it is missing. Raises
    BadAnswer.
    """
    text = text_of(raw, name)
    if not text:
        return kind()
    try:
        value = json.loads(text)
        # Half a character would break every page that shows it.
        json.dumps(value, ensure_ascii=False).encode()
    except (ValueError, RecursionError) as error:
        raise BadAnswer(GARBLED) from error
    if not isinstance(value, kind):
        raise BadAnswer(GARBLED)
    return value
