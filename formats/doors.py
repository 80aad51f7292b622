"""Finds the format ("door") of a submitted file, and reads its claims.

Predictions of DocRED systems are read here: objects with `title`, `h_idx`, `t_idx` and `r`, where
head and tail are numbers of entities in the document (places in its vertexSet), and the relation is
a property of Wikidata.
"""

import re
import shutil
import tempfile
from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import Any, BinaryIO, Literal, cast
from unicodedata import normalize

from formats.checks import ClaimChecks
from formats.json_lines import read_json_lines
from formats.lookup import CorpusLookup, DocumentView
from formats.messages import Report, quote
from formats.opening import Limits, Objects, Source, open_text
from formats.relation import RelationClaim, closest_pair
from formats.schema import Schema
from formats.splitting import Span
from formats.tac_kb import read_tac_kb

BATCH = 1_000
REQUIRED = ("title", "h_idx", "t_idx", "r")
_KNOWN = frozenset({*REQUIRED, "confidence", "evidence"})
NO_ORDER = (
    "The corpus does not say which entity of a document has which number. It must be loaded with a"
    " table of mentions whose column entity has the places in vertexSet, counted from 0. This line"
    " and all like it are dropped."
)

_Parsed = tuple[int, str, dict[str, Any]]


def read_docred(
    lines: Iterator[tuple[int, str]],
    corpus: CorpusLookup,
    schema: Schema,
    limits: Limits,
    report: Report,
) -> Iterator[RelationClaim]:
    """Yield the claims of the lines, in order; messages go to the report.

    A prediction about two entities is about their closest mentions, as in the TAC format.
    """
    checks = ClaimChecks(corpus, schema, limits, report)
    yield from _Predictions(checks).read_claims(lines)
    checks.finish()


class _Predictions:
    """Reads predictions in batches, so that the documents of a batch are fetched together."""

    def __init__(self, checks: ClaimChecks) -> None:
        self._checks = checks
        self._schema = checks.schema
        self._report = checks.report
        self._has_told_order = False
        self._unknown_keys: set[str] = set()

    def read_claims(self, lines: Iterator[tuple[int, str]]) -> Iterator[RelationClaim]:
        objects, batch = Objects(self._report), list[_Parsed]()
        for number, line in lines:
            if not line or line.isspace():
                continue
            if not self._checks.is_within_relation_limit(number):
                return
            data = objects.parse(number, line)
            if data is not None and self._is_usable(number, line, data):
                batch.append((number, line, data))
            if len(batch) >= BATCH:
                yield from self._resolve_all(batch)
                batch.clear()
        if not self._report.fatal:
            yield from self._resolve_all(batch)
        objects.finish()

    def _is_usable(self, number: int, line: str, data: dict[str, Any]) -> bool:
        for key in REQUIRED:
            if key not in data:
                text = f"The key {quote(key)} is missing. The line is dropped."
                self._report.add("syntax.key_missing", number, text, line)
                return False
        for key in sorted(data.keys() - _KNOWN - self._unknown_keys):
            if len(self._unknown_keys) < 100:
                self._unknown_keys.add(key)
                text = f"The key {quote(key)} is not known. It is ignored, here and further on."
                self._report.add("syntax.key_unknown", number, text, line)
        strings = all(isinstance(data[key], str) and data[key] for key in ("title", "r"))
        numbers = all(type(data[key]) is int and data[key] >= 0 for key in ("h_idx", "t_idx"))
        if not (strings and numbers):
            text = "Title and r are strings, h_idx and t_idx numbers from 0. The line is dropped."
            self._report.add("syntax.value", number, text, line)
            return False
        data["title"] = normalize("NFC", data["title"])
        confidence = data.get("confidence")
        is_number = type(confidence) in (int, float) and 0 <= confidence <= 1  # type: ignore[operator]
        if confidence is not None and not is_number:
            text = (
                f"The confidence {quote(str(confidence))} is no number from 0 to 1. The line is"
                " kept without it."
            )
            self._report.add("syntax.confidence", number, text, line)
            data["confidence"] = None
        return True

    def _resolve_all(self, batch: list[_Parsed]) -> Iterator[RelationClaim]:
        self._checks.corpus.prefetch_titles({data["title"] for _, _, data in batch})
        for number, line, data in batch:
            claim = self._resolve_claim(number, line, data)
            if claim is not None and self._checks.accept(claim, False, line):
                yield claim

    def _resolve_claim(self, number: int, line: str, data: dict[str, Any]) -> RelationClaim | None:
        view = self._checks.corpus.get_by_title(data["title"])
        if view is None:
            self._checks.report_unknown_document(data["title"], number, line, (0, len(line)))
            return None
        self._checks.document_number(view.id)
        if not view.entities:
            if not self._has_told_order:
                self._has_told_order = True
                self._report.add("reference.entity_order", number, NO_ORDER, line)
            return None
        subjects = self._entity_mentions(view, data["h_idx"], number, line)
        objects = self._entity_mentions(view, data["t_idx"], number, line) if subjects else None
        if not subjects or not objects:
            return None
        if data["h_idx"] == data["t_idx"]:
            text = "Head and tail are one entity. A relation of an entity to itself is dropped."
            self._report.add("schema.itself", number, text, line)
            return None
        pair = closest_pair(view, subjects, objects)
        if pair is None:
            text = "Head and tail have only one and the same mention. The line is dropped."
            self._report.add("reference.provenance", number, text, line)
            return None
        types = view.mention_types[pair[0]], view.mention_types[pair[1]]
        predicate = self._predicate_of_property(data["r"], *types)
        if predicate is None:
            self._checks.report_unread_predicate(data["r"], number, line, (0, len(line)))
            return None
        if not self._schema.is_allowed(predicate, *types):
            self._checks.report_wrong_types(predicate, *types, number, line)
        confidence = data.get("confidence")
        return RelationClaim(
            view.id,
            pair[0],
            predicate,
            pair[1],
            *types,
            [view.sentence_span_over(*pair)],
            None if confidence is None else float(confidence),
            _first_longest(subjects),
            _first_longest(objects),
            None,
            None,
            None,
            None,
            number,
        )

    def _entity_mentions(
        self, view: DocumentView, entity: int, number: int, line: str
    ) -> Sequence[Span] | None:
        """Return the mentions of the entity with this number, or None after a message."""
        found = view.entities.get(entity)
        if found is None:
            text = (
                f"The document has no entity {entity}, only {min(view.entities)} to"
                f" {max(view.entities)}. The line is dropped."
            )
            self._report.add("reference.entity", number, text, line)
        return found

    def _predicate_of_property(self, name: str, subject_type: str, object_type: str) -> str | None:
        """Return the predicate for a Wikidata property. If several match, prefers one with these
        argument types, then one with this subject type. Returns None if there is none.
        """
        of_property = [one for one in self._schema.predicates.values() if one.wikidata == name]
        if not of_property:
            return name if name in self._schema.predicates else None

        def matches_types(types: Sequence[tuple[str, str]]) -> tuple[bool, bool]:
            is_subject = any(first == subject_type for first, _ in types)
            return (subject_type, object_type) in types, is_subject

        return max(of_property, key=lambda one: matches_types(one.types)).name


def _first_longest(mentions: Sequence[Span]) -> Span:
    """Return the first longest mention."""
    return max(mentions, key=lambda span: (span[1] - span[0], -span[0]))


Door = Literal["tac_kb", "mention_level", "json_lines", "docred"]
SNIFFED = 200

_MENTION_LEVEL = re.compile(r".+:\d+-\d+\t")


def detect_format(lines: Iterator[str]) -> Door | None:
    """Recognise the format (door) of a file by its first lines, and return it; None if none
    fits.
    """
    for line in lines:
        if not line.strip() or line.startswith("#"):
            continue
        if line.lstrip().startswith("{"):
            return "docred" if '"h_idx"' in line else "json_lines"
        if line.startswith(":"):
            return "tac_kb"
        if _MENTION_LEVEL.match(line):
            return "mention_level"
        if line.count("\t") >= 2:
            return "tac_kb"  # probably a broken line among entity lines
    return None


def read_claims(
    source: Source, corpus: CorpusLookup, schema: Schema, limits: Limits, report: Report
) -> Iterator[RelationClaim]:
    """Yield the usable claims of a submitted file, in line order; messages go to the report.

    Callers must not commit anything before the iterator has ended with `report.fatal` still False.
    """
    reopen, close = _reopener_and_closer(source)
    try:

        def open_lines(message_report: Report) -> Iterator[tuple[int, str]]:
            return open_text(reopen(), limits, message_report)

        preview = Report(0)
        door = detect_format(line for _, line in islice(open_lines(preview), SNIFFED))
        if door == "tac_kb":
            yield from read_tac_kb(open_lines, corpus, schema, limits, report)
        elif door == "json_lines":
            yield from read_json_lines(open_lines(report), corpus, schema, limits, report)
        elif door == "docred":
            yield from read_docred(open_lines(report), corpus, schema, limits, report)
        else:
            _report_unreadable(open_lines(report), door, report)
    finally:
        close()


def _report_unreadable(lines: Iterator[tuple[int, str]], door: Door | None, report: Report) -> None:
    """Report why the file cannot be read: an error in its text if there is one, else in its
    format.
    """
    first = next(lines, None)
    if report.fatal:
        return
    for _ in lines:
        if report.fatal:
            return
    line = first[1] if first else ""
    if door == "mention_level":
        text = (
            "This is a mention-level file. The service reads TAC KBP knowledge bases and JSON Lines"
            " so far."
        )
    elif line.lstrip().startswith("["):
        text = (
            "This looks like a JSON array of something else than objects. JSON Lines have one"
            " object a line."
        )
    elif line.lstrip().startswith("<"):
        text = (
            "This looks like XML or a page of the web, not like a knowledge base. Nothing of"
            " it is used."
        )
    else:
        text = (
            "The file is neither a TAC KBP knowledge base (tab-separated) nor JSON Lines. Nothing"
            " of it is used."
        )
    report.add("syntax.format", first[0] if first else 0, text, line)


def _reopener_and_closer(source: Source) -> tuple[Callable[[], Source], Callable[[], None]]:
    """Return a function that opens the source from its beginning each time, and a function that
    cleans up.
    """
    if isinstance(source, str | Path):
        return lambda: source, lambda: None
    stream: BinaryIO = source
    close: Callable[[], None] = _do_nothing
    if not stream.seekable():
        spool = tempfile.TemporaryFile()  # noqa: SIM115 - closed by the function that is returned
        shutil.copyfileobj(stream, spool)
        stream, close = cast(BinaryIO, spool), spool.close
    start = stream.tell() if stream is source else 0

    def rewind() -> BinaryIO:
        stream.seek(start)
        return stream

    return rewind, close


def _do_nothing() -> None:
    """Do nothing; the caller closes its own stream."""
