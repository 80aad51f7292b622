"""Task pages: a HIT inside the frame of a marketplace. HTTP only; no cookie is read, set or needed.

A preview shows the first question and stores nothing. After acceptance the questions come one by
one; each answer is checked here and carried on in the form. At the end the page sends all answers
to the marketplace by a plain form, and we collect them from there: what we store meanwhile is a
draft, never an answer.
"""

from __future__ import annotations

import json
from typing import Any
from urllib.parse import urlencode, urlsplit

from django.conf import settings
from django.db.models import QuerySet
from django.http import Http404, HttpRequest, HttpResponse, JsonResponse
from django.shortcuts import get_object_or_404, render
from django.urls import reverse
from django.views.decorators.cache import never_cache
from django.views.decorators.csrf import csrf_exempt
from django.views.decorators.http import require_GET, require_http_methods, require_POST

from annotation.hits.parts import (
    answer_to_question,
    draft_of_hit,
    join_answers,
    read_json,
    unfinished_question,
)
from annotation.hits.publish import hit_advert, hit_notice
from annotation.interfaces.base import BadAnswer
from annotation.interfaces.registry import interface_by_name
from annotation.marketplace.admit import worker_admission
from annotation.marketplace.books import note_confirmation
from annotation.marketplace.keep_draft import keep_draft
from annotation.marketplace.reconcile import make_hits_due
from annotation.models import ANSWERED, HIT, Assignment, Bonus, Question, Worker
from annotation.platforms import proof
from annotation.platforms.registry import frame_sites, platform_by_name
from annotation.quality.gold import questions_in_shown_order
from kbpo import clock
from kbpo.accounts.limits import Limit
from kbpo.money.spend import ZERO
from kbpo.web.http import client_address
from kbpo.web.judging.views import raw_fields, render_question, show_whole_document
from kbpo.web.marketplace.entry import (
    LONGEST_ID,
    Entry,
    FrameAssignment,
    assignment_in_address,
    assignment_in_form,
    entry_page,
    handle_entry_form,
    has_learned,
    in_frame,
    make_entry,
    may_see_questions,
    url_origin,
)

NOT_AVAILABLE = "ASSIGNMENT_ID_NOT_AVAILABLE"
ENDED = ("cancelled", "settled", "unanswered")
CARRIED = ("proof", "answer")
NEW_NAMES = Limit("task.names", 60, 3600)
"""Greatest number of unknown workers that one address may name in an hour"""
NOT_OURS = "This page was not opened by a known marketplace. Nothing can be sent."
NOT_FOR_YOU = "This HIT is not for you. Please return it; it costs you nothing."
"""The same sentence for every refused worker, since anybody may write any id into an address"""
BUSY = "Too many people have this HIT open. Please return it, or reload in some minutes."
FULL = "Too many people have this HIT open: your answers are kept only in this browser."
GONE = "This HIT is no longer needed. Please return it; it costs you nothing."
ALREADY = "You have already sent this HIT."


@in_frame
@require_http_methods(["GET", "HEAD", "POST"])
def show_task(request: HttpRequest, signed: str) -> HttpResponse:
    """Return the preview of a HIT, its questions one after the other, and the form that
    submits it.
    """
    hit = get_object_or_404(
        HIT.objects.select_related("track"), pk=proof.hit_in_signed_path(signed) or 0
    )
    if not hit.questions.exists():
        raise Http404
    assignment = request.GET.get("assignmentId", NOT_AVAILABLE)
    if request.method != "POST" and (assignment == NOT_AVAILABLE or "workerId" not in request.GET):
        questions = questions_in_shown_order(hit, None)
        summary, notice = _hit_summary(hit, questions), hit_notice(hit, questions)
        context = {"preview": True, "framed": True, "about": summary, "before": notice}
        return render_question(request, questions[0], None, context)
    if request.method == "POST":
        go = assignment_in_form(request.POST.get("proof", ""), hit)
    else:
        go = assignment_in_address(request, hit, assignment)
    if go is None:
        return refusal_page(request, NOT_OURS, 403)
    worker = Worker.objects.filter(handle=go.handle).first()
    if why := _task_refusal(go, worker):
        return refusal_page(request, why, say=_feedback_address(go) if worker is not None else "")
    questions = questions_in_shown_order(hit, worker)
    return _handle_task(request, go, questions)


def _handle_task(
    request: HttpRequest, frame_assignment: FrameAssignment, questions: list[Question]
) -> HttpResponse:
    """Save the posted draft or the posted answer of a HIT, and return the next page. Pages that a
    worker must complete first, such as the consent form or the tutorial, are shown before the
    questions.
    """
    if _exceeds_new_workers(request, frame_assignment):
        answer = refusal_page(request, BUSY, 429)
        answer["Retry-After"] = str(NEW_NAMES.seconds_until_retry(client_address(request)))
        return answer
    kept = keep_draft(
        frame_assignment.hit,
        frame_assignment.assignment,
        frame_assignment.handle,
        None,
        external_id=frame_assignment.external_id,
    )
    interface = questions[0].interface
    worker = Worker.objects.filter(handle=frame_assignment.handle).first()
    if worker is None:  # nobody is written down while the HIT is full of drafts
        return refusal_page(request, BUSY)
    if "step" in request.POST:
        if (
            page := handle_entry_form(request, make_entry(worker, interface, frame_assignment))
        ) is not None:
            return page
    elif request.method == "POST" and (
        kept.begun or has_learned(worker, interface, frame_assignment)
    ):
        kept = keep_draft(
            frame_assignment.hit,
            frame_assignment.assignment,
            frame_assignment.handle,
            _posted_draft(request, questions),
        )
        if may_see_questions(worker, interface, frame_assignment, has_begun=True):
            return _store_answer(request, frame_assignment, questions)
    if not may_see_questions(worker, interface, frame_assignment, has_begun=kept.begun):
        return entry_page(request, make_entry(worker, interface, frame_assignment))
    if not kept.begun:
        kept = keep_draft(
            frame_assignment.hit, frame_assignment.assignment, frame_assignment.handle, {}
        )
    begun = unfinished_question(questions, kept.answer)
    left = answer_to_question(begun, kept.answer) if begun else None
    return _next_page(
        request, frame_assignment, questions, _finished_answers(questions, kept.answer), left
    )


def _exceeds_new_workers(request: HttpRequest, frame_assignment: FrameAssignment) -> bool:
    """Return whether an address names more new workers than are plausible. Local demos have one
    address for all.
    """
    if settings.LOCAL or Worker.objects.filter(handle=frame_assignment.handle).exists():
        return False
    return not NEW_NAMES.count_action(client_address(request))


def _task_refusal(frame_assignment: FrameAssignment, worker: Worker | None) -> str:
    """Return why a worker cannot do this HIT, as a sentence; empty if they can. Gold is ignored."""
    questions = list(frame_assignment.hit.questions.exclude(payer_kind="gold"))
    mine = frame_assignment.hit.assignments.filter(
        worker__handle=frame_assignment.handle, external_id=frame_assignment.assignment
    )
    in_hand = mine.filter(draft__isnull=False).exclude(draft={})
    if all(question.status in ENDED for question in questions) and not in_hand.exists():
        return GONE
    if worker is None:
        return ""
    if worker.excluded_at is not None or worker.leaves_at is not None:
        return NOT_FOR_YOU
    met = Assignment.objects.filter(worker=worker, status__in=[*ANSWERED, "rejected", "failed"])
    other_answers = met.filter(hit__questions__in=_same_questions(questions)).exclude(
        external_id=frame_assignment.assignment
    )
    return NOT_FOR_YOU if other_answers.exists() else ""


def _same_questions(questions: list[Question]) -> QuerySet[Question]:
    """Return the questions equal to these, on any track."""
    if not questions:
        return Question.objects.none()
    targets, rounds = (
        [question.target_id for question in questions],
        {question.round for question in questions},
    )
    return Question.objects.filter(
        target__in=targets, interface=questions[0].interface, round__in=rounds
    )


def _finished_answers(
    questions: list[Question], draft: dict[str, Any]
) -> dict[int, dict[str, Any]]:
    """Return question -> answer, of the finished questions in a draft."""
    begun = unfinished_question(questions, draft)
    return {
        question.pk: answer_to_question(question, draft)
        for question in questions
        if question != begun and _is_finished(question, draft)
    }


def _is_finished(question: Question, raw: dict[str, Any]) -> bool:
    mine = answer_to_question(question, raw) if raw else {}
    try:
        return bool(mine) and bool(interface_by_name(question.interface).parse(question, mine))
    except BadAnswer:
        return False


def _posted_draft(request: HttpRequest, questions: list[Question]) -> dict[str, Any]:
    """Return the draft out of the carried answers and the fields of the current question."""
    done = _finished_answers(questions, read_json(request.POST.get("answer", "")))
    asked = next((question for question in questions if question.pk not in done), None)
    return (
        join_answers(questions, done)
        if asked is None
        else draft_of_hit(questions, done, asked, _own_fields(request))
    )


def _store_answer(
    request: HttpRequest, frame_assignment: FrameAssignment, questions: list[Question]
) -> HttpResponse:
    """Return the next question, the same one with an error, or the form that submits the HIT. The
    draft is stored already.
    """
    done = _finished_answers(questions, read_json(request.POST.get("answer", "")))
    asked = next((question for question in questions if question.pk not in done), None)
    if asked is None:
        return _submit_page(request, frame_assignment, questions, done)
    raw = _own_fields(request)
    try:
        interface_by_name(asked.interface).parse(asked, raw)
    except BadAnswer as bad:
        return _question_page(
            request, frame_assignment, questions, done, answer=raw, error=str(bad)
        )
    done[asked.pk] = raw
    keep_draft(
        frame_assignment.hit,
        frame_assignment.assignment,
        frame_assignment.handle,
        join_answers(questions, done),
    )
    return _next_page(request, frame_assignment, questions, done)


def _own_fields(request: HttpRequest) -> dict[str, Any]:
    """Return the fields of the current question."""
    return {
        name: values for name, values in raw_fields(request.POST).items() if name not in CARRIED
    }


@in_frame
@require_POST
def store_draft(request: HttpRequest, signed: str) -> HttpResponse:
    """Store a draft of the current question, and return the seconds of the lease."""
    hit = get_object_or_404(HIT, pk=proof.hit_in_signed_path(signed) or 0)
    go = assignment_in_form(request.POST.get("proof", ""), hit)
    if go is None:
        return JsonResponse({"error": NOT_OURS}, status=403)
    questions = questions_in_shown_order(hit, Worker.objects.filter(handle=go.handle).first())
    kept = keep_draft(hit, go.assignment, go.handle, _posted_draft(request, questions))
    if not kept.leased:
        return JsonResponse(
            {"error": ALREADY if kept.ended else FULL}, status=409 if kept.ended else 503
        )
    seconds = hit_advert(hit).lease_seconds
    return JsonResponse({"saved": clock.now().isoformat(), "lease_seconds": seconds})


def _next_page(
    request: HttpRequest,
    frame_assignment: FrameAssignment,
    questions: list[Question],
    finished_answers: dict[int, dict[str, Any]],
    remaining_fields: dict[str, Any] | None = None,
) -> HttpResponse:
    if len(finished_answers) == len(questions):
        return _submit_page(request, frame_assignment, questions, finished_answers)
    return _question_page(
        request, frame_assignment, questions, finished_answers, answer=remaining_fields
    )


def _question_page(
    request: HttpRequest,
    frame_assignment: FrameAssignment,
    questions: list[Question],
    finished_answers: dict[int, dict[str, Any]],
    *,
    answer: dict[str, Any] | None = None,
    error: str = "",
) -> HttpResponse:
    asked = next(question for question in questions if question.pk not in finished_answers)
    signed = request.resolver_match.kwargs["signed"]  # type: ignore[union-attr]
    proven = urlencode({"proof": frame_assignment.proof})
    context = {
        "framed": True,
        "about": _hit_summary(frame_assignment.hit, questions),
        "number": len(finished_answers) + 1,
        "of": len(questions),
        "error": error,
        "carried": [
            ("proof", frame_assignment.proof),
            ("answer", json.dumps(join_answers(questions, finished_answers))),
        ],
        "addresses": {
            "whole": f"{reverse('task_document', args=[signed, asked.pk])}?{proven}",
            "draft": reverse("task_draft", args=[signed]),
        },
        "say": _feedback_address(frame_assignment),
        "held": f"{frame_assignment.assignment}:{asked.pk}:{frame_assignment.handle[:8]}",
        "lease_seconds": hit_advert(frame_assignment.hit).lease_seconds,
    }
    return render_question(request, asked, answer, context, status=422 if error else 200)


def _submit_page(
    request: HttpRequest,
    frame_assignment: FrameAssignment,
    questions: list[Question],
    finished_answers: dict[int, dict[str, Any]],
) -> HttpResponse:
    """Return the form that carries the answer to the marketplace."""
    make_hits_due(frame_assignment.hit.platform, [frame_assignment.hit.external_id])
    fields = [
        ("assignmentId", frame_assignment.assignment),
        ("proof", frame_assignment.proof),
        ("answer", json.dumps(join_answers(questions, finished_answers))),
    ]
    context = {
        "action": frame_assignment.site
        + platform_by_name(frame_assignment.hit.platform).capabilities.submit_path,
        "fields": fields,
        "n": len(questions),
        "say": _feedback_address(frame_assignment),
    }
    return render(request, "annotation/task_send.html", context)


def _feedback_address(frame_assignment: FrameAssignment) -> str:
    """Return the address of the worker's page for feedback."""
    return proof.assignment_feedback_path(frame_assignment.proof)


def _hit_summary(hit: HIT, questions: list[Question]) -> dict[str, Any]:
    """Return the summary of the HIT for the top of the page."""
    return {
        "of": len(questions),
        "reward": hit.reward,
        "extra": sum((question.extra for question in questions), ZERO),
        "seconds": sum(question.seconds for question in questions),
    }


def refusal_page(
    request: HttpRequest, sentence: str, status: int = 200, *, say: str = ""
) -> HttpResponse:
    """Return a page with a refusal, and a link for feedback."""
    return render(
        request, "annotation/task_no.html", {"sentence": sentence, "say": say}, status=status
    )


@in_frame
@require_GET
def show_task_document(request: HttpRequest, signed: str, pk: int) -> HttpResponse:
    """Return the whole document of a question to the holder of the HIT."""
    claims = proof.signed_fields(request.GET.get("proof", ""))
    if not claims or claims.get("hit") != proof.hit_in_signed_path(signed):
        return refusal_page(request, NOT_OURS, 403)
    asked = get_object_or_404(Question.objects.select_related("target"), pk=pk, hits=claims["hit"])
    return show_whole_document(request, asked)


@in_frame
@require_GET
def show_payment(request: HttpRequest, signed: str) -> HttpResponse:
    """Return the page on which a worker accepts a payment: one button."""
    bonus = get_object_or_404(Bonus, pk=proof.bonus_in_signed_path(signed) or 0)
    site = url_origin(request.GET.get("turkSubmitTo", ""))
    assignment = request.GET.get("assignmentId", NOT_AVAILABLE)
    ready = site in frame_sites() and assignment != NOT_AVAILABLE
    fields = [("assignmentId", assignment[:LONGEST_ID]), ("thanks", "taken")] if ready else []
    path = platform_by_name(bonus.worker.platform).capabilities.submit_path
    context = {
        "action": f"{site}{path}" if ready else "",
        "fields": fields,
        "bonus": bonus,
    }
    return render(request, "annotation/task_thanks.html", context)


@csrf_exempt
@require_http_methods(["POST"])
def handle_notification(request: HttpRequest, signed: str) -> HttpResponse:
    """Handle a notification of a marketplace, which only hints at HITs to reconcile. The address
    itself is a secret.
    """
    platform = proof.platform_in_notification_path(signed)
    if platform is None:
        raise Http404
    body = request.body[:100_000]
    if (confirm := _confirmation_address(body)) and platform_by_name(
        platform
    ).account() is not None:
        note_confirmation(platform, confirm)
    make_hits_due(platform, _notified_hits(body))
    return HttpResponse(status=204)


def _confirmation_address(body: bytes) -> str:
    """Return the address that confirms notifications; empty if there is none. Only an admin follows
    it.
    """
    try:
        notification = json.loads(body)
        address = (
            str(notification["SubscribeURL"])
            if notification["Type"] == "SubscriptionConfirmation"
            else ""
        )
        parts = urlsplit(address)
    except (ValueError, TypeError, KeyError, RecursionError):
        return ""
    ours = (
        parts.scheme == "https"
        and (parts.hostname or "").endswith(".amazonaws.com")
        and "@" not in parts.netloc
    )
    return address if ours and len(address) <= 1000 else ""


def _notified_hits(body: bytes) -> list[str]:
    """Return the HITs that a notification names."""
    try:
        notification = json.loads(body)
        notification = (
            json.loads(notification["Message"])
            if isinstance(notification.get("Message"), str)
            else notification
        )
        return [str(event["HITId"]) for event in notification.get("Events", [])][:100]
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
        return []


PASSED = "You can accept our HITs in some minutes. You can close this page."


@never_cache
@csrf_exempt  # no cookie says who writes: the address does
@require_http_methods(["GET", "HEAD", "POST"])
def show_lessons(request: HttpRequest, signed: str) -> HttpResponse:
    """Return the terms, the tutorial, and its result."""
    worker = get_object_or_404(
        Worker, handle=proof.worker_in_signed_path(signed, proof.LEARN_SALT) or "-"
    )
    response = _lessons_page(request, worker)
    response["Referrer-Policy"] = "no-referrer"
    return response


def _lessons_page(request: HttpRequest, worker: Worker) -> HttpResponse:
    state = worker_admission(worker)
    if state.lesson is not None:
        entry = Entry(worker, state.lesson)
        if request.method == "POST" and (page := handle_entry_form(request, entry)) is not None:
            return page
        state = worker_admission(worker)
    if state.lesson is not None:
        return entry_page(request, Entry(worker, state.lesson))
    context = {
        "title": "You have passed" if state.held else "No work for you",
        "sentence": PASSED if state.held else state.why,
    }
    return render(request, "annotation/learned.html", context)
