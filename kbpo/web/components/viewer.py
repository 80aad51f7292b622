"""Renders a document with marked spans as HTML. All text is escaped here."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from html import escape
from typing import Literal

from django.utils.safestring import SafeString, mark_safe

Role = Literal["subject", "object", "provenance", "other", "entity"]
NAME: Role = "entity"
"""The role of a name in a document that is read in full: with a number and a type"""

BADGES: Mapping[str, str] = {"subject": "A", "object": "B"}


@dataclass(frozen=True)
class Span:
    """Characters `start` to `end` (exclusive) of a text, with their role on the page.

    `number` and `type` belong to the role entity: a running number for each entity and the type of
    its mention. `first` and `last` are whether this piece begins or ends the whole mark; a mark
    that crosses another is cut in two.
    """

    start: int
    end: int
    role: Role
    badge: str = ""
    number: int | None = None
    type: str = ""
    key: str = ""
    last: bool = True

    @property
    def order(self) -> tuple[int, int, bool]:
        """Return the sort key that puts outer marks first: by start, then longer marks, then marks
        of provenance.
        """
        return self.start, -self.end, self.role != "provenance"


def document_html(
    text: str,
    spans: Iterable[Span | tuple[int, int, Role]] = (),
    window: tuple[int, int] | None = None,
) -> SafeString:
    """Return a text, or a window of it, with nested marks; an ellipsis stands for the omitted
    parts. Raises ValueError for a span that is empty or outside the text.
    """
    start, end = window if window is not None else (0, len(text))
    start, end = max(0, start), min(len(text), end)
    inside = []
    for span in (one if isinstance(one, Span) else Span(*one) for one in spans):
        if not 0 <= span.start < span.end <= len(text):
            raise ValueError(
                f"span {span.start}-{span.end} does not fit a text of {len(text)} characters"
            )
        if span.start < end and span.end > start:
            inside.append(replace(span, start=max(span.start, start), end=min(span.end, end)))
    classes = "doc has-prov" if any(span.role == "provenance" for span in inside) else "doc"
    before = '<span class="cut">… </span>' if start > 0 else ""
    after = '<span class="cut"> …</span>' if end < len(text) else ""
    marked = _mark_spans(text, start, end, inside)
    return mark_safe(f'<div class="{classes}">{before}{marked}{after}</div>')


def _mark_spans(text: str, start: int, end: int, spans: list[Span]) -> str:
    pieces, position = [], start
    waiting = sorted(spans, key=lambda span: span.order)
    while waiting:
        outer, *rest = waiting
        within, after = _cut_spans(rest, outer.end)
        pieces.append(escape(text[position : outer.start]))
        pieces.append(_mark_html(outer, _mark_spans(text, outer.start, outer.end, within)))
        position = outer.end
        waiting = sorted(after, key=lambda span: span.order)
    pieces.append(escape(text[position:end]))
    return "".join(pieces)


def _cut_spans(spans: Iterable[Span], position: int) -> tuple[list[Span], list[Span]]:
    """Return the pieces of spans before a position and after it."""
    before, after = [], []
    for span in spans:
        if span.start >= position:
            after.append(span)
        elif span.end <= position:
            before.append(span)
        else:
            before.append(replace(span, end=position, last=False))
            after.append(replace(span, start=position))
    return before, after


def _mark_html(span: Span, inner: str) -> str:
    if span.role == "provenance":
        return f'<span class="prov">{inner}</span>'
    attributes = f'class="m-{span.role}'
    if span.role == NAME:
        attributes += f" {type_class(span.type)}"
    attributes += '"'
    # Badges are drawn by the style sheet from attributes, so that the text of the page stays the
    # text of the document.
    badge = span.badge or BADGES.get(span.role, "")
    if badge and span.last:
        attributes += f' data-badge="{escape(badge)}"'
    if span.number is not None and span.last:
        attributes += f' data-number="{span.number}"'
    if span.key:
        attributes += f' data-span="{escape(span.key)}"'
    return f"<mark {attributes}>{inner}</mark>"


def type_class(mention_type: str) -> str:
    """Return the CSS class of a mention type: “PER” is “t-per”, unknown types “t-misc”."""
    types = {"per", "org", "loc", "gpe", "date", "time", "num", "misc"}
    name = mention_type.lower()
    return f"t-{name}" if name in types else "t-misc"


def line_html(line: str, start: int | None = None, end: int | None = None) -> SafeString:
    """Return a line of an uploaded file with the erroneous part underlined."""
    start, end = max(0, start or 0), min(len(line), end or 0)
    if start >= end:
        return mark_safe(escape(line))
    return mark_safe(
        f'{escape(line[:start])}<span class="culprit">{escape(line[start:end])}</span>'
        f"{escape(line[end:])}"
    )
