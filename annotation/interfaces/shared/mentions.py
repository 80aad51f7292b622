"""Mentions that several people marked in one document, aggregated: what is a mention, of what, and
which are the same.

Spans and types are aggregated token by token (`typed_spans`). Two mentions are the same thing if
more than half of those who found the one, and more than half of those who found the other, say so;
a date is that of more than half of those who found it, a title that of more than half of those who
found its entity. So no one of several readers decides any of these, and a tie decides nothing: the
mentions stay apart, the date is not told, the entity has no title.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from annotation.interfaces.shared.majority import more_than_half
from annotation.interfaces.shared.reading import NO_VALUE, Marked, Reading, Span
from annotation.interfaces.shared.typed_spans import Reader, typed_spans


@dataclass
class Settled:
    """A mention that most readers found. `votes`: how many named which canonical mention; `n`: how
    many found it.
    """

    span: Span
    type: str
    n: int
    disagreement: float
    canonical: Span = (0, 0)
    value: str = ""
    link: str | None = None
    votes: dict[str, int] = field(default_factory=dict)


def settle_mentions(reading: Reading, readers: Sequence[Reader]) -> list[Settled]:
    """The mentions on which most of the readers agree, in the order of the text."""
    spans = typed_spans(reading, readers)
    of = [[_marked_at(span, reader) for reader in readers] for span, _ in spans]
    mentions = []
    for (span, kind), marks in zip(spans, of, strict=True):
        given = [mark for mark in marks if mark is not None]
        same = sum(mark.span == span and mark.type == kind for mark in given)
        mentions.append(Settled(span, kind, len(given), 1 - same / len(readers), canonical=span))
    for cluster in _clusters(reading, mentions, of):
        _name(reading, [mentions[at] for at in cluster], [of[at] for at in cluster])
    for mention, marks in zip(mentions, of, strict=True):
        if reading.types[mention.type]["value"] == "date":
            dates = [
                mark.value
                for mark in marks
                if mark is not None and mark.type == mention.type and mark.value
            ]
            mention.value = more_than_half(dates, mention.n) or NO_VALUE
    return mentions


def _marked_at(span: Span, reader: Reader) -> Marked | None:
    """What a reader marked there: the mention that shares most with the span."""
    best = max(reader, key=lambda mark: (_shared(mark.span, span), -mark.span[0]), default=None)
    return best if best is not None and _shared(best.span, span) > 0 else None


def _shared(one: Span, other: Span) -> int:
    return min(one[1], other[1]) - max(one[0], other[0])


def _clusters(
    reading: Reading, found: list[Settled], of: list[list[Marked | None]]
) -> list[list[int]]:
    """The mentions that are the same thing, as numbers: who is the same as whom is passed on."""
    parent = list(range(len(found)))

    def root(at: int) -> int:
        while parent[at] != at:
            parent[at] = parent[parent[at]]
            at = parent[at]
        return at

    for j in range(len(found)):
        if not reading.linkable(found[j].type):
            continue
        for i in range(j):
            if found[i].type == found[j].type and root(i) != root(j) and _are_same(of[i], of[j]):
                parent[root(j)] = root(i)
    clusters: dict[int, list[int]] = {}
    for at in range(len(found)):
        clusters.setdefault(root(at), []).append(at)
    return list(clusters.values())


def _are_same(one: Sequence[Marked | None], other: Sequence[Marked | None]) -> bool:
    """Whether more than half of those who found each of two mentions say that they are the same."""
    both = [
        (a, b)
        for a, b in zip(one, other, strict=True)
        if a is not None and b is not None and a is not b
    ]
    found = max(sum(mark is not None for mark in marks) for marks in (one, other))
    return 2 * sum(a.canonical == b.canonical for a, b in both) > found


def _name(reading: Reading, cluster: list[Settled], marks: list[list[Marked | None]]) -> None:
    """Gives the mentions of a cluster the canonical mention that most named, and the title of more
    than half.

    A tie of canonical mentions goes to the longest, then to the first: people name things in full
    once, mostly at the beginning.
    """
    total: Counter[Span] = Counter()
    for one, row in zip(cluster, marks, strict=True):
        named = [_settled_at(mark.canonical, cluster) for mark in row if mark is not None]
        total.update(span for span in named if span is not None)
        one.votes = {
            f"{begin}-{end}": n
            for (begin, end), n in Counter(s for s in named if s is not None).items()
        }
    first = min(cluster, key=lambda one: (-total[one.span], one.span[0] - one.span[1], one.span))
    finders = {who for row in marks for who, mark in enumerate(row) if mark is not None}
    link = (
        more_than_half(list(_links(marks).values()), len(finders))
        if reading.linkable(first.type)
        else None
    )
    for one in cluster:
        one.canonical = first.span
        one.link = "" if link == NO_VALUE else link


def _settled_at(span: Span, cluster: Sequence[Settled]) -> Span | None:
    best = max(cluster, key=lambda one: (_shared(one.span, span), -one.span[0]))
    return best.span if _shared(best.span, span) > 0 else None


def _links(marks: Sequence[Sequence[Marked | None]]) -> Mapping[int, str]:
    """The title that each reader gave the cluster: that of the first of its mentions that has
    one.
    """
    links: dict[int, str] = {}
    for row in marks:
        for who, mark in enumerate(row):
            if mark is not None and mark.link:
                links.setdefault(who, mark.link)
    return links
