"""Mentions that several people marked in one document, aggregated: what is a mention, of what, and
which are the same.

Spans and types are aggregated token by token (`typed_spans`). Two mentions are the same thing if
more than half of those who found the one, and more than half of those who found the other, say so;
what a mention refers to is what more than half of those who found it say, and what stands for a
cluster is what more than half of all say of its mentions; a date is that of more
than half of those who found it, a title that of more than half of those who found its entity. So no
one of several readers decides any of these, and a tie decides nothing: what the mention refers to
is undecided, the date is not told, the entity has no title.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from annotation.interfaces.shared.majority import more_than_half
from annotation.interfaces.shared.reading import NO_VALUE, CheckedMention, Reading, Span
from estimators.votes import token_majority

Reader = Sequence[CheckedMention]


def typed_spans(reading: Reading, readers: Sequence[Reader]) -> list[tuple[Span, str]]:
    """Return the spans that most readers marked, token by token, with their types, in the order of
    the text.
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
    """Split a span where the majority type of its tokens changes; a token without a majority joins
    the one before.
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


@dataclass
class SettledMention:
    """A mention that most readers found. `votes`: how many named which canonical mention; `n`: how
    many found it; `cluster`: the mention that stands for those which are the same thing, which is
    the canonical one unless that is `undecided`; `titled`: how many of those who found it gave its
    entity which title, “” for none in Wikipedia.
    """

    span: Span
    type: str
    n: int
    disagreement: float
    cluster: Span = (0, 0)
    undecided: bool = False
    value: str = ""
    link: str | None = None
    votes: dict[str, int] = field(default_factory=dict)
    titled: dict[str, int] = field(default_factory=dict)


def settle_mentions(reading: Reading, readers: Sequence[Reader]) -> list[SettledMention]:
    """Return the mentions that most readers marked, in the order of the text."""
    spans = typed_spans(reading, readers)
    marks_of = [[_marked_at(span, reader) for reader in readers] for span, _ in spans]
    mentions = []
    for (span, kind), marks in zip(spans, marks_of, strict=True):
        present = [mark for mark in marks if mark is not None]
        same = sum(mark.span == span and mark.type == kind for mark in present)
        disagreement = 1 - same / len(readers)
        mentions.append(SettledMention(span, kind, len(present), disagreement, cluster=span))
    for cluster in _clusters(reading, mentions, marks_of):
        of_cluster = [mentions[number] for number in cluster]
        _name(reading, mentions, of_cluster, [marks_of[number] for number in cluster])
    for mention, marks in zip(mentions, marks_of, strict=True):
        if reading.types[mention.type]["value"] == "date":
            mention.value = more_than_half(_dates(mention, marks), mention.n) or NO_VALUE
    return mentions


def _dates(mention: SettledMention, marks: Sequence[CheckedMention | None]) -> list[str]:
    """Return the dates that readers gave for a mention of this type."""
    dates = []
    for mark in marks:
        if mark is not None and mark.type == mention.type and mark.value:
            dates.append(mark.value)
    return dates


def _marked_at(span: Span, reader: Reader) -> CheckedMention | None:
    """Return the mention of a reader that overlaps most with the span; None without one."""
    best = max(
        reader, key=lambda mark: (_overlap_length(mark.span, span), -mark.span[0]), default=None
    )
    return best if best is not None and _overlap_length(best.span, span) > 0 else None


def _overlap_length(left: Span, right: Span) -> int:
    return min(left[1], right[1]) - max(left[0], right[0])


def _clusters(
    reading: Reading, mentions: list[SettledMention], marks_of: list[list[CheckedMention | None]]
) -> list[list[int]]:
    """Return the clusters of coreferent mentions, by transitive closure, as indices."""
    parent = list(range(len(mentions)))

    def root(number: int) -> int:
        while parent[number] != number:
            parent[number] = parent[parent[number]]
            number = parent[number]
        return number

    for j in range(len(mentions)):
        if not reading.linkable(mentions[j].type):
            continue
        for i in range(j):
            if (
                mentions[i].type == mentions[j].type
                and root(i) != root(j)
                and _are_same(marks_of[i], marks_of[j])
            ):
                parent[root(j)] = root(i)
    clusters: dict[int, list[int]] = {}
    for number in range(len(mentions)):
        clusters.setdefault(root(number), []).append(number)
    return list(clusters.values())


def _are_same(
    left: Sequence[CheckedMention | None], right: Sequence[CheckedMention | None]
) -> bool:
    """Return whether more than half of the readers who marked each of two mentions link them."""
    n_left = n_right = n_same = 0
    for a, b in zip(left, right, strict=True):
        n_left += a is not None
        n_right += b is not None
        if a is not None and b is not None and a is not b:
            n_same += a.canonical == b.canonical
    return 2 * n_same > max(n_left, n_right)


def _name(
    reading: Reading,
    mentions: Sequence[SettledMention],
    cluster: Sequence[SettledMention],
    marks: Sequence[Sequence[CheckedMention | None]],
) -> None:
    """Set the canonical mention, votes and titles of a cluster. A mention refers to the one that
    most named, if more than half of its readers did; without a majority over the whole cluster, all
    referents are undecided.

    Ties of the canonical mention go to the longest, then to the first: people write names in full
    once, mostly at the beginning.
    """
    total: Counter[Span] = Counter()
    for mention, row in zip(cluster, marks, strict=True):
        named = [_settled_at(mark.canonical, mentions) for mark in row if mark is not None]
        votes = Counter(span for span in named if span is not None)
        total.update(votes)
        mention.votes = {f"{begin}-{end}": n for (begin, end), n in votes.items()}
    first = min(
        cluster,
        key=lambda mention: (-total[mention.span], mention.span[0] - mention.span[1], mention.span),
    )
    linkable = reading.linkable(first.type)
    finders = {reader for row in marks for reader, mark in enumerate(row) if mark is not None}
    links = _links(marks) if linkable else {}
    # Who says that a mention is another entity than the rest gives it that one's title.
    titles = {
        (reader, mark.canonical): "" if mark.link == NO_VALUE else mark.link
        for row in reversed(marks)
        for reader, mark in enumerate(row)
        if linkable and mark is not None and mark.link
    }
    link = more_than_half(list(links.values()), len(finders))
    name = f"{first.span[0]}-{first.span[1]}"
    is_divided = 2 * total[first.span] <= sum(mention.n for mention in cluster)
    for mention, row in zip(cluster, marks, strict=True):
        mention.cluster = first.span
        is_tied = is_divided or 2 * mention.votes.get(name, 0) <= mention.n
        mention.undecided = linkable and is_tied
        mention.link = link
        own = [(reader, mark.canonical) for reader, mark in enumerate(row) if mark is not None]
        mention.titled = dict(Counter(titles[one] for one in own if one in titles))


def _settled_at(span: Span, mentions: Sequence[SettledMention]) -> Span | None:
    best = max(
        mentions, key=lambda mention: (_overlap_length(mention.span, span), -mention.span[0])
    )
    return best.span if _overlap_length(best.span, span) > 0 else None


def _links(marks: Sequence[Sequence[CheckedMention | None]]) -> Mapping[int, str]:
    """Return reader -> title of the cluster, “” for none in Wikipedia: of its first mention with a
    title.
    """
    links: dict[int, str] = {}
    for row in marks:
        for reader, mark in enumerate(row):
            if mark is not None and mark.link:
                links.setdefault(reader, "" if mark.link == NO_VALUE else mark.link)
    return links
