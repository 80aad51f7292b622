"""What is told of relations, and becomes public with them, when their track is closed."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

from kbpo.corpus.fetch import fetch


def said(instances: Sequence[int]) -> dict[int, dict[str, Any]]:
    """Instance -> what it says: a predicate between two spans."""
    rows = fetch(
        "SELECT i.id, p.name, ARRAY[i.subject_begin, i.subject_end],"
        " ARRAY[i.object_begin, i.object_end] FROM instances_instance i"
        " JOIN corpus_predicate p ON p.id = i.predicate_id WHERE i.id = ANY(%s)",
        [list(instances)],
    )
    return {
        pk: {"predicate": predicate, "subject": subject, "object": object_}
        for pk, predicate, subject, object_ in rows
    }


def mentions_of(pairs: Collection[int]) -> list[int]:
    """Return the targets that are a mention of one of these pairs."""
    rows = fetch(
        "SELECT DISTINCT m.id FROM instances_target d"
        " JOIN instances_target m ON m.document_id = d.document_id AND m.kind = 'mention'"
        " AND (m.a_begin, m.a_end) IN ((d.a_begin, d.a_end), (d.b_begin, d.b_end))"
        " WHERE d.id = ANY(%s)",
        [list(pairs)],
    )
    return [pk for (pk,) in rows]
