"""Reads the parameters of an address; a bad one is a ValidationError with a sentence."""

from __future__ import annotations

from typing import Any

from rest_framework.exceptions import ValidationError
from rest_framework.request import Request

BIGGEST = 2**31 - 1
"""The greatest number that a parameter may be"""


def one_of(request: Request, name: str, options: Any, fallback: str) -> str:
    """Return the option that a parameter asks for. Raises ValidationError for one that is not
    there.
    """
    value = request.query_params.get(name, fallback)
    if value not in options:
        raise ValidationError({name: [f"{value!r} is not one of {', '.join(options)}."]})
    return str(value)


POPULATION = "like or these: whether intervals hold for inputs (documents) like these, or these"


def words(request: Request, name: str, most: int) -> str:
    """Return the text that a parameter says. Raises ValidationError for one that is too long."""
    value = request.query_params.get(name, "")
    if len(value) > most:
        raise ValidationError({name: [f"These are more than {most} characters."]})
    return value.replace("\0", "").strip()


def whole_number(
    request: Request, name: str, fallback: int, most: int = BIGGEST, *, least: int = 0
) -> int:
    """Return the whole number that a parameter says; the fallback where there is none. Raises
    ValidationError.
    """
    value = request.query_params.get(name)
    if value is None:
        return fallback
    if not (value.isascii() and value.isdecimal() and len(value) < 20):
        raise ValidationError({name: [f"{value[:40]!r} is not a number from {least} to {most}."]})
    if not least <= int(value) <= most:
        raise ValidationError({name: [f"{value} is not a number from {least} to {most}."]})
    return int(value)


def limit_of(request: Request, fallback: int, most: int) -> int:
    """Return how many rows of a list are asked for. Raises ValidationError."""
    return whole_number(request, "limit", fallback, most, least=1)
