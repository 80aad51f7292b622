"""The word that is typed before something is done that cannot be undone."""

from __future__ import annotations

from django.http import HttpRequest


def is_armed(request: HttpRequest, word: str) -> bool:
    """Return whether this word was typed, in capital letters or small ones
    (`templates/components/word.html` asks for it).
    """
    return request.POST.get("word", "").strip().lower() == word.lower()
