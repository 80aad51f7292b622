"""The relation interface: the referents of two marked mentions, and the relations between them; or
the referent of one mention, about which readers of its document are tied.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from decimal import Decimal
from typing import TYPE_CHECKING, Any, ClassVar

from annotation.interfaces.base import (
    AggregatedLabel,
    Agreement,
    Asked,
    BadAnswer,
    Interface,
    Judgment,
    ParsedResponse,
    Statement,
    Terms,
    Unit,
    label_value,
)
from annotation.interfaces.shared.fields import (
    flag_context,
    flag_statement,
    flagged_label,
    parse_flag,
)
from annotation.interfaces.shared.fields import text_field as field_text
from annotation.interfaces.shared.majority import parts_by_majority
from annotation.interfaces.shared.payload import (
    Pair,
    PredicatePayload,
    Side,
    directed_predicates,
    meaning_of,
    predicates_by_sentence,
    sentence_of,
)
from kbpo.tracks.kbp.merge import OTHER, UNDECIDED, mention_value

if TYPE_CHECKING:
    from annotation.models import Question, Response

NOT_LISTED = "Another name, not listed"
NO_TITLE = "none"
LONGEST = 500  # characters of a typed title
PROBLEMS = {
    "marks": "The marks are in the wrong place",
    "text": "The text cannot be understood",
    "else": "Something else",
}
TYPE_WORDS = {
    "PER": "person",
    "ORG": "organisation",
    "LOC": "place",
    "GPE": "place",
    "DATE": "date",
    "TIME": "date",
    "NUM": "number",
    "TITLE": "title",
}


class Relation(Interface):
    """Asks for the referents of A and B, and which relations the text states between them."""

    name: ClassVar[str] = "relation"
    criterion: ClassVar[str] = "relation"
    title: ClassVar[str] = "What a sentence says about two names"
    terms: ClassVar[Terms] = Terms(
        "Read a few sentences and say what they tell about two names",
        Decimal("0.05"),  # its kind of track has the same (test_prices.py)
        seconds=20,
    )
    agreement: ClassVar[Agreement] = Agreement(
        tolerance=0.0,
        names={
            "relation": "Relation, each by itself",
            "choice": "Relation, as one choice",
            "linking": "Linking",
        },
        published={"choice": ("κ", 0.61)},  # Chaganty et al. 2017
    )

    def render(self, question: Question, answer: Mapping[str, Any] | None = None) -> dict[str, Any]:
        return page_context(question.payload, answer or {})

    def document_with_marks(self, question: Question, text: str) -> dict[str, Any]:
        return marked_text(Pair.from_payload(question.payload), text, 0, len(text))

    def parse(self, question: Question, raw: dict[str, Any]) -> list[ParsedResponse]:
        pair = Pair.from_payload(question.payload)
        if (flag := parse_flag(raw, PROBLEMS, "question")) is not None:
            return [ParsedResponse(question.target_id, "flag", flag)]
        linked = [
            ParsedResponse(side.target, "linking", _parse_link(side, raw))
            for side in pair.asked_sides
        ]
        if len(pair.asked_sides) == 1:
            return linked
        return [
            ParsedResponse(question.target_id, self.criterion, _parse_holds(pair, raw)),
            *linked,
        ]

    def answer_of(
        self, question: Question, values: Mapping[int, Mapping[str, Any]]
    ) -> dict[str, Any] | None:
        pair, said = Pair.from_payload(question.payload), values.get(question.target_id)
        if said is None:
            return None
        holds = [part for part in pair.parts if part in said.get("holds", ())]
        links = {
            side.letter: _candidate_of_label(side, values.get(side.target, {}))
            for side in pair.asked_sides
        }
        return {"holds": holds, "none": [] if holds else ["1"], **links}

    def aggregate(self, question: Question, responses: Sequence[Response]) -> list[AggregatedLabel]:
        pair = Pair.from_payload(question.payload)
        is_alone = len(pair.asked_sides) == 1
        asked = "linking" if is_alone else self.criterion
        if not any(response.criterion in ("flag", asked) for response in responses):
            return []
        if (label := flagged_label(question, responses, asked)) is not None:
            return [label]
        labels = []
        if not is_alone:
            held = [answer.value["holds"] for answer in responses if answer.criterion == asked]
            shown = question.shown or pair.parts
            holds, votes, disagreement = parts_by_majority(held, shown)
            value = label_value(shown, holds, votes, in_document=False)
            labels = [
                AggregatedLabel(question.target_id, value, "majority", len(held), disagreement)
            ]
        for side in pair.asked_sides:
            values = [
                response.value
                for response in responses
                if response.criterion == "linking" and response.target_id == side.target
            ]
            if values:
                labels.append(_mention_label(side, values))
        return labels

    def asked_statements(self, question: Question) -> list[Asked]:
        predicates = question.payload["predicates"]
        if not predicates:
            return []
        parts = [part for predicate in predicates for part in directed_predicates(predicate)]
        shown = list(question.shown) or parts
        return [Asked(question.target_id, predicates_by_sentence(predicates), shown)]

    def is_split(self, question: Question, responses: Sequence[Response]) -> bool:
        flags = sum(response.criterion == "flag" for response in responses)
        held_by_each = [
            set(response.value["holds"])
            for response in responses
            if response.criterion == "relation"
        ]
        votes = Counter(part for holds in held_by_each for part in holds)
        over_relations = any(2 * n == len(held_by_each) for n in votes.values())
        labels = self.aggregate(question, responses)
        over_mentions = any(UNDECIDED in label.value for label in labels)
        titles: dict[int, Counter[str]] = defaultdict(Counter)
        for response in responses:
            if response.criterion == "linking" and response.value.get("title"):
                titles[response.target_id][response.value["title"]] += 1
        over_titles = any(2 * max(votes.values()) <= votes.total() for votes in titles.values())
        over_flags = 2 * flags == flags + len(held_by_each)
        return over_flags or over_relations or over_mentions or over_titles

    def statements(self, question: Question, answer: Sequence[Judgment]) -> list[Statement]:
        pair = Pair.from_payload(question.payload)
        statements: list[Statement] = []
        for side in pair.asked_sides:
            links = [link for link in answer if link.criterion == "linking"]
            statements += [
                _link_statement(side, link)
                for link in links
                if link.target_id == side.target and _needs_link_statement(side, link)
            ]
        for judgment in answer:
            if judgment.criterion == "flag":
                statements.append(flag_statement(judgment, PROBLEMS, "This question"))
            elif judgment.criterion == "relation":
                statements += _relation_statements(pair, judgment.value["holds"])
        return statements

    def agreement_units(
        self, question: Question, response: Judgment, *, measured: bool = False
    ) -> Iterator[tuple[Unit, str]]:
        """Yield each directed predicate (yes, no), the referent of each mention with several
        candidates, and the flag.
        """
        if response.criterion == "flag":
            yield ("flag", ""), "yes"
        elif response.criterion == "relation":
            yield ("flag", ""), "no"
            holds = set(response.value["holds"])
            for predicate in question.payload["predicates"]:
                yield ("relation", predicate["part"]), "yes" if predicate["part"] in holds else "no"
        for side in Pair.from_payload(question.payload).asked_sides:
            if (
                response.criterion == "linking"
                and side.has_choice
                and side.target == response.target_id
            ):
                yield ("linking", str(side.target)), str(response.value["choice"])


def _needs_link_statement(side: Side, link: Judgment) -> bool:
    """Return whether a link gets its own statement: the mention was asked about and none of the
    offered names was chosen, or a title was given. Otherwise the worker only confirmed the single
    name that was offered.
    """
    return side.has_choice or link.value["choice"] == OTHER or bool(link.value.get("title"))


def _link_statement(side: Side, judgment: Judgment) -> Statement:
    choice = str(judgment.value["choice"])
    title = judgment.value.get("title")
    page = ", no page of Wikipedia" if title == NO_TITLE else f", “{title}” in Wikipedia"
    if choice in side.candidates:
        words = f"{side.letter.upper()}, “{side.gloss}”, is “{side.candidate_words(choice)}”"
    else:
        words = f"{side.letter.upper()}, “{side.gloss}”, is none of the names that were offered"
    key = ("linking", side.letter, choice if choice in side.candidates else OTHER)
    return Statement(key, words + (page if title else ""))


def _relation_statements(pair: Pair, holds: Sequence[str]) -> list[Statement]:
    """Return the sentences that hold, or one sentence that none holds."""
    if not holds:
        return [Statement(("relation", ""), "None of the sentences holds")]
    return [
        Statement(
            ("relation", predicate["part"]), sentence_of(predicate, pair.a.gloss, pair.b.gloss)
        )
        for predicate in pair.data["predicates"]
        if not set(holds).isdisjoint(directed_predicates(predicate))
    ]


def page_context(payload: Mapping[str, Any], answer: Mapping[str, Any]) -> dict[str, Any]:
    """Return the template context of the page from the payload alone, with the current answer."""
    pair = Pair.from_payload(payload)
    holds = _field_values(answer, "holds")
    common = [
        _choice_context(predicate, pair, holds, str(number))
        for number, predicate in enumerate(pair.visible_relations, start=1)
    ]
    rarer = [
        _choice_context(predicate, pair, holds, "") for predicate in pair.relations_behind_more
    ]
    return {
        "key": pair.data["document"]["key"],
        "title": pair.data["document"].get("title") or pair.data["document"]["key"],
        "sentences": pair.data["sentences"],
        "whole": len(pair.data["text"]) >= pair.data["length"],
        **marked_text(pair, pair.data["text"], pair.data["begin"], pair.data["length"]),
        "sides": [_side_context(side, answer) for side in pair.asked_sides],
        "common": common,
        "rarer": rarer,
        "explains": [choice for choice in [*common, *rarer] if choice["meaning"]],
        "rarer_open": any(predicate["part"] in holds for predicate in pair.relations_behind_more),
        "none": bool(_field_values(answer, "none")),
        **flag_context(answer, PROBLEMS),
        "instead": "If only the right sentence is not listed, pick “None of these” instead.",
    }


def _field_values(answer: Mapping[str, Any], name: str) -> list[str]:
    """Return the values of a field of an unchecked answer."""
    values = answer.get(name) or []
    return [str(value) for value in (values if isinstance(values, list) else [values]) if value]


def marked_text(pair: Pair, text: str, begin: int, length: int) -> dict[str, Any]:
    """Return a text with its marks as (begin, end, role), and an ellipsis at each cut."""
    before = "… " if begin > 0 else ""
    after = " …" if begin + len(text) < length else ""
    marked = dict(
        zip((side.span for side in pair.asked_sides), ("subject", "object"), strict=False)
    )
    spans = [(b, e, role) for (b, e), role in marked.items()]
    spans.append((pair.data["lit"][0], pair.data["lit"][1], "provenance"))
    spans += [
        (s[0], s[1], "other") for s in pair.data.get("others", []) if (s[0], s[1]) not in marked
    ]
    shift = len(before) - begin
    inside = [
        (b + shift, e + shift, role) for b, e, role in spans if begin <= b < e <= begin + len(text)
    ]
    return {"text": before + text + after, "marks": inside}


def _side_context(side: Side, answer: Mapping[str, Any]) -> dict[str, Any]:
    chosen = _field_values(answer, side.letter)
    alone = not side.has_choice and OTHER not in chosen
    candidates = [
        (
            span,
            gloss,
            " or ".join(side.longer_names_by_candidate.get(span, [])),
            alone or span in chosen,
        )
        for span, gloss in side.candidates.items()
    ]
    return {
        "letter": side.letter,
        "role": "subject" if side.letter == "a" else "object",
        "gloss": side.gloss,
        "span": f"{side.span[0]}-{side.span[1]}",
        "word": TYPE_WORDS.get(side.type.upper(), "name"),
        "question": "Who is" if side.is_person else "What is",
        "may_have_title": bool(side.candidates),
        "has_parts": bool(side.longer_names_by_candidate),
        "candidates": [
            *candidates,
            (OTHER, NOT_LISTED, "", OTHER in chosen),
        ],
        "title": next(iter(_field_values(answer, f"{side.letter}_title")), ""),
        "no_title": bool(_field_values(answer, f"{side.letter}_no_title")),
    }


def _choice_context(
    predicate: PredicatePayload, pair: Pair, chosen: Sequence[str], key: str
) -> dict[str, Any]:
    """Return a relation as a sentence in pieces, some of which have a role."""
    forward = predicate["part"].endswith(">")
    subject, object_ = (pair.a, pair.b) if forward else (pair.b, pair.a)
    pieces, remainder = [], predicate["template"]
    while remainder:
        until = min(
            (remainder.find(mark) for mark in ("{subject}", "{object}") if mark in remainder),
            default=len(remainder),
        )
        if until:
            pieces.append((remainder[:until], "verb"))
        mark = remainder[until : remainder.find("}", until) + 1] if until < len(remainder) else ""
        if mark:
            side = subject if mark == "{subject}" else object_
            pieces.append((side.gloss, "subject" if side.letter == "a" else "object"))
        remainder = remainder[until + len(mark) :]
    value = " ".join(directed_predicates(predicate))
    return {
        "part": value,
        "pieces": pieces,
        "key": key,
        "chosen": value in chosen,
        "meaning": meaning_of(predicate, pair.data.get("meanings", {})),
    }


def _parse_link(side: Side, raw: Mapping[str, Any]) -> dict[str, Any]:
    """Return the referent of a mention: the span of the canonical mention, or OTHER, and
    a title.
    """
    if not side.candidates:
        return {"choice": f"{side.span[0]}-{side.span[1]}"}
    value: dict[str, Any] = {"choice": _parse_choice(side, raw)}
    if field_text(raw, f"{side.letter}_no_title"):
        value["title"] = NO_TITLE
    elif title := field_text(raw, f"{side.letter}_title")[:LONGEST]:
        value["title"] = title.replace("_", " ")
    return value


def _candidate_of_label(side: Side, value: Mapping[str, Any]) -> str:
    """Return the candidate that a label names, by its position or its words; empty if the label
    names none.
    """
    canonical = value.get("canonical")
    if not isinstance(canonical, list):
        return ""
    choice = f"{canonical[0]}-{canonical[1]}"
    return choice if choice in side.candidates else ""


def _parse_choice(side: Side, raw: Mapping[str, Any]) -> str:
    """Return the chosen candidate or OTHER; the only candidate is chosen by default. Raises
    BadAnswer.
    """
    choice = field_text(raw, side.letter)
    if not side.has_choice and choice != OTHER:
        return f"{side.span[0]}-{side.span[1]}"
    asking = "who" if side.is_person else "what"
    if not choice:
        raise BadAnswer(
            f"Step {1 if side.letter == 'a' else 2} is missing: {asking} is “{side.gloss}”?"
        )
    if choice != OTHER and choice not in side.candidates:
        raise BadAnswer(
            f"“{choice}” is not one of the answers to {asking} “{side.gloss}” is."
            " Please choose again."
        )
    return choice


def _parse_holds(pair: Pair, raw: Mapping[str, Any]) -> dict[str, Any]:
    values = raw.get("holds", [])
    values = values if isinstance(values, list) else [values]
    if not all(isinstance(value, str) for value in values):
        raise BadAnswer("The answer did not arrive as it was sent. Please choose again.")
    holds = {part for value in values for part in value.split()}
    none = bool(field_text(raw, "none"))
    if unknown := sorted(holds - set(pair.parts)):
        raise BadAnswer(
            f"“{unknown[0][:60]}” is not one of the relations on this page. Please choose again."
        )
    if holds and none:
        raise BadAnswer("You chose both “None of these” and a relation. Keep one.")
    if not holds and not none:
        raise BadAnswer("Step 3 is missing: pick what the text says, or “None of these”.")
    return {"holds": [part for part in pair.parts if part in holds]}


def _mention_label(side: Side, values: list[Mapping[str, Any]]) -> AggregatedLabel:
    """Return the referent and title by majority; without a majority, the label records a tie."""
    votes = Counter(str(choice["choice"]) for choice in values)
    named_titles = [str(choice["title"]) for choice in values if choice.get("title")]
    titles = Counter("" if title == NO_TITLE else title for title in named_titles)
    offered = [candidate["span"] for candidate in side.data["candidates"]]
    value = {"type": side.type, **mention_value(votes, titles, len(values), offered)}
    disagreement = 1 - max(votes.values()) / len(values)
    return AggregatedLabel(side.target, value, "majority", len(values), disagreement)
