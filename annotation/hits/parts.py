"""Splits and joins the raw answer to a HIT of several questions, a mapping whose keys are prefixed
with the id of the question. Also describes answers in words.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from annotation.interfaces.base import BadAnswer, Judgment
from annotation.interfaces.registry import interface_by_name
from annotation.interfaces.shared.statements import SideBySide, side_by_side
from annotation.models import Assignment, Gold, Question, Response
from annotation.quality.gold import questions_in_shown_order, right_answer

NOW = "now"
"""Field of a draft that names the question in progress: it may look complete but is not finished.
"""


def field_name(question: Question, field: str) -> str:
    """Return the name of a question's field in the answer to the whole HIT."""
    return f"q{question.pk}.{field}"


def answer_to_question(question: Question, raw: Mapping[str, Any]) -> dict[str, Any]:
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


def draft_of_hit(
    questions: Iterable[Question],
    finished_answers: Mapping[int, Mapping[str, Any]],
    current_question: Question,
    raw: Mapping[str, Any],
) -> dict[str, Any]:
    """Return the draft of a HIT: its finished answers, and the fields of the unfinished
    question.
    """
    return join_answers(questions, {**finished_answers, current_question.pk: raw}) | {
        NOW: [str(current_question.pk)]
    }


def unfinished_question(questions: Iterable[Question], draft: Mapping[str, Any]) -> Question | None:
    """Return the unfinished question of a draft."""
    return next((question for question in questions if draft.get(NOW) == [str(question.pk)]), None)


def read_json(text: str) -> dict[str, list[str]]:
    """Return an answer that a form sends as JSON in one field, without unpaired surrogates and NUL;
    empty if it cannot be parsed.
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
        if isinstance(values, list) and all(isinstance(value, str) for value in values)
    }


def _remove_unencodable(text: str) -> str:
    return text.encode(errors="ignore").decode().replace("\0", "")


def answer_statements(assignment: Assignment) -> list[SideBySide]:
    """Return the statements of an answer to each question, for its worker; answers of others are
    not included.
    """
    own = _judgments_by_question(assignment)
    return [
        side_by_side(interface_by_name(question.interface), question, judgments)
        for question, judgments in own
    ]


def compare_with_others(assignment: Assignment) -> list[SideBySide]:
    """Return the statements of an answer next to those of the right answer, if known, and of other
    answers that count; for admins.
    """
    own = _judgments_by_question(assignment)
    golds = {
        gold.question_id: gold for gold in Gold.objects.filter(question__hits=assignment.hit_id)
    }
    pages = []
    for question, judgments in own:
        gold = golds.get(question.pk)
        right = None if gold is None else right_answer(gold)
        of_others: dict[int, list[Judgment]] = defaultdict(list)
        responses = Response.objects.filter(question=question, counts=True)
        for response in responses.exclude(assignment=assignment).order_by("pk"):
            of_others[response.assignment_id].append(response)
        interface = interface_by_name(question.interface)
        page = side_by_side(interface, question, judgments, right, list(of_others.values()))
        pages.append(page)
    return pages


def _judgments_by_question(assignment: Assignment) -> list[tuple[Question, Sequence[Judgment]]]:
    """Return each question of an answer with its judgments: stored, or parsed from the raw answer.
    Questions without a readable answer are left out.
    """
    stored: dict[int, list[Judgment]] = defaultdict(list)
    for response in assignment.responses.order_by("pk"):
        stored[response.question_id].append(response)
    answers: list[tuple[Question, Sequence[Judgment]]] = []
    for question in questions_in_shown_order(assignment.hit, assignment.worker):
        judgments: Sequence[Judgment] = stored[question.pk]
        if not judgments:
            try:
                raw = answer_to_question(question, assignment.raw or {})
                judgments = interface_by_name(question.interface).parse(question, raw)
            except BadAnswer:
                continue
        answers.append((question, judgments))
    return answers
