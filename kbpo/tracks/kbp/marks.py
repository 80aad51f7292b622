"""Reads files of annotations: what they mark in documents that somebody read whole."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterator
from pathlib import Path

from kbpo.corpus.annotations import gold_in, mentions_in
from kbpo.corpus.lookup import DatabaseCorpus
from kbpo.corpus.models import Corpus
from kbpo.instances.merge import Value
from kbpo.instances.targets import Place, Span
from kbpo.tracks.recall import Marks

Holds = dict[Place, set[str]]
"""Pairs of mentions -> the directed predicates that hold between them"""
Named = dict[tuple[int, Span], int]
"""Mentions, by their document and span -> the first line that names them"""


def read_marks(corpus: Corpus, gold: Path, mentions: Path, documents: Collection[int]) -> Marks:
    """Return the marks of the files in these documents, mentions before pairs. A mention of a
    relation that the file of mentions lacks is `lacking`: its reference is unknown.
    """
    lookup, wanted = DatabaseCorpus(corpus), set(documents)
    holds, named = _read_pairs(gold, corpus, lookup, wanted)
    values_of_mentions = _mentions(mentions, corpus, lookup, wanted)
    values = {"mentions": _striking(named, values_of_mentions), "pairs": _holding(holds)}
    return Marks(values, named)


def _read_pairs(
    path: Path, corpus: Corpus, lookup: DatabaseCorpus, wanted: set[int]
) -> tuple[Holds, Named]:
    """Return the predicates of each pair, which may be spread over the file; and the mentions of
    the relations.
    """
    holds: Holds = defaultdict(set)
    named: Named = {}
    for fact in gold_in(path, corpus, lookup):
        if (document := lookup.pk(fact.document)) in wanted:
            direction = ">" if fact.subject <= fact.object else "<"
            holds[Place.pair(document, fact.subject, fact.object)].add(fact.predicate + direction)
            named.setdefault((document, fact.subject), fact.line)
            named.setdefault((document, fact.object), fact.line)
    return holds, named


def _mentions(
    path: Path, corpus: Corpus, lookup: DatabaseCorpus, wanted: set[int]
) -> Iterator[tuple[Place, Value]]:
    for mention in mentions_in(path, corpus, lookup):
        if (document := lookup.pk(mention.document)) in wanted:
            value: Value = {"canonical": list(mention.canonical), "type": mention.type}
            if mention.link:
                value["link"] = mention.link.replace("_", " ")
            yield Place("mention", document, mention.span), value


def _striking(named: Named, values: Iterator[tuple[Place, Value]]) -> Iterator[tuple[Place, Value]]:
    """Yield the values of mentions unchanged, and remove each mention from `named`."""
    for place, value in values:
        named.pop((place.document, place.a), None)
        yield place, value


def _holding(holds: Holds) -> Iterator[tuple[Place, Value]]:
    for place, parts in holds.items():
        yield place, {"shown": sorted(parts), "holds": sorted(parts)}
