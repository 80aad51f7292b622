"""Describes an answer in words and in its text, alone or beside the right answer and the answers of
others.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

from annotation.hits.parts import part
from annotation.interfaces.base import BadAnswer, Judgment
from annotation.interfaces.registry import interface_of
from annotation.interfaces.shared.statements import SideBySide, side_by_side
from annotation.models import Assignment, Gold, Question, Response
from annotation.quality.gold import expected_of, questions_shown


def read_answer(assignment: Assignment) -> list[SideBySide]:
    """Return what an answer says about each question, for its worker; nothing else is shown."""
    own = _judgments_by_question(assignment)
    return [
        side_by_side(interface_of(question.interface), question, judgments)
        for question, judgments in own
    ]


def compare_answer(assignment: Assignment) -> list[SideBySide]:
    """Return what an answer says beside the right answer, if known, and beside other answers that
    count; for admins.
    """
    own = _judgments_by_question(assignment)
    golds = {
        gold.question_id: gold for gold in Gold.objects.filter(question__hits=assignment.hit_id)
    }
    pages = []
    for question, judgments in own:
        gold = golds.get(question.pk)
        right = None if gold is None else expected_of(gold)
        of_others = _other_answers(question, assignment)
        page = side_by_side(interface_of(question.interface), question, judgments, right, of_others)
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
    for question in questions_shown(assignment.hit, assignment.worker):
        judgments: Sequence[Judgment] = stored[question.pk]
        if not judgments:
            try:
                raw = part(question, assignment.raw or {})
                judgments = interface_of(question.interface).parse(question, raw)
            except BadAnswer:
                continue
        answers.append((question, judgments))
    return answers


def _other_answers(question: Question, assignment: Assignment) -> list[Sequence[Judgment]]:
    """Return the counted answers of others to a question."""
    responses = Response.objects.filter(question=question, counts=True)
    by_answer: dict[int, list[Judgment]] = defaultdict(list)
    for response in responses.exclude(assignment=assignment).order_by("pk"):
        by_answer[response.assignment_id].append(response)
    return list(by_answer.values())
