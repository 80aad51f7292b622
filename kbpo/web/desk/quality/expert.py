"""Experts check the crowd: the same question on the same page, without a word of what the crowd
said. For admins.
"""

from __future__ import annotations

from decimal import Decimal
from typing import Any

from django.contrib import messages
from django.db.models import Q
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.shortcuts import get_object_or_404, redirect
from django.urls import reverse
from django.views.decorators.http import require_GET, require_POST

from annotation.desk.adjudicate import answered_by
from annotation.interfaces.base import BadAnswer
from annotation.interfaces.registry import interface_of
from annotation.models import Question, Response
from kbpo import clock
from kbpo.accounts.models import User
from kbpo.experts.draw import HOLD, Outcome, answer, hold, may_check, take, waiting
from kbpo.instances.models import Target
from kbpo.sampling.models import ExpertCheck
from kbpo.tracks.models import Track
from kbpo.web.access import admin_of, for_admins
from kbpo.web.desk.quality.decide import BLIND, OWN
from kbpo.web.judging.views import raw_of, show, whole

NOTHING = "No judgment of this track waits for a check."
LOST = "Somebody else is checking this one now; your answer was not needed. Here is the next."
OWN_TEAM = "Your own team states something about this one; somebody else has to check it."
ALREADY = "This one was checked already. Here is the next."


@require_GET
@for_admins
def next_check(request: HttpRequest, slug: str) -> HttpResponse:
    """To the next check; says so if none is open."""
    return _to_next(request, admin_of(request), get_object_or_404(Track, slug=slug))


def _to_next(request: HttpRequest, user: User, track: Track) -> HttpResponse:
    check = take(track, user, known=_answered_by(user))
    if check is not None:
        return redirect("expert-check", slug=track.slug, pk=check.pk)
    messages.info(request, _why_none(track))
    return redirect("desk-checks", slug=track.slug)


def _why_none(track: Track) -> str:
    left = waiting(track).count()
    if not left:
        return NOTHING
    return (
        f"None of the {left} open checks is for you: others hold them, you answered these"
        " questions as an annotator, or your own team states something about them."
    )


def _answered_by(user: User) -> Any:
    """Targets that a user judged as one of the crowd, alone or in a document that they read
    whole.
    """
    own = Response.objects.filter(assignment__worker__user=user)
    read = own.filter(target__kind=Target.Kind.DOCUMENT).values("target__document")
    return Target.objects.filter(Q(pk__in=own.values("target")) | Q(document__in=read)).values("pk")


@for_admins
def check(request: HttpRequest, slug: str, pk: int) -> HttpResponse:
    """A check (GET), or an expert's answer to it (POST)."""
    user = admin_of(request)
    row = ExpertCheck.objects.select_related("track").filter(track__slug=slug, pk=pk).first()
    if row is None:  # its round was ended, and with it what was open
        return _told(request, user, get_object_or_404(Track, slug=slug), Outcome.ALREADY)
    if not may_check(row, user):
        messages.info(request, OWN_TEAM)
        return _to_next(request, user, row.track)
    if request.method == "POST":
        return _answer(request, user, row)
    outcome = hold(row, user)
    if outcome is not Outcome.STORED:
        return _told(request, user, row.track, outcome)
    return _page(request, row, row.draft)


def _told(request: HttpRequest, user: User, track: Track, outcome: Outcome) -> HttpResponse:
    if outcome is not Outcome.STORED:
        messages.info(request, LOST if outcome is Outcome.LOST else ALREADY)
    return _to_next(request, user, track)


def _answer(request: HttpRequest, user: User, row: ExpertCheck) -> HttpResponse:
    raw = raw_of(request.POST)
    try:
        value = answered_by(question_of(row), raw)
    except BadAnswer as bad:
        hold(row, user, raw)
        return _page(request, row, raw, error=str(bad))
    return _told(request, user, row.track, answer(row, user, raw, value))


def question_of(row: ExpertCheck) -> Question:
    """The question that a check asks, as its interface takes it; it is not stored among the
    crowd's.
    """
    kind = interface_of(row.interface)
    return Question(
        interface=row.interface,
        payload=row.payload,
        target_id=row.target_id,
        shown=row.shown,
        reward=Decimal("0.00"),
        seconds=kind.default_seconds,
    )


def _page(request: HttpRequest, row: ExpertCheck, left: Any, *, error: str = "") -> HttpResponse:
    address = {"slug": row.track.slug, "pk": row.pk}
    context = {
        "deciding": OWN,
        "what_happens": BLIND,
        "back": reverse("desk-checks", args=[row.track.slug]),
        "addresses": {
            "draft": reverse("expert-draft", kwargs=address),
            "whole": reverse("expert-document", kwargs=address),
            "next": reverse("expert-next", args=[row.track.slug]),
        },
        "held": f"check-{row.pk}",
        "elapsed": 0,
        "lease_seconds": int(HOLD.total_seconds()),
        "error": error,
    }
    return show(request, question_of(row), left, context, status=422 if error else 200)


@require_POST
@for_admins
def draft(request: HttpRequest, slug: str, pk: int) -> HttpResponse:
    """Keeps a draft, and the check for its expert."""
    row = get_object_or_404(ExpertCheck, track__slug=slug, pk=pk)
    if hold(row, admin_of(request), raw_of(request.POST)) is not Outcome.STORED:
        return JsonResponse({"error": LOST}, status=409)
    return JsonResponse(
        {"saved": clock.now().isoformat(), "lease_seconds": int(HOLD.total_seconds())}
    )


@require_GET
@for_admins
def document(request: HttpRequest, slug: str, pk: int) -> HttpResponse:
    """The whole document with the question's marks."""
    row = get_object_or_404(ExpertCheck.objects.select_related("target"), track__slug=slug, pk=pk)
    return whole(request, question_of(row))
