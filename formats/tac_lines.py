"""Reads the lines of a TAC KBP ColdStart knowledge base (columns, quoted strings, provenance,
confidence) and, in a first pass, its entities: types, mentions and links.
"""

import re
from array import array
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple
from unicodedata import normalize

from formats.checks import ClaimChecks
from formats.lookup import DocumentView
from formats.mentions import MentionStore
from formats.messages import Report, column_position, quote
from formats.occurrences import is_same_text
from formats.splitting import Span
from formats.tables import parse_number

_SPAN = re.compile(r"(.+):(\d{1,9})-(\d{1,9})", re.ASCII | re.DOTALL)
_STRING = re.compile(r'"((?:[^"\\]|\\.)*)"')
_ESCAPE = re.compile(r"\\(.)")

MENTIONS = {
    "mention": True,
    "canonical_mention": True,
    "nominal_mention": False,
    "pronominal_mention": False,
    "normalized_mention": False,
}
"""The predicates of mention lines -> whether such a mention is a name."""

Spans = dict[str, list[Span]]


class Provenance(NamedTuple):
    """The spans of text that state a relation, by document, and the position of its object."""

    spans: Spans
    """Document -> spans, in line order"""
    place: tuple[str, Span] | None
    """Position of the object, in files of 2016 and later: `PLACE;JUSTIFICATION,…`"""


EVENT = ":Event_"
_REALIS = (".actual", ".generic", ".other")


def is_beyond_relations(fields: Sequence[str]) -> bool:
    """Return whether a line is about events or asserts a mention of an event (Cold Start++ of 2016
    and 2017), which are not evaluated here.
    """
    return (
        fields[0].startswith(EVENT)
        or fields[1].endswith(_REALIS)
        or (len(fields) > 2 and fields[2].startswith(EVENT))
    )


REMEMBERED, SHORT = 2048, 200
"""Number of provenances that are cached while a file is read, and the greatest number of characters
of a cached one: long ones hardly recur, and would fill the memory
"""


def content_lines(lines: Iterator[tuple[int, str]], report: Report) -> Iterator[tuple[int, str]]:
    """Yield the lines with content after the run id, without comments and blank lines, in composed
    Unicode (NFC).
    """
    for number, line in lines:
        if line and line[0] != "#" and not line.isspace():
            if "\t" in line:
                text = (
                    "The first line should be the run id, a word of your own. It is read like every"
                    " other line."
                )
                report.add("syntax.run_id", number, text, line)
                yield number, normalize("NFC", line.rstrip())
            break
    for number, line in lines:
        if line and line[0] != "#":
            if line[-1] <= " ":
                line = line.rstrip()
                if not line:
                    continue
            yield number, line if line.isascii() else normalize("NFC", line)


def parse_string(field: str) -> str | None:
    """Return the content of a quoted string; None if the field is not one."""
    if (
        len(field) > 2
        and field[0] == field[-1] == '"'
        and "\\" not in field
        and field.find('"', 1) == len(field) - 1
    ):
        return field[1:-1]
    match = _STRING.fullmatch(field)
    if match is None or not match.group(1).strip():
        return None
    return _ESCAPE.sub(r"\1", match.group(1))


def parse_span(field: str) -> tuple[str, Span] | None:
    """Return the document and the half-open span of `DOC:begin-end`, whose end is inclusive; None
    if it cannot be parsed.
    """
    match = _SPAN.fullmatch(field)
    if match is None:
        return None
    document, begin, end = match.groups()
    return document, (int(begin), int(end) + 1)


def parse_provenance(field: str) -> Provenance | None:
    """Return the spans, and the position of the object before a semicolon; None if one cannot be
    parsed.
    """
    place, _, justification = field.partition(";")
    by_document: Spans = {}
    for part in map(str.strip, field.replace(";", ",").split(",")):
        found = parse_span(part)
        if found is None:
            return None
        document, span = found
        spans = by_document.setdefault(document, [])
        if span not in spans:
            spans.append(span)
    return Provenance(by_document, parse_span(place.strip()) if justification else None)


def parse_confidence(field: str) -> float | None:
    """Return the number from 0 to 1; None if the field is not one."""
    value = parse_number(field)
    return value if value is not None and 0.0 <= value <= 1.0 else None


class LineReader:
    """Parses the columns of a line, and reports a message for each column that cannot be parsed."""

    def __init__(self, report: Report) -> None:
        self.report = report
        self._provenances: dict[str, Provenance | None] = {}

    def report_wrong_columns(self, number: int, line: str, expected: str, n_found: int) -> None:
        """Report that the line has the wrong number of columns."""
        columns = "column" if n_found == 1 else "columns"
        hint = (
            " (columns are separated by tabs, not by blanks)"
            if "\t" not in line and " " in line
            else ""
        )
        text = (
            f"This line has {n_found} {columns}, but {expected} are expected{hint}. It is dropped."
        )
        self.report.add("syntax.columns", number, text, line)

    def read_string(self, number: int, line: str, fields: list[str], index: int) -> str | None:
        """Return the quoted string in a column, or None after a message."""
        value = parse_string(fields[index])
        if value is None:
            text = (
                f'{quote(fields[index])} is no string in double quotes with \\" and \\\\ as'
                " escapes, or it is empty. The line is dropped."
            )
            self.report.add("syntax.string", number, text, line, column_position(line, index))
        return value

    def span(
        self, number: int, line: str, fields: list[str], index: int
    ) -> tuple[str, Span] | None:
        """Return the document and span in a column, or None after a message."""
        value = parse_span(fields[index])
        if value is None:
            self._bad_offsets(number, line, fields, index)
        return value

    def provenance(
        self, number: int, line: str, fields: list[str], index: int
    ) -> Provenance | None:
        """Return the provenance in a column; None after a message. The result is shared and must
        not be changed: relations of one pair of mentions have the same provenance, which is parsed
        once.
        """
        field = fields[index]
        if len(field) > SHORT:
            value = parse_provenance(field)
        else:
            if len(self._provenances) == REMEMBERED:
                self._provenances.clear()
            if field not in self._provenances:
                self._provenances[field] = parse_provenance(field)
            value = self._provenances[field]
        if value is None:
            self._bad_offsets(number, line, fields, index)
        return value

    def _bad_offsets(self, number: int, line: str, fields: list[str], index: int) -> None:
        text = f"{quote(fields[index])} cannot be read as DOCUMENT:begin-end. The line is dropped."
        self.report.add("syntax.offsets", number, text, line, column_position(line, index))

    def confidence(self, number: int, line: str, fields: list[str], index: int) -> float | None:
        """Return the confidence in an optional column; None, after a message, if it is not a number
        from 0 to 1.
        """
        if len(fields) <= index:
            return None
        value = parse_confidence(fields[index])
        if value is None:
            text = (
                f"The confidence {quote(fields[index])} is no number from 0 to 1. The line is kept"
                " without it."
            )
            self.report.add("syntax.confidence", number, text, line, column_position(line, index))
        return value


BATCH = 1_000
_UNTYPED, _BAD_TYPE = 0, 1

_Mention = tuple[
    int, str, str, str, str, Span, str
]  # line number, line, entity, kind, document, span, gloss


class Entities:
    """The entities of one file, by number, with their types, links and mentions."""

    def __init__(self, checks: ClaimChecks) -> None:
        self.mentions = MentionStore()
        self._checks = checks
        self._report = checks.report
        self._reader = LineReader(checks.report)
        self._numbers: dict[str, int] = {}
        self._types = bytearray()
        self._type_names = [None, None, *checks.schema.entity_types]
        self._links: dict[int, str] = {}
        self._waiting: list[_Mention] = []
        # Rows of mentions whose span another entity has too: row, the other entity, this entity,
        # line.
        self._shared = array("I")

    def collect(self, lines: Iterable[tuple[int, str]]) -> None:
        """Read all lines about entities, and skip the relations."""
        readers = dict.fromkeys(MENTIONS, self._read_mention) | {
            "type": self._read_type,
            "link": self._read_link,
        }
        for number, line in lines:
            fields = line.split("\t", 2)
            read = readers.get(fields[1]) if len(fields) > 1 else None
            if read is not None and fields[0].startswith(EVENT):
                self._checks.report_not_evaluated(fields[1], number, line, column_position(line, 1))
            elif read is not None:
                read(number, line, line.split("\t", 5))
        self._check_waiting_mentions()
        self._check_shared_mentions()

    def number(self, entity: str) -> int | None:
        """Return the number of an entity id; None if only relation lines name it."""
        return self._numbers.get(entity)

    def type(self, entity: int) -> str | None:
        """Return the type of the entity; None if it has no type of the schema."""
        return self._type_names[self._types[entity]]

    def link(self, entity: int) -> str | None:
        """Return the link of the entity, or None."""
        return self._links.get(entity)

    def _checked_entity_number(self, entity: str, number: int, line: str) -> int | None:
        known = self._numbers.get(entity)
        if known is not None:
            return known
        if not entity.startswith(":") or len(entity) < 2 or " " in entity:
            text = (
                f"{quote(entity)} is not an entity id, which begins with a colon (:E12). The line"
                " is dropped."
            )
            self._report.add("syntax.entity_id", number, text, line, column_position(line, 0))
            return None
        self._types.append(_UNTYPED)
        self._numbers[entity] = len(self._numbers)
        return len(self._numbers) - 1

    def _read_type(self, number: int, line: str, fields: list[str]) -> None:
        if len(fields) != 3:
            return self._reader.report_wrong_columns(
                number, line, "3 (entity, type, name of the type)", len(fields)
            )
        entity = self._checked_entity_number(fields[0], number, line)
        if entity is None:
            return None
        try:
            code = self._type_names.index(fields[2], 2)
        except ValueError:
            code = _BAD_TYPE
            known = ", ".join(self._checks.schema.entity_types)
            text = f"The schema has no type {quote(fields[2])}, only {known}. The line is dropped."
            self._report.add("schema.unknown_type", number, text, line, column_position(line, 2))
        earlier = self._types[entity]
        if earlier in (_UNTYPED, _BAD_TYPE):
            self._types[entity] = code
        elif earlier != code and code != _BAD_TYPE:
            text = f"{fields[0]} has the type {self._type_names[earlier]} already, which is kept."
            self._report.add(
                "consistency.entity_types", number, text, line, column_position(line, 2)
            )
        return None

    def _read_link(self, number: int, line: str, fields: list[str]) -> None:
        if len(fields) not in (3, 4):
            return self._reader.report_wrong_columns(
                number, line, "3 (entity, link, name in quotes)", len(fields)
            )
        entity = self._checked_entity_number(fields[0], number, line)
        link = self._reader.read_string(number, line, fields, 2) if entity is not None else None
        if entity is None or link is None:
            return None
        earlier = self._links.setdefault(entity, link)
        if earlier != link:
            text = f"{fields[0]} is linked to {quote(earlier)} already, which is kept."
            self._report.add("consistency.links", number, text, line, column_position(line, 2))
        return None

    def _read_mention(self, number: int, line: str, fields: list[str]) -> None:
        if len(fields) not in (4, 5):
            expected = "4 (entity, kind of mention, text in quotes, DOCUMENT:begin-end)"
            return self._reader.report_wrong_columns(number, line, expected, len(fields))
        gloss = self._reader.read_string(number, line, fields, 2)
        found = self._reader.span(number, line, fields, 3) if gloss is not None else None
        if gloss is None or found is None:
            return None
        self._waiting.append((number, line, fields[0], fields[1], found[0], found[1], gloss))
        if len(self._waiting) >= BATCH:
            self._check_waiting_mentions()
        return None

    def _check_waiting_mentions(self) -> None:
        """Process a batch of pending mention lines, whose documents are fetched together."""
        self._checks.corpus.prefetch({mention[4] for mention in self._waiting})
        for mention in self._waiting:
            self._check_mention(*mention)
        self._waiting.clear()

    def _check_mention(
        self,
        number: int,
        line: str,
        entity_id: str,
        kind: str,
        document: str,
        span: Span,
        gloss: str,
    ) -> None:
        entity = self._checked_entity_number(entity_id, number, line)
        if entity is None:
            return
        view = self._checks.corpus.get(document)
        if view is None:
            self._checks.report_unknown_document(document, number, line, column_position(line, 3))
            return
        if not view.contains_span(span):
            self._report.add(
                "reference.offsets",
                number,
                outside_sentence(view, span),
                line,
                column_position(line, 3),
            )
            return
        text = view.text[span[0] : span[1]]
        # A normalized mention has the value as its string (2013-03-17), not what the text says.
        if text != gloss and kind != "normalized_mention" and not is_same_text(text, gloss):
            self._report.add(
                "reference.gloss",
                number,
                _gloss_mismatch_text(view, span, gloss),
                line,
                column_position(line, 3),
            )
            return
        document_number = self._checks.document_number(document)
        owner = self.mentions.add(entity, document_number, span, MENTIONS[kind])
        if owner != -1:
            self._shared.extend((self.mentions.row, owner, entity, number))
        if kind == "canonical_mention":
            first = self.mentions.add_canonical(entity, document_number, span)
            if first is not None:
                kept = f"{quote(view.text[first[0] : first[1]])} at {first[0]}-{first[1] - 1}"
                sentence = (
                    f"{entity_id} has the canonical mention {kept} in this document already, which"
                    " is kept."
                )
                self._report.add(
                    "consistency.canonicals", number, sentence, line, column_position(line, 3)
                )

    def _check_shared_mentions(self) -> None:
        """Check mentions that two entities share, after all types and links were read."""
        names: dict[int, str] = {}
        if self._shared:
            wanted = set(self._shared[1::4]) | set(self._shared[2::4])
            names = {number: name for name, number in self._numbers.items() if number in wanted}
        for at in range(0, len(self._shared), 4):
            row, owner, entity, line = self._shared[at : at + 4]
            both = f"This mention is one of {names[owner]} and of {names[entity]}"
            if self._types[owner] != self._types[entity]:
                text = f"{both}, which have the types {self.type(owner)} and {self.type(entity)}."
                self._report.add(
                    "consistency.two_types", line, f"{text} It is kept for {names[owner]} only."
                )
                self.mentions.remove(row)
            elif (first := self.link(owner)) != (second := self.link(entity)) and first and second:
                text = (
                    f"{both}, which have the links {quote(first)} and {quote(second)}."
                    " Both are kept."
                )
                self._report.add("consistency.links", line, text)


def outside_sentence(view: DocumentView, span: Span) -> str:
    """Return the sentence that a span is empty or does not lie inside the text."""
    if span[0] >= span[1]:
        return "The span ends before it begins. The line is dropped."
    return (
        f"The span lies outside the document, whose text has {len(view.text):,} characters. The"
        " line is dropped."
    )


def _gloss_mismatch_text(view: DocumentView, span: Span, gloss: str) -> str:
    found = quote(view.text[span[0] : span[1]])
    hint = ""
    if is_same_text(view.text[span[0] : span[1] - 1], gloss):
        hint = " In this format the end is the last character, not the one after it."
    elif (at := view.text.find(gloss)) >= 0 and view.text.find(gloss, at + 1) < 0:
        hint = f" It stands at {at}-{at + len(gloss) - 1}."
    return f"The text at this place is {found}, not {quote(gloss)}.{hint} The line is dropped."
