"""Experts answer what the crowd was asked: the same question on the same page, without a word of
what the crowd said or why it is asked. For admins.

One page has two addresses: one of checks, which correct scores and go on to the next, and one of
what was picked or drawn for an error rate, which goes on to its trail.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from django.contrib import messages
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.shortcuts import get_object_or_404, redirect
from django.urls import reverse
from django.views.decorators.http import require_GET, require_POST

from annotation.desk import adjudicate as picked
from annotation.desk.adjudicate import PICKED, CannotAsk, answered_by, judged_by, question_of
from annotation.interfaces.base import BadAnswer
from kbpo import clock
from kbpo.accounts.models import User
from kbpo.experts import draw, queue
from kbpo.experts.queue import HOLD, Outcome, waiting
from kbpo.sampling.models import ExpertCheck
from kbpo.tracks.models import Track
from kbpo.web.http import admin_of, for_admins
from kbpo.web.judging.views import raw_of, show, whole

OWN = "Your own judgment"
"""What the page says of a question that is asked an expert, whatever it is asked for."""
BLIND = "You see neither what others said nor why this is asked."
NOTHING = "No judgment of this track waits for a check."
NOTHING_PICKED = "No judgment of this track waits for you."
LOST = "Somebody else has this one in hand now. Here is the next."
ALREADY = "This one was checked already. Here is the next."
NOT_YOURS = (
    "You raised, read or answered this one yourself, or your own team predicts something about it:"
    " somebody else must look at it."
)
WHY_NOT = {Outcome.LOST: LOST, Outcome.ALREADY: ALREADY, Outcome.NOT_YOURS: NOT_YOURS}


@dataclass(frozen=True)
class Door:
    """One of the two addresses of the page: which checks it opens, and where it leads."""

    kinds: tuple[str, ...]
    names: dict[str, str]
    """Name of an address: of the page, its draft, its whole document, the next, the list"""
    held: str

    def find(self, slug: str, pk: int) -> ExpertCheck:
        """Return a check of this door. Raises Http404."""
        checks = ExpertCheck.objects.filter(kind__in=self.kinds).select_related("track", "target")
        return get_object_or_404(checks, track__slug=slug, pk=pk)


CHECKS = Door(
    ("check",),
    {
        "draft": "expert-draft",
        "whole": "expert-document",
        "next": "expert-next",
        "back": "desk-checks",
    },
    "check",
)
PICKS = Door(
    PICKED,
    {
        "draft": "adjudicate_draft",
        "whole": "adjudicate_document",
        "next": "adjudicate_next",
        "back": "desk-adjudication",
    },
    "adjudicate",
)


def _page(
    request: HttpRequest, door: Door, row: ExpertCheck, left: Any, *, error: str = ""
) -> HttpResponse:
    address, slug = {"slug": row.track.slug, "pk": row.pk}, row.track.slug
    context = {
        "deciding": OWN,
        "what_happens": BLIND,
        "back": reverse(door.names["back"], args=[slug]),
        "addresses": {
            "draft": reverse(door.names["draft"], kwargs=address),
            "whole": reverse(door.names["whole"], kwargs=address),
            "next": reverse(door.names["next"], args=[slug]),
        },
        "held": f"{door.held}-{row.pk}",
        "elapsed": 0,
        "lease_seconds": int(HOLD.total_seconds()),
        "error": error,
    }
    return show(request, question_of(row), left, context, status=422 if error else 200)


def _draft(request: HttpRequest, door: Door, slug: str, pk: int) -> HttpResponse:
    row, user = door.find(slug, pk), admin_of(request)
    outcome = queue.hold(row, user, judged_by(user), raw_of(request.POST))
    if outcome is not Outcome.STORED:
        return JsonResponse({"error": WHY_NOT[outcome]}, status=409)
    return JsonResponse(
        {"saved": clock.now().isoformat(), "lease_seconds": int(HOLD.total_seconds())}
    )


# -- Checks, which correct scores


@require_GET
@for_admins
def next_check(request: HttpRequest, slug: str) -> HttpResponse:
    """To the next check; says so if none is open."""
    return _to_next(request, admin_of(request), get_object_or_404(Track, slug=slug))


def _to_next(request: HttpRequest, user: User, track: Track) -> HttpResponse:
    check = queue.take(track, user, "check", judged_by(user))
    if check is not None:
        return redirect("expert-check", slug=track.slug, pk=check.pk)
    messages.info(request, _why_none(track))
    return redirect("desk-checks", slug=track.slug)


def _why_none(track: Track) -> str:
    left = waiting(track).filter(kind="check").count()
    if not left:
        return NOTHING
    return (
        f"None of the {left} open checks is for you: others hold them, you answered these"
        " questions as an annotator, or your own team predicts something about them."
    )


@for_admins
def check(request: HttpRequest, slug: str, pk: int) -> HttpResponse:
    """Return a check (GET), or an expert's answer to it (POST)."""
    user = admin_of(request)
    checks = ExpertCheck.objects.select_related("track", "target", "round")
    row = checks.filter(track__slug=slug, pk=pk, kind="check").first()
    if row is None:  # its round was ended, and with it what was open
        return _explain_and_go_on(
            request, user, get_object_or_404(Track, slug=slug), Outcome.ALREADY
        )
    if request.method == "POST":
        return _answer_check(request, user, row)
    outcome = queue.hold(row, user, judged_by(user))
    if outcome is not Outcome.STORED:
        return _explain_and_go_on(request, user, row.track, outcome)
    return _page(request, CHECKS, row, row.draft)


def _explain_and_go_on(
    request: HttpRequest, user: User, track: Track, outcome: Outcome
) -> HttpResponse:
    if outcome is not Outcome.STORED:
        messages.info(request, WHY_NOT[outcome])
    return _to_next(request, user, track)


def _answer_check(request: HttpRequest, user: User, row: ExpertCheck) -> HttpResponse:
    raw = raw_of(request.POST)
    try:
        value = answered_by(question_of(row), raw)
    except BadAnswer as bad:
        outcome = queue.hold(row, user, judged_by(user), raw)
        if outcome is not Outcome.STORED:
            return _explain_and_go_on(request, user, row.track, outcome)
        return _page(request, CHECKS, row, raw, error=str(bad))
    outcome = draw.answer(row, user, raw, value, judged_by(user))
    return _explain_and_go_on(request, user, row.track, outcome)


@require_POST
@for_admins
def draft(request: HttpRequest, slug: str, pk: int) -> HttpResponse:
    """Keeps a draft, and the check for its expert."""
    return _draft(request, CHECKS, slug, pk)


@require_GET
@for_admins
def document(request: HttpRequest, slug: str, pk: int) -> HttpResponse:
    """Return the whole document with the question's marks."""
    return whole(request, question_of(CHECKS.find(slug, pk)))


# -- What was picked, or drawn for an error rate


@for_admins
def adjudicate_next(request: HttpRequest, slug: str) -> HttpResponse:
    """To the next judgment that an expert is asked about, whatever it is in the queue for."""
    track = get_object_or_404(Track, slug=slug)
    row = picked.next_of(track, admin_of(request), checks=True)
    if row is None:
        messages.info(request, NOTHING_PICKED)
        return redirect("desk-adjudication", slug=slug)
    return redirect("expert-check" if row.kind == "check" else "adjudicate", slug=slug, pk=row.pk)


@for_admins
def adjudicate(request: HttpRequest, slug: str, pk: int) -> HttpResponse:
    """Return the question as its annotators saw it, without a word of what they said or why it is
    asked; a POST answers it.
    """
    user, row = admin_of(request), PICKS.find(slug, pk)
    if row.status != "open":
        return redirect("desk-trail", slug=slug, pk=pk)
    if not queue.askable(row.track, user, judged_by(user)).filter(pk=pk).exists():
        raise PermissionDenied(NOT_YOURS)
    if request.method == "POST":
        return _answer_picked(request, row, user)
    if row.kind == "random" and row != picked.next_of(row.track, user):
        # what was drawn at random is answered in its own order
        return redirect("adjudicate_next", slug=slug)
    outcome = queue.hold(row, user, judged_by(user))
    if outcome is not Outcome.STORED:
        messages.info(request, WHY_NOT[outcome])
        return redirect("adjudicate_next", slug=slug)
    return _page(request, PICKS, row, row.draft)


def _answer_picked(request: HttpRequest, row: ExpertCheck, user: User) -> HttpResponse:
    """The first answer counts, in whose hands the question ever is."""
    raw = raw_of(request.POST)
    try:
        picked.answer(row, raw, user)
    except BadAnswer as bad:
        queue.hold(row, user, judged_by(user), raw)
        return _page(request, PICKS, row, raw, error=str(bad))
    except CannotAsk as gone:
        messages.info(request, str(gone))
    return redirect("desk-trail", slug=row.track.slug, pk=row.pk)


@require_POST
@for_admins
def adjudicate_draft(request: HttpRequest, slug: str, pk: int) -> HttpResponse:
    """Keeps an expert's answer so far, and the question for them."""
    return _draft(request, PICKS, slug, pk)


@for_admins
def adjudicate_document(request: HttpRequest, slug: str, pk: int) -> HttpResponse:
    """Return the whole document with the question's marks, as its annotators could see it."""
    return whole(request, question_of(PICKS.find(slug, pk)))
