"""The terms and the tutorial before a marketplace worker's first question, inside the frame.

Both are stored under the worker's hash, as for annotators with an account, and count for the
assignment in hand alone until the platform lists it. The draft of the HIT is kept meanwhile, also
when the terms change. The same pages exist outside a frame, for workers who must pass before they
can accept a HIT (`task.learn`).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import wraps
from typing import Any, Concatenate, ParamSpec
from urllib.parse import urlsplit

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.cache import never_cache
from django.views.decorators.clickjacking import xframe_options_exempt
from django.views.decorators.csrf import csrf_exempt

from annotation.interfaces.base import BadAnswer
from annotation.models import HIT, Worker
from annotation.platforms import proof
from annotation.platforms.registry import frame_sites, platform_by_name
from annotation.workers import consent, teach
from annotation.workers.models import TutorialRun
from annotation.workers.teach import Tutorial
from annotation.workers.worker import worker_handle
from kbpo.web.judging.lessons import lesson_context, show_explained_answer
from kbpo.web.judging.views import raw_fields, render_question

AGREE, BEGIN, LESSON = "agree", "begin", "lesson"
OF_OURS = ("proof", "answer", "step", "version")
FAILED = (
    "You did not pass the tutorial in two attempts. Please return this HIT; it costs you nothing."
)


@dataclass(frozen=True)
class Entry:
    """A worker who opens a HIT of a marketplace: the tutorial that they must pass first (None:
    none), and the signed assignment.
    """

    worker: Worker
    lesson: Tutorial | None
    proof: str = ""
    assignment: str = ""
    """The current assignment: steps on this page count for it only, until the platform lists it"""

    @property
    def hidden_form_fields(self) -> list[tuple[str, str]]:
        """Return the hidden fields of every form; none outside of a frame."""
        return [("proof", self.proof)] if self.proof else []


def make_entry(worker: Worker, interface: str, frame_assignment: FrameAssignment) -> Entry:
    """Return the data of a worker who opens a HIT with this interface."""
    return Entry(
        worker,
        _tutorial_to_pass(worker, interface, frame_assignment),
        frame_assignment.proof,
        frame_assignment.assignment,
    )


def may_see_questions(
    worker: Worker, interface: str, frame_assignment: FrameAssignment, *, has_begun: bool
) -> bool:
    """Return whether a worker may see the questions. A worker who has begun the HIT need not do the
    tutorial.
    """
    return consent.has_consented(worker, frame_assignment.assignment) and (
        has_begun or has_learned(worker, interface, frame_assignment)
    )


def has_learned(worker: Worker, interface: str, frame_assignment: FrameAssignment) -> bool:
    """Return whether the worker may skip the tutorial: they passed it, or there is none."""
    return _tutorial_to_pass(worker, interface, frame_assignment) is None


def _tutorial_to_pass(
    worker: Worker, interface: str, frame_assignment: FrameAssignment
) -> Tutorial | None:
    """Return the tutorial that a worker must pass first; None if there is none."""
    teaches = platform_by_name(worker.platform).capabilities.teaches_in_frame
    if not teaches or interface in teach.interfaces_worker_may_answer(
        worker, frame_assignment.assignment
    ):
        return None
    return teach.tutorials().get(interface)


def handle_entry_form(request: HttpRequest, entry: Entry) -> HttpResponse | None:
    """Handle a form of these pages, and return its page; None for the next one."""
    step, lesson = request.POST.get("step", ""), entry.lesson
    if step == AGREE:
        refusal = consent.store_consent_form(entry.worker, request.POST, entry.assignment)
        return _terms_page(request, entry, refusal) if refusal else None
    if lesson is None or not consent.has_consented(entry.worker, entry.assignment):
        return None
    if step == BEGIN:
        teach.begin_tutorial(entry.worker, lesson, entry.assignment)
    runs = teach.tutorial_attempts(entry.worker, lesson, entry.assignment)
    if step == LESSON and runs and runs[-1].passed is None:
        return _explain_lesson(request, entry, lesson, runs[-1])
    return None


def entry_page(request: HttpRequest, entry: Entry) -> HttpResponse:
    """Return the next page of a worker before the questions: the terms, or the tutorial."""
    if not consent.has_consented(entry.worker, entry.assignment):
        return _terms_page(request, entry)
    lesson = entry.lesson
    assert lesson is not None, "nothing stands before this worker"
    runs = teach.tutorial_attempts(entry.worker, lesson, entry.assignment)
    last = runs[-1] if runs else None
    if last is not None and last.passed is None:
        return _lesson_question(request, entry, lesson, last)
    if last is not None and not teach.attempts_left(runs):
        return render(request, "annotation/task_no.html", {"sentence": FAILED})
    context = {
        "lesson": lesson,
        "of": len(lesson.questions),
        "last": last,
        "carried": entry.hidden_form_fields,
        "right": sum(answer["right"] for answer in last.answers) if last else 0,
        "reward": teach.reward_after_attempts(entry.worker, lesson, runs),
    }
    return render(request, "annotation/task_tutorial.html", context)


def _terms_page(request: HttpRequest, entry: Entry, refusal: str = "") -> HttpResponse:
    context = {
        "text": consent.current_terms(),
        "parts": consent.consent_sections(entry.worker, consent.current_terms()),
        "refusal": refusal,
        "carried": [*entry.hidden_form_fields, ("step", AGREE)],
        "in_hand": bool(entry.proof),
    }
    return render(request, "annotation/task_terms.html", context, status=422 if refusal else 200)


def _lesson_question(
    request: HttpRequest,
    entry: Entry,
    lesson: Tutorial,
    run: TutorialRun,
    answer: dict[str, Any] | None = None,
    error: str = "",
) -> HttpResponse:
    """Return the next question of the tutorial."""
    number = len(run.answers) + 1
    context = _lesson_context(entry, lesson, run, number) | {"error": error}
    asked = lesson.question(number, run.attempt)
    return render_question(request, asked, answer, context, status=422 if error else 200)


def _explain_lesson(
    request: HttpRequest, entry: Entry, lesson: Tutorial, run: TutorialRun
) -> HttpResponse | None:
    """Return the explanation of an answer to the tutorial; None for an answer out of turn, which
    changes nothing.
    """
    number = request.POST.get("version", "")
    if number != str(len(run.answers) + 1):
        return None
    raw = {name: values for name, values in raw_fields(request.POST).items() if name not in OF_OURS}
    try:
        run = teach.store_tutorial_answer(teach.renew_promise(run), int(number), raw)
    except BadAnswer as bad:
        return _lesson_question(request, entry, lesson, run, raw, str(bad))
    onward = request.get_full_path()
    context = _lesson_context(entry, lesson, run, int(number))
    return show_explained_answer(request, lesson, run, int(number), onward, context)


def _lesson_context(
    entry: Entry, lesson: Tutorial, run: TutorialRun, number: int
) -> dict[str, Any]:
    carried = [*entry.hidden_form_fields, ("step", LESSON), ("version", str(number))]
    return lesson_context(lesson, run, number) | {"framed": True, "carried": carried}


P = ParamSpec("P")
LONGEST_ID = 120


@dataclass(frozen=True)
class FrameAssignment:
    """The assignment of a HIT to a worker, as named by the marketplace or by our signed form."""

    hit: HIT
    assignment: str
    handle: str
    site: str
    external_id: str = ""
    """The worker's own id on the marketplace. Only the marketplace's address contains it; our forms
    contain the hash"""

    @property
    def proof(self) -> str:
        return proof.sign_form(self.hit.pk, self.assignment, self.handle, self.site)


def in_frame(
    view: Callable[Concatenate[HttpRequest, P], HttpResponse],
) -> Callable[..., HttpResponse]:
    """Wrap a view for pages that known marketplaces may show in a frame."""

    @wraps(view)
    @never_cache
    @csrf_exempt
    @xframe_options_exempt
    def view_in_frame(request: HttpRequest, /, *args: P.args, **kwargs: P.kwargs) -> HttpResponse:
        response = view(request, *args, **kwargs)
        sites = " ".join(frame_sites()) or "'none'"
        response["Content-Security-Policy"] = f"frame-ancestors {sites}; form-action 'self' {sites}"
        response["Referrer-Policy"] = "no-referrer"
        return response

    return view_in_frame


def assignment_in_address(
    request: HttpRequest, hit: HIT, assignment: str
) -> FrameAssignment | None:
    """Return the assignment in the address of the frame; None for an unknown marketplace."""
    worker, site = request.GET["workerId"], url_origin(request.GET.get("turkSubmitTo", ""))
    sound = 0 < len(worker) <= LONGEST_ID and 0 < len(assignment) <= LONGEST_ID
    if not sound or site not in frame_sites():
        return None
    return FrameAssignment(hit, assignment, worker_handle(hit.platform, worker), site, worker)


def assignment_in_form(said_by_form: str, hit: HIT) -> FrameAssignment | None:
    """Return the assignment in our signed form; None if it is invalid, or of another HIT."""
    claims = proof.signed_fields(said_by_form)
    if claims.get("hit") != hit.pk or claims.get("site") not in frame_sites():
        return None
    return FrameAssignment(hit, claims["assignment"], claims["worker"], claims["site"])


def url_origin(address: str) -> str:
    """Return scheme, host and port of an address; empty if it contains credentials."""
    try:
        parts = urlsplit(address)
        plain = parts.scheme in ("https", "http") and parts.hostname and "@" not in parts.netloc
    except ValueError:
        return ""
    return f"{parts.scheme}://{parts.netloc}" if plain else ""
