"""Why somebody does something, as they say it in a form: it stands in the log."""

from __future__ import annotations

from django.http import HttpRequest

LONGEST = 500  # characters


def why_of(request: HttpRequest, default: str = "") -> str:
    """Return what was said, as the log keeps it; the default where nothing was."""
    return request.POST.get("why", "").replace("\x00", "").strip()[:LONGEST] or default
