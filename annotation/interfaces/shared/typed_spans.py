"""Spans that several people marked, with their types, aggregated token by token (Chaganty 2018,
section 3.5.3).

A token is in a mention if more than half of the readers marked it. What it is, is what more than
half of those who marked it say; where two tokens side by side are not the same, two mentions meet.
A mention is of the type that has most votes of its tokens: of two that have as many, the one that
more people gave to exactly this span, then the one that comes first in the track's schema, so that
the same marks always give the same mentions.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from annotation.interfaces.shared.majority import more_than_half
from annotation.interfaces.shared.reading import Marked, Reading, Span
from estimators.votes import token_majority

Reader = Sequence[Marked]


def typed_spans(reading: Reading, readers: Sequence[Reader]) -> list[tuple[Span, str]]:
    """Return the spans on whose tokens most readers agree, in characters, in the order of the text;
    and what each is.
    """
    marked = [
        (span, reader_number, mark)
        for reader_number, reader in enumerate(readers)
        for mark in reader
        if (span := reading.in_tokens(mark.span)) is not None
    ]
    if not marked:
        return []
    spans = token_majority(
        [span for span, _, _ in marked],
        [reader_number for _, reader_number, _ in marked],
        len(reading.tokens),
        len(readers),
    ).spans
    types_of_token: list[list[str]] = [[] for _ in reading.tokens]
    for (begin, end), _, mark in marked:
        for token in range(begin, end):
            types_of_token[token].append(mark.type)
    whole = Counter((span, mark.type) for span, _, mark in marked)
    parts = [part for begin, end in spans.tolist() for part in _parts((begin, end), types_of_token)]
    return [
        (
            (reading.tokens[begin][0], reading.tokens[end - 1][1]),
            _type_of((begin, end), types_of_token, whole, reading),
        )
        for begin, end in parts
    ]


def _parts(span: Span, types_of_token: Sequence[Sequence[str]]) -> list[Span]:
    """Return the span, cut where what its tokens are changes; a token that people are divided about
    goes with the one before.
    """
    cuts, before = [span[0]], None
    for token in range(*span):
        kind = more_than_half(types_of_token[token], len(types_of_token[token]))
        if kind is not None and before is not None and kind != before:
            cuts.append(token)
        before = kind or before
    return list(zip(cuts, [*cuts[1:], span[1]], strict=True))


def _type_of(
    span: Span,
    types_of_token: Sequence[Sequence[str]],
    whole: Counter[tuple[Span, str]],
    reading: Reading,
) -> str:
    votes = Counter(kind for token in range(*span) for kind in types_of_token[token])
    order = {name: place for place, name in enumerate(reading.types)}
    return min(
        votes,
        key=lambda kind: (-votes[kind], -whole[span, kind], order.get(kind, len(order)), kind),
    )
