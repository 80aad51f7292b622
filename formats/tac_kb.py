"""The TAC KBP ColdStart format ("door"): a knowledge base with entities, mentions and relations
with inclusive offsets.

Relations may precede the mentions of their arguments, so the file is read twice: first the
entities, whose mentions are stored compactly, then the relations, which are streamed.
"""

from bisect import bisect_left
from collections.abc import Callable, Iterator, Sequence

from formats.checks import ClaimChecks
from formats.lookup import CorpusLookup
from formats.mentions import CompactMap, Mentions
from formats.messages import Report, column_position, quote
from formats.occurrences import find_occurrences
from formats.opening import Limits
from formats.relation import RelationClaim, closest_pair
from formats.schema import Schema
from formats.splitting import Span
from formats.tac_lines import (
    BATCH,
    MENTIONS,
    Entities,
    LineReader,
    Spans,
    content_lines,
    is_beyond_relations,
    outside_sentence,
)

Lines = Iterator[tuple[int, str]]
_ENTITY_LINES = frozenset({*MENTIONS, "type", "link"})


class _Relation:
    """A relation line as read, in canonical direction; an argument is an entity's number or a
    string.
    """

    __slots__ = (
        "confidence",
        "line",
        "number",
        "object",
        "object_id",
        "object_type",
        "place",
        "predicate",
        "provenance",
        "subject",
        "subject_id",
        "subject_type",
        "turned",
    )

    number: int
    line: str
    predicate: str
    turned: bool
    subject: int
    subject_id: str
    subject_type: str
    object: int | str
    object_id: str
    object_type: str
    provenance: Spans
    place: tuple[str, Span] | None
    confidence: float | None


def read_tac_kb(
    open_lines: Callable[[Report], Lines],
    corpus: CorpusLookup,
    schema: Schema,
    limits: Limits,
    report: Report,
) -> Iterator[RelationClaim]:
    """Yield the claims of the relation lines, in order. `open_lines` opens the file again at each
    call.
    """
    checks = ClaimChecks(corpus, schema, limits, report)
    entities = Entities(checks)
    entities.collect(content_lines(open_lines(report), report))
    if report.fatal:
        return
    reader = _Relations(entities, checks)
    # What is wrong with the file as a file was said in the first pass.
    yield from reader.read_claims(content_lines(open_lines(Report(0)), Report(0)))
    checks.finish()


class _Relations:
    """The second pass, which turns relation lines into claims."""

    def __init__(self, entities: Entities, checks: ClaimChecks) -> None:
        self._entities = entities
        self._checks = checks
        self._schema = checks.schema
        self._report = checks.report
        self._reader = LineReader(checks.report)
        self._uncanonical = CompactMap()
        self._types: dict[tuple[str, str, str], tuple[str | None, bool]] = {}

    def read_claims(self, lines: Lines) -> Iterator[RelationClaim]:
        """Yield the claims in batches, so that the documents of a batch are fetched together."""
        batch: list[_Relation] = []
        documents: set[str] = set()
        for number, line in lines:
            fields = line.split("\t", 6)
            if len(fields) > 1 and fields[1] in _ENTITY_LINES:
                continue
            if len(fields) > 1 and self._is_not_evaluated(number, line, fields):
                continue
            relation = self._parse(number, line, fields)
            if self._report.fatal:
                return
            if relation is None:
                continue
            batch.append(relation)
            documents.update(relation.provenance)
            if len(batch) >= BATCH:
                yield from self._resolve_all(batch, documents)
                batch.clear()
                documents.clear()
        yield from self._resolve_all(batch, documents)

    def _resolve_all(self, batch: list[_Relation], documents: set[str]) -> Iterator[RelationClaim]:
        self._checks.corpus.prefetch(documents)
        accept = self._checks.accept
        for relation in batch:
            for document, spans in relation.provenance.items():
                claim = self._resolve_claim(relation, document, spans)
                if claim is not None and accept(claim, relation.turned, relation.line):
                    yield claim

    def _is_not_evaluated(self, number: int, line: str, fields: list[str]) -> bool:
        """Return whether a line is about events; report a message if so."""
        if not is_beyond_relations(fields) or self._schema.canonical_reading(fields[1]) is not None:
            return False
        self._checks.report_not_evaluated(fields[1], number, line, column_position(line, 1))
        return True

    def _parse(self, number: int, line: str, fields: list[str]) -> _Relation | None:
        """Return the relation on a line, or None after a message."""
        if len(fields) not in (4, 5):
            expected = "4 or 5 (subject, predicate, object, provenance, confidence)"
            self._reader.report_wrong_columns(number, line, expected, len(fields))
            return None
        if not self._checks.is_within_relation_limit(number):
            return None
        reading = self._schema.canonical_reading(fields[1])
        if reading is None:
            self._checks.report_unread_predicate(fields[1], number, line, column_position(line, 1))
            return None
        relation = _Relation()
        relation.number, relation.line = number, line
        relation.predicate, relation.turned = reading[0].name, reading[1]
        if not self._read_arguments(relation, fields):
            return None
        provenance = self._reader.provenance(number, line, fields, 3)
        if provenance is None:
            return None
        relation.provenance, relation.place = provenance
        relation.confidence = self._reader.confidence(number, line, fields, 4)
        return relation

    def _read_arguments(self, relation: _Relation, fields: list[str]) -> bool:
        """Return whether subject and object could be read and are allowed for the predicate."""
        number, line = relation.number, relation.line
        first_id, second_id = fields[0], fields[2]
        if first_id[:1] != ":":
            text = (
                f"{quote(first_id)} is not an entity id, which begins with a colon (:E12). The"
                " line is dropped."
            )
            self._report.add("syntax.entity_id", number, text, line, column_position(line, 0))
            return False
        first = self._typed_entity_number(first_id, 0, number, line)
        second: int | str | None = None
        if first is not None:
            if second_id[:1] == ":":
                second = self._typed_entity_number(second_id, 2, number, line)
            else:
                second = self._reader.read_string(number, line, fields, 2)
        if first is None or second is None:
            return False
        if first == second:
            text = (
                f"{first_id} is subject and object. A relation of an entity to itself is dropped."
            )
            self._report.add("schema.itself", number, text, line, column_position(line, 2))
            return False
        if not relation.turned:
            relation.subject, relation.subject_id = first, first_id
            relation.object, relation.object_id = second, second_id
        elif isinstance(second, int):
            relation.subject, relation.subject_id = second, second_id
            relation.object, relation.object_id = first, first_id
        else:
            text = f"{fields[1]} takes an entity as its object, not a string. The line is dropped."
            self._report.add("schema.string", number, text, line, column_position(line, 2))
            return False
        return self._read_types(relation)

    def _typed_entity_number(self, entity: str, index: int, number: int, line: str) -> int | None:
        """Return the number of a typed entity, or None after a message."""
        found = self._entities.number(entity)
        if found is None:
            text = (
                f"The file does not define {quote(entity)}: it has no mention and no type. The"
                " line is dropped."
            )
            self._report.add("reference.entity", number, text, line, column_position(line, index))
            return None
        if self._entities.type(found) is None:
            text = f"{entity} has no type that the schema knows. The line is dropped."
            self._report.add("reference.untyped", number, text, line, column_position(line, index))
            return None
        return found

    def _read_types(self, relation: _Relation) -> bool:
        """Return whether both arguments have types, even if the predicate does not allow them."""
        entities = self._entities
        subject_type = relation.subject_type = entities.type(relation.subject) or ""
        given = entities.type(relation.object) if isinstance(relation.object, int) else "STRING"
        key = (relation.predicate, subject_type, given or "")
        found = self._types.get(key)
        if found is None:
            found = self._types[key] = self._read_type(*key)
        object_type, is_allowed = found
        if object_type is None:
            text = (
                f"{relation.predicate} takes an entity as its object, not a string. The"
                " line is dropped."
            )
            culprit = column_position(relation.line, 2)
            self._report.add("schema.string", relation.number, text, relation.line, culprit)
            return False
        relation.object_type = object_type
        if not is_allowed:
            self._checks.report_wrong_types(
                relation.predicate,
                subject_type,
                object_type,
                relation.number,
                relation.line,
            )
        return True

    def _read_type(
        self, predicate: str, subject_type: str, object_type: str
    ) -> tuple[str | None, bool]:
        """Return the type of an object as the schema names it, and whether the predicate allows it
        with the type of the subject. If the predicate does not allow STRING, a string gets the
        first type that the predicate allows and that is not an entity; the type is None if there is
        no such type.
        """
        schema = self._schema
        if object_type == "STRING" and not schema.is_allowed(predicate, subject_type, "STRING"):
            # Strings of no type of their own take the type of a string that the predicate asks for.
            wanted = schema.object_types(predicate, subject_type)
            taken = next((name for name in wanted if not schema.linkable(name)), None)
            return taken, taken is not None and schema.is_allowed(predicate, subject_type, taken)
        return object_type, schema.is_allowed(predicate, subject_type, object_type)

    def _resolve_claim(
        self, relation: _Relation, document: str, spans: list[Span]
    ) -> RelationClaim | None:
        """Return the claim of a relation line in one document, or None after a message."""
        view = self._checks.corpus.get(document)
        if view is None:
            self._checks.report_unknown_document(
                document, relation.number, relation.line, column_position(relation.line, 3)
            )
            return None
        size = len(view.text)
        for begin, end in spans:
            if not begin < end <= size:
                text, culprit = (
                    outside_sentence(view, (begin, end)),
                    column_position(relation.line, 3),
                )
                self._report.add("reference.offsets", relation.number, text, relation.line, culprit)
                return None
        number = self._checks.document_number(document)
        found = self._entities.mentions.mentions_of_entity(relation.subject, number)
        subjects = mentions_inside(found.spans, spans) if found else ()
        other: Mentions | None = None
        # The written object is the subject of a relation that is turned round, and no string then.
        where = spans
        if relation.place is not None and relation.place[0] == document and not relation.turned:
            where = [relation.place[1]]
        if isinstance(relation.object, int):
            other = self._entities.mentions.mentions_of_entity(relation.object, number)
            objects = mentions_inside(other.spans, where) if other else ()
        else:
            is_date = self._schema.entity_types[relation.object_type].value == "date"
            objects = find_occurrences(view.text, relation.object, where, is_date)
        pair = closest_pair(view, subjects, objects) if subjects and objects else None
        if pair is None or found is None:
            self._report_not_inside(relation, document, subjects, objects)
            return None
        if not found.is_named or (other is not None and not other.is_named):
            self._report_missing_canonical_mentions(relation, document, number, found, other)
        return self._make_claim(relation, document, spans, pair, found, other)

    def _report_not_inside(
        self, relation: _Relation, document: str, subjects: Sequence[Span], objects: Sequence[Span]
    ) -> None:
        culprit = column_position(relation.line, 3)
        if subjects and not objects and isinstance(relation.object, str):
            what = f"{quote(relation.object)} is not found inside the provenance in {document}"
            text = f"{what}. The relation is dropped."
            self._report.add("reference.string", relation.number, text, relation.line, culprit)
            return
        arguments = ((relation.subject_id, subjects), (relation.object_id, objects))
        missing = [name for name, found in arguments if not found]
        if missing:
            what = (
                f"No mention of {' and none of '.join(missing)} lies inside the provenance in"
                f" {document}"
            )
        else:
            what = (
                "Subject and object have only one and the same mention inside the provenance in"
                f" {document}"
            )
        text = f"{what}. The relation is dropped."
        self._report.add("reference.provenance", relation.number, text, relation.line, culprit)

    def _make_claim(
        self,
        relation: _Relation,
        document: str,
        spans: list[Span],
        pair: tuple[Span, Span],
        subject: Mentions,
        object_: Mentions | None,
    ) -> RelationClaim:
        link = self._entities.link
        return RelationClaim(
            document,
            pair[0],
            relation.predicate,
            pair[1],
            relation.subject_type,
            relation.object_type,
            spans,
            relation.confidence,
            subject.canonical,
            pair[1] if object_ is None else object_.canonical,
            link(relation.subject),
            link(relation.object) if isinstance(relation.object, int) else None,
            relation.subject_id,
            relation.object_id if isinstance(relation.object, int) else None,
            relation.number,
        )

    def _report_missing_canonical_mentions(
        self,
        relation: _Relation,
        document: str,
        number: int,
        subject: Mentions,
        object_: Mentions | None,
    ) -> None:
        """Report, once for each entity and document, that the file states no canonical mention."""
        arguments = (
            (relation.subject, relation.subject_id, subject),
            (relation.object, relation.object_id, object_),
        )
        for entity, name, mentions in arguments:
            if not isinstance(entity, int) or mentions is None or mentions.is_named:
                continue
            if self._uncanonical.add((entity, number), 0) == -1:
                text = (
                    f"{name} has no canonical mention in {document}. Its first"
                    " longest mention serves."
                )
                self._report.add("reference.canonical", relation.number, text, relation.line)


def mentions_inside(mentions: Sequence[Span], provenance: Sequence[Span]) -> Sequence[Span]:
    """Return the mentions that lie inside one of the spans, in their order. The mentions must be
    sorted.
    """
    found: list[Span] = []
    for begin, end in provenance:
        for at in range(bisect_left(mentions, (begin, 0)), len(mentions)):
            mention = mentions[at]
            if mention[0] >= end:
                break
            if mention[1] <= end:
                found.append(mention)
    return found if len(found) < 2 or len(provenance) == 1 else sorted(set(found))
