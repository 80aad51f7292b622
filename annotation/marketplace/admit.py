"""Answers the requests of marketplace workers for the qualification that HITs require
(`Capabilities.admits`). Workers who passed the tutorial get it; the others get the address of the
tutorial, and the qualification once they pass.

The marketplace shows the reason of a refusal to that worker only, so the signed address in the
reason needs no other proof.
"""

from __future__ import annotations

from dataclasses import dataclass

from django.conf import settings

from annotation.models import Qualification, Question, Worker
from annotation.platforms.base import Platform, Refused
from annotation.platforms.proof import feedback_path, tutorial_path
from annotation.workers import teach
from annotation.workers.models import TutorialRun
from annotation.workers.teach import Tutorial
from annotation.workers.worker import worker_on_platform

LEARN = (
    "First a short tutorial, please: {address} . When you have passed it, you get the qualification"
    " automatically within minutes; you need not ask again."
)
FAILED = (
    "The tutorial was not passed in two attempts, so we cannot offer you work. It says"
    " little about you."
)
OUT = "We do not offer you more questions. Why, and how you can appeal: {address}"
TAKEN_BACK = "An admin revoked the qualification. Why, and how you can appeal: {address}"
LEAVING = "Your data with us is being erased, so we cannot offer you work."


@dataclass(frozen=True)
class Admission:
    """Whether a worker gets the qualification; otherwise, the tutorial that leads to it, or why
    there is none.
    """

    held: bool = False
    lesson: Tutorial | None = None
    why: str = ""


def answer_requests(platform: Platform) -> int:
    """Grant or refuse all open requests for our qualification on a platform, and return their
    number. The platform does not list an answered request again.
    """
    if not platform.capabilities.admits:
        return 0
    answered = 0
    for request in list(platform.requests()):
        worker = worker_on_platform(platform.name, request.worker_id)
        admission = worker_admission(worker)
        why = admission.why or LEARN.format(address=_absolute_url(tutorial_path(worker)))
        try:
            platform.answer(request, refused="" if admission.held else why)
        except Refused:  # answered meanwhile, or withdrawn by the worker
            continue
        answered += 1
    return answered


def worker_admission(worker: Worker) -> Admission:
    """Return whether a worker is admitted."""
    if worker.excluded_at is not None:
        return Admission(why=OUT.format(address=_absolute_url(feedback_path(worker))))
    if worker.leaves_at is not None:
        return Admission(why=LEAVING)
    row = Qualification.objects.filter(worker=worker, name="tutorial").first()
    if row is not None:
        if row.wanted:
            return Admission(held=True)
        return Admission(why=TAKEN_BACK.format(address=_absolute_url(feedback_path(worker))))
    lesson = _next_tutorial(worker)
    return Admission(lesson=lesson, why="" if lesson else FAILED)


def _next_tutorial(worker: Worker) -> Tutorial | None:
    """Return the tutorial that the worker has begun, else one for the questions on their platform;
    None if they failed the tutorials.
    """
    runs = TutorialRun.objects.filter(worker=worker)
    left = teach.learnable_interfaces(worker)
    current = runs.filter(passed=None).values_list("interface", flat=True)
    begun = [name for name in current if name in left]
    asked = Question.objects.filter(
        track__platform=worker.platform, status__in=["waiting", "published"], gold=None
    )
    wanted = set(asked.values_list("interface", flat=True).distinct())
    candidates = (
        begun or [name for name in left if name in wanted] or ([] if runs.exists() else left)
    )
    return teach.tutorials().get(candidates[0]) if candidates else None


def _absolute_url(path: str) -> str:
    return settings.SITE_URL.rstrip("/") + path
