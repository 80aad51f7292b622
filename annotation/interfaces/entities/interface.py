"""The entities interface: every name in a document, its type, the entity it refers to, and the
entity's Wikipedia title.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
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
    flag_context,
    flag_statement,
    flagged_label,
    parse_flag,
    text_field,
)
from annotation.interfaces.shared.majority import more_than_half
from annotation.interfaces.shared.reading import NO_VALUE, CheckedMention, Reading, Span, is_date
from estimators.votes import token_majority
from kbpo.instances.targets import Place, make_targets
from kbpo.tracks.kbp.merge import CLUSTER, TITLED, UNDECIDED
from kbpo.tracks.recall import NAME

if TYPE_CHECKING:
    from annotation.models import Question, Response


Reader = Sequence[CheckedMention]
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
"""Keys that have another function on the page"""


def majority_typed_spans(reading: Reading, readers: Sequence[Reader]) -> list[tuple[Span, str]]:
    """Return the spans that most readers marked, token by token, with their types, in the order of
    the text.
    """
    marked = [
        (span, reader_number, mark)
        for reader_number, reader in enumerate(readers)
        for mark in reader
        if (span := reading.token_aligned_span(mark.span)) is not None
    ]
    if not marked:
        return []
    spans = token_majority(
        [span for span, _, _ in marked],
        [reader_number for _, reader_number, _ in marked],
        len(reading.tokens),
        len(readers),
    ).spans
    types_of_token: list[list[str]] = [[] for _ in reading.tokens]
    for (begin, end), _, mark in marked:
        for token in range(begin, end):
            types_of_token[token].append(mark.type)
    whole = Counter((span, mark.type) for span, _, mark in marked)
    parts = [
        part
        for begin, end in spans.tolist()
        for part in _split_by_type((begin, end), types_of_token)
    ]
    return [
        (
            (reading.tokens[begin][0], reading.tokens[end - 1][1]),
            _majority_type((begin, end), types_of_token, whole, reading),
        )
        for begin, end in parts
    ]


def _split_by_type(span: Span, types_of_token: Sequence[Sequence[str]]) -> list[Span]:
    """Split a span where the majority type of its tokens changes; a token without a majority joins
    the preceding one.
    """
    cuts, before = [span[0]], None
    for token in range(*span):
        kind = more_than_half(types_of_token[token], len(types_of_token[token]))
        if kind is not None and before is not None and kind != before:
            cuts.append(token)
        before = kind or before
    return list(zip(cuts, [*cuts[1:], span[1]], strict=True))


def _majority_type(
    span: Span,
    types_of_token: Sequence[Sequence[str]],
    whole: Counter[tuple[Span, str]],
    reading: Reading,
) -> str:
    votes = Counter(kind for token in range(*span) for kind in types_of_token[token])
    order = {name: place for place, name in enumerate(reading.types)}
    return min(
        votes,
        key=lambda kind: (-votes[kind], -whole[span, kind], order.get(kind, len(order)), kind),
    )


@dataclass
class SettledMention:
    """A mention that most readers of a document found, with its referent as far as they agree.

    `votes`: canonical mention -> readers who named it. `n`: number of readers who found the
    mention. `cluster`: the representative of its coreferent mentions, which is the canonical
    mention unless that is `undecided`. `titled`: title -> readers who gave it to the entity, “” for
    no page in Wikipedia.
    """

    span: Span
    type: str
    n: int
    disagreement: float
    cluster: Span = (0, 0)
    undecided: bool = False
    value: str = ""
    link: str | None = None
    votes: dict[str, int] = field(default_factory=dict)
    titled: dict[str, int] = field(default_factory=dict)


def majority_mentions(reading: Reading, readers: Sequence[Reader]) -> list[SettledMention]:
    """Return the mentions that most readers marked, in the order of the text."""
    spans = majority_typed_spans(reading, readers)
    marks_of = [
        [_most_overlapping_mention(span, reader) for reader in readers] for span, _ in spans
    ]
    mentions = []
    for (span, kind), marks in zip(spans, marks_of, strict=True):
        present = [mark for mark in marks if mark is not None]
        same = sum(mark.span == span and mark.type == kind for mark in present)
        disagreement = 1 - same / len(readers)
        mentions.append(SettledMention(span, kind, len(present), disagreement, cluster=span))
    for cluster in _coreference_clusters(reading, mentions, marks_of):
        of_cluster = [mentions[number] for number in cluster]
        _name_cluster(reading, mentions, of_cluster, [marks_of[number] for number in cluster])
    for mention, marks in zip(mentions, marks_of, strict=True):
        if reading.types[mention.type]["value"] == "date":
            of_type = [mark for mark in marks if mark is not None and mark.type == mention.type]
            dates = [mark.value for mark in of_type if mark.value]
            mention.value = more_than_half(dates, mention.n) or NO_VALUE
    return mentions


def _most_overlapping_mention(span: Span, reader: Reader) -> CheckedMention | None:
    """Return the mention of a reader that overlaps most with the span; None without one."""
    best = max(
        reader, key=lambda mark: (_overlap_length(mark.span, span), -mark.span[0]), default=None
    )
    return best if best is not None and _overlap_length(best.span, span) > 0 else None


def _overlap_length(left: Span, right: Span) -> int:
    return min(left[1], right[1]) - max(left[0], right[0])


def _coreference_clusters(
    reading: Reading, mentions: list[SettledMention], marks_of: list[list[CheckedMention | None]]
) -> list[list[int]]:
    """Return the clusters of coreferent mentions, by transitive closure, as indices."""
    parent = list(range(len(mentions)))

    def root(number: int) -> int:
        while parent[number] != number:
            parent[number] = parent[parent[number]]
            number = parent[number]
        return number

    for j in range(len(mentions)):
        if not reading.is_linkable(mentions[j].type):
            continue
        for i in range(j):
            if (
                mentions[i].type == mentions[j].type
                and root(i) != root(j)
                and _are_linked_by_majority(marks_of[i], marks_of[j])
            ):
                parent[root(j)] = root(i)
    clusters: dict[int, list[int]] = {}
    for number in range(len(mentions)):
        clusters.setdefault(root(number), []).append(number)
    return list(clusters.values())


def _are_linked_by_majority(
    left: Sequence[CheckedMention | None], right: Sequence[CheckedMention | None]
) -> bool:
    """Return whether more than half of the readers who marked each of two mentions link them."""
    n_left = n_right = n_same = 0
    for a, b in zip(left, right, strict=True):
        n_left += a is not None
        n_right += b is not None
        if a is not None and b is not None and a is not b:
            n_same += a.canonical == b.canonical
    return 2 * n_same > max(n_left, n_right)


def _name_cluster(
    reading: Reading,
    mentions: Sequence[SettledMention],
    cluster: Sequence[SettledMention],
    marks: Sequence[Sequence[CheckedMention | None]],
) -> None:
    """Set the canonical mention, votes and titles of a cluster. The canonical mention is the one
    that most readers named, if more than half did; without a majority over the whole cluster, all
    referents are undecided.

    Ties of the canonical mention go to the longest, then to the first: people write names in full
    once, mostly at the beginning.
    """
    total: Counter[Span] = Counter()
    for mention, row in zip(cluster, marks, strict=True):
        named = [_span_of_mention_at(mark.canonical, mentions) for mark in row if mark is not None]
        votes = Counter(span for span in named if span is not None)
        total.update(votes)
        mention.votes = {f"{begin}-{end}": n for (begin, end), n in votes.items()}
    first = min(
        cluster,
        key=lambda mention: (-total[mention.span], mention.span[0] - mention.span[1], mention.span),
    )
    linkable = reading.is_linkable(first.type)
    finders = {reader for row in marks for reader, mark in enumerate(row) if mark is not None}
    links: dict[int, str] = {}  # reader -> title of the first mention of the cluster that has one
    for row in marks if linkable else ():
        for reader, mark in enumerate(row):
            if mark is not None and mark.link:
                links.setdefault(reader, "" if mark.link == NO_VALUE else mark.link)
    # Who says that a mention is another entity than the rest gives it that one's title.
    titles = {
        (reader, mark.canonical): "" if mark.link == NO_VALUE else mark.link
        for row in reversed(marks)
        for reader, mark in enumerate(row)
        if linkable and mark is not None and mark.link
    }
    link = more_than_half(list(links.values()), len(finders))
    name = f"{first.span[0]}-{first.span[1]}"
    is_divided = 2 * total[first.span] <= sum(mention.n for mention in cluster)
    for mention, row in zip(cluster, marks, strict=True):
        mention.cluster = first.span
        is_tied = is_divided or 2 * mention.votes.get(name, 0) <= mention.n
        mention.undecided = linkable and is_tied
        mention.link = link
        own = [(reader, mark.canonical) for reader, mark in enumerate(row) if mark is not None]
        mention.titled = dict(Counter(titles[one] for one in own if one in titles))


def _span_of_mention_at(span: Span, mentions: Sequence[SettledMention]) -> Span | None:
    best = max(
        mentions, key=lambda mention: (_overlap_length(mention.span, span), -mention.span[0])
    )
    return best.span if _overlap_length(best.span, span) > 0 else None


class Entities(Interface):
    """Asks for all names in a document, their types, and which of them corefer."""

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
        # A complete date is shown with its weekday, since texts say "Saturday" and mean a date.
        day = document.get("date", "")
        if len(day) == len("2013-03-25") and is_date(day):
            day = f"{day}, a {date.fromisoformat(day):%A}"
        return {
            "key": document["key"],
            "title": document.get("title") or document["key"],
            "date": day,
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
            "left": {name: text_field(left, name) for name in ("mentions", "read", "nothing")},
            **flag_context(left),
        }

    def instructions(self, payload: Mapping[str, Any]) -> dict[str, Any]:
        types = describe_types(Reading(payload))
        return {"types": types, "not_asked": payload.get("not_asked", [])}

    def parse(self, question: Question, raw: dict[str, Any]) -> list[ParsedResponse]:
        if (flag := parse_flag(raw)) is not None:
            return [ParsedResponse(question.target_id, "flag", flag)]
        mentions = Reading(question.payload).read_mentions(raw)
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
            # Titles are optional: an answer is right without them.
            ParsedResponse(question.target_id, "links", links),
        ]

    def aggregate(self, question: Question, responses: Sequence[Response]) -> list[AggregatedLabel]:
        """Return a label of each mention that most readers found, and a label of the document with
        the number of readers.
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
                CheckedMention.from_json(mention, links.get(response.assignment_id, {}))
                for mention in response.value["mentions"]
            ]
            for response in responses
            if response.criterion == "mentions"
        ]
        if not readers:
            return []
        mentions = majority_mentions(Reading(question.payload), readers)
        document = question.target.document_or_error
        places = [Place("mention", document.pk, mention.span) for mention in mentions]
        targets = make_targets(document.corpus, places)
        labels = [
            _mention_label(targets[place], mention)
            for place, mention in zip(places, mentions, strict=True)
        ]
        worst = max((label.disagreement for label in labels), default=0.0)
        whole = {"mentions": len(mentions)}
        return [
            AggregatedLabel(question.target_id, whole, METHOD, len(readers), worst, SOURCE),
            *labels,
        ]

    def statements(self, question: Question, answer: Sequence[Judgment]) -> list[Statement]:
        """Return a statement for each name with its type, referent and date, and then a statement
        for each title.
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
                marks = [
                    CheckedMention.from_json(mention) for mention in judgment.value["mentions"]
                ]
                statements += [_mark_statement(reading, mark, words) for mark in marks]
                if not marks:
                    statements.append(Statement(("mention", ""), "Nothing is to be marked"))
            elif judgment.criterion == "links":
                titles += [_title_statement(reading, *link) for link in judgment.value.items()]
        return [*statements, *titles]

    def agreement_units(
        self, question: Question, response: Judgment, *, measured: bool = False
    ) -> Iterator[tuple[Unit, str]]:
        """Yield the type of each word, and the referent and title of each mention; with `measured`
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
        marked = [CheckedMention.from_json(mention) for mention in response.value["mentions"]]
        kinds = [""] * len(reading.tokens)
        for mark in marked:
            begin, end = reading.token_aligned_span(mark.span) or (0, 0)
            kinds[begin:end] = [mark.type] * (end - begin)
        yield from ((("mention", str(token)), kind) for token, kind in enumerate(kinds))
        for mark in marked:
            if reading.is_linkable(mark.type):
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
        for (subject, which), value in self.agreement_units(question, response):
            if subject not in words:
                yield (subject, which), value
                continue
            begin, end = (int(part) for part in which.split("-"))
            first_token, last_token = reading.token_aligned_span((begin, end)) or (0, 0)
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


def _mention_label(target: int, mention: SettledMention) -> AggregatedLabel:
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
        usable = [one for one in letters if one.isascii() and one.isalpha() and one not in used]
        key = usable[0] if usable else ""
        used.add(key)
        types.append(
            {
                "name": name,
                "word": word,
                "key": key,
                "value": type_payload["value"],
                "about": _description_without_type_name(word, type_payload["description"]),
                "example": _example_pieces(type_payload.get("example", "")),
                "cues": type_payload.get("cues", []),
            }
        )
    return types


def _description_without_type_name(word: str, description: str) -> str:
    """Return the description of a type without the type's name, or the first part of that name, at
    its beginning. A description that begins otherwise is returned unchanged.
    """
    lowered = description.lower().replace("z", "s")
    lead = word if lowered.startswith(word.lower()) else re.split("[,:;]", description)[0]
    remainder = description[len(lead) :].lstrip()
    is_lead = word.lower().startswith(lead.lower().replace("z", "s"))
    return remainder.strip(",:; ") if is_lead and remainder[:1] in {*",:;(", ""} else description


def _example_pieces(example: str) -> list[tuple[str, bool]]:
    """Return an example in pieces, each with whether it is a mention (in [square brackets])."""
    pieces = []
    for number, piece in enumerate(re.split(r"[\[\]]", example)):
        if piece:
            pieces.append((piece, number % 2 == 1))
    return pieces
