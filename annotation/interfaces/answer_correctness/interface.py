"""The answer correctness interface: whether a response to a question is plausible, and whether each
passage shows that it is right, that it is wrong, or neither (Chaganty, Mussmann and Liang 2018,
section 4.2).
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from decimal import Decimal
from statistics import median_low
from typing import TYPE_CHECKING, Any, ClassVar, TypedDict

from annotation.interfaces.base import (
    AggregatedLabel,
    BadAnswer,
    Interface,
    Judgment,
    ParsedResponse,
    Statement,
    Terms,
    Unit,
)
from annotation.interfaces.shared.fields import flag_context, parse_flag, text_field
from annotation.interfaces.shared.majority import ratings_label
from kbpo.instances.merge import RATINGS

if TYPE_CHECKING:
    from annotation.models import Question, Response

ANY, AVERAGE = "any_correct", "avg_correct"
CORRECT, INCORRECT, NEITHER = "correct", "incorrect", "neither"
SAYS = (
    (CORRECT, "✓", "It shows the answer is ", "correct"),
    (INCORRECT, "✗", "It shows the answer is ", "incorrect"),
    (NEITHER, "–", "It does not say", ""),
)
SHOWS = {says: f"{words}{end}".lower() for says, _, words, end in SAYS}
LETTERS = "abcdefghij"
"""Labels of the passages; more passages than labels are not shown"""
MOST_MARKS = 50
"""Greatest number of marks in one passage"""
Span = tuple[int, int]


class AnswerPayload(TypedDict):
    """The payload of a question: the question, the response to it (`text`), and the passages in
    order.
    """

    title: str
    question: str
    text: str
    passages: list[str]


class AnswerCorrectness(Interface):
    """Asks whether a response is plausible, and for each passage what the passage shows and by
    which words.
    """

    name: ClassVar[str] = "answer_correctness"
    title: ClassVar[str] = "Whether passages show that an answer is right"
    terms: ClassVar[Terms] = Terms(
        "Say whether short passages show that an answer is right", Decimal("0.40"), seconds=120
    )

    def render(self, question: Question, answer: Mapping[str, Any] | None = None) -> dict[str, Any]:
        payload, left = question.payload, answer or {}
        passages = [
            _passage_context(number, text, left) for number, text in enumerate(payload["passages"])
        ]
        return {
            "key": str(question.target_id),
            "title": payload["title"],
            "question": payload["question"],
            "text": payload["text"],
            "plausible": text_field(left, "plausible"),
            "passages": passages,
            "data": {name: payload[name] for name in ("question", "text", "passages")},
            **flag_context(left),
        }

    def parse(self, question: Question, raw: dict[str, Any]) -> list[ParsedResponse]:
        flag = parse_flag(raw)
        if flag is not None:
            return [ParsedResponse(question.target_id, "flag", flag)]
        plausible = text_field(raw, "plausible")
        if plausible not in ("yes", "no"):
            raise BadAnswer("Step 1 is missing: say whether the answer is plausible.")
        texts = question.payload["passages"] if plausible == "yes" else []
        passages = [_parse_passage(number, text, raw) for number, text in enumerate(texts)]
        shows = [passage["says"] for passage in passages if passage["says"] != NEITHER]
        right = shows.count(CORRECT)
        detail = {"value": float(right > 0), "plausible": plausible, "passages": passages}
        average = {"value": right / len(shows) if shows else 0.0}
        return [
            ParsedResponse(question.target_id, ANY, detail),
            ParsedResponse(question.target_id, AVERAGE, average),
        ]

    def answer_of(
        self, question: Question, values: Mapping[int, Mapping[str, Any]]
    ) -> dict[str, Any] | None:
        """Return the answer that a response is plausible, if most people found it correct;
        otherwise None, since both answers are possible.
        """
        ratings = values.get(question.target_id, {}).get(RATINGS, {}).get(ANY)
        return {"plausible": "yes"} if ratings and median_low(ratings) > 0 else None

    def aggregate(self, question: Question, responses: Sequence[Response]) -> list[AggregatedLabel]:
        return ratings_label(question, responses, [ANY, AVERAGE])

    def agreement_units(
        self, question: Question, response: Judgment, *, measured: bool = False
    ) -> Iterator[tuple[Unit, str]]:
        """Yield plausibility, the verdict of each passage, and the flag."""
        if response.criterion == "flag":
            yield ("flag", ""), "yes"
        elif response.criterion == ANY:
            yield ("plausible", ""), response.value["plausible"]
            for number, passage in enumerate(response.value["passages"]):
                yield ("passage", str(number)), passage["says"]

    def statements(self, question: Question, answer: Sequence[Judgment]) -> list[Statement]:
        """Return a statement for each part of an answer. Marks of two people are equal if they
        share a word.
        """
        statements = []
        for judgment in answer:
            for (what, which), value in self.agreement_units(question, judgment):
                words = "Flagged" if what == "flag" else f"Plausible: {value}"
                if what == "passage":
                    words = f"Paragraph {LETTERS[int(which)]}: {SHOWS[value]}"
                    marked = judgment.value["passages"][int(which)].get("words", ())
                    words += "".join(f", “{part}”" for part in marked)
                statements.append(Statement((what, which, value), words))
        return statements

    def is_right(
        self, question: Question, given_answer: Mapping[str, Any], right: Judgment
    ) -> bool:
        """Return whether all passages have the right verdict, with marks among the right words."""
        if right.criterion != ANY:
            return super().is_right(question, given_answer, right)
        if given_answer.get("plausible") != right.value["plausible"]:
            return False
        return all(
            mine["says"] == ours["says"]
            and (ours["says"] == NEITHER or _share_a_character(mine["marks"], ours["marks"]))
            for mine, ours in zip(given_answer["passages"], right.value["passages"], strict=True)
        )


def _parse_passage(number: int, text: str, raw: Mapping[str, Any]) -> dict[str, Any]:
    """Return the verdict on a passage with its marks. Raises BadAnswer."""
    letter, says = LETTERS[number], text_field(raw, f"passage-{number}")
    if says not in (CORRECT, INCORRECT, NEITHER):
        raise BadAnswer(f"Paragraph {letter} is missing: say what it shows.")
    if says == NEITHER:
        return {"says": says, "marks": []}
    marks = _parse_marks(letter, text, text_field(raw, f"marks-{number}"))
    if not marks:
        raise BadAnswer(f"Paragraph {letter}: mark the words that show that it is {says}.")
    if text_field(raw, f"confirmed-{number}") != "1":
        raise BadAnswer(f"Paragraph {letter}: read the marked words again, and confirm them.")
    return {"says": says, "marks": marks, "words": [text[begin:end] for begin, end in marks]}


def _parse_marks(letter: str, text: str, marks_json: str) -> list[Span]:
    """Return the marks in a passage in order, adjacent ones joined. Raises BadAnswer for one
    outside of it or without a word.
    """
    try:
        spans = json.loads(marks_json or "[]")
    except (ValueError, RecursionError):
        spans = None
    if not isinstance(spans, list) or len(spans) > MOST_MARKS:
        raise BadAnswer(f"Paragraph {letter}: the marks did not arrive as they were made.")
    joined: list[Span] = []
    for begin, end in sorted(_parse_span(letter, text, span) for span in spans):
        if joined and begin <= joined[-1][1]:
            joined[-1] = (joined[-1][0], max(end, joined[-1][1]))
        else:
            joined.append((begin, end))
    return joined


def _parse_span(letter: str, text: str, span: Any) -> Span:
    ends = span if isinstance(span, list) and len(span) == 2 else [None, None]
    begin, end = (end if type(end) is int else -1 for end in ends)
    if not 0 <= begin < end <= len(text) or not text[begin:end].strip():
        raise BadAnswer(f"Paragraph {letter}: a mark is not within its words. Mark them again.")
    return begin, end


def _share_a_character(mine: Sequence[Sequence[int]], ours: Sequence[Sequence[int]]) -> bool:
    """Return whether two sets of marks share a character."""
    return any(a[0] < b[1] and b[0] < a[1] for a in mine for b in ours)


def _passage_context(number: int, text: str, answer_fields: Mapping[str, Any]) -> dict[str, Any]:
    """Return the template context of a passage with the current answer."""
    says = text_field(answer_fields, f"passage-{number}")
    try:
        marks = _parse_marks(LETTERS[number], text, text_field(answer_fields, f"marks-{number}"))
    except BadAnswer:
        marks = []
    return {
        "at": number,
        "letter": LETTERS[number],
        "text": text,
        "pieces": _marked_pieces(text, marks),
        "says": says,
        "choices": [(value, sign, words, end, value == says) for value, sign, words, end in SAYS],
        "marks": json.dumps(marks),
        "confirmed": text_field(answer_fields, f"confirmed-{number}"),
    }


def _marked_pieces(text: str, marks: Sequence[Span]) -> list[tuple[str, bool]]:
    """Return the text in pieces, each with whether it is marked."""
    pieces, place = [], 0
    for begin, end in marks:
        pieces += [(text[place:begin], False), (text[begin:end], True)]
        place = end
    return [(words, marked) for words, marked in [*pieces, (text[place:], False)] if words]
