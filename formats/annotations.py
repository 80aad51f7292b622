"""Reads exhaustive annotations of documents: the mentions and the relations that hold, as
tab-separated tables.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice

from formats.lookup import CorpusLookup, DocumentView
from formats.mentions import CompactMap
from formats.messages import Report, column_position, quote
from formats.occurrences import is_same_text
from formats.schema import NO_RELATION, Schema
from formats.splitting import Span
from formats.tables import open_table

Lines = Iterator[tuple[int, str]]

MENTION_COLUMNS = (
    "doc_id",
    "begin",
    "end",
    "type",
    "entity",
    "gloss",
    "canonical_begin",
    "canonical_end",
)
GOLD_COLUMNS = (
    "doc_id",
    "subj_begin",
    "subj_end",
    "predicate",
    "obj_begin",
    "obj_end",
    "prov_begin",
    "prov_end",
)
LINK = "link"  # a last column of `mentions.tsv` that may be missing
BATCH = 1_000
_MASK = (1 << 60) - 1

_OFFSET = re.compile(r"\d{1,9}", re.ASCII)


@dataclass(frozen=True, slots=True)
class MentionRecord:
    """A mention that an annotator found, with the entity of its document that the mention refers
    to.
    """

    document: str
    span: Span
    type: str
    entity: str
    canonical: Span
    line: int
    link: str = ""


@dataclass(frozen=True, slots=True)
class GoldRecord:
    """A relation that holds between two mentions, in canonical direction."""

    document: str
    subject: Span
    predicate: str
    object: Span
    provenance: Span
    line: int


def read_mentions(
    lines: Lines, corpus: CorpusLookup, schema: Schema, report: Report
) -> Iterator[MentionRecord]:
    """Yield the mentions of a `mentions.tsv`; messages go to the report."""
    seen = CompactMap()
    for number, line, row, view in _valid_rows(lines, MENTION_COLUMNS, corpus, report, (LINK,)):
        spans = _parse_spans(number, line, row, ((1, 2), (6, 7)), view, report)
        if spans is None:
            continue
        span, canonical = spans
        if row[3] not in schema.entity_types:
            text = f"The schema has no type {quote(row[3])}. The line is dropped."
            report.add("schema.unknown_type", number, text, line, column_position(line, 3))
        elif not is_same_text(view.text[span[0] : span[1]], row[5]):
            found = quote(view.text[span[0] : span[1]])
            text = f"The text at this place is {found}, not {quote(row[5])}. The line is dropped."
            report.add("reference.gloss", number, text, line, column_position(line, 5))
        elif (first := seen.add((hash(view.id) & _MASK, *span), number)) != -1:
            text = f"The same mention as on line {first}. The first one is kept."
            report.add("consistency.mention_twice", number, text, line)
        else:
            link = row[8] if len(row) > len(MENTION_COLUMNS) else ""
            yield MentionRecord(view.id, span, row[3], row[4], canonical, number, link)


def read_gold(
    lines: Lines, corpus: CorpusLookup, schema: Schema, report: Report
) -> Iterator[GoldRecord]:
    """Yield the relations of a `gold.tsv`, with inverse predicates turned into canonical direction;
    messages go to the report.
    """
    seen = CompactMap()
    for number, line, row, view in _valid_rows(lines, GOLD_COLUMNS, corpus, report):
        spans = _parse_spans(number, line, row, ((1, 2), (4, 5), (6, 7)), view, report)
        if spans is None:
            continue
        found = schema.canonical_statement(row[3], spans[0], spans[1])
        if found is None and (row[3] in schema.ignored or row[3] == NO_RELATION):
            text = f"{quote(row[3])} is not evaluated here. The line is ignored."
            report.add("schema.ignored_predicate", number, text, line, column_position(line, 3))
        elif found is None:
            text = f"The schema has no predicate {quote(row[3])}. The line is dropped."
            report.add("schema.unknown_predicate", number, text, line, column_position(line, 3))
        elif spans[0] == spans[1]:
            text = "Subject and object are the same mention. The relation is dropped."
            report.add("schema.itself", number, text, line)
        else:
            predicate, subject, object_ = found
            first = seen.add(
                (hash(view.id) & _MASK, *subject, hash(predicate) & _MASK, *object_), number
            )
            if first != -1:
                text = f"Same relation as line {first}. The first one is kept."
                report.add("consistency.duplicate", number, text, line)
                continue
            yield GoldRecord(view.id, subject, predicate, object_, spans[2], number)


def _valid_rows(
    lines: Lines,
    columns: Sequence[str],
    corpus: CorpusLookup,
    report: Report,
    extra_columns: Sequence[str] = (),
) -> Iterator[tuple[int, str, list[str], DocumentView]]:
    """Yield the rows below the header that have the right number of columns and a known document;
    `extra_columns` columns may follow.
    """
    table = open_table(lines, report)
    if table is None:
        return
    names = table.names
    if names not in (list(columns), [*columns, *extra_columns]):
        text = (
            f"The first line must name the columns: {', '.join(columns)}. Nothing of the"
            " file is used."
        )
        report.add("syntax.header", table.header, text, table.line)
        return
    while rows := list(islice(table.rows, BATCH)):
        corpus.prefetch({row[2][0] for row in rows})
        for number, line, row in rows:
            if len(row) != len(names):
                text = (
                    f"This line has {len(row)} columns, but {len(names)} are expected."
                    " It is dropped."
                )
                report.add("syntax.columns", number, text, line)
                continue
            view = corpus.get(row[0])
            if view is None:
                text = f"The document {quote(row[0])} is not in the corpus. The line is dropped."
                report.add("reference.document", number, text, line, column_position(line, 0))
                continue
            yield number, line, row, view


def _parse_spans(
    number: int,
    line: str,
    row: list[str],
    places: Sequence[tuple[int, int]],
    view: DocumentView,
    report: Report,
) -> list[Span] | None:
    """Return the spans in these pairs of columns, or None after a message."""
    spans = []
    for first, last in places:
        culprit = column_position(line, first)[0], column_position(line, last)[1]
        if not (_OFFSET.fullmatch(row[first]) and _OFFSET.fullmatch(row[last])):
            text = (
                f"{quote(row[first])} and {quote(row[last])} cannot be read as offsets. The line"
                " is dropped."
            )
            report.add("syntax.offsets", number, text, line, culprit)
            return None
        span = int(row[first]), int(row[last])
        if not view.contains_span(span):
            text = (
                f"The span {span[0]}-{span[1]} is empty or lies outside the document, whose text"
                f" has {len(view.text):,} characters. The line is dropped."
            )
            report.add("reference.offsets", number, text, line, culprit)
            return None
        spans.append(span)
    return spans
