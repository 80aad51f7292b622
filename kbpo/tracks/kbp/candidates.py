"""Finds what a mention may refer to: names of its document, in an order that says nothing about who
claims what.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable

from formats.schema import Schema
from kbpo.corpus.fetch import fetch
from kbpo.corpus.models import Document, Mention
from kbpo.tracks.kbp.judge import MOST, Span, wording

Names = dict[Span, set[str]]


def names_of(documents: Iterable[int]) -> dict[int, Names]:
    """By document, the canonical mentions that any confirmed system or the corpus has there, with
    their types.
    """
    names: dict[int, Names] = defaultdict(lambda: defaultdict(set))
    wanted = list(documents)
    rows = fetch(
        "SELECT DISTINCT i.document_id, c.b, c.e, c.type FROM instances_instance i JOIN"
        " submissions_prediction p ON p.instance_id = i.id JOIN submissions_submission s ON s.id ="
        " p.submission_id AND s.confirmed_at IS NOT NULL CROSS JOIN LATERAL (VALUES"
        " (p.subject_canonical_begin, p.subject_canonical_end, p.subject_type),"
        " (p.object_canonical_begin, p.object_canonical_end, p.object_type)) AS c (b, e, type)"
        " WHERE i.document_id = ANY(%s)",
        [wanted],
    )
    mentions = Mention.objects.filter(document__in=wanted, canonical_begin__isnull=False)
    columns = ("document_id", "canonical_begin", "canonical_end", "type")
    for document, begin, end, kind in [*rows, *mentions.values_list(*columns)]:
        names[document][begin, end].add(kind)
    return names


def candidates(
    document: Document,
    span: Span,
    types: set[str],
    proposed: Iterable[Span],
    names: Names,
    schema: Schema,
) -> list[Span]:
    """Return what the mention may refer to, in the order of the text, each wording once, in
    whichever capitals.

    The mention itself and what systems propose for it come first into the list, then names of its
    types: those of which its words are a part, however far away they stand, since each thing is
    called by its fullest name; and the nearest. Empty for dates, numbers and titles, which refer to
    nothing.
    """
    kinds = {kind for kind in types if schema.linkable(kind)}
    if not kinds:
        return []
    others = [name for name, kind in names.items() if kind & kinds]
    words = wording(document.text, span)
    others.sort(
        key=lambda name: (
            f" {words} " not in f" {wording(document.text, name)} ",
            abs(name[0] - span[0]),
            name,
        )
    )
    alike = _distinct(document, [*sorted(set(proposed)), span, *others])
    return sorted(list(alike.values())[:MOST])


def _distinct(document: Document, spans: Iterable[Span]) -> dict[str, Span]:
    """One span of each wording: the first of those that are written as the text writes it most."""
    alike: dict[str, list[Span]] = defaultdict(list)
    for span in spans:
        alike[wording(document.text, span)].append(span)
    alike.pop("", None)
    return {words: _as_written_most(document, found) for words, found in alike.items()}


def _as_written_most(document: Document, spans: list[Span]) -> Span:
    counts = dict.fromkeys((document.gloss(*span) for span in spans), 0)
    if len(counts) > 1:  # only then need the text be read
        counts = {words: document.text.count(words) for words in counts}
    return max(spans, key=lambda span: counts[document.gloss(*span)])
