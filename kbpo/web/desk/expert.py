"""The page on which an expert answers a question of the crowd, without seeing its answers or the
reason. For admins.
"""

from __future__ import annotations

from typing import Any

from django.contrib import messages
from django.http import Http404, HttpRequest, HttpResponse, JsonResponse
from django.shortcuts import get_object_or_404, redirect
from django.urls import reverse
from django.views.decorators.http import require_GET, require_POST

from annotation.desk.experts import judged_by_filter, parse_and_store_answer, question_from_check
from annotation.hits.parts import answer_to_question
from annotation.interfaces.base import BadAnswer
from annotation.models import Assignment, Question
from annotation.quality.gold import CannotMake, make_gold
from annotation.questions.ask import can_be_gold, imported_answer, unsaved_questions_about_targets
from kbpo import clock
from kbpo.accounts.models import User
from kbpo.experts import queue
from kbpo.experts.queue import HOLD, Outcome, open_checks
from kbpo.sampling.models import ExpertCheck
from kbpo.tracks.models import Track
from kbpo.web.http import current_admin, for_admins, form_reason
from kbpo.web.judging.views import raw_fields, render_question, show_whole_document

NOTHING = "No judgment of this track is waiting for an expert."
WHY_NOT = {
    Outcome.LOST: "Somebody else is answering this one. Here is the next.",
    Outcome.ALREADY: "This one was answered already. Here is the next.",
    Outcome.NOT_YOURS: "You or your team are involved: somebody else must answer it.",
}


@require_GET
@for_admins
def redirect_to_next_expert_question(request: HttpRequest, slug: str) -> HttpResponse:
    """Redirect to the expert's next question, or to the page of experts if there is none."""
    return _redirect_to_next(request, current_admin(request), get_object_or_404(Track, slug=slug))


def _redirect_to_next(
    request: HttpRequest, user: User, track: Track, outcome: Outcome = Outcome.STORED
) -> HttpResponse:
    if outcome is not Outcome.STORED:
        messages.info(request, WHY_NOT[outcome])
    check = queue.take_next_check(track, user, judged_by_filter(user))
    if check is not None:
        return redirect("expert-question", slug=track.slug, pk=check.pk)
    left = open_checks(track).count()
    reason = f"None of the {left} open questions is for you."
    messages.info(request, reason if left else NOTHING)
    return redirect("desk-experts", slug=track.slug)


@for_admins
def show_expert_question(request: HttpRequest, slug: str, pk: int) -> HttpResponse:
    """Return a question (GET), or store the answer (POST), and go to the trail of a dispute or the
    next question.
    """
    user = current_admin(request)
    track = get_object_or_404(Track, slug=slug)
    checks = ExpertCheck.objects.select_related("track", "target", "round")
    row = checks.filter(track=track, pk=pk).first()
    if row is None:  # its round was ended, and with it what was open
        return _redirect_to_next(request, user, track, Outcome.ALREADY)
    error = ""
    if request.method == "POST":
        raw = raw_fields(request.POST)
        try:
            outcome = parse_and_store_answer(row, raw, user)
        except BadAnswer as bad:
            error, outcome = str(bad), queue.hold_check(row, user, judged_by_filter(user), raw)
        else:
            if outcome is Outcome.STORED and row.kind == "dispute":
                return redirect("desk-trail", slug=slug, pk=pk)
            return _redirect_to_next(request, user, track, outcome)
    else:
        outcome = queue.hold_check(row, user, judged_by_filter(user))
    if outcome is not Outcome.STORED:
        return _redirect_to_next(request, user, track, outcome)
    address = {"slug": slug, "pk": pk}
    context = {
        "deciding": "Your own judgment",
        "what_happens": "Other answers and the reason for this check are hidden.",
        "back": reverse("desk-experts", args=[slug]),
        "addresses": {
            "draft": reverse("expert-draft", kwargs=address),
            "whole": reverse("expert-document", kwargs=address),
            "next": reverse("expert-next", args=[slug]),
        },
        "held": f"expert-{pk}",
        "elapsed": 0,
        "lease_seconds": int(HOLD.total_seconds()),
        "error": error,
    }
    return render_question(
        request, question_from_check(row), row.draft, context, status=422 if error else 200
    )


def _find_check(slug: str, pk: int) -> ExpertCheck:
    checks = ExpertCheck.objects.select_related("track", "target")
    return get_object_or_404(checks, track__slug=slug, pk=pk)


@require_POST
@for_admins
def store_expert_draft(request: HttpRequest, slug: str, pk: int) -> HttpResponse:
    """Store the draft of an expert's answer, and keep the question reserved for them."""
    user = current_admin(request)
    outcome = queue.hold_check(
        _find_check(slug, pk), user, judged_by_filter(user), raw_fields(request.POST)
    )
    if outcome is not Outcome.STORED:
        return JsonResponse({"error": WHY_NOT[outcome]}, status=409)
    return JsonResponse(
        {"saved": clock.now().isoformat(), "lease_seconds": int(HOLD.total_seconds())}
    )


@require_GET
@for_admins
def show_expert_document(request: HttpRequest, slug: str, pk: int) -> HttpResponse:
    """Return the whole document with the marks of the question."""
    return show_whole_document(request, question_from_check(_find_check(slug, pk)))


@for_admins
def make_gold_from_known(request: HttpRequest, slug: str, pk: int) -> HttpResponse:
    """Return the page on which an admin edits the known answer of a question that nobody has been
    asked on this track. A POST makes it a gold question.
    """
    track = get_object_or_404(Track, slug=slug)
    made = request.method == "POST"
    questions = (
        unsaved_questions_about_targets(track, [pk], is_stored=made)
        if can_be_gold(track, pk)
        else []
    )
    if not questions:
        raise Http404
    return _make_gold(request, questions[0], imported_answer(questions[0]))


@for_admins
def make_gold_from_answer(request: HttpRequest, pk: int) -> HttpResponse:
    """Return the page on which an admin edits an answer to a settled question. A POST makes it a
    gold question.
    """
    source = get_object_or_404(Question.objects.select_related("track"), pk=pk, status="settled")
    assignments = Assignment.objects.filter(
        hit__questions=source, responses__counts=True, raw__isnull=False
    )
    earliest = assignments.order_by("pk").first()
    given = (
        answer_to_question(source, earliest.raw)
        if earliest and isinstance(earliest.raw, dict)
        else None
    )
    return _make_gold(request, source, given)


def _make_gold(request: HttpRequest, source: Question, answer: object) -> HttpResponse:
    """Return the page of the question with an initial answer (GET), or make the gold question
    (POST).
    """
    back = reverse("desk-gold", args=[source.track.slug])
    context: dict[str, Any] = {
        "deciding": "The right answer, for gold",
        "back": back,
        "elapsed": 0,
        "asks_why": True,
    }
    if request.method != "POST":
        return render_question(request, source, answer, context)
    raw, why = raw_fields(request.POST), form_reason(request)
    raw.pop("why", None)  # a reason is no part of the answer
    try:
        made = make_gold(source, raw, current_admin(request), why)
    except (BadAnswer, CannotMake) as bad:
        return render_question(
            request, source, raw, context | {"error": str(bad), "why": why}, status=422
        )
    messages.success(
        request, f"Gold question {made.pk} is created. It is used at the rate of the track."
    )
    return redirect(back)
