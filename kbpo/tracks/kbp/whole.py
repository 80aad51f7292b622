"""Creates the questions about a document that is read in full: its mentions, then the relations
between them.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from datetime import datetime
from itertools import chain
from pathlib import Path
from typing import Any

from formats.annotations import GoldRecord, MentionRecord, read_gold, read_mentions
from formats.messages import Report
from formats.opening import Limits, open_text
from formats.schema import Schema, load_schema
from kbpo.corpus.load import CannotLoad, refuse_errors
from kbpo.corpus.lookup import DatabaseCorpus, world_entity_types
from kbpo.corpus.models import Corpus, Document, Predicate
from kbpo.instances.merge import Value, merged_value, unreplaced_labels
from kbpo.instances.models import Instance, Label, Target
from kbpo.instances.targets import Place, make_targets
from kbpo.tracks.base import QuestionDraft
from kbpo.tracks.kbp.facts import REACH
from kbpo.tracks.kbp.judge import Clusters, Span, directed_name
from kbpo.tracks.kbp.merge import CLUSTER, UNDECIDED, merge_labels
from kbpo.tracks.kbp.questions import draft_mention_questions, predicate_meanings, sentence_payloads
from kbpo.tracks.models import Track
from kbpo.tracks.recall import Marks

Settled = Mapping[Span, Mapping[str, Any]]
"""Mentions of one document with the values of their labels"""


def draft_mentions_question(track: Track, document: Document) -> QuestionDraft:
    """Return the question for all mentions of a document that a relation may be about."""
    place = Place("document", document.pk)
    payload = mentions_payload(document, load_schema(track.corpus.schema))
    return QuestionDraft(make_targets(track.corpus, [place])[place], "entities", payload)


def mentions_payload(document: Document, schema: Schema) -> dict[str, Any]:
    """Return the payload of the page for marking mentions."""
    return (
        _text_payload(document)
        | {
            "tokens": [
                list(span) for span in zip(document.token_begin, document.token_end, strict=True)
            ]
        }
        | types_to_mark(schema)
    )


def types_to_mark(schema: Schema) -> dict[str, Any]:
    """Return the entity types that the page shows to the reader of a document. Under `types` are
    those to be marked, because some predicate takes them; under `not_asked` are the descriptions of
    the other linkable types, which are not to be marked.
    """
    counted = schema.types_in_predicates
    others = [
        entity_type_ for entity_type_ in schema.entity_types.values() if entity_type_ not in counted
    ]
    return {
        "types": [
            {
                "name": one.name,
                "description": one.description,
                "value": one.value,
                "example": one.example,
                "cues": list(one.cues),
            }
            for one in counted
        ],
        "not_asked": [other.description or other.name for other in others if other.linkable],
    }


def draft_relations_question(
    track: Track, document: Document, question: int
) -> QuestionDraft | None:
    """Return the question for the relations between the mentions that a question found; None if no
    two of them may be related.
    """
    schema = load_schema(track.corpus.schema)
    payload = relations_payload(
        document, settled_mentions(document.pk, question), schema, track.scope
    )
    if not payload["pairs"]:
        return None
    spans = [(one["span"][0], one["span"][1]) for one in payload["mentions"]]
    whole = Place("document", document.pk)
    pairs = payload["pairs"]
    places = [
        Place.of_unordered_pair(document.pk, spans[one["a"]], spans[one["b"]]) for one in pairs
    ]
    targets = make_targets(track.corpus, [whole, *places])
    for pair, place in zip(pairs, places, strict=True):
        pair["target"] = targets[place]
    return QuestionDraft(targets[whole], "relations_exhaustive", payload)


def relations_payload(
    document: Document, values: Settled, schema: Schema, scope: str
) -> dict[str, Any]:
    """Return the payload of the page for the relations between the mentions that readers of a
    document found; its pairs have no targets yet.
    """
    spans = sorted(values)
    clusters = Clusters(document.text, values)
    pairs = list(_related_pairs(document, values, clusters, schema, REACH[scope]))
    options: dict[tuple[str, str], int] = {}
    of_types = [(values[a]["type"], values[b]["type"]) for a, b, _ in pairs]
    for types in of_types:
        options.setdefault(types, len(options))
    at = {span: number for number, span in enumerate(spans)}
    numbers: dict[Span, int] = {}
    lists = [
        sentence_payloads(predicates_between(schema, a, b), {a}, {b}, schema) for a, b in options
    ]
    return _text_payload(document) | {
        "scope": scope,
        "mentions": [
            {
                "span": list(span),
                "gloss": document.gloss(*span),
                "type": values[span]["type"],
                "number": numbers.setdefault(clusters.cluster_of(span) or span, len(numbers) + 1),
            }
            for span in spans
        ],
        "options": lists,
        "meanings": predicate_meanings(chain.from_iterable(lists), schema),
        "pairs": [
            {"a": at[a], "b": at[b], "options": options[types], "sentence": sentence}
            for (a, b, sentence), types in zip(pairs, of_types, strict=True)
        ],
    }


def predicates_between(schema: Schema, a_type: str, b_type: str) -> list[str]:
    """Return the directed predicates that may hold between mentions of two types, in schema
    order.
    """
    ahead = {predicate.name for predicate in schema.predicates_between({a_type}, {b_type})}
    back = {predicate.name for predicate in schema.predicates_between({b_type}, {a_type})}
    return [
        directed_name(name, forward)
        for name in schema.predicates
        for forward, allowed in ((True, name in ahead), (False, name in back))
        if allowed
    ]


def _related_pairs(
    document: Document, values: Settled, clusters: Clusters, schema: Schema, reach: int
) -> Iterator[tuple[Span, Span, int]]:
    """Return pairs of mentions of different entities that may be related, with the sentence of the
    second one.

    Within a sentence all pairs; across sentences, if the track's scope allows it, the nearest two
    mentions of two entities that share no sentence.
    """
    spans = sorted(values)
    sentence = {span: document.sentence_index_at(span[0]) for span in spans}
    kinds = {(a, b) for p in schema.predicates.values() for a, b in p.types}
    related = kinds | {(b, a) for a, b in kinds}
    joined: set[tuple[Span, Span]] = set()
    near: list[tuple[Span, Span]] = []
    far: dict[tuple[Span, Span], tuple[int, Span, Span]] = {}
    for j, b in enumerate(spans):
        for a in spans[:j]:
            apart = sentence[b] - sentence[a]
            one, other = clusters.cluster_of(a) or a, clusters.cluster_of(b) or b
            if (
                apart > reach
                or one == other
                or (values[a]["type"], values[b]["type"]) not in related
            ):
                continue
            key = (min(one, other), max(one, other))
            if apart == 0:
                near.append((a, b))
                joined.add(key)
            else:
                far[key] = min(far.get(key, (1 << 30, a, b)), (b[0] - a[1], a, b))
    chosen = [*near, *((a, b) for key, (_, a, b) in far.items() if key not in joined)]
    yield from sorted(
        ((a, b, sentence[b]) for a, b in chosen), key=lambda one: (one[2], one[0], one[1])
    )


def settled_mentions(document: int, question: int) -> dict[Span, dict[str, Any]]:
    """Return the mentions of a document whose labels came from a question, by their latest
    labels.
    """
    labels = Label.objects.filter(
        target__document=document, target__kind=Target.Kind.MENTION, question=question
    )
    said: dict[Span, list[tuple[dict[str, Any], int | None, int | None]]] = defaultdict(list)
    fields = labels.order_by("created_at", "pk").values_list(
        "target__a_begin", "target__a_end", "value", "question", "again"
    )
    for begin, end, value, number, again in fields:
        said[begin, end].append((value, number, again))
    now = {span: unreplaced_labels(values)[-1] for span, values in said.items()}
    return {span: value for span, value in now.items() if value}


def draft_tiebreak_questions(
    track: Track, document: Document, question: int
) -> Iterator[QuestionDraft]:
    """Yield a question for each cluster of mentions whose readers disagreed on its reference: about
    its canonical mention, otherwise the first.
    """
    settled = settled_mentions(document.pk, question)
    spans = sorted(span for span, value in settled.items() if UNDECIDED in value)
    one_of: dict[Span, Span] = {}
    for span in spans:
        begin, end = settled[span].get(CLUSTER, span)
        one_of.setdefault((begin, end), span)
    chosen = [cluster if cluster in spans else span for cluster, span in one_of.items()]
    return draft_mention_questions(track, document.pk, sorted(chosen))


def store_facts(corpus: Corpus, question: int) -> int:
    """Store the relations that readers found in a whole document as instances, whether or not a
    system claims them, and return their number.
    """
    labels = Label.objects.filter(question=question, target__kind=Target.Kind.PAIR).select_related(
        "target"
    )
    numbers = dict(Predicate.objects.filter(corpus=corpus).values_list("name", "pk"))
    rows = []
    for label in labels:
        for part in label.value.get("holds", ()):
            rows.append((label.target, part[:-1], part.endswith(">")))
    made = [
        _unsaved_instance(target, numbers[name], forward)
        for target, name, forward in rows
        if name in numbers
    ]
    made.sort(
        key=lambda one: (
            one.subject_begin,
            one.object_begin,
            one.subject_end,
            one.object_end,
            one.predicate_id,
        )
    )
    Instance.objects.bulk_create(made, ignore_conflicts=True)
    return len(made)


def _unsaved_instance(target: Target, predicate: int, forward: bool) -> Instance:
    a, b = (target.a_begin, target.a_end), (target.b_begin, target.b_end)
    subject, object_ = (a, b) if forward else (b, a)
    return Instance(
        target=target,
        document_id=target.document_id,
        predicate_id=predicate,
        subject_begin=subject[0],
        subject_end=subject[1],
        object_begin=object_[0],
        object_end=object_[1],
    )


def _text_payload(document: Document) -> dict[str, Any]:
    return {
        "document": {"key": document.key, "title": document.title, "date": document.date},
        "text": document.text,
        "sentences": [list(span) for span in document.sentences],
    }


def read_mentions_of_file(
    path: Path, corpus: Corpus, documents: DatabaseCorpus
) -> Iterator[MentionRecord]:
    """Yield the mentions of a file. Raises CannotLoad at its end if it has errors, in which case
    none may be stored.
    """
    report = Report()
    _check_readable(path)
    yield from read_mentions(
        open_text(path, Limits(), report), documents, load_schema(corpus.schema), report
    )
    refuse_errors(report, path)


def read_gold_of_file(
    path: Path, corpus: Corpus, documents: DatabaseCorpus
) -> Iterator[GoldRecord]:
    """Yield the relations of a file, in canonical direction. Raises CannotLoad at its end if it has
    errors.
    """
    report = Report()
    _check_readable(path)
    yield from read_gold(
        open_text(path, Limits(), report), documents, load_schema(corpus.schema), report
    )
    refuse_errors(report, path)


def _check_readable(path: Path) -> None:
    try:
        path.open("rb").close()
    except OSError as error:
        raise CannotLoad(f"{path} cannot be read: {error.strerror}.") from error


Holds = dict[Place, set[str]]
"""Pairs of mentions -> the directed predicates that hold between them"""
Named = dict[tuple[int, Span], int]
"""Mentions, by document and span -> the first line with the mention"""


def read_marks(corpus: Corpus, gold: Path, mentions: Path, documents: Collection[int]) -> Marks:
    """Read the annotations of these documents from the two files, and return them, mentions before
    pairs. Mentions of relations that the file of mentions does not have are in `lacking`: their
    referents are unknown.
    """
    lookup, wanted = DatabaseCorpus(corpus), set(documents)
    holds, named = _read_pairs(gold, corpus, lookup, wanted)
    values_of_mentions = _mention_values(mentions, corpus, lookup, wanted)
    values = {
        "mentions": _remove_listed_mentions(named, values_of_mentions),
        "pairs": _pair_values(holds),
    }
    return Marks(values, named)


def _read_pairs(
    path: Path, corpus: Corpus, lookup: DatabaseCorpus, wanted_documents: set[int]
) -> tuple[Holds, Named]:
    """Return the predicates of each pair, which may be spread over the file; and the mentions of
    the relations.
    """
    holds: Holds = defaultdict(set)
    named: Named = {}
    for fact in read_gold_of_file(path, corpus, lookup):
        if (document := lookup.pk(fact.document)) in wanted_documents:
            direction = ">" if fact.subject <= fact.object else "<"
            holds[Place.of_unordered_pair(document, fact.subject, fact.object)].add(
                fact.predicate + direction
            )
            named.setdefault((document, fact.subject), fact.line)
            named.setdefault((document, fact.object), fact.line)
    return holds, named


def _mention_values(
    path: Path, corpus: Corpus, lookup: DatabaseCorpus, wanted_documents: set[int]
) -> Iterator[tuple[Place, Value]]:
    for mention in read_mentions_of_file(path, corpus, lookup):
        if (document := lookup.pk(mention.document)) in wanted_documents:
            value: Value = {"canonical": list(mention.canonical), "type": mention.type}
            if mention.link:
                value["link"] = mention.link.replace("_", " ")
            yield Place("mention", document, mention.span), value


def _remove_listed_mentions(
    named_mentions: Named, values: Iterator[tuple[Place, Value]]
) -> Iterator[tuple[Place, Value]]:
    """Yield the values of mentions unchanged, and remove each mention from `named_mentions`."""
    for place, value in values:
        named_mentions.pop((place.document, place.a), None)
        yield place, value


def _pair_values(holds: Holds) -> Iterator[tuple[Place, Value]]:
    for place, parts in holds.items():
        yield place, {"shown": sorted(parts), "holds": sorted(parts)}


FROM_PEOPLE = ("expert", "import", "document")


def read_entities(corpus: Corpus, documents: Sequence[int], moment: datetime) -> dict[str, int]:
    """Return name -> code of its entity, for all entities that people had found in these documents
    by then.

    The names are canonical mentions; names with the same link are one entity.
    """
    rows = Label.objects.filter(
        target__document__in=documents,
        target__kind="mention",
        source__in=FROM_PEOPLE,
        created_at__lte=moment,
    ).select_related("target")
    labels: dict[tuple[int, int, int], list[Label]] = defaultdict(list)
    for row in rows.order_by("target__document__key", "target__a_begin", "target__a_end", "pk"):
        labels[row.target.document_id_or_error, row.target.a_begin, row.target.a_end].append(row)
    values = {place: merged_value(some, merge_labels) for place, some in labels.items()}
    texts = dict(Document.objects.filter(pk__in=documents).values_list("pk", "text"))
    known = world_entity_types(corpus)
    codes: dict[str, int] = {}
    names: dict[str, int] = {}
    for (document, _, _), value in values.items():
        canonical = value.get("canonical") or value.get(CLUSTER)
        if value.get("type") not in known or not canonical:
            continue
        at = tuple(canonical)
        name = " ".join(texts[document][slice(*at)].split())
        link = value.get("link") or values.get((document, *at), {}).get("link") or name.casefold()
        if name:
            names.setdefault(name, codes.setdefault(link, len(codes)))
    return names
