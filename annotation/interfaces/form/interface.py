"""The form interface: a text, or two side by side, and questions about it that the payload lists:
with a few options each, or for free text.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from decimal import Decimal
from statistics import median_low
from typing import TYPE_CHECKING, Any, ClassVar, NotRequired, TypedDict

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
from annotation.interfaces.shared.fields import flag_context, flag_statement, parse_flag, text_field
from annotation.interfaces.shared.majority import ratings_label
from kbpo.instances.merge import RATINGS
from kbpo.tracks.registry import FORM
from kbpo.tracks.texts.declared import declared_form

if TYPE_CHECKING:
    from annotation.models import Question, Response

LONGEST = 5000
"""Greatest number of characters of free text"""


class Option(TypedDict):
    """An option: the text of its button, and its rating in [0, 1]."""

    label: str
    value: float
    cue: NotRequired[str]


class Field(TypedDict):
    """A question of a form; its name is the criterion."""

    name: str
    ask: str
    options: list[Option]
    """None for free text, which is stored and not aggregated"""
    label: NotRequired[str]
    kind: NotRequired[str]
    required: NotRequired[bool]


class FormPayload(TypedDict):
    """The payload of a question: a text and the fields."""

    title: str
    text: str
    fields: list[Field]
    guide: NotRequired[list[str]]
    """Sentences of the instructions"""
    texts: NotRequired[list[str]]
    """Two compared texts; `text` then contains both"""
    beside: NotRequired[list[dict[str, str]]]
    """Additional texts, each with a `label` and its `text`"""


class Form(Interface):
    """Asks questions about a text, answered by buttons or free text."""

    name: ClassVar[str] = "form"
    title: ClassVar[str] = "Questions about a text"
    terms: ClassVar[Terms] = Terms(
        "Read a short text and answer questions about it", Decimal("0.05"), seconds=20
    )

    def render(self, question: Question, answer: Mapping[str, Any] | None = None) -> dict[str, Any]:
        payload, left = question.payload, answer or {}
        return {
            "key": str(question.target_id),
            "title": payload["title"],
            "text": payload["text"],
            "texts": payload.get("texts", []),
            "beside": payload.get("beside", []),
            "fields": [
                _field_context(field, number, text_field(left, field["name"]))
                for number, field in enumerate(payload["fields"], start=1)
            ],
            "keys": range(1, 1 + min(9, max(len(field["options"]) for field in payload["fields"]))),
            "guide": payload.get("guide", []),
            **flag_context(left),
        }

    def parse(self, question: Question, raw: dict[str, Any]) -> list[ParsedResponse]:
        flag = parse_flag(raw)
        if flag is not None:
            return [ParsedResponse(question.target_id, "flag", flag)]
        answers = [
            (field["name"], _parse_field(field, number, raw))
            for number, field in enumerate(question.payload["fields"], start=1)
        ]
        return [ParsedResponse(question.target_id, *answer) for answer in answers if answer[1]]

    def answer_of(
        self, question: Question, values: Mapping[int, Mapping[str, Any]]
    ) -> dict[str, Any] | None:
        """Return an answer with the median of the ratings; edited texts and free text are not
        filled in.
        """
        ratings = values.get(question.target_id, {}).get(RATINGS, {})
        answer = {}
        for field in question.payload["fields"]:
            options, given = field["options"], ratings.get(field["name"])
            if options and given:
                distance = [abs(option["value"] - median_low(given)) for option in options]
                answer[field["name"]] = str(1 + distance.index(min(distance)))
        return answer or None

    def aggregate(self, question: Question, responses: Sequence[Response]) -> list[AggregatedLabel]:
        names = [field["name"] for field in question.payload["fields"] if field["options"]]
        return ratings_label(question, responses, names)

    def statements(self, question: Question, answer: Sequence[Judgment]) -> list[Statement]:
        asked = {field["name"]: field["ask"] for field in question.payload["fields"]}
        statements = []
        for judgment in answer:
            if judgment.criterion == "flag":
                statements.append(flag_statement(judgment, subject="This text"))
            elif judgment.criterion in asked:
                choice = _answer_words(judgment.value)
                words = f"{asked[judgment.criterion]} {choice}"
                is_free = "text" in judgment.value  # no two people write the same
                statements.append(Statement((judgment.criterion, choice), words, optional=is_free))
        return statements

    def agreement_units(
        self, question: Question, response: Judgment, *, measured: bool = False
    ) -> Iterator[tuple[Unit, str]]:
        """Yield the option of each field, and the flag."""
        if response.criterion == "flag":
            yield ("flag", ""), "yes"
        else:
            yield (response.criterion, ""), _answer_words(response.value)


def _answer_words(value: Mapping[str, Any]) -> str:
    """Return the words of the chosen option, or the free text."""
    return str(value.get("choice", value.get("text", "")))


def _field_context(field: Field, number: int, chosen: str) -> dict[str, Any]:
    """Return the template context of a field; the value of a button is the number of its option."""
    options = [
        {
            "value": str(place),
            "label": option["label"],
            "rating": option["value"],
            "cue": option.get("cue", ""),
            "chosen": chosen == str(place),
        }
        for place, option in enumerate(field["options"], start=1)
    ]
    return {
        "name": field["name"],
        "label": field.get("label", ""),
        "ask": field["ask"],
        "kind": field.get("kind", "choice"),
        "required": field.get("required", True),
        "written": "" if field["options"] else chosen,
        "number": number,
        "options": options,
    }


def _parse_field(field: Field, number: int, raw: Mapping[str, Any]) -> dict[str, Any]:
    chosen = text_field(raw, field["name"])
    if not chosen and (field["options"] or field.get("required", True)):
        raise BadAnswer(f"Step {number} is missing: {field['ask']}")
    if len(chosen) > LONGEST:
        raise BadAnswer(
            f"Step {number} has {len(chosen):,} characters; at most {LONGEST:,} are kept."
            " Shorten it."
        )
    if not field["options"]:  # free text; empty if it is optional
        return {"text": chosen} if chosen else {}
    options = {str(place): option for place, option in enumerate(field["options"], start=1)}
    if chosen not in options:
        raise BadAnswer(
            f"“{chosen[:60]}” is not one of the answers to step {number}. Please choose again."
        )
    return {"value": options[chosen]["value"], "choice": options[chosen]["label"]}


class DeclaredForm(Form):
    """The interface of a declared form; it uses the page of `form`."""

    folder: ClassVar[str] = "form"

    def is_right(
        self, question: Question, given_answer: Mapping[str, Any], right: Judgment
    ) -> bool:
        """Return whether a rating is right, or equivalent to the right one; free text is never
        wrong.
        """
        return "text" in right.value or given_answer.get("value") == right.value.get("value")


def interface_of_form(name: str) -> DeclaredForm:
    """Return the interface of a declared form. Raises KeyError for an unknown name."""
    form = declared_form(name)
    declared: type[DeclaredForm] = type(
        "DeclaredForm",
        (DeclaredForm,),
        {
            "name": FORM + name,
            "title": form.title,
            "terms": Terms(form.offered_as, form.price, seconds=form.seconds),
            "__module__": __name__,
        },
    )
    return declared()
