"""Keeps parts of pages that are long in the making, for who reads them next: under all that is read
of the database at every request, so that a part is drawn anew as soon as any of that is another.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from hashlib import sha256
from typing import Any

from django.conf import settings
from django.core.cache import cache
from django.db.models import Model
from django.http import HttpRequest
from django.middleware.csrf import get_token
from django.template.loader import render_to_string
from django.utils.safestring import SafeString, mark_safe

TOKEN = "token-of-whoever-reads-this"
"""Stands in kept forms where each reader's own token against forged forms goes"""


def values(*rows: Model) -> list[Any]:
    """Return all that is stored in some rows, as what a part is kept under."""
    return [getattr(row, field.attname) for row in rows for field in row._meta.concrete_fields]


def part(
    request: HttpRequest,
    template: str,
    context: Callable[[], Mapping[str, Any]],
    told: object,
    seconds: int | None = None,
) -> SafeString:
    """Return a part of a page. It is drawn from `context` where nothing is kept that was `told` the
    same, and kept for so many seconds, PAGES_KEPT_SECONDS at most. Nothing in it may depend on who
    reads it but for what is told.
    """
    most = settings.PAGES_KEPT_SECONDS
    where = repr([settings.VERSION, request.scheme, request.get_host(), template, told])
    key = f"part:{sha256(where.encode()).hexdigest()}"
    drawn: str | None = cache.get(key) if most else None
    if drawn is None:
        drawn = render_to_string(template, {**context(), "csrf_token": TOKEN})
        if most:
            cache.set(key, str(drawn), most if seconds is None else min(most, seconds))
    if TOKEN in drawn:
        drawn = drawn.replace(TOKEN, get_token(request))
    return mark_safe(drawn)  # as it was rendered
