"""The page on which admins give the right answer to a question, for gold."""

from __future__ import annotations

from typing import Any

from django.contrib import messages
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect
from django.urls import reverse

from annotation.hits.parts import part
from annotation.interfaces.base import BadAnswer
from annotation.models import Assignment, Question
from annotation.quality.gold import CannotMake, make_gold
from annotation.questions.known import is_open, known_answer, questions_about
from kbpo.tracks.models import Track
from kbpo.web.http import admin_of, for_admins, why_of
from kbpo.web.judging.views import raw_of, show


@for_admins
def known_gold(request: HttpRequest, slug: str, pk: int) -> HttpResponse:
    """Return the page on which an admin edits the known answer of a question that nobody has been
    asked on this track. A POST makes it a gold question.
    """
    track = get_object_or_404(Track, slug=slug)
    made = request.method == "POST"
    questions = questions_about(track, [pk], made=made) if is_open(track, pk) else []
    if not questions:
        raise Http404
    return _decide(request, questions[0], known_answer(questions[0]))


@for_admins
def gold(request: HttpRequest, pk: int) -> HttpResponse:
    """Return the page on which an admin edits an answer to a settled question. A POST makes it a
    gold question.
    """
    source = get_object_or_404(Question.objects.select_related("track"), pk=pk, status="settled")
    assignments = Assignment.objects.filter(
        hit__questions=source, responses__counts=True, raw__isnull=False
    )
    earliest = assignments.order_by("pk").first()
    given = part(source, earliest.raw) if earliest and isinstance(earliest.raw, dict) else None
    return _decide(request, source, given)


def _decide(request: HttpRequest, source: Question, answer: object) -> HttpResponse:
    """Return the page of the question with an answer to begin with (GET), or make the gold question
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
        return show(request, source, answer, context)
    raw, why = raw_of(request.POST), why_of(request)
    raw.pop("why", None)  # a reason is no part of the answer
    try:
        made = make_gold(source, raw, admin_of(request), why)
    except (BadAnswer, CannotMake) as bad:
        return show(request, source, raw, context | {"error": str(bad), "why": why}, status=422)
    messages.success(
        request, f"Gold question {made.pk} is made. It is dealt out at the rate of the track."
    )
    return redirect(back)
