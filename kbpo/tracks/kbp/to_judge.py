"""What a program that judges is shown of relations:
the sentences around both names, and the claim.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from formats.schema import Schema, load_schema
from kbpo.corpus.models import Corpus, Document
from kbpo.instances.models import Instance

BEFORE, AFTER = 2, 1
"""Sentences that are shown before and after those of the names"""


def to_judge(corpus: Corpus, instances: Sequence[int]) -> dict[int, dict[str, Any]]:
    """Return, for each relation, its document, a text with both names marked, and the claim as a
    sentence.
    """
    schema = load_schema(corpus.schema)
    rows = Instance.objects.filter(pk__in=instances).select_related("document", "predicate")
    return {
        row.pk: _claim_context(row, row.document, row.predicate.name, schema)
        for row in rows.order_by("pk")
        if row.document is not None and row.predicate is not None
    }


def _claim_context(
    row: Instance, document: Document, predicate: str, schema: Schema
) -> dict[str, Any]:
    subject = (row.subject_begin or 0, row.subject_end or 0)
    object_ = (row.object_begin or 0, row.object_end or 0)
    begin, end = _window(document, min(subject, object_)[0], max(subject, object_)[1])
    names = {"subject": document.gloss(*subject), "object": document.gloss(*object_)}
    return {
        "document": document.key,
        "text": document.text[begin:end],
        "subject": _name(names["subject"], subject, begin),
        "object": _name(names["object"], object_, begin),
        "relation": predicate,
        "claim": schema.predicates[predicate].sentence(names["subject"], names["object"]),
    }


def _name(text: str, span: tuple[int, int], begin: int) -> dict[str, Any]:
    """Return a name and its half-open span in the text that is shown."""
    return {"text": text, "begin": span[0] - begin, "end": span[1] - begin}


def _window(document: Document, first: int, last: int) -> tuple[int, int]:
    """Return where the text that is shown begins and ends: whole sentences around both names."""
    sentences = list(document.sentences)
    inside = [place for place, (begin, end) in enumerate(sentences) if begin < last and end > first]
    if not inside:
        return 0, len(document.text)
    begin = sentences[max(0, inside[0] - BEFORE)][0]
    end = sentences[min(len(sentences) - 1, inside[-1] + AFTER)][1]
    return min(begin, first), max(end, last)
