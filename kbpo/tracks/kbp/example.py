"""Writes an example file that a track accepts: a few relations of its corpus as JSON Lines, not
meant to be true.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from kbpo.corpus.models import Corpus, Document

MOST = 12


def example_lines(corpus: Corpus) -> Iterator[str]:
    """Yield lines of JSON, one a document: two names of one sentence and the first predicate of the
    schema.
    """
    predicate = corpus.schema["predicates"][0]
    types = (predicate.get("types") or [[None, None]])[0]
    for document in Document.objects.filter(corpus=corpus).order_by("pk")[:MOST]:
        if (pair := _two_names(document)) is not None:
            yield json.dumps(_claim(document, pair, predicate["name"], types), ensure_ascii=False)


def _claim(
    document: Document, pair: list[tuple[int, int]], predicate: str, types: list[str | None]
) -> dict[str, Any]:
    claim: dict[str, Any] = {
        "doc": document.key,
        "subject": pair[0],
        "predicate": predicate,
        "object": pair[1],
    }
    if types[0] and types[1]:
        claim |= {"subject_type": types[0], "object_type": types[1]}
    return claim | {"confidence": 0.5}


def _two_names(document: Document) -> list[tuple[int, int]] | None:
    """Spans of two different words with a capital, in the first sentence that has them."""
    tokens = list(zip(document.token_begin, document.token_end, strict=True))
    for begin, end in document.sentences:
        found: dict[str, tuple[int, int]] = {}
        for token in tokens:
            word = document.gloss(*token)
            if begin <= token[0] < end and word[:1].isupper() and word.isalpha():
                found.setdefault(word, token)
        if len(found) > 1:
            return list(found.values())[:2]
    return None
