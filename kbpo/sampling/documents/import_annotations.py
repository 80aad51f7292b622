"""Imports exhaustive annotation of documents as labels, so that recall can be measured before
anybody annotates.
"""

from __future__ import annotations

import hashlib
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

from django.db import transaction

from kbpo.corpus.annotations import gold_in, mentions_in
from kbpo.corpus.lookup import DatabaseCorpus
from kbpo.corpus.models import Corpus
from kbpo.instances.models import Label
from kbpo.instances.record import NewLabel, record
from kbpo.instances.targets import Place, Span, targets_at
from kbpo.pool.visibility import is_closed
from kbpo.sampling.documents.draw import settle_documents
from kbpo.tracks.models import Track

CHUNK = 5_000
METHOD = "gold"
Values = Iterator[tuple[Place, dict[str, Any]]]
Named = dict[tuple[int, Span], int]
"""Mentions, by their document and span -> the first line that names them"""
Pairs = tuple[dict[Place, set[str]], Named]


@dataclass(frozen=True)
class Imported:
    """What was imported: labels of mentions and of pairs, of how many documents, in how many of
    which nothing is marked; how many documents of the track are annotated now; and how many
    mentions that relations name the file of mentions lacks, the first of them in which line.
    """

    mentions: int
    pairs: int
    documents: int
    unmarked: int
    annotated: int
    lacking: int = 0
    first_lacking: int = 0


@transaction.atomic
def import_annotations(
    track: Track,
    gold: Path,
    mentions: Path,
    documents: Sequence[int],
    *,
    closed: bool = False,
    seed: int | None = None,
) -> Imported:
    """What was imported for these documents, which are settled then. Whole or not at all; a repeat
    changes nothing.

    What is marked is true. What is not marked is missing, unless the annotation is `closed`: then
    it is false, and the label of the document alone says so. The files may cover more documents.
    A mention that a relation names and the file of mentions lacks is counted, not refused: what it
    refers to is unknown then. Raises CannotLoad (kbpo.corpus.load).
    """
    corpus, wanted = track.corpus, set(documents)
    origin = f"import:{_digest(gold, mentions)}"
    lookup = DatabaseCorpus(corpus)
    public = is_closed(track)
    marked: set[int] = set()
    pairs, named = _pairs(gold, corpus, lookup, wanted)
    mention_values = _mention_values(mentions, corpus, lookup, wanted)
    of_mentions = _noting(marked, _striking(named, mention_values))
    of_pairs = _noting(marked, _pair_values(pairs))
    n_mentions = _label(corpus, origin, of_mentions, public)
    n_pairs = _label(corpus, origin, of_pairs, public)
    whole = {"scope": "document", "closed": closed}
    of_documents = ((Place("document", pk), whole) for pk in documents)
    _label(corpus, f"{origin}:{'closed' if closed else 'open'}", of_documents, public)
    annotated = settle_documents(track, documents, seed=seed)
    return Imported(
        n_mentions,
        n_pairs,
        len(wanted),
        len(wanted - marked),
        annotated,
        lacking=len(named),
        first_lacking=min(named.values(), default=0),
    )


def _noting(marked: set[int], values: Values) -> Values:
    """The values as they are; the documents that they lie in are added to `marked`."""
    for place, value in values:
        marked.add(place.document)
        yield place, value


def _striking(named: Named, values: Values) -> Values:
    """The values of mentions as they are; each is struck from `named`."""
    for place, value in values:
        named.pop((place.document, place.a), None)
        yield place, value


def _mention_values(path: Path, corpus: Corpus, lookup: DatabaseCorpus, wanted: set[int]) -> Values:
    for mention in mentions_in(path, corpus, lookup):
        if (document := lookup.pk(mention.document)) in wanted:
            value = {"canonical": list(mention.canonical), "type": mention.type}
            if mention.link:
                value["link"] = mention.link.replace("_", " ")
            yield Place("mention", document, mention.span), value


def _pairs(path: Path, corpus: Corpus, lookup: DatabaseCorpus, wanted: set[int]) -> Pairs:
    """What holds of each pair, which may be spread over the file; and the mentions that relations
    name, each with its first line.
    """
    holds: dict[Place, set[str]] = defaultdict(set)
    named: Named = {}
    for fact in gold_in(path, corpus, lookup):
        if (document := lookup.pk(fact.document)) in wanted:
            direction = ">" if fact.subject <= fact.object else "<"
            holds[Place.pair(document, fact.subject, fact.object)].add(fact.predicate + direction)
            named.setdefault((document, fact.subject), fact.line)
            named.setdefault((document, fact.object), fact.line)
    return holds, named


def _pair_values(holds: Mapping[Place, set[str]]) -> Values:
    for place, parts in holds.items():
        yield place, {"shown": sorted(parts), "holds": sorted(parts)}


def _label(corpus: Corpus, origin: str, values: Values, public: bool) -> int:
    """How many values were recorded as labels, some thousands at a time; on a closed track
    everybody sees them.
    """
    total = 0
    while chunk := list(islice(values, CHUNK)):
        targets = targets_at(corpus, [place for place, _ in chunk])
        source = Label.Source.IMPORT
        record(
            NewLabel(targets[place], value, source, METHOD, 1, origin, public=public)
            for place, value in chunk
        )
        total += len(chunk)
    return total


def _digest(*paths: Path) -> str:
    """A short name of the files' content."""
    digest = hashlib.sha256()
    for path in paths:
        if path.exists():
            digest.update(hashlib.sha256(path.read_bytes()).digest())
    return digest.hexdigest()[:16]
