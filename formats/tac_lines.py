"""The syntax of one line of a TAC KBP ColdStart knowledge base: columns, quoted strings,
provenance, confidence.
"""

import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple
from unicodedata import normalize

from formats.messages import Report, column, quoted
from formats.splitting import Span
from formats.tables import number_of

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
"""The predicates of mention lines, and whether such a mention is a name."""

Spans = dict[str, list[Span]]


class Provenance(NamedTuple):
    """Where a relation is stated."""

    spans: Spans
    """By document, in the order of the line"""
    place: tuple[str, Span] | None
    """Where the object stands, in files of 2016 and later: `PLACE;JUSTIFICATION,…`"""


EVENT = ":Event_"
_REALIS = (".actual", ".generic", ".other")


def is_beyond_relations(fields: Sequence[str]) -> bool:
    """Return whether a line is about events or asserts a mention of one (Cold Start++ of 2016 and
    2017), which are not evaluated here.
    """
    return (
        fields[0].startswith(EVENT)
        or fields[1].endswith(_REALIS)
        or (len(fields) > 2 and fields[2].startswith(EVENT))
    )


REMEMBERED, SHORT = 2048, 200
"""Provenances of a file that are kept while it is read, and characters of the longest of them: long
ones hardly come again, and thousands of them would fill the memory
"""


def content(lines: Iterator[tuple[int, str]], report: Report) -> Iterator[tuple[int, str]]:
    """Return the lines that say something, after the run id: no comments, no blank lines; composed
    (NFC).
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
    """Return the content of a quoted string, None if the field is none."""
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
    """Return the document and the half-open span of `DOC:begin-end` with its inclusive end; None if
    it cannot be read.
    """
    match = _SPAN.fullmatch(field)
    if match is None:
        return None
    document, begin, end = match.groups()
    return document, (int(begin), int(end) + 1)


def parse_provenance(field: str) -> Provenance | None:
    """Return the spans, with the object's place before a semicolon; None if one cannot be read."""
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
    """Return the number from 0 to 1, or None."""
    value = number_of(field)
    return value if value is not None and 0.0 <= value <= 1.0 else None


class LineReader:
    """Reads the columns of a line with a message for each that cannot be read."""

    def __init__(self, report: Report) -> None:
        self.report = report
        self._provenances: dict[str, Provenance | None] = {}

    def wrong_columns(self, number: int, line: str, expected: str, found: int) -> None:
        """Report that the line has the wrong number of columns."""
        columns = "column" if found == 1 else "columns"
        hint = (
            " (columns are separated by tabs, not by blanks)"
            if "\t" not in line and " " in line
            else ""
        )
        text = f"This line has {found} {columns}, but {expected} are expected{hint}. It is dropped."
        self.report.add("syntax.columns", number, text, line)

    def string(self, number: int, line: str, fields: list[str], index: int) -> str | None:
        """Return the quoted string in a column, or None after a message."""
        value = parse_string(fields[index])
        if value is None:
            text = (
                f'{quoted(fields[index])} is no string in double quotes with \\" and \\\\ as'
                " escapes, or it is empty. The line is dropped."
            )
            self.report.add("syntax.string", number, text, line, column(line, index))
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
        """Return the provenance in a column, or None after a message. Not to be changed: relations
        of one pair of mentions have the same provenance, which is read once.
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
        text = f"{quoted(fields[index])} cannot be read as DOCUMENT:begin-end. The line is dropped."
        self.report.add("syntax.offsets", number, text, line, column(line, index))

    def confidence(self, number: int, line: str, fields: list[str], index: int) -> float | None:
        """Return the confidence in a column that may be missing; None, after a message, if it is no
        number from 0 to 1.
        """
        if len(fields) <= index:
            return None
        value = parse_confidence(fields[index])
        if value is None:
            text = (
                f"The confidence {quoted(fields[index])} is no number from 0 to 1. The line is kept"
                " without it."
            )
            self.report.add("syntax.confidence", number, text, line, column(line, index))
        return value
