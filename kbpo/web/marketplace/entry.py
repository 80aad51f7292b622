"""The terms and the tutorial before a marketplace worker's first question, inside the frame.

Both are stored under the worker's hash, as for annotators with an account, and count for the
assignment in hand alone until the platform lists it. The draft of the HIT is kept meanwhile, also
when the terms change. The same pages exist outside a frame, for workers who must pass before they
can accept a HIT (`frame_pages.py`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render

from annotation.interfaces.base import BadAnswer
from annotation.models import Worker
from annotation.platforms.registry import platform_of
from annotation.workers import consent, teach
from annotation.workers.models import TutorialRun
from annotation.workers.teach import Tutorial
from kbpo.web.judging.lessons import lesson_context, show_explained
from kbpo.web.judging.views import raw_of, show
from kbpo.web.marketplace.frame import Go

AGREE, BEGIN, LESSON = "agree", "begin", "lesson"
OF_OURS = ("proof", "answer", "step", "version")
FAILED = (
    "The tutorial was not passed in two attempts, so we cannot offer you questions of this kind. "
    "Please return this HIT; it costs you nothing, and says little about you."
)


@dataclass(frozen=True)
class Entry:
    """A worker who may have to agree to the terms or pass a tutorial first, and the signed HIT in
    hand.
    """

    worker: Worker
    lesson: Tutorial | None
    proof: str = ""
    assignment: str = ""
    """The assignment in hand: what is done here counts for it alone until the platform lists it"""

    @property
    def carried(self) -> list[tuple[str, str]]:
        """The hidden fields of every form; none outside of a frame."""
        return [("proof", self.proof)] if self.proof else []


def entry_of(worker: Worker, interface: str, go: Go) -> Entry:
    """Return the entry of a worker who has a HIT of this interface in hand."""
    return Entry(worker, _lesson_for(worker, interface, go), go.proof, go.assignment)


def is_ready(worker: Worker, interface: str, go: Go, *, begun: bool) -> bool:
    """Return whether a worker may see the questions. Whoever has begun a HIT need not do the
    tutorial.
    """
    return consent.has_consented(worker, go.assignment) and (
        begun or has_learned(worker, interface, go)
    )


def has_learned(worker: Worker, interface: str, go: Go) -> bool:
    """Return whether no tutorial is missing."""
    return _lesson_for(worker, interface, go) is None


def _lesson_for(worker: Worker, interface: str, go: Go) -> Tutorial | None:
    """Return the tutorial that a worker must pass first; None without one."""
    teaches = platform_of(worker.platform).capabilities.teaches_in_frame
    if not teaches or interface in teach.taught(worker, go.assignment):
        return None
    return teach.tutorials().get(interface)


def take_step(request: HttpRequest, entry: Entry) -> HttpResponse | None:
    """Handle a form of these pages, and return its page; None for the next one."""
    step, lesson = request.POST.get("step", ""), entry.lesson
    if step == AGREE:
        refusal = consent.take(entry.worker, request.POST, entry.assignment)
        return _terms(request, entry, refusal) if refusal else None
    if lesson is None or not consent.has_consented(entry.worker, entry.assignment):
        return None
    if step == BEGIN:
        teach.begin(entry.worker, lesson, entry.assignment)
    runs = teach.runs_of(entry.worker, lesson, entry.assignment)
    if step == LESSON and runs and runs[-1].passed is None:
        return _learn(request, entry, lesson, runs[-1])
    return None


def entry_page(request: HttpRequest, entry: Entry) -> HttpResponse:
    """Return the next page of a worker before the questions: the terms, or the tutorial."""
    if not consent.has_consented(entry.worker, entry.assignment):
        return _terms(request, entry)
    lesson = entry.lesson
    assert lesson is not None, "nothing stands before this worker"
    runs = teach.runs_of(entry.worker, lesson, entry.assignment)
    last = runs[-1] if runs else None
    if last is not None and last.passed is None:
        return _question(request, entry, lesson, last)
    if last is not None and not teach.attempts_left(runs):
        return render(request, "annotation/task_no.html", {"sentence": FAILED})
    context = {
        "lesson": lesson,
        "of": len(lesson.questions),
        "last": last,
        "carried": entry.carried,
        "right": sum(answer["right"] for answer in last.answers) if last else 0,
        "reward": teach.reward_after(entry.worker, lesson, runs),
    }
    return render(request, "annotation/task_tutorial.html", context)


def _terms(request: HttpRequest, entry: Entry, refusal: str = "") -> HttpResponse:
    context = {
        "text": consent.current_terms(),
        "parts": consent.parts_for(entry.worker, consent.current_terms()),
        "refusal": refusal,
        "carried": [*entry.carried, ("step", AGREE)],
        "in_hand": bool(entry.proof),
    }
    return render(request, "annotation/task_terms.html", context, status=422 if refusal else 200)


def _question(
    request: HttpRequest,
    entry: Entry,
    lesson: Tutorial,
    run: TutorialRun,
    answer: dict[str, Any] | None = None,
    error: str = "",
) -> HttpResponse:
    """Return the next question of the tutorial."""
    number = len(run.answers) + 1
    context = _context(entry, lesson, run, number) | {"error": error}
    asked = lesson.question(number, run.attempt)
    return show(request, asked, answer, context, status=422 if error else 200)


def _learn(
    request: HttpRequest, entry: Entry, lesson: Tutorial, run: TutorialRun
) -> HttpResponse | None:
    """Return the explanation of an answer to the tutorial; None for one out of turn, which changes
    nothing.
    """
    number = request.POST.get("version", "")
    if number != str(len(run.answers) + 1):
        return None
    raw = {name: values for name, values in raw_of(request.POST).items() if name not in OF_OURS}
    try:
        run = teach.answer(teach.renew(run), int(number), raw)
    except BadAnswer as bad:
        return _question(request, entry, lesson, run, raw, str(bad))
    onward = request.get_full_path()
    context = _context(entry, lesson, run, int(number))
    return show_explained(request, lesson, run, int(number), onward, context)


def _context(entry: Entry, lesson: Tutorial, run: TutorialRun, number: int) -> dict[str, Any]:
    carried = [*entry.carried, ("step", LESSON), ("version", str(number))]
    return lesson_context(lesson, run, number) | {"framed": True, "carried": carried}
