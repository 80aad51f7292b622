"""Defines the payload of a question about a whole document, and checks the mentions in an answer.

All spans are half-open, in characters of the document (code points); they begin and end with
tokens.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from functools import cached_property
from itertools import pairwise
from typing import Any, NotRequired, TypedDict

from annotation.interfaces.base import BadAnswer
from annotation.interfaces.shared.fields import GARBLED, json_field, text_field

Span = tuple[int, int]
NO_VALUE = "none"  # a date that cannot be told, an entity without a page
LONGEST_TITLE = 255  # bytes, as in MediaWiki
MOST_TOKENS = 60  # of one mention: more is a slip of the finger
DATE = re.compile(r"(\d{4})(?:-(\d{2})(?:-(\d{2}))?)?", re.ASCII)
NOT_IN_TITLES = re.compile(r"[\[\]{}|<>#\x00-\x1f]")


class TypePayload(TypedDict):
    """A type of mention, as the page shows it to readers. `value` is the kind of value of its
    mentions (None for entities). In `example` the mention is in [square brackets]. `cues` are
    lowercase words with which such mentions begin.
    """

    name: str
    description: str
    value: str | None
    example: NotRequired[str]
    cues: NotRequired[list[str]]


@dataclass(frozen=True)
class CheckedMention:
    """A mention that one reader marked, after validation. `value` is set for dates, `link` is the
    Wikipedia title of an entity.
    """

    span: Span
    type: str
    canonical: Span
    value: str = ""
    link: str = ""

    def as_json(self) -> dict[str, Any]:
        fields: dict[str, Any] = {
            "span": list(self.span),
            "type": self.type,
            "canonical": list(self.canonical),
        }
        return fields | ({"value": self.value} if self.value else {})

    @classmethod
    def from_json(
        cls, data: Mapping[str, Any], links: Mapping[str, str] | None = None
    ) -> CheckedMention:
        """Return the mention that was stored as JSON, with its title from `links`."""
        (begin, end), (first_of_canonical, last_of_canonical) = data["span"], data["canonical"]
        link = (links or {}).get(f"{begin}-{end}", "")
        return cls(
            (begin, end),
            data["type"],
            (first_of_canonical, last_of_canonical),
            data.get("value", ""),
            link,
        )


@dataclass(frozen=True)
class Reading:
    """The parsed payload of a question about a whole document."""

    data: Mapping[str, Any]

    @property
    def text(self) -> str:
        return str(self.data["text"])

    @cached_property
    def tokens(self) -> list[Span]:
        return [(begin, end) for begin, end in self.data["tokens"]]

    @cached_property
    def types(self) -> dict[str, TypePayload]:
        return {type_payload["name"]: type_payload for type_payload in self.data["types"]}

    @cached_property
    def _token_starts(self) -> dict[int, int]:
        return {begin: token for token, (begin, _) in enumerate(self.tokens)}

    @cached_property
    def _token_ends(self) -> dict[int, int]:
        return {end: token + 1 for token, (_, end) in enumerate(self.tokens)}

    def gloss(self, span: Span) -> str:
        return self.text[span[0] : span[1]]

    def token_aligned_span(self, span: Span) -> Span | None:
        """Return the span in tokens; None if it does not begin and end at token boundaries."""
        begin, end = self._token_starts.get(span[0]), self._token_ends.get(span[1])
        return (begin, end) if begin is not None and end is not None and begin < end else None

    def is_linkable(self, type_name: str) -> bool:
        return self.types[type_name]["value"] is None

    def read_mentions(self, raw: Mapping[str, Any]) -> list[CheckedMention]:
        """Return the mentions in a raw answer, in the order of the text. Raises BadAnswer."""
        entries = json_field(raw, "mentions", list)
        if not entries and not text_field(raw, "nothing"):
            raise BadAnswer("Nothing is marked yet. If there is nothing to mark, tick the box.")
        marked_spans = sorted(
            (self._parse_mention(row) for row in entries), key=lambda mention: mention.span
        )
        for earlier, later in pairwise(marked_spans):
            if later.span[0] < earlier.span[1]:
                raise BadAnswer(
                    f"“{self.gloss(earlier.span)}” and “{self.gloss(later.span)}” overlap. Keep"
                    " one of them."
                )
        by_span = {mention.span: mention for mention in marked_spans}
        return [self._add_title(mention, by_span) for mention in marked_spans]

    def _parse_mention(self, row: Any) -> CheckedMention:
        if not isinstance(row, dict):
            raise BadAnswer(GARBLED)
        span = _parse_span(row.get("span"))
        tokens = self.token_aligned_span(span)
        if tokens is None:
            raise BadAnswer(
                f"A mark at {span[0]}–{span[1]} does not begin and end with words of this document."
            )
        gloss = self.gloss(span)
        if tokens[1] - tokens[0] > MOST_TOKENS:
            raise BadAnswer(
                f"“{gloss[:40]} …” is {tokens[1] - tokens[0]} words long; at most {MOST_TOKENS} are"
                " a name."
            )
        kind = row.get("type")
        if not isinstance(kind, str) or not kind:
            raise BadAnswer(f"Say what “{gloss}” is: a person, a place …")
        if kind not in self.types:
            raise BadAnswer(f"“{gloss}” has the type “{kind[:40]}”, which is not one of this page.")
        canonical = (
            _parse_span(row["canonical"])
            if row.get("canonical") and self.is_linkable(kind)
            else span
        )
        return CheckedMention(
            span, kind, canonical, self._parse_value(row, kind, gloss), _parse_title(row, gloss)
        )

    def _parse_value(self, row: Mapping[str, Any], kind: str, gloss: str) -> str:
        value = row.get("value") or ""
        if self.types[kind]["value"] != "date":
            return ""
        if not isinstance(value, str) or not value.strip():
            raise BadAnswer(
                f"Write the date of “{gloss}” as 2013-03 or 2013-03-25, or say that it"
                " cannot be told."
            )
        value = value.strip()
        if value != NO_VALUE and not is_date(value):
            raise BadAnswer(
                f"“{value[:40]}” is not a date of “{gloss}”: write it as 2013,"
                " 2013-03 or 2013-03-25."
            )
        return value

    def _add_title(
        self, mention: CheckedMention, by_span: Mapping[Span, CheckedMention]
    ) -> CheckedMention:
        """Return the mention with the title of its canonical mention. Raises BadAnswer."""
        name = by_span.get(mention.canonical)
        if name is None or name.canonical != name.span:
            raise BadAnswer(
                f"“{self.gloss(mention.span)}” is said to be the same as something that is not"
                " marked."
            )
        if name.type != mention.type:
            words = self.types[mention.type]["name"], self.types[name.type]["name"]
            raise BadAnswer(
                f"“{self.gloss(mention.span)}” is marked {words[0]}, but it is said to be the same"
                f" as “{self.gloss(name.span)}”, which is marked {words[1]}."
            )
        link = name.link if self.is_linkable(mention.type) else ""
        return CheckedMention(mention.span, mention.type, mention.canonical, mention.value, link)


def is_date(value: str) -> bool:
    """Return whether a text is a valid year, month or day: 2013, 2013-03, 2013-03-25."""
    parts = DATE.fullmatch(value)
    if parts is None:
        return False
    year, month, day = (int(part) if part else 1 for part in parts.groups())
    try:
        date(year, month, day)
    except ValueError:
        return False
    return True


def _parse_span(value: Any) -> Span:
    if (
        not isinstance(value, Sequence)
        or len(value) != 2
        or not all(type(end) is int for end in value)
    ):
        raise BadAnswer(GARBLED)
    return value[0], value[1]


def _parse_title(row: Mapping[str, Any], gloss: str) -> str:
    link = row.get("link") or ""
    if not isinstance(link, str):
        raise BadAnswer(GARBLED)
    title = " ".join(link.replace("_", " ").split())
    if NOT_IN_TITLES.search(title) or len(title.encode()) > LONGEST_TITLE:
        raise BadAnswer(f"“{title[:60]}” cannot be the title of a Wikipedia page, for “{gloss}”.")
    return title
