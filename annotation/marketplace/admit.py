"""Answers marketplace workers who ask for the qualification that HITs require
(`Capabilities.admits`): who has passed the tutorial is given it; a newcomer is told where to do
the tutorial, and gets the qualification by passing it.

The marketplace shows the reason of a refusal to that worker alone, so the signed address in it
needs no other proof.
"""

from __future__ import annotations

from dataclasses import dataclass

from django.conf import settings

from annotation.models import Qualification, Question, Worker
from annotation.platforms.base import Platform, Refused, Request
from annotation.platforms.proof import say_path, tutorial_path
from annotation.workers import teach
from annotation.workers.models import TutorialRun
from annotation.workers.teach import Tutorial
from annotation.workers.worker import known

LEARN = (
    "First a short tutorial, please: {address} . When you have passed it, you get the qualification"
    " by itself within minutes; you need not ask again."
)
FAILED = (
    "The tutorial was not passed in two attempts, so we cannot offer you work. It says"
    " little about you."
)
OUT = "We do not offer you more questions. Why, and how you can appeal: {address}"
TAKEN_BACK = "An admin took the qualification back. Why, and how you can appeal: {address}"
LEAVING = "Your data with us is being erased, so we cannot offer you work."


@dataclass(frozen=True)
class Standing:
    """Whether somebody is to have the qualification; if not, the tutorial that gives it to them, or
    why none does.
    """

    held: bool = False
    lesson: Tutorial | None = None
    why: str = ""


def answer_requests(platform: Platform) -> int:
    """Return how many were answered. Each may be answered again: what was answered is not listed
    any more.
    """
    if not platform.capabilities.admits:
        return 0
    return sum(_answer(platform, request) for request in list(platform.requests()))


def _answer(platform: Platform, request: Request) -> int:
    worker = known(platform.name, request.worker_id)
    worker_standing = standing(worker)
    try:
        if worker_standing.held:
            platform.answer(request)
        else:
            why = worker_standing.why or LEARN.format(address=_here(tutorial_path(worker)))
            platform.answer(request, refused=why)
    except Refused:  # it was answered meanwhile, or taken back by who asked
        return 0
    return 1


def standing(worker: Worker) -> Standing:
    """Return where a worker stands who wants to be let in."""
    if worker.excluded_at is not None:
        return Standing(why=OUT.format(address=_here(say_path(worker))))
    if worker.leaves_at is not None:
        return Standing(why=LEAVING)
    row = Qualification.objects.filter(worker=worker, name="tutorial").first()
    if row is not None:
        return (
            Standing(held=True)
            if row.wanted
            else Standing(why=TAKEN_BACK.format(address=_here(say_path(worker))))
        )
    lesson = _lesson_for(worker)
    return Standing(lesson=lesson, why="" if lesson else FAILED)


def _lesson_for(worker: Worker) -> Tutorial | None:
    """Return the one under way; else one of what is asked on the worker's platform; None if they
    have failed.
    """
    runs = TutorialRun.objects.filter(worker=worker)
    left = teach.learnable(worker)
    begun = [
        name
        for name in runs.filter(passed=None).values_list("interface", flat=True)
        if name in left
    ]
    asked = Question.objects.filter(
        track__platform=worker.platform, status__in=["waiting", "published"], gold=None
    )
    wanted = set(asked.values_list("interface", flat=True).distinct())
    candidates = (
        begun or [name for name in left if name in wanted] or ([] if runs.exists() else left)
    )
    return teach.tutorials().get(candidates[0]) if candidates else None


def _here(path: str) -> str:
    return settings.SITE_URL.rstrip("/") + path
