"""Short names for addresses."""

from __future__ import annotations

from typing import Any

from django.db.models import QuerySet
from django.utils.text import slugify


def slug_of(name: str, rows: QuerySet[Any], otherwise: str) -> str:
    """Return the letters from a to z and digits of a name, at most 120 characters; if there are
    none, `otherwise` with the first number that no row has. Empty for an empty name.
    """
    if slug := slugify(name)[:120].strip("-"):
        return slug
    if not any(letter.isalnum() for letter in name):
        return ""
    free, number = otherwise, 1
    while rows.filter(slug=free).exists():
        number += 1
        free = f"{otherwise}-{number}"
    return free
