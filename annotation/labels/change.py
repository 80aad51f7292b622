"""A worker changes an answer that does not count yet: before its question is settled, and for an
hour at most. What it said before stays with it; what is paid for it stays the same.
"""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from django.db import transaction

from annotation.hits.stake import has_stake
from annotation.interfaces.registry import interface_of
from annotation.labels.accept import responses_of
from annotation.models import Assignment, Question, Response, Signal
from annotation.platforms.registry import local_names
from annotation.quality.gold import grade, is_gold
from kbpo import clock

LONGEST = timedelta(hours=1)
"""Gold is never settled: without an end it could be told apart"""
STATUSES = ("submitted", "accepted", "approved")
OPEN = ("published", "answered", "gold")
"""Statuses of questions whose answers do not count yet"""


def can_change(assignment: Assignment) -> bool:
    """Return whether an answer to a question of our own pages may still be changed."""
    return _is_open(assignment, list(assignment.hit.questions.all()))


def _is_open(assignment: Assignment, questions: list[Question]) -> bool:
    return (
        assignment.status in STATUSES
        and assignment.hit.platform in local_names()
        and assignment.submitted_at is not None
        and assignment.submitted_at > clock.now() - LONGEST
        and all(question.status in OPEN for question in questions)
    )


@transaction.atomic
def change(assignment: Assignment, raw: dict[str, Any]) -> bool:
    """Return whether this answer stands in the place of the one that was sent; not if that counts
    by now, or a team of its worker has come to have a stake in it. Raises BadAnswer.
    """
    row = (
        Assignment.objects.select_for_update(of=("self",))  # before its questions, as in `accept`
        .select_related("hit")
        .get(pk=assignment.pk)
    )
    locked = Question.objects.select_for_update(of=("self",)).filter(hits=row.hit_id)
    questions = list(locked.select_related("target").order_by("pk"))
    if not _is_open(row, questions) or has_stake(row.worker_id, row.hit_id):
        return False
    parsed = [
        (question, each)
        for question in questions
        for each in interface_of(question.interface).parse(question, raw)
    ]
    row.earlier.append({"raw": row.raw, "changed_at": clock.now().isoformat()})
    row.raw = raw
    row.save(update_fields=["raw", "earlier"])
    if row.status == "submitted":
        return True  # it is read with the others
    row.responses.all().delete()
    Response.objects.bulk_create(responses_of({row: parsed}))
    if any(is_gold(question) for question in questions):
        Signal.objects.filter(assignment=row, kind="gold").delete()
        grade(row)
    return True
