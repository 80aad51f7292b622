"""Finds names in documents: how often each document says them, token by token."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator

from formats.schema import load_schema
from formats.words import words
from kbpo.corpus.models import Corpus, Document

CHUNK = 500


def entity_types(corpus: Corpus) -> set[str]:
    """Return the types whose mentions are entities of the world: no dates, titles or numbers."""
    return {name for name, kind in load_schema(corpus.schema).entity_types.items() if kind.linkable}


def occurrences(corpus: Corpus, names: dict[str, int]) -> Iterator[tuple[int, int, int]]:
    """Yield (document, code, number of times) for the codes of names; where two names fit, the
    longer one is taken.

    Names are compared as they are written, whole words only.
    """
    by_first = _by_first_word(names)
    documents = Document.objects.filter(corpus=corpus).order_by("pk").values_list("pk", "text")
    for document, text in documents.iterator(chunk_size=CHUNK):
        for code, number in _count(text, by_first):
            yield document, code, number


def _count(text: str, by_first: dict[str, list[tuple[list[str], int]]]) -> list[tuple[int, int]]:
    return sorted(Counter(_codes(words(text), by_first)).items())


def _by_first_word(names: dict[str, int]) -> dict[str, list[tuple[list[str], int]]]:
    """Return a mapping: first word -> the names that begin with it, as words, the longest first."""
    names_of: dict[str, list[tuple[list[str], int]]] = defaultdict(list)
    for name, code in names.items():
        if parts := words(name):
            names_of[parts[0]].append((parts, code))
    for entries in names_of.values():
        entries.sort(key=lambda entry: -len(entry[0]))
    return names_of


def _codes(text: list[str], by_first: dict[str, list[tuple[list[str], int]]]) -> Iterable[int]:
    place = 0
    while place < len(text):
        for parts, code in by_first.get(text[place], ()):
            if text[place : place + len(parts)] == parts:
                yield code
                place += len(parts) - 1
                break
        place += 1
