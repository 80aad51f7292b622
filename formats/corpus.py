"""The documents of a corpus file: JSON Lines, one document a line, checked and completed."""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import date
from typing import Any
from unicodedata import normalize

from formats.messages import Report, quote
from formats.opening import Limits, Objects
from formats.splitting import Span, sentence_spans, token_spans

_SURROGATE_OR_NUL = re.compile("[\x00\ud800-\udfff]")
_BAD_ID = re.compile(r"[\s,\x00-\x1f\ud800-\udfff]")
_KEYS = frozenset({"id", "title", "date", "text", "tokens", "sentences", "part"})
PARTS = (None, "", "dev", "test")


@dataclass(frozen=True, slots=True)
class DocumentRecord:
    """One document; tokens and sentences are half-open spans of characters in the text."""

    id: str
    title: str
    date: str | None
    text: str
    tokens: list[Span]
    sentences: list[Span]
    line: int
    part: str = ""
    """"dev" or "test"; empty if the file does not say"""


class _Bad(Exception):
    """Raised for a defect because of which the document is dropped; has a code and a sentence."""

    def __init__(self, code: str, text: str) -> None:
        super().__init__(text)
        self.code = code


def read_corpus(
    lines: Iterable[tuple[int, str]], limits: Limits, report: Report
) -> Iterator[DocumentRecord]:
    """Yield the usable documents of a corpus. A document with an error is reported with its line,
    and dropped.
    """
    first_lines: dict[str, int] = {}
    unknown_keys: set[str] = set()
    objects = Objects(report)
    for number, line in lines:
        if not line or line.isspace():
            continue
        data = objects.parse(number, line)
        if data is None:
            continue
        try:
            record = _parse_record(data, number, limits, report, line)
            if record.id in first_lines:
                raise _Bad(
                    "consistency.document_twice",
                    f"The document id {quote(record.id)} is that of line "
                    f"{first_lines[record.id]} already. The first document is kept.",
                )
        except _Bad as defect:
            report.add(defect.code, number, str(defect), line)
            continue
        for key in data.keys() - _KEYS - unknown_keys:
            unknown_keys.add(key)
            report.add(
                "syntax.key_unknown",
                number,
                f"The key {quote(key)} is not known. It is ignored, here and in all further lines.",
                line,
            )
        first_lines[record.id] = number
        yield record
    objects.finish()


def _parse_record(
    data: dict[str, Any], number: int, limits: Limits, report: Report, line: str
) -> DocumentRecord:
    for key in ("id", "text"):
        if key not in data:
            raise _Bad("syntax.key_missing", f"The document has no {key}. It is dropped.")
    identifier, text, title = data["id"], data["text"], data.get("title") or ""
    if (
        not isinstance(identifier, str)
        or not identifier
        or _BAD_ID.search(identifier)
        or len(identifier) > 200
    ):
        raise _Bad(
            "syntax.value",
            "The id of a document is a string of at most 200 characters without white space "
            "and commas. The document is dropped.",
        )
    if not isinstance(text, str) or not text.strip() or not isinstance(title, str):
        raise _Bad(
            "syntax.value",
            f"Title and text of {quote(identifier)} must be strings, and the text not empty. "
            "The document is dropped.",
        )
    if _SURROGATE_OR_NUL.search(text) or _SURROGATE_OR_NUL.search(title):
        raise _Bad(
            "syntax.control",
            f"The text of {quote(identifier)} holds a character that no text has (NUL or "
            "half a surrogate pair). The document is dropped.",
        )
    if len(text) > limits.document_characters:
        raise _Bad(
            "limits.document",
            f"The text of {quote(identifier)} has {len(text):,} characters; allowed are "
            f"{limits.document_characters:,}. The document is dropped.",
        )
    tokens, sentences = _tokens_and_sentences(data, identifier, text)
    identifier = normalize("NFC", identifier)
    part = data.get("part")
    if part not in PARTS:
        raise _Bad(
            "syntax.value",
            f"The part of {quote(identifier)} is “dev” or “test”. The document is dropped.",
        )
    return DocumentRecord(
        identifier,
        title,
        _parse_date(data, number, report, line),
        text,
        tokens,
        sentences,
        number,
        part or "",
    )


def _parse_date(data: dict[str, Any], number: int, report: Report, line: str) -> str | None:
    value = data.get("date")
    if value is None or value == "":
        return None
    try:
        return date.fromisoformat(value).isoformat()
    except (TypeError, ValueError):
        text = (
            f"The date {quote(str(value))} is not of the form 2013-03-17. The document is kept"
            " without a date."
        )
        report.add("syntax.date", number, text, line)
        return None


def _tokens_and_sentences(
    data: dict[str, Any], identifier: str, text: str
) -> tuple[list[Span], list[Span]]:
    """Return tokens and sentences, as given or as found in the text."""
    given, sentences = (
        _parse_spans(data, "tokens", identifier, text),
        _parse_spans(data, "sentences", identifier, text),
    )
    if sentences is None:
        sentences = sentence_spans(text)
        if given:
            sentences = _join_split_sentences(sentences, given)
    tokens = given
    if tokens is None:
        tokens = [token for begin, end in sentences for token in token_spans(text, begin, end)]
    else:
        _check_straddling(tokens, sentences, identifier)
    return tokens, sentences


def _parse_spans(data: dict[str, Any], key: str, identifier: str, text: str) -> list[Span] | None:
    """Return the checked spans under a key of the document, None if there are none."""
    values = data.get(key)
    if values is None:
        return None
    if not isinstance(values, list):
        raise _Bad(
            "syntax.value",
            f"The {key} of {quote(identifier)} are not a list of [begin, end]. The document is "
            "dropped.",
        )
    spans, last, length = [], 0, len(text)
    for value in values:
        span = parse_span(value)
        if span is None:
            raise _Bad(
                "syntax.offsets",
                f"{quote(str(value))} in the {key} of {quote(identifier)} is no pair "
                "[begin, end] of numbers. The document is dropped.",
            )
        begin, end = span
        if not 0 <= begin < end <= length:
            raise _Bad(
                "reference.offsets",
                f"[{begin}, {end}] in the {key} of {quote(identifier)} is empty or lies "
                f"outside the text, which has {length:,} characters. The document is dropped.",
            )
        if begin < last:
            raise _Bad(
                "consistency.order",
                f"[{begin}, {end}] in the {key} of {quote(identifier)} begins before the "
                "one before it ends. The document is dropped.",
            )
        last = end
        spans.append(span)
    return spans or None


def parse_span(value: object) -> Span | None:
    """Return the pair of whole numbers in a JSON value, or None."""
    if (
        isinstance(value, list)
        and len(value) == 2
        and type(value[0]) is int
        and type(value[1]) is int
    ):
        return value[0], value[1]
    return None


def _join_split_sentences(sentences: list[Span], tokens: list[Span]) -> list[Span]:
    """Join our own sentences where a given token spans the boundary between two, and return
    them.
    """
    mended: list[Span] = []
    at = 0
    for begin, end in sentences:
        if mended:
            last = mended[-1][1]
            while at < len(tokens) and tokens[at][1] <= last:
                at += 1
            if at < len(tokens) and tokens[at][0] < last:
                mended[-1] = (mended[-1][0], end)
                continue
        mended.append((begin, end))
    return mended


def _check_straddling(tokens: list[Span], sentences: list[Span], identifier: str) -> None:
    at = 0
    for begin, end in tokens:
        while at < len(sentences) and sentences[at][1] <= begin:
            at += 1
        if at < len(sentences) and end > sentences[at][1]:
            raise _Bad(
                "consistency.straddle",
                f"The token [{begin}, {end}] of {quote(identifier)} straddles the end "
                f"of the sentence {list(sentences[at])}. The document is dropped.",
            )
