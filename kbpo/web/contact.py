"""What every page knows of whoever runs the site."""

from __future__ import annotations

from django.conf import settings
from django.http import HttpRequest


def contact(request: HttpRequest) -> dict[str, str]:
    """The address for the footer; empty where none is set."""
    return {"contact": settings.CONTACT}
