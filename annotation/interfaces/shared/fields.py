"""Reads the fields of a raw answer."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

from annotation.interfaces.base import AggregatedLabel, BadAnswer, Judgment, Statement

if TYPE_CHECKING:
    from annotation.models import Question, Response

Json = TypeVar("Json", list[Any], dict[str, Any])
GARBLED = (
    "The answer did not arrive as it was sent. Nothing of it was lost here: please send it again."
)
PROBLEMS = {
    "text": "The text cannot be understood",
    "language": "It is in another language",
    "marks": "Words are cut in the wrong places",
    "else": "Something else",
}
LONGEST = 500


def text_field(raw: Mapping[str, Any], name: str) -> str:
    """Return the first value of a form field. Raises BadAnswer if it is not a text."""
    values = raw.get(name) or [""]
    value = values[0] if isinstance(values, list) else values
    if not isinstance(value, str):
        raise BadAnswer("The answer did not arrive as it was sent. Please choose again.")
    return value.strip()


def json_field(raw: Mapping[str, Any], name: str, kind: type[Json]) -> Json:
    """Return a form field parsed as JSON of this type; an empty one if it is missing. Raises
    BadAnswer.
    """
    text = text_field(raw, name)
    if not text:
        return kind()
    try:
        value = json.loads(text)
        # Half a character would break every page that shows it.
        json.dumps(value, ensure_ascii=False).encode()
    except (ValueError, RecursionError) as error:
        raise BadAnswer(GARBLED) from error
    if not isinstance(value, kind):
        raise BadAnswer(GARBLED)
    return value


def parse_flag(
    raw: Mapping[str, Any], problems: Mapping[str, str] = PROBLEMS, subject: str = "document"
) -> dict[str, Any] | None:
    """Return the flag in a raw answer; None if there is none. Raises BadAnswer for an unknown
    problem.
    """
    problem, remark = text_field(raw, "problem"), text_field(raw, "remark")[:LONGEST]
    if not problem:
        return None
    if problem not in problems:
        raise BadAnswer(f"Say again what is wrong with this {subject}, or remove the flag.")
    return {"problem": problem, "remark": remark}


def flagged_label(
    question: Question, responses: Sequence[Response], criterion: str
) -> AggregatedLabel | None:
    """Return an empty label for a question that more than half of the workers flagged."""
    flags = sum(response.criterion == "flag" for response in responses)
    n = flags + sum(response.criterion == criterion for response in responses)
    if 2 * flags <= n:
        return None
    return AggregatedLabel(question.target_id, {}, "flagged", n, (n - flags) / n)


def flag_statement(
    judgment: Judgment, problems: Mapping[str, str] = PROBLEMS, subject: str = "This document"
) -> Statement:
    """Return a flag in words, with its remark."""
    flag = judgment.value
    problem = problems.get(flag["problem"], flag["problem"])
    remark = f" “{flag['remark']}”" if flag.get("remark") else ""
    return Statement(("flag", ""), f"{subject} cannot be judged: {problem.lower()}.{remark}")


def flag_context(
    answer: Mapping[str, Any], problems: Mapping[str, str] = PROBLEMS
) -> dict[str, Any]:
    """Return the template context of the flag with the current answer."""
    problem = text_field(answer, "problem")
    return {
        "problems": [(code, words, code == problem) for code, words in problems.items()],
        "flagged": bool(problem),
        "remark": text_field(answer, "remark"),
    }
