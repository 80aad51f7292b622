"""The page of a marketplace worker without an account: messages, feedback, appeals. Its address is
secret.
"""

from __future__ import annotations

from typing import Any

from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, render
from django.views.decorators.cache import never_cache
from django.views.decorators.csrf import csrf_exempt
from django.views.decorators.http import require_http_methods

from annotation.hits.parts import answer_statements
from annotation.models import UNLISTED, Worker
from annotation.platforms import proof
from annotation.workers import speak
from annotation.workers.worker import has_sent_in
from kbpo.web.judging.own_pages import APPEALED, store_feedback
from kbpo.web.judging.views import interface_title

LATEST = 5
"""Number of answers that a page shows in words"""


@never_cache
@csrf_exempt  # no cookie says who writes: the address does
@require_http_methods(["GET", "HEAD", "POST"])
def show_worker_page(request: HttpRequest, signed: str) -> HttpResponse:
    """Return the messages to a worker and their exclusion. A POST stores feedback or an appeal;
    from a frame whose assignment the platform has not listed, feedback alone.
    """
    handle, assignment = proof.worker_in_signed_path(signed), ""
    if not handle:
        handle, assignment = proof.read_assignment_path(signed)
    if not handle:
        raise Http404
    worker = get_object_or_404(Worker, handle=handle)
    is_theirs = not assignment or has_sent_in(worker, assignment)
    refusal = thanks = ""
    if request.method == "POST":
        try:
            if is_theirs and request.POST.get("verb") == "appeal":
                speak.store_appeal(worker, request.POST.get("text", ""))
                thanks = APPEALED
            else:
                thanks = store_feedback(worker, request.POST)
        except speak.CannotSay as cannot:
            refusal = str(cannot)
    asked = (
        worker.assignments.order_by("-pk")
        .values_list("hit__questions__interface", flat=True)
        .first()
    )
    context: dict[str, Any] = {
        "worker": worker,
        "refusal": refusal,
        "thanks": thanks,
        "sent": request.POST if refusal else {},
        "interface": asked or "",
        "is_theirs": is_theirs,
    }
    if is_theirs:
        context |= {
            "messages_to": worker.messages.order_by("-at")[:50],
            "appeals": worker.appeals.order_by("-made_at")[:10],
            "refusals": speak.current_rejections(worker),
            "answers": _own_answers(worker),
            "appealing": worker.appeals.filter(answered_at=None).exists(),
        }
    response = render(request, "annotation/say.html", context, status=422 if refusal else 200)
    response["Referrer-Policy"] = "no-referrer"
    return response


def _own_answers(worker: Worker) -> list[dict[str, Any]]:
    """Return the latest answers of a worker, and all that were rejected, in words."""
    assignments = worker.assignments.filter(raw__isnull=False).exclude(status__in=UNLISTED)
    assignments = assignments.select_related("hit", "worker").prefetch_related("hit__questions")
    refused = assignments.filter(status="rejected").order_by("-pk")[:LATEST]
    latest = [
        row for row in assignments.order_by("-submitted_at", "-pk")[:LATEST] if row not in refused
    ]
    return [
        {
            "about": interface_title(assignment.hit.questions.all()[0]),
            "sent": assignment.submitted_at,
            "refused": assignment.status == "rejected",
            "read": answer_statements(assignment),
        }
        for assignment in [*refused, *latest]
    ]
