"""Splits and joins the raw answer to a HIT of several questions: one mapping, with the id of the
question before each field.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any

from annotation.models import Question


def field_name(question: Question, field: str) -> str:
    """Return the name of a question's field in the answer to the whole HIT."""
    return f"q{question.pk}.{field}"


def part(question: Question, raw: Mapping[str, Any]) -> dict[str, Any]:
    """Return the answer to one question out of the answer to its HIT."""
    prefix = field_name(question, "")
    if not any(name.startswith("q") and "." in name for name in raw):
        return dict(raw)
    return {
        name.removeprefix(prefix): value for name, value in raw.items() if name.startswith(prefix)
    }


def has_answer_to(question: Question, raw: Mapping[str, Any]) -> bool:
    """Return whether the answer to a HIT contains fields of this question."""
    return any(name.startswith(field_name(question, "")) for name in raw)


def join_answers(
    questions: Iterable[Question], parts: Mapping[int, Mapping[str, Any]]
) -> dict[str, Any]:
    """Return the answer to a HIT out of the answers to its questions."""
    return {
        field_name(question, field): value
        for question in questions
        if question.pk in parts
        for field, value in parts[question.pk].items()
    }


NOW = "now"
"""The field of a draft that names the question under way: it may look complete, and still is not
done."""


def draft_of_hit(
    questions: Iterable[Question],
    done: Mapping[int, Mapping[str, Any]],
    asked: Question,
    raw: Mapping[str, Any],
) -> dict[str, Any]:
    """Return the draft of a HIT: its finished answers, and the fields of the unfinished
    question.
    """
    return join_answers(questions, {**done, asked.pk: raw}) | {NOW: [str(asked.pk)]}


def unfinished_part(questions: Iterable[Question], draft: Mapping[str, Any]) -> Question | None:
    """Return the unfinished question of a draft."""
    return next((question for question in questions if draft.get(NOW) == [str(question.pk)]), None)


def read(text: str) -> dict[str, list[str]]:
    """Return an answer that a form carries as JSON in one field, without unpaired surrogates and
    NUL; empty if it cannot be parsed.
    """
    try:
        answer = json.loads(text)
    except (ValueError, RecursionError):
        return {}
    if not isinstance(answer, dict):
        return {}
    return {
        _remove_unencodable(name): [_remove_unencodable(value) for value in values]
        for name, values in answer.items()
        if isinstance(values, list) and all(isinstance(part_value, str) for part_value in values)
    }


def _remove_unencodable(text: str) -> str:
    return text.encode(errors="ignore").decode().replace("\0", "")
