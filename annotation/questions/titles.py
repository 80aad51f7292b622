"""Titles that are suggested while somebody types the link of an entity, if an administrator loaded
an index of them.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable

from django.db import connection, transaction
from django.db.models.functions import Length

from annotation.models import Title
from kbpo.corpus.copy import copy

MOST = 8
LONGEST = 255


def folded(text: str) -> str:
    """Return a text in lower case, without accents and with single blanks: what titles are looked
    up by.
    """
    plain = unicodedata.normalize("NFKD", text.replace("_", " ").casefold())
    return " ".join(
        "".join(letter for letter in plain if not unicodedata.combining(letter)).split()
    )


def suggest(typed: str, most: int = MOST) -> list[str]:
    """Titles that begin with what was typed, short ones first; none for less than two letters."""
    beginning = folded(typed)[:LONGEST]
    if len(beginning) < 2:
        return []
    titles = Title.objects.filter(folded__startswith=beginning).order_by(Length("folded"), "title")
    return list(titles.values_list("title", flat=True)[:most])


@transaction.atomic
def load_titles(lines: Iterable[str]) -> int:
    """Return how many titles were loaded, one a line; they take the place of those that were there
    before.
    """
    with connection.cursor() as cursor:
        cursor.execute("TRUNCATE annotation_title RESTART IDENTITY")
    titles = (" ".join(line.replace("_", " ").split()) for line in lines)
    rows = (
        (title, folded(title))
        for title in titles
        if title and len(title) <= LONGEST and "\0" not in title
    )
    return copy("annotation_title", ("title", "folded"), rows)
