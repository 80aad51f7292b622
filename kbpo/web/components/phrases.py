"""What a question says in pieces, as HTML: a page has dozens of pieces, and a template takes ten
times as long for each.
"""

from __future__ import annotations

from collections.abc import Iterable
from html import escape


def sentence_html(pieces: Iterable[tuple[str, str]]) -> str:
    """Return a sentence in pieces, each with its role: verb, subject, object."""
    return "".join(f'<span class="{escape(role)}">{escape(words)}</span>' for words, role in pieces)


def pills_html(name: str, candidates: Iterable[tuple[str, str, str, bool]]) -> str:
    """Return the names that a mention may stand for, one to be chosen: value, words, the fuller
    name that it is not, and whether it is chosen.
    """
    letter = escape(name)
    pills = []
    for value, words, fuller, chosen in candidates:
        checked = " checked" if chosen else ""
        besides = f" <small>not {escape(fuller)}</small>" if fuller else ""
        pills.append(
            f'<label class="pill {letter}"><input type="radio" name="{letter}"'
            f' value="{escape(value)}"{checked}>{escape(words)}{besides}</label>'
        )
    return f'<div class="pills">{"".join(pills)}</div>'
