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
    """The spans on whose tokens most readers agree, in characters, in the order of the text; and
    what each is.
    """
    found = [
        (span, who, mark)
        for who, reader in enumerate(readers)
        for mark in reader
        if (span := reading.in_tokens(mark.span)) is not None
    ]
    if not found:
        return []
    spans = token_majority(
        [span for span, _, _ in found],
        [who for _, who, _ in found],
        len(reading.tokens),
        len(readers),
    ).spans
    said: list[list[str]] = [[] for _ in reading.tokens]
    for (first, last), _, mark in found:
        for at in range(first, last):
            said[at].append(mark.type)
    whole = Counter((span, mark.type) for span, _, mark in found)
    parts = [part for first, last in spans.tolist() for part in _parts((first, last), said)]
    return [
        (
            (reading.tokens[first][0], reading.tokens[last - 1][1]),
            _type_of((first, last), said, whole, reading),
        )
        for first, last in parts
    ]


def _parts(span: Span, said: Sequence[Sequence[str]]) -> list[Span]:
    """The span, cut where what its tokens are changes; a token that people are divided about goes
    with the one before.
    """
    cuts, before = [span[0]], None
    for at in range(*span):
        kind = more_than_half(said[at], len(said[at]))
        if kind is not None and before is not None and kind != before:
            cuts.append(at)
        before = kind or before
    return list(zip(cuts, [*cuts[1:], span[1]], strict=True))


def _type_of(
    span: Span, said: Sequence[Sequence[str]], whole: Counter[tuple[Span, str]], reading: Reading
) -> str:
    votes = Counter(kind for at in range(*span) for kind in said[at])
    order = {name: place for place, name in enumerate(reading.types)}
    return min(
        votes,
        key=lambda kind: (-votes[kind], -whole[span, kind], order.get(kind, len(order)), kind),
    )
