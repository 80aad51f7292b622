"""Pages on which admins answer questions themselves: right answers of gold, and what experts are
asked about.
"""

from __future__ import annotations

from typing import Any

from django.contrib import messages
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.shortcuts import get_object_or_404, redirect
from django.urls import reverse
from django.views.decorators.http import require_POST

from annotation.desk.adjudicate import (
    DICE,
    HOLD,
    CannotAsk,
    answer,
    askable,
    hold,
    next_of,
    open_to,
)
from annotation.hits.parts import part
from annotation.interfaces.base import BadAnswer
from annotation.models import Adjudication, Assignment, Question
from annotation.quality.gold import CannotMake, make_gold
from kbpo import clock
from kbpo.accounts.models import User
from kbpo.experts.draw import waiting
from kbpo.tracks.models import Track
from kbpo.web.access import admin_of, for_admins
from kbpo.web.judging.views import raw_of, show, whole

OWN = "Your own judgment"
"""What the page says of a question that is asked an expert, whatever it is asked for."""
BLIND = "You see neither what others said nor why this is asked."
LOST = "Somebody else has this one in hand now. Here is the next."
ANSWERED = "This one is answered already."


@for_admins
def gold(request: HttpRequest, pk: int) -> HttpResponse:
    """The page of a settled question with an answer that was given, to be mended and made gold
    (POST).
    """
    source = get_object_or_404(Question.objects.select_related("track"), pk=pk, status="settled")
    back = reverse("desk-gold", args=[source.track.slug])
    context: dict[str, Any] = {
        "deciding": "The right answer, for gold",
        "back": back,
        "elapsed": 0,
        "asks_why": True,
    }
    if request.method != "POST":
        return show(request, source, _an_answer(source), context)
    raw, why = raw_of(request.POST), request.POST.get("why", "").replace("\x00", "").strip()[:500]
    raw.pop("why", None)  # a reason is no part of the answer
    try:
        made = make_gold(source, raw, admin_of(request), why)
    except (BadAnswer, CannotMake) as bad:
        return show(request, source, raw, context | {"error": str(bad), "why": why}, status=422)
    messages.success(
        request, f"Gold question {made.pk} is made. It is dealt out at the rate of the track."
    )
    return redirect(back)


def _an_answer(question: Question) -> object:
    """An answer that somebody gave to a question, to begin with; None if there is none that
    counts.
    """
    assignments = Assignment.objects.filter(
        hit__questions=question, responses__excluded_reason="", raw__isnull=False
    )
    first = assignments.order_by("pk").first()
    return part(question, first.raw) if first and isinstance(first.raw, dict) else None


@for_admins
def adjudicate_next(request: HttpRequest, slug: str) -> HttpResponse:
    """To the next judgment that an expert is asked about, whatever it is in the queue for."""
    track = get_object_or_404(Track, slug=slug)
    user = admin_of(request)
    row = next_of(track, user)
    entries, checks = open_to(track, user).count(), waiting(track).count()
    if (
        checks and DICE.random() * (entries + checks) < checks
    ):  # those that correct scores come in the same row
        return redirect("expert-next", slug=slug)
    if row is None:
        messages.info(request, "No judgment of this track waits for you.")
        return redirect("desk-adjudication", slug=slug)
    return redirect("adjudicate", slug=slug, pk=row.pk)


@for_admins
def adjudicate(request: HttpRequest, slug: str, pk: int) -> HttpResponse:
    """The question as its annotators saw it, without a word of what they said or why it is asked; a
    POST answers it.
    """
    user = admin_of(request)
    row = get_object_or_404(
        Adjudication.objects.select_related("question", "track"), track__slug=slug, pk=pk
    )
    if row.status != "open":
        return redirect("desk-trail", slug=slug, pk=pk)
    if not askable(row.track, user).filter(pk=pk).exists():
        raise PermissionDenied(
            "You raised, read or answered this one yourself, or your own team states something about"
            " it: somebody else must look at it."
        )
    if request.method == "POST":
        return _answer(request, row, user)
    if row.kind == "random" and row != next_of(row.track, user):
        return redirect(
            "adjudicate_next", slug=slug
        )  # what was drawn at random is answered in its own order
    if not hold(row, user):
        messages.info(request, LOST)
        return redirect("adjudicate_next", slug=slug)
    row.refresh_from_db(fields=["draft"])
    return _asked(request, row, row.draft)


def _answer(request: HttpRequest, row: Adjudication, user: User) -> HttpResponse:
    """The first answer counts, in whose hands the question ever is."""
    raw = raw_of(request.POST)
    try:
        answer(row, raw, user)
    except BadAnswer as bad:
        hold(row, user, raw)
        return _asked(request, row, raw, error=str(bad))
    except CannotAsk as gone:
        messages.info(request, str(gone))
    return redirect("desk-trail", slug=row.track.slug, pk=row.pk)


def _asked(request: HttpRequest, row: Adjudication, left: Any, *, error: str = "") -> HttpResponse:
    address = {"slug": row.track.slug, "pk": row.pk}
    context = {
        "deciding": OWN,
        "elapsed": 0,
        "what_happens": BLIND,
        "back": reverse("desk-adjudication", args=[row.track.slug]),
        "addresses": {
            "whole": reverse("adjudicate_document", kwargs=address),
            "draft": reverse("adjudicate_draft", kwargs=address),
            "next": reverse("adjudicate_next", args=[row.track.slug]),
        },
        "held": f"adjudicate-{row.pk}",
        "lease_seconds": int(HOLD.total_seconds()),
        "error": error,
    }
    return show(request, row.question, left, context, status=422 if error else 200)


@require_POST
@for_admins
def adjudicate_draft(request: HttpRequest, slug: str, pk: int) -> HttpResponse:
    """Keeps an expert's answer so far, and the question for them."""
    row = get_object_or_404(Adjudication.objects.select_related("track"), track__slug=slug, pk=pk)
    if not hold(row, admin_of(request), raw_of(request.POST)):
        return JsonResponse({"error": ANSWERED if row.status != "open" else LOST}, status=409)
    return JsonResponse(
        {"saved": clock.now().isoformat(), "lease_seconds": int(HOLD.total_seconds())}
    )


@for_admins
def document(request: HttpRequest, slug: str, pk: int) -> HttpResponse:
    """The whole document with the question's marks, as its annotators could see it."""
    row = get_object_or_404(
        Adjudication.objects.select_related("question__target"), track__slug=slug, pk=pk
    )
    return whole(request, row.question)
