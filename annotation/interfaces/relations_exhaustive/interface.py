"""The exhaustive relation interface: all pairs of mentions that may be related, in text order."""

from __future__ import annotations

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
    GARBLED,
    flag_context,
    flag_statement,
    flagged_label,
    json_field,
    parse_flag,
    text_field,
)
from annotation.interfaces.shared.majority import parts_by_majority
from annotation.interfaces.shared.payload import (
    COMMON,
    PredicatePayload,
    directed_predicates,
    predicates_by_sentence,
    sentence_of,
)
from kbpo.tracks.recall import RELATION

if TYPE_CHECKING:
    from annotation.models import Question, Response

METHOD = "majority"
SOURCE = "document"


class RelationsExhaustive(Interface):
    """Asks which relations the text states between each pair of mentions that are close enough to
    each other (in scope).

    Payload: `document`, `text`, `sentences`; `mentions` (span, gloss, type, number of the entity);
    `options`, lists of predicates; `pairs` (target, a, b: numbers of mentions; options: number of
    the list; sentence); `scope`.
    """

    name: ClassVar[str] = "relations_exhaustive"
    title: ClassVar[str] = "Every relation in a document"
    terms: ClassVar[Terms] = Terms(
        "Say what an article tells about pairs of its names",
        Decimal("2.25"),
        seconds=540,
        seconds_each=12.0,  # a pair
        lease_minutes=240,
    )
    reads: ClassVar[str] = RELATION
    agreement: ClassVar[Agreement] = Agreement(
        tolerance=0.3, names={"relation": "Relations of documents"}
    )
    criterion: ClassVar[str] = "relations"

    def render(self, question: Question, answer: Mapping[str, Any] | None = None) -> dict[str, Any]:
        data, left = question.payload, answer or {}
        return {
            "key": data["document"]["key"],
            "title": data["document"].get("title") or data["document"]["key"],
            "text": data["text"],
            "pairs": len(data["pairs"]),
            "sentences": len({pair["sentence"] for pair in data["pairs"]}),
            "data": {
                "text": data["text"],
                "sentences": data["sentences"],
                "mentions": data["mentions"],
                "meanings": data.get("meanings", {}),
                "options": [_predicate_options(options) for options in data["options"]],
                "pairs": [
                    [pair["a"], pair["b"], pair["options"], pair["sentence"]]
                    for pair in data["pairs"]
                ],
            },
            "left": {"pairs": text_field(left, "pairs")},
            **flag_context(left),
        }

    def document_with_marks(self, question: Question, text: str) -> dict[str, Any]:
        return {
            "text": text,
            "marks": [(*mention["span"], "other") for mention in question.payload["mentions"]],
        }

    def parse(self, question: Question, raw: dict[str, Any]) -> list[ParsedResponse]:
        if (flag := parse_flag(raw)) is not None:
            return [ParsedResponse(question.target_id, "flag", flag)]
        holds = _parse_holds(question.payload, raw)
        return [ParsedResponse(question.target_id, self.criterion, {"holds": holds})]

    def aggregate(self, question: Question, responses: Sequence[Response]) -> list[AggregatedLabel]:
        """Return a label for each pair with a relation that holds, and a label that the document
        was read completely.

        Relations that nobody marked get no label: readers overlook facts, so such a relation is
        missing and never false.
        """
        if (flag := flagged_label(question, responses, self.criterion)) is not None:
            return [flag]
        answers = [
            response.value["holds"]
            for response in responses
            if response.criterion == self.criterion
        ]
        if not answers:
            return []
        data = question.payload
        labels, worst = [], 0.0
        for pair in data["pairs"]:
            parts = []
            for predicate in data["options"][pair["options"]]:
                for part in directed_predicates(predicate):
                    parts.append(part)
            target = str(pair["target"])
            held, votes, disagreement = parts_by_majority(
                [answer.get(target, ()) for answer in answers], parts
            )
            worst = max(worst, disagreement)
            if held:
                value = label_value(parts, held, votes, in_document=True)
                label = AggregatedLabel(
                    pair["target"], value, METHOD, len(answers), disagreement, SOURCE
                )
                labels.append(label)
        whole = {"scope": data["scope"], "closed": False}
        return [
            AggregatedLabel(question.target_id, whole, METHOD, len(answers), worst, SOURCE),
            *labels,
        ]

    def asked_statements(self, question: Question) -> list[Asked]:
        data = question.payload
        asked = []
        for pair in data["pairs"]:
            sentences = predicates_by_sentence(data["options"][pair["options"]])
            shown = [part for parts in sentences.values() for part in parts]
            asked.append(Asked(pair["target"], sentences, shown))
        return asked

    def statements(self, question: Question, answer: Sequence[Judgment]) -> list[Statement]:
        """Return a statement for each relation that holds between a pair, as a sentence."""
        statements = [flag_statement(flag) for flag in answer if flag.criterion == "flag"]
        for judgment in answer:
            if judgment.criterion == self.criterion:
                for number in range(len(question.payload["pairs"])):
                    statements += _pair_statements(
                        question.payload, number, judgment.value["holds"]
                    )
        return statements

    def agreement_units(
        self, question: Question, response: Judgment, *, measured: bool = False
    ) -> Iterator[tuple[Unit, str]]:
        """Yield each directed predicate of each pair: yes or no."""
        yield ("flag", ""), "yes" if response.criterion == "flag" else "no"
        if response.criterion != self.criterion:
            return
        data, holds = question.payload, response.value["holds"]
        for pair in data["pairs"]:
            held = set(holds.get(str(pair["target"]), ()))
            for predicate in data["options"][pair["options"]]:
                part = predicate["part"]
                yield ("relation", f"{pair['target']} {part}"), "yes" if part in held else "no"


def _pair_statements(
    data: Mapping[str, Any], number: int, holds: Mapping[str, Sequence[str]]
) -> list[Statement]:
    """Return the statements about one pair, with the positions of its names."""
    pair = data["pairs"][number]
    a, b = (data["mentions"][pair[side]] for side in ("a", "b"))
    places = ((a["span"][0], a["span"][1]), (b["span"][0], b["span"][1]))
    held = set(holds.get(str(pair["target"]), ()))
    return [
        Statement(
            ("relation", str(number), predicate["part"]),
            sentence_of(predicate, a["gloss"], b["gloss"]),
            places,
        )
        for predicate in data["options"][pair["options"]]
        if not held.isdisjoint(directed_predicates(predicate))
    ]


def _predicate_options(predicates: Sequence[PredicatePayload]) -> list[dict[str, Any]]:
    """Return the options of a list of predicates: value, sentence, and whether it is folded."""
    return [
        {
            "part": " ".join(directed_predicates(predicate)),
            "template": predicate["template"],
            "forward": predicate["part"].endswith(">"),
            "rare": number >= COMMON,
        }
        for number, predicate in enumerate(predicates)
    ]


def _parse_holds(data: Mapping[str, Any], raw: Mapping[str, Any]) -> dict[str, list[str]]:
    """Return target -> parts (directed relations) that hold. Raises BadAnswer if a pair is
    missing.
    """
    held_of_pair = json_field(raw, "pairs", dict)
    holds = {}
    for number, pair in enumerate(data["pairs"]):
        a, b = (data["mentions"][pair[side]]["gloss"] for side in ("a", "b"))
        if str(number) not in held_of_pair:
            raise BadAnswer(
                f"Pair {number + 1} of {len(data['pairs'])} is missing: “{a}” and “{b}”."
            )
        values = held_of_pair[str(number)]
        if not isinstance(values, list) or not all(isinstance(value, str) for value in values):
            raise BadAnswer(GARBLED)
        parts = [
            part
            for predicate in data["options"][pair["options"]]
            for part in directed_predicates(predicate)
        ]
        chosen = {part for value in values for part in value.split()}
        if unknown := sorted(chosen - set(parts)):
            raise BadAnswer(
                f"“{unknown[0][:60]}” is not one of the relations between “{a}” and “{b}”."
            )
        if chosen:
            holds[str(pair["target"])] = [part for part in parts if part in chosen]
    return holds
