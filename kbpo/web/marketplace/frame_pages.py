"""The other pages in a marketplace's frame: documents, payments, notifications, and the tutorial
before the first HIT.
"""

from __future__ import annotations

import json
from urllib.parse import urlsplit

from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, render
from django.views.decorators.cache import never_cache
from django.views.decorators.csrf import csrf_exempt
from django.views.decorators.http import require_GET, require_http_methods

from annotation.interfaces.registry import interface_of
from annotation.marketplace.admit import admission_of
from annotation.marketplace.books import note_confirmation
from annotation.marketplace.reconcile import hint
from annotation.models import Bonus, Question, Worker
from annotation.platforms import proof
from annotation.platforms.registry import frame_sites, platform_of
from kbpo.corpus.models import Document
from kbpo.web.marketplace.entry import Entry, entry_page, take_step
from kbpo.web.marketplace.frame import LONGEST_ID, framed, origin_of
from kbpo.web.marketplace.task import NOT_AVAILABLE, NOT_OURS, no


@framed
@require_GET
def document(request: HttpRequest, signed: str, pk: int) -> HttpResponse:
    """Return the whole document of a question to the holder of the HIT."""
    claims = proof.signed_fields(request.GET.get("proof", ""))
    if not claims or claims.get("hit") != proof.hit_of(signed):
        return no(request, NOT_OURS, 403)
    asked = get_object_or_404(Question.objects.select_related("target"), pk=pk, hits=claims["hit"])
    document = get_object_or_404(Document, pk=asked.target.document_id)
    context = interface_of(asked.interface).whole(asked, document.text) | {
        "title": document.title or document.key
    }
    return render(request, "annotation/document.html", context)


@framed
@require_GET
def thanks(request: HttpRequest, signed: str) -> HttpResponse:
    """Return the page on which a worker takes a payment: one button."""
    bonus = get_object_or_404(Bonus, pk=proof.bonus_of(signed) or 0)
    site = origin_of(request.GET.get("turkSubmitTo", ""))
    assignment = request.GET.get("assignmentId", NOT_AVAILABLE)
    ready = site in frame_sites() and assignment != NOT_AVAILABLE
    fields = [("assignmentId", assignment[:LONGEST_ID]), ("thanks", "taken")] if ready else []
    path = platform_of(bonus.worker.platform).capabilities.submit_path
    context = {
        "action": f"{site}{path}" if ready else "",
        "fields": fields,
        "bonus": bonus,
    }
    return render(request, "annotation/task_thanks.html", context)


@csrf_exempt
@require_http_methods(["POST"])
def notify(request: HttpRequest, signed: str) -> HttpResponse:
    """Handle a notification of a marketplace as a hint where to look. The address itself is a
    secret.
    """
    platform = proof.platform_of_notification(signed)
    if platform is None:
        raise Http404
    body = request.body[:100_000]
    if (confirm := _confirmation_address(body)) and platform_of(platform).account() is not None:
        note_confirmation(platform, confirm)
    hint(platform, _notified_hits(body))
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


PASSED = (
    "The marketplace gives you our qualification within some minutes; then you can accept our HITs "
    "there. You can close this page."
)


@never_cache
@csrf_exempt  # no cookie says who writes: the address does
@require_http_methods(["GET", "HEAD", "POST"])
def learn(request: HttpRequest, signed: str) -> HttpResponse:
    """Return the terms, the tutorial, and its result."""
    worker = get_object_or_404(Worker, handle=proof.worker_of_path(signed, proof.LEARN_SALT) or "-")
    response = _page(request, worker)
    response["Referrer-Policy"] = "no-referrer"
    return response


def _page(request: HttpRequest, worker: Worker) -> HttpResponse:
    state = admission_of(worker)
    if state.lesson is not None:
        entry = Entry(worker, state.lesson)
        if request.method == "POST" and (page := take_step(request, entry)) is not None:
            return page
        state = admission_of(worker)
    if state.lesson is not None:
        return entry_page(request, Entry(worker, state.lesson))
    context = {
        "title": "You have passed" if state.held else "No work for you",
        "sentence": PASSED if state.held else state.why,
    }
    return render(request, "annotation/learned.html", context)
