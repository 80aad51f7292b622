"""Signals of doubtful answers, and exclusion. Signals exclude nobody: a named person does, with a reason."""

from __future__ import annotations

from django.db import transaction
from django.utils import timezone

from annotation.models import Assignment, Question, Response, Signal, Worker

TOO_FAST = 0.15  # of the expected time: nobody reads three sentences so quickly


def note_signals(assignment: Assignment) -> list[str]:
    """The signals in an answer, recorded once."""
    expected = sum(assignment.hit.questions.values_list("seconds", flat=True))
    found = {}
    if assignment.seconds is not None and assignment.seconds < TOO_FAST * expected:
        found["too_fast"] = f"Answered in {assignment.seconds:.1f} s; about {expected} s were expected."
    for kind, detail in found.items():
        Signal.objects.get_or_create(
            assignment=assignment, kind=kind, defaults={"worker_id": assignment.worker_id, "detail": detail}
        )
    return list(found)


@transaction.atomic
def exclude(worker: Worker, reason: str) -> int:
    """How many answers will not count for labels that are made from now on.

    Nothing is deleted, and all work stays paid. Labels that are settled keep what they were made from; questions in
    progress settle without this worker.
    """
    if not reason.strip():
        raise ValueError("Say why: the reason is recorded, and the worker may appeal.")
    Worker.objects.filter(pk=worker.pk).update(excluded_at=timezone.now(), excluded_reason=reason)
    mine = Assignment.objects.filter(worker=worker)
    mine.filter(status="leased").update(status="returned", status_since=timezone.now(), reason="Excluded.")
    unsettled = Question.objects.exclude(status="settled")
    rows = Response.objects.filter(assignment__in=mine, question__in=unsettled, excluded_reason="")
    return rows.update(excluded_reason=reason)


def readmit(worker: Worker) -> int:
    """How many answers count again after an exclusion was taken back."""
    Worker.objects.filter(pk=worker.pk).update(excluded_at=None, excluded_reason="")
    rows = Response.objects.filter(assignment__worker=worker).exclude(excluded_reason="")
    return rows.update(excluded_reason="")
