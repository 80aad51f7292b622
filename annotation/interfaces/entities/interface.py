"""The entities interface: every name in a document, its type, the entity that it names, its
Wikipedia title.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from datetime import date
from decimal import Decimal
from typing import TYPE_CHECKING, Any, ClassVar

from annotation.interfaces.base import (
    AggregatedLabel,
    Agreement,
    Interface,
    Judgment,
    ParsedResponse,
    Statement,
    Terms,
    Unit,
)
from annotation.interfaces.shared.fields import (
    flag_of,
    flag_shown,
    flag_statement,
    flagged_label,
    text_of,
)
from annotation.interfaces.shared.mentions import SettledMention, settle_mentions
from annotation.interfaces.shared.reading import NO_VALUE, CheckedMention, Reading, is_date
from kbpo.instances.targets import Place, targets_at
from kbpo.tracks.kbp.merge import CLUSTER, TITLED, UNDECIDED
from kbpo.tracks.recall import NAME

if TYPE_CHECKING:
    from annotation.models import Question, Response

METHOD = "token_majority"
SOURCE = "document"
NAMES = {
    "PER": ("Person", "p"), "ORG": ("Organisation", "o"), "GPE": ("State or city", "g"),
    "LOC": ("Place", "l"),
    "FAC": ("Building", "b"), "DATE": ("Date", "t"), "TIME": ("Date", "t"), "NUM": ("Number", "v"),
    "NUMBER": ("Number", "v"), "TITLE": ("Title or job", "i"), "STRING": ("Other words", "s"),
    "MISC": ("Other name", "m"),
}  # fmt: skip
TAKEN = set("jzywcfenudx")
"""Keys with another function on the page"""


class Entities(Interface):
    """Asks for all names in a document, their types, and which of them mean the same."""

    name: ClassVar[str] = "entities"
    title: ClassVar[str] = "Every name in a document"
    terms: ClassVar[Terms] = Terms(
        "Mark the names, dates and titles in a news article",
        Decimal("2.60"),
        seconds=780,
        seconds_each=2.25,  # a token
        lease_minutes=240,
    )
    reads: ClassVar[str] = NAME
    agreement: ClassVar[Agreement] = Agreement(
        tolerance=0.3,
        names={
            "mention": "Names and types",
            "canonical": "Names: refers to",
            "link": "Names: title",
        },
        # Chaganty 2018, section 3.5.3
        published={"mention": ("κ", 0.83), "canonical": ("κ", 0.75), "link": ("κ", 0.75)},
    )

    def render(self, question: Question, answer: Mapping[str, Any] | None = None) -> dict[str, Any]:
        reading, left = Reading(question.payload), answer or {}
        document = reading.data["document"]
        return {
            "key": document["key"],
            "title": document.get("title") or document["key"],
            "date": add_weekday(document.get("date", "")),
            "words": len(reading.tokens),
            "text": reading.text,
            **self.instructions(question.payload),
            "data": {
                "text": reading.text,
                "tokens": reading.data["tokens"],
                "sentences": reading.data["sentences"],
                "types": describe_types(reading),
                "date": document.get("date", ""),
            },
            "left": {name: text_of(left, name) for name in ("mentions", "read", "nothing")},
            **flag_shown(left),
        }

    def instructions(self, payload: Mapping[str, Any]) -> dict[str, Any]:
        types = describe_types(Reading(payload))
        return {"types": types, "not_asked": payload.get("not_asked", [])}

    def parse(self, question: Question, raw: dict[str, Any]) -> list[ParsedResponse]:
        if (flag := flag_of(raw)) is not None:
            return [ParsedResponse(question.target_id, "flag", flag)]
        mentions = Reading(question.payload).marked(raw)
        links = {
            f"{mention.span[0]}-{mention.span[1]}": mention.link
            for mention in mentions
            if mention.link
        }
        return [
            ParsedResponse(
                question.target_id,
                "mentions",
                {"mentions": [mention.as_json() for mention in mentions]},
            ),
            ParsedResponse(
                question.target_id, "links", links
            ),  # titles are optional: an answer is right without them
        ]

    def aggregate(self, question: Question, responses: Sequence[Response]) -> list[AggregatedLabel]:
        """Return labels of the mentions that most readers found, and one of the document with their
        number.
        """
        if (flag := flagged_label(question, responses, "mentions")) is not None:
            return [flag]
        links = {
            response.assignment_id: response.value
            for response in responses
            if response.criterion == "links"
        }
        readers = [
            [
                CheckedMention.of(mention, links.get(response.assignment_id, {}))
                for mention in response.value["mentions"]
            ]
            for response in responses
            if response.criterion == "mentions"
        ]
        if not readers:
            return []
        mentions = settle_mentions(Reading(question.payload), readers)
        document = question.target.its_document
        places = [Place("mention", document.pk, mention.span) for mention in mentions]
        targets = targets_at(document.corpus, places)
        labels = [
            _label(targets[place], mention) for place, mention in zip(places, mentions, strict=True)
        ]
        worst = max((label.disagreement for label in labels), default=0.0)
        whole = {"mentions": len(mentions)}
        return [
            AggregatedLabel(question.target_id, whole, METHOD, len(readers), worst, SOURCE),
            *labels,
        ]

    def statements(self, question: Question, answer: Sequence[Judgment]) -> list[Statement]:
        """Return a statement for each name with its type, referent and date, then for the
        titles.
        """
        reading = Reading(question.payload)
        words = {
            entity_type["name"]: entity_type["word"].lower()
            for entity_type in describe_types(reading)
        }
        statements = [
            flag_statement(judgment) for judgment in answer if judgment.criterion == "flag"
        ]
        titles = []
        for judgment in answer:
            if judgment.criterion == "mentions":
                marks = [CheckedMention.of(mention) for mention in judgment.value["mentions"]]
                statements += [_mark_statement(reading, mark, words) for mark in marks]
                if not marks:
                    statements.append(Statement(("mention", ""), "Nothing is to be marked"))
            elif judgment.criterion == "links":
                titles += [_title_statement(reading, *link) for link in judgment.value.items()]
        return [*statements, *titles]

    def units(
        self, question: Question, response: Judgment, *, measured: bool = False
    ) -> Iterator[tuple[Unit, str]]:
        """Yield the type of each word, and the referent and title of each mention; `measured` is
        word by word.
        """
        if measured:
            yield from self._units_by_word(question, response)
            return
        if response.criterion == "links":
            yield from ((("link", span), title) for span, title in response.value.items())
            return
        yield ("flag", ""), "yes" if response.criterion == "flag" else "no"
        if response.criterion != "mentions":
            return
        reading = Reading(question.payload)
        marked = [CheckedMention.of(mention) for mention in response.value["mentions"]]
        kinds = [""] * len(reading.tokens)
        for mark in marked:
            begin, end = reading.in_tokens(mark.span) or (0, 0)
            kinds[begin:end] = [mark.type] * (end - begin)
        yield from ((("mention", str(token)), kind) for token, kind in enumerate(kinds))
        for mark in marked:
            if reading.linkable(mark.type):
                yield (
                    ("canonical", f"{mark.span[0]}-{mark.span[1]}"),
                    f"{mark.canonical[0]}-{mark.canonical[1]}",
                )

    def _units_by_word(self, question: Question, response: Judgment) -> Iterator[tuple[Unit, str]]:
        """Yield the units word by word, including the referent and title of the word's mention.
        Words without a mention have a value too, since readers disagree about them.
        """
        reading, words = Reading(question.payload), dict[str, list[str]]()
        if response.criterion == "mentions":
            words["canonical"] = [""] * len(reading.tokens)
        if response.criterion == "links":
            words["link"] = [""] * len(reading.tokens)
        for (subject, which), value in self.units(question, response):
            if subject not in words:
                yield (subject, which), value
                continue
            begin, end = (int(part) for part in which.split("-"))
            first_token, last_token = reading.in_tokens((begin, end)) or (0, 0)
            words[subject][first_token:last_token] = [value] * (last_token - first_token)
        for subject, word_values in words.items():
            yield from (((subject, str(token)), value) for token, value in enumerate(word_values))


def _mark_statement(reading: Reading, mark: CheckedMention, words: Mapping[str, str]) -> Statement:
    says = f"“{reading.gloss(mark.span)}”: {words.get(mark.type, mark.type)}"
    if mark.canonical != mark.span:
        says += f", the same as “{reading.gloss(mark.canonical)}”"
    if mark.value:
        says += ", no date can be told" if mark.value == NO_VALUE else f", {mark.value}"
    key = ("mention", str(mark.span), mark.type, str(mark.canonical), mark.value)
    return Statement(key, says, (mark.span,))


def _title_statement(reading: Reading, span: str, title: str) -> Statement:
    begin, end = (int(part) for part in span.split("-"))
    page = "no page of Wikipedia" if title == NO_VALUE else f"“{title}” in Wikipedia"
    words = f"“{reading.gloss((begin, end))}”: {page}"
    return Statement(("link", span, title), words, ((begin, end),), optional=True)


def _label(target: int, mention: SettledMention) -> AggregatedLabel:
    refers = {UNDECIDED: True, CLUSTER: list(mention.cluster)}
    if not mention.undecided:
        refers = {"canonical": list(mention.cluster)}
    value: dict[str, Any] = {**refers, "type": mention.type, "votes": mention.votes}
    if mention.titled:
        value[TITLED] = mention.titled
    if mention.link is not None:
        value["link"] = mention.link
    if mention.value:
        value["value"] = "" if mention.value == "none" else mention.value
    return AggregatedLabel(target, value, METHOD, mention.n, mention.disagreement, SOURCE)


def describe_types(reading: Reading) -> list[dict[str, Any]]:
    """Return the types for the page: name, word, key, value, description, example in pieces, and
    cues.
    """
    types: list[dict[str, Any]] = []
    used = set(TAKEN)
    for name, type_payload in reading.types.items():
        word, wish = NAMES.get(
            name.upper(),
            (type_payload["description"].split(",")[0].split(":")[0].capitalize() or name, ""),
        )
        if name == "LOC" and "GPE" in reading.types:
            word = "Other place"
        letters = [wish, *name.lower(), *"abhkqr"]
        key = next(
            (
                letter
                for letter in letters
                if letter.isascii() and letter.isalpha() and letter not in used
            ),
            "",
        )
        used.add(key)
        types.append(
            {
                "name": name,
                "word": word,
                "key": key,
                "value": type_payload["value"],
                "about": _description_without_type_name(word, type_payload["description"]),
                "example": _pieces(type_payload.get("example", "")),
                "cues": type_payload.get("cues", []),
            }
        )
    return types


def add_weekday(day: str) -> str:
    """Return a complete date with its weekday, since texts say “Saturday” and mean a date."""
    whole = len(day) == len("2013-03-25") and is_date(day)
    return f"{day}, a {date.fromisoformat(day):%A}" if whole else day


def _description_without_type_name(word: str, description: str) -> str:
    """Return the description of a type without the name of the type, or the first part of that
    name, at its beginning. Return the whole description if it does not begin so.
    """
    lowered = description.lower().replace("z", "s")
    lead = word if lowered.startswith(word.lower()) else re.split("[,:;]", description)[0]
    remainder = description[len(lead) :].lstrip()
    adds = word.lower().startswith(lead.lower().replace("z", "s")) and remainder[:1] in {
        *",:;(",
        "",
    }
    return remainder.strip(",:; ") if adds else description


def _pieces(example: str) -> list[tuple[str, bool]]:
    """Return an example in pieces, each with whether it is a mention (in [square brackets])."""
    pieces = []
    for number, piece in enumerate(re.split(r"[\[\]]", example)):
        if piece:
            pieces.append((piece, number % 2 == 1))
    return pieces
