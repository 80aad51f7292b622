"""The entities of a TAC KBP knowledge base: the first pass over the file, which collects types,
mentions and links.
"""

from array import array
from collections.abc import Iterable

from formats.checks import ClaimChecks
from formats.lookup import DocumentView
from formats.mentions import MentionStore
from formats.messages import column, quoted
from formats.occurrences import same_text
from formats.splitting import Span
from formats.tac_lines import EVENT, MENTIONS, LineReader

BATCH = 1_000
_UNTYPED, _BAD_TYPE = 0, 1

_Mention = tuple[
    int, str, str, str, str, Span, str
]  # line number, line, entity, kind, document, span, gloss


class Entities:
    """The entities of one file, by small numbers, with their types, links and mentions."""

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
                self._checks.report_not_evaluated(fields[1], number, line, column(line, 1))
            elif read is not None:
                read(number, line, line.split("\t", 5))
        self._check_waiting()
        self._check_shared()

    def number(self, entity: str) -> int | None:
        """Return the small number of an entity id, or None if no line but relations names it."""
        return self._numbers.get(entity)

    def type(self, entity: int) -> str | None:
        """Return the type of the entity, or None if it has none that is in the schema."""
        return self._type_names[self._types[entity]]

    def link(self, entity: int) -> str | None:
        """Return the link of the entity, or None."""
        return self._links.get(entity)

    def _number(self, entity: str, number: int, line: str) -> int | None:
        known = self._numbers.get(entity)
        if known is not None:
            return known
        if not entity.startswith(":") or len(entity) < 2 or " " in entity:
            text = (
                f"{quoted(entity)} is not an entity id, which begins with a colon (:E12). The line"
                " is dropped."
            )
            self._report.add("syntax.entity_id", number, text, line, column(line, 0))
            return None
        self._types.append(_UNTYPED)
        self._numbers[entity] = len(self._numbers)
        return len(self._numbers) - 1

    def _read_type(self, number: int, line: str, fields: list[str]) -> None:
        if len(fields) != 3:
            return self._reader.wrong_columns(
                number, line, "3 (entity, type, name of the type)", len(fields)
            )
        entity = self._number(fields[0], number, line)
        if entity is None:
            return None
        try:
            code = self._type_names.index(fields[2], 2)
        except ValueError:
            code = _BAD_TYPE
            known = ", ".join(self._checks.schema.entity_types)
            text = f"The schema has no type {quoted(fields[2])}, only {known}. The line is dropped."
            self._report.add("schema.unknown_type", number, text, line, column(line, 2))
        earlier = self._types[entity]
        if earlier in (_UNTYPED, _BAD_TYPE):
            self._types[entity] = code
        elif earlier != code and code != _BAD_TYPE:
            text = f"{fields[0]} has the type {self._type_names[earlier]} already, which is kept."
            self._report.add("consistency.entity_types", number, text, line, column(line, 2))
        return None

    def _read_link(self, number: int, line: str, fields: list[str]) -> None:
        if len(fields) not in (3, 4):
            return self._reader.wrong_columns(
                number, line, "3 (entity, link, name in quotes)", len(fields)
            )
        entity = self._number(fields[0], number, line)
        link = self._reader.string(number, line, fields, 2) if entity is not None else None
        if entity is None or link is None:
            return None
        earlier = self._links.setdefault(entity, link)
        if earlier != link:
            text = f"{fields[0]} is linked to {quoted(earlier)} already, which is kept."
            self._report.add("consistency.links", number, text, line, column(line, 2))
        return None

    def _read_mention(self, number: int, line: str, fields: list[str]) -> None:
        if len(fields) not in (4, 5):
            expected = "4 (entity, kind of mention, text in quotes, DOCUMENT:begin-end)"
            return self._reader.wrong_columns(number, line, expected, len(fields))
        gloss = self._reader.string(number, line, fields, 2)
        found = self._reader.span(number, line, fields, 3) if gloss is not None else None
        if gloss is None or found is None:
            return None
        self._waiting.append((number, line, fields[0], fields[1], found[0], found[1], gloss))
        if len(self._waiting) >= BATCH:
            self._check_waiting()
        return None

    def _check_waiting(self) -> None:
        """Read a batch of mention lines, whose documents are fetched together."""
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
        entity = self._number(entity_id, number, line)
        if entity is None:
            return
        view = self._checks.corpus.get(document)
        if view is None:
            self._checks.report_unknown_document(document, number, line, column(line, 3))
            return
        if not view.holds(span):
            self._report.add(
                "reference.offsets", number, outside(view, span), line, column(line, 3)
            )
            return
        text = view.text[span[0] : span[1]]
        # A normalized mention has the value as its string (2013-03-17), not what the text says.
        if text != gloss and kind != "normalized_mention" and not same_text(text, gloss):
            self._report.add(
                "reference.gloss", number, _other_gloss(view, span, gloss), line, column(line, 3)
            )
            return
        document_number = self._checks.document_number(document)
        owner = self.mentions.add(entity, document_number, span, MENTIONS[kind])
        if owner != -1:
            self._shared.extend((self.mentions.row, owner, entity, number))
        if kind == "canonical_mention":
            first = self.mentions.add_canonical(entity, document_number, span)
            if first is not None:
                kept = f"{quoted(view.text[first[0] : first[1]])} at {first[0]}-{first[1] - 1}"
                sentence = (
                    f"{entity_id} has the canonical mention {kept} in this document already, which"
                    " is kept."
                )
                self._report.add("consistency.canonicals", number, sentence, line, column(line, 3))

    def _check_shared(self) -> None:
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
                    f"{both}, which have the links {quoted(first)} and {quoted(second)}."
                    " Both are kept."
                )
                self._report.add("consistency.links", line, text)


def outside(view: DocumentView, span: Span) -> str:
    """Return the sentence that a span is empty or does not lie inside the text."""
    if span[0] >= span[1]:
        return "The span ends before it begins. The line is dropped."
    return (
        f"The span lies outside the document, whose text has {len(view.text):,} characters. The"
        " line is dropped."
    )


def _other_gloss(view: DocumentView, span: Span, gloss: str) -> str:
    found = quoted(view.text[span[0] : span[1]])
    hint = ""
    if same_text(view.text[span[0] : span[1] - 1], gloss):
        hint = " In this format the end is the last character, not the one after it."
    elif (at := view.text.find(gloss)) >= 0 and view.text.find(gloss, at + 1) < 0:
        hint = f" It stands at {at}-{at + len(gloss) - 1}."
    return f"The text at this place is {found}, not {quoted(gloss)}.{hint} The line is dropped."
