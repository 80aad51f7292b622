"""The JSON Lines format ("door"): one relation on each line, with half-open spans, for new
systems.
"""

import re
from array import array
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any
from unicodedata import normalize

from formats.checks import ClaimChecks
from formats.corpus import parse_span
from formats.lookup import CorpusLookup, DocumentView
from formats.mentions import CompactMap
from formats.messages import Columns, Report, quote
from formats.opening import Limits, Objects
from formats.relation import RelationClaim
from formats.schema import Schema
from formats.splitting import Span
from formats.tac_kb import mentions_inside

BATCH = 1_000
REQUIRED = ("doc", "subject", "predicate", "object")
OPTIONAL = (
    "provenance",
    "confidence",
    "subject_type",
    "object_type",
    "subject_canonical",
    "object_canonical",
    "subject_link",
    "object_link",
)
_KNOWN = frozenset({*REQUIRED, *OPTIONAL})
_STRINGS = ("doc", "predicate", "subject_type", "object_type", "subject_link", "object_link")
_SPANS = ("subject", "object", "subject_canonical", "object_canonical")
_UNSTORABLE = re.compile("[\x00-\x1f\ud800-\udfff]")

_Parsed = tuple[int, str, dict[str, Any]]


@dataclass(slots=True)
class _Argument:
    """The subject or the object of a line: its mention, its type and its entity."""

    span: Span
    type: str
    canonical: Span | None
    link: str | None


def read_json_lines(
    lines: Iterator[tuple[int, str]],
    corpus: CorpusLookup,
    schema: Schema,
    limits: Limits,
    report: Report,
) -> Iterator[RelationClaim]:
    """Yield the claims of the lines, in order; messages go to the report."""
    checks = ClaimChecks(corpus, schema, limits, report)
    yield from _JsonLines(checks).read_claims(lines)
    checks.finish()


class _JsonLines:
    """Reads lines in batches, so that the documents of a batch are fetched together."""

    def __init__(self, checks: ClaimChecks) -> None:
        self._checks = checks
        self._schema = checks.schema
        self._report = checks.report
        self._facts = _MentionFacts(checks)
        self._unknown_keys: set[str] = set()
        self._objects = Objects(checks.report)

    def read_claims(self, lines: Iterator[tuple[int, str]]) -> Iterator[RelationClaim]:
        """Yield the claims in line order."""
        batch: list[_Parsed] = []
        for number, line in lines:
            if not line or line.isspace() or line[0] == "#":
                continue
            if not self._checks.is_within_relation_limit(number):
                return
            data = self._parse(number, line)
            if data is not None:
                batch.append((number, line, data))
            if len(batch) >= BATCH:
                yield from self._resolve_all(batch)
                batch.clear()
        if not self._report.fatal:
            yield from self._resolve_all(batch)
        self._objects.finish()

    def _resolve_all(self, batch: list[_Parsed]) -> Iterator[RelationClaim]:
        self._checks.corpus.prefetch({data["doc"] for _, _, data in batch})
        for number, line, data in batch:
            found = self._resolve_claim(number, line, data)
            if found is not None and self._checks.accept(*found, line):
                yield found[0]

    def _parse(self, number: int, line: str) -> dict[str, Any] | None:
        """Return the object on a line if its values have the right types; None after a message."""
        data = self._objects.parse(number, line)
        if data is None:
            return None
        for key in REQUIRED:
            if key not in data:
                text = f"The key {quote(key)} is missing. The line is dropped."
                self._report.add("syntax.key_missing", number, text, line)
                return None
        for key in data.keys() - _KNOWN:
            if key not in self._unknown_keys and len(self._unknown_keys) < 100:
                self._unknown_keys.add(key)
                text = (
                    f"The key {quote(key)} is not known. It is ignored, here and in"
                    " all further lines."
                )
                self._report.add("syntax.key_unknown", number, text, line, _key_position(line, key))
        return data if self._check_values(number, line, data) else None

    def _check_values(self, number: int, line: str, data: dict[str, Any]) -> bool:
        """Return whether strings are strings and spans are spans, and convert them to the internal
        form.
        """
        for key in _STRINGS:
            value = data.get(key)
            if value is None and key not in REQUIRED:
                continue
            if not isinstance(value, str) or not value or _UNSTORABLE.search(value):
                return self._report_bad_value(
                    "syntax.value", number, line, key, "is not a string without control characters"
                )
            data[key] = normalize("NFC", value)
        for key in _SPANS:
            value = data.get(key)
            if value is None and key not in REQUIRED:
                continue
            data[key] = parse_span(value)
            if data[key] is None:
                return self._report_bad_value(
                    "syntax.offsets",
                    number,
                    line,
                    key,
                    "is not a pair [begin, end] of whole numbers",
                )
        provenance = data.get("provenance")
        if provenance is not None:
            spans = (
                [parse_span(value) for value in provenance]
                if isinstance(provenance, list)
                else [None]
            )
            if None in spans:
                return self._report_bad_value(
                    "syntax.offsets", number, line, "provenance", "is not a list of [begin, end]"
                )
            data["provenance"] = spans
        confidence = data.get("confidence")
        if confidence is not None and not (
            type(confidence) in (int, float) and 0 <= confidence <= 1
        ):
            text = (
                f"The confidence {quote(str(confidence))} is no number from 0 to 1. The line is"
                " kept without it."
            )
            self._report.add(
                "syntax.confidence", number, text, line, _key_position(line, "confidence")
            )
            data["confidence"] = None
        return True

    def _report_bad_value(self, code: str, number: int, line: str, key: str, what: str) -> bool:
        self._report.add(
            code,
            number,
            f"{quote(key)} {what}. The line is dropped.",
            line,
            _key_position(line, key),
        )
        return False

    def _resolve_claim(
        self, number: int, line: str, data: dict[str, Any]
    ) -> tuple[RelationClaim, bool] | None:
        """Return the claim on a line and whether it was reversed, or None after a message."""
        reading = self._schema.canonical_reading(data["predicate"])
        if reading is None:
            self._checks.report_unread_predicate(
                data["predicate"], number, line, _key_position(line, "predicate")
            )
            return None
        view = self._checks.corpus.get(data["doc"])
        if view is None:
            self._checks.report_unknown_document(
                data["doc"], number, line, _key_position(line, "doc")
            )
            return None
        self._checks.document_number(view.id)
        predicate, turned = reading
        provenance = self._read_provenance(number, line, data, view)
        if provenance is None:
            return None
        first, second = ("object", "subject") if turned else ("subject", "object")
        subject_types = self._schema.subject_types(predicate.name)
        object_types = self._schema.object_types(predicate.name)
        subject = self._read_argument(number, line, data, view, first, subject_types)
        object_ = (
            self._read_argument(number, line, data, view, second, object_types) if subject else None
        )
        if subject is None or object_ is None:
            return None
        if not self._schema.is_allowed(predicate.name, subject.type, object_.type):
            self._checks.report_wrong_types(
                predicate.name, subject.type, object_.type, number, line
            )
        confidence = data.get("confidence")
        claim = RelationClaim(
            view.id,
            subject.span,
            predicate.name,
            object_.span,
            subject.type,
            object_.type,
            provenance,
            None if confidence is None else float(confidence),
            subject.canonical or subject.span,
            object_.canonical or object_.span,
            subject.link,
            object_.link,
            None,
            None,
            number,
        )
        return claim, turned

    def _read_provenance(
        self, number: int, line: str, data: dict[str, Any], view: DocumentView
    ) -> list[Span] | None:
        """Return the provenance as given, or the sentences over both mentions; None after a
        message.
        """
        for key in _SPANS:
            if data.get(key) is not None and not view.contains_span(data[key]):
                self._report_outside(number, line, key, view)
                return None
        arguments = [data["subject"], data["object"]]
        if not data.get("provenance"):
            return [view.sentence_span_over(*arguments)]
        provenance: list[Span] = list(dict.fromkeys(data["provenance"]))
        if not all(view.contains_span(span) for span in provenance):
            self._report_outside(number, line, "provenance", view)
            return None
        if len(mentions_inside(arguments, provenance)) < 2:
            text = "The subject or the object lies outside the provenance. The relation is dropped."
            self._report.add(
                "reference.provenance", number, text, line, _key_position(line, "provenance")
            )
            return None
        return provenance

    def _report_outside(self, number: int, line: str, key: str, view: DocumentView) -> None:
        text = (
            f"{quote(key)} is empty or lies outside the document, whose text has"
            f" {len(view.text):,} characters. The line is dropped."
        )
        self._report.add("reference.offsets", number, text, line, _key_position(line, key))

    def _read_argument(
        self,
        number: int,
        line: str,
        data: dict[str, Any],
        view: DocumentView,
        role: str,
        allowed: tuple[str, ...],
    ) -> _Argument | None:
        """Return the subject or the object with its type: the given one, that of the known mention,
        or the only allowed one.
        """
        span: Span = data[role]
        name = data.get(f"{role}_type") or view.mention_types.get(span)
        if name is None and len(allowed) == 1:
            name = allowed[0]
        key = f"{role}_type"
        if name is None:
            text = (
                f"The {role} has no type: the line names none, and the corpus has no mention there."
                " It is dropped."
            )
            self._report.add("reference.untyped", number, text, line, _key_position(line, role))
            return None
        if name not in self._schema.entity_types:
            known = ", ".join(self._schema.entity_types)
            text = f"The schema has no type {quote(name)}, only {known}. The line is dropped."
            self._report.add("schema.unknown_type", number, text, line, _key_position(line, key))
            return None
        argument = _Argument(span, name, data.get(f"{role}_canonical"), data.get(f"{role}_link"))
        return self._facts.reconcile(view.id, argument, role, number, line)


class _MentionFacts:
    """The first type, canonical mention and link that the file states for each mention."""

    def __init__(self, checks: ClaimChecks) -> None:
        self._checks = checks
        self._report = checks.report
        self._rows = CompactMap()
        self._lines = array("I")
        self._types = bytearray()
        self._type_names = list(checks.schema.entity_types)
        self._canonicals = array("Q")
        self._links = array("I")
        self._link_names: list[str] = [""]
        self._link_numbers: dict[str, int] = {"": 0}

    def reconcile(
        self, document: str, argument: _Argument, role: str, number: int, line: str
    ) -> _Argument:
        """Return the argument with the facts that an earlier line stated about the same mention."""
        key = (self._checks.document_number(document), *argument.span)
        row = self._rows.add(key, len(self._lines))
        if row == -1:
            self._lines.append(number)
            self._types.append(self._type_names.index(argument.type))
            self._canonicals.append(_pack_span(argument.canonical))
            self._links.append(self._link_number(argument.link))
            return argument
        first = self._lines[row]
        name = self._type_names[self._types[row]]
        if name != argument.type:
            text = (
                f"The {role} has the type {name} on line {first}, which is kept, and"
                f" {argument.type} here."
            )
            self._report.add(
                "consistency.two_types", number, text, line, _key_position(line, f"{role}_type")
            )
            argument.type = name
        canonical = _unpack_span(self._canonicals[row])
        if canonical is None:
            self._canonicals[row] = _pack_span(argument.canonical)
        elif argument.canonical not in (None, canonical):
            text = f"The {role} has another canonical mention on line {first}, which is kept."
            self._report.add(
                "consistency.canonicals",
                number,
                text,
                line,
                _key_position(line, f"{role}_canonical"),
            )
        link = self._link_names[self._links[row]]
        if not link:
            self._links[row] = self._link_number(argument.link)
        elif argument.link not in (None, link):
            text = f"The {role} is linked to {quote(link)} on line {first}, which is kept."
            self._report.add(
                "consistency.links", number, text, line, _key_position(line, f"{role}_link")
            )
        argument.canonical, argument.link = canonical or argument.canonical, link or argument.link
        return argument

    def _link_number(self, link: str | None) -> int:
        """Return a small number for a link, 0 for none."""
        known = self._link_numbers.get(link or "")
        if known is None and link:
            known = self._link_numbers[link] = len(self._link_names)
            self._link_names.append(link)
        return known or 0


def _pack_span(span: Span | None) -> int:
    """Return the span as one number; 0 is reserved for a missing span."""
    return 0 if span is None else span[0] << 32 | span[1]


def _unpack_span(packed: int) -> Span | None:
    return (packed >> 32, packed & 0xFFFFFFFF) if packed else None


def _key_position(line: str, key: str) -> Columns | None:
    """Return the position of a key in the line."""
    at = line.find(f'"{key}"')
    return None if at < 0 else (at, at + len(key) + 2)
