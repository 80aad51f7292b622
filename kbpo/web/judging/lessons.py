"""The pages before an annotator's first question: terms, tutorials, and examples to try."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Any

from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils.http import url_has_allowed_host_and_scheme
from django.views.decorators.cache import never_cache
from django.views.decorators.clickjacking import xframe_options_sameorigin

from annotation.interfaces.base import BadAnswer
from annotation.interfaces.registry import interface_by_name
from annotation.interfaces.shared.statements import side_by_side
from annotation.models import Question, Worker
from annotation.workers import consent, teach
from annotation.workers.models import TutorialRun
from annotation.workers.worker import worker_of_user
from kbpo.web.http import HEADER
from kbpo.web.judging.views import for_annotators, raw_fields, render_question


def next_url(request: HttpRequest) -> str:
    """Return the requested address if it is on this site; else that of the next question."""
    wanted = request.POST.get("next") or request.GET.get("next") or ""
    ours = url_has_allowed_host_and_scheme(
        wanted, allowed_hosts={request.get_host()}, require_https=request.is_secure()
    )
    return wanted if wanted and ours else reverse("annotate_next")


@never_cache
def show_terms(request: HttpRequest) -> HttpResponse:
    """Return the terms; with `?version=` an earlier version. Annotators agree by a POST."""
    holds, number = consent.current_terms(), request.GET.get("version", "")
    if number and not (number.isascii() and number.isdecimal() and len(number) < 6):
        raise Http404
    text = consent.terms_version(int(number)) if number else holds
    if text is None:
        raise Http404
    worker = worker_of_user(request.user) if getattr(request.user, "is_annotator", False) else None  # type: ignore[arg-type]
    refusal = ""
    if request.method == "POST" and worker is not None:
        refusal = consent.store_consent_form(worker, request.POST)
        if not refusal:
            return redirect(next_url(request))
        text = holds
    asks = (
        worker is not None and text.version == holds.version and not consent.has_consented(worker)
    )
    context = {
        "text": text,
        "parts": consent.consent_sections(worker, text),
        "holds": holds,
        "asks": asks,
        "worker": worker,
        "refusal": refusal,
        "next": next_url(request),
    }
    return render(request, "annotators/terms.html", context, status=422 if refusal else 200)


def _find_tutorial(interface: str) -> teach.Tutorial:
    lesson = teach.tutorials().get(interface)
    if lesson is None:
        raise Http404
    return lesson


@for_annotators
def show_tutorial(request: HttpRequest, worker: Worker, interface: str) -> HttpResponse:
    """Return the description of a tutorial, or its result. A POST begins or continues an
    attempt.
    """
    lesson = _find_tutorial(interface)
    if request.method == "POST":
        run = teach.begin_tutorial(worker, lesson)
        if run is not None:
            return redirect(
                "annotate_tutorial_question", interface=interface, number=len(run.answers) + 1
            )
        return redirect("annotate_tutorial", interface=interface)
    runs = teach.tutorial_attempts(worker, lesson)
    last = runs[-1] if runs else None
    passed = any(run.passed for run in runs)
    context = {
        "lesson": lesson,
        "of": len(lesson.questions),
        "last": last,
        "passed": passed,
        "under_way": last is not None and last.passed is None,
        "right": sum(answer["right"] for answer in last.answers) if last else 0,
        "attempts_left": teach.attempts_left(runs),
        "reward": teach.reward_after_attempts(worker, lesson, runs),
    }
    return render(request, "annotators/tutorial.html", context)


@for_annotators
def show_tutorial_question(
    request: HttpRequest, worker: Worker, interface: str, number: int
) -> HttpResponse:
    """Return a question of the tutorial, or its explanation once it is answered. A POST
    answers it.
    """
    lesson = _find_tutorial(interface)
    runs = teach.tutorial_attempts(worker, lesson)
    run = runs[-1] if runs else None
    if run is None or not 1 <= number <= min(len(lesson.questions), len(run.answers) + 1):
        return redirect("annotate_tutorial", interface=interface)
    if number <= len(run.answers):
        onward = reverse("annotate_tutorial_question", args=[interface, number + 1])
        if number == len(lesson.questions):
            onward = reverse("annotate_tutorial", args=[interface])
        context = lesson_context(lesson, run, number)
        return show_explained_answer(request, lesson, run, number, onward, context)
    context = lesson_context(lesson, run, number)
    if request.method != "POST":
        return render_question(request, lesson.question(number, run.attempt), None, context)
    raw = raw_fields(request.POST)
    try:
        # Returned money is promised again; without a promise it is requested on continuing.
        teach.store_tutorial_answer(
            run if run.promise_id is None else teach.renew_promise(run), number, raw
        )
    except BadAnswer as bad:
        asked = lesson.question(number, run.attempt)
        return render_question(request, asked, raw, context | {"error": str(bad)}, status=422)
    return redirect("annotate_tutorial_question", interface=interface, number=number)


def lesson_context(lesson: teach.Tutorial, run: TutorialRun, number: int) -> dict[str, object]:
    """Return the context of a tutorial page."""
    attempt = "Tutorial" if run.attempt == 1 else "Tutorial, second attempt"
    return {
        "trying": attempt,
        "tutorial_key": lesson.key(number, run.attempt),
        "number": number,
        "of": len(lesson.questions),
        "elapsed": 0,
    }


def show_explained_answer(
    request: HttpRequest,
    lesson: teach.Tutorial,
    run: TutorialRun,
    number: int,
    onward: str,
    context: dict[str, object],
) -> HttpResponse:
    """Return the question with the right answer, the worker's answer next to it, and the
    explanation.
    """
    question, result = lesson.asked(run.attempt)[number - 1], run.answers[number - 1]
    explained = {
        "right": result["right"],
        "missed": [lesson.criteria.get(criterion, criterion) for criterion in result["missed"]],
        "beside": teach.answer_beside_right_one(run, number),
        "why": question["why"],
        "next": onward,
        "last": number == len(lesson.questions),
        "answer": json.dumps(question["right"]),
    }
    page = context | {"preview": True, "explained": explained}
    return render_question(request, lesson.question(number, run.attempt), question["right"], page)


EXAMPLES = Path(__file__).with_name("try_examples.json")


@cache
def load_examples() -> list[dict[str, Any]]:
    """Return the examples: interface, payload, right answer and explanation."""
    examples: list[dict[str, Any]] = json.loads(EXAMPLES.read_text(encoding="utf-8"))
    return examples


def first_example(interface: str) -> int:
    """Return the number of the first example of an interface; 0 without one."""
    for number, example in enumerate(load_examples(), start=1):
        if example["interface"] == interface:
            return number
    return 0


def redirect_to_first_example(request: HttpRequest) -> HttpResponse:
    """Redirect to the first example."""
    return redirect("try_question", number=1)


@xframe_options_sameorigin
def show_example(request: HttpRequest, number: int) -> HttpResponse:
    """Return an example (GET), or the comparison with the right answer (POST); also inside frames
    of this site.
    """
    answer = _example_page(request, number)
    answer[HEADER] = "frame-ancestors 'self'; form-action 'self'"
    return answer


def _example_page(request: HttpRequest, number: int) -> HttpResponse:
    if not 1 <= number <= len(load_examples()):
        raise Http404
    example = load_examples()[number - 1]
    interface = interface_by_name(example["interface"])
    asked = Question(
        interface=example["interface"],
        payload=example["payload"],
        target_id=0,
        reward=interface.terms.reward,
        seconds=interface.terms.seconds,
    )
    context: dict[str, Any] = {
        "trying": True,
        "number": number,
        "of": len(load_examples()),
        "elapsed": 0,
    }
    if request.method != "POST":
        return render_question(request, asked, None, context)
    raw = raw_fields(request.POST)
    try:
        interface.parse(asked, raw)
    except BadAnswer as bad:
        return render_question(request, asked, raw, context | {"error": str(bad)}, status=422)
    right = interface.parse(asked, example["right"])
    shown = {
        "beside": side_by_side(interface, asked, interface.parse(asked, raw), right),
        "why": example["why"],
    }
    return render(request, "annotation/tried.html", context | shown)
