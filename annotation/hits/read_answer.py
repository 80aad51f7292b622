"""Reads an answer for people: what it says in words, in its text, beside the right answer and those
of others.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

from annotation.hits.parts import part
from annotation.interfaces.base import BadAnswer, Judgment
from annotation.interfaces.registry import interface_of
from annotation.interfaces.shared.statements import SideBySide, side_by_side
from annotation.models import Assignment, Gold, Question, Response
from annotation.quality.gold import asked_of, expected_of


def read_answer(assignment: Assignment) -> list[SideBySide]:
    """Return what an answer says of each of its questions, for whoever gave it: nothing else is
    told.
    """
    own = _own(assignment)
    return [
        side_by_side(interface_of(question.interface), question, judgments)
        for question, judgments in own
    ]


def read_side_by_side(assignment: Assignment) -> list[SideBySide]:
    """Return what an answer says, beside the right answer where it is known, and what others say
    whose answers count; for admins.
    """
    own = _own(assignment)
    golds = {
        gold.question_id: gold for gold in Gold.objects.filter(question__hits=assignment.hit_id)
    }
    pages = []
    for question, judgments in own:
        gold = golds.get(question.pk)
        right = None if gold is None else expected_of(gold)
        of_others = _others(question, assignment)
        page = side_by_side(interface_of(question.interface), question, judgments, right, of_others)
        pages.append(page)
    return pages


def _own(assignment: Assignment) -> list[tuple[Question, Sequence[Judgment]]]:
    """Return each question of an answer, with what it says of it: as it is stored, or as it can be
    read from what was sent. Of a question that it says nothing readable of there is nothing.
    """
    stored: dict[int, list[Judgment]] = defaultdict(list)
    for response in assignment.responses.order_by("pk"):
        stored[response.question_id].append(response)
    answers: list[tuple[Question, Sequence[Judgment]]] = []
    for question in asked_of(assignment.hit, assignment.worker):
        judgments: Sequence[Judgment] = stored[question.pk]
        if not judgments:
            try:
                raw = part(question, assignment.raw or {})
                judgments = interface_of(question.interface).parse(question, raw)
            except BadAnswer:
                continue
        answers.append((question, judgments))
    return answers


def _others(question: Question, assignment: Assignment) -> list[Sequence[Judgment]]:
    """Return what others said of a question, as far as it counts."""
    responses = Response.objects.filter(question=question, counts=True)
    by_answer: dict[int, list[Judgment]] = defaultdict(list)
    for response in responses.exclude(assignment=assignment).order_by("pk"):
        by_answer[response.assignment_id].append(response)
    return list(by_answer.values())
