"""The annotators' pages: what is open, one question at a time, drafts. HTTP only; what happens is
said elsewhere.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Concatenate, ParamSpec

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.db.models import OuterRef
from django.http import (
    Http404,
    HttpRequest,
    HttpResponse,
    HttpResponseRedirect,
    JsonResponse,
    QueryDict,
)
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_GET, require_POST

from annotation.hits import lease
from annotation.hits.submit import Outcome, submit
from annotation.hits.todays_set import todays_set
from annotation.interfaces.base import BadAnswer
from annotation.interfaces.registry import interface_of
from annotation.models import Assignment, Question, Title, Worker
from annotation.questions.titles import suggest
from annotation.workers.consent import agreed, has_consented
from annotation.workers.worker import worker_of
from kbpo import clock
from kbpo.corpus.models import Document

P = ParamSpec("P")
View = Callable[Concatenate[HttpRequest, P], HttpResponse]
WorkerView = Callable[Concatenate[HttpRequest, Worker, P], HttpResponse]

NOT_AN_ANNOTATOR = (
    "These pages are for annotators. Ask whoever runs this service for an invitation link, "
    "or try judging without an account."
)
NOT_YOURS = "This question was given to somebody else. Your own next question is waiting for you."
EXCLUDED = "We do not offer you more questions."
LOST = "Somebody else has this one now; your answer was not needed. Here is the next."
NOTHING_OPEN = "Nothing to judge right now."


def for_annotators(view: WorkerView[P]) -> View[P]:
    """The view, for people who are annotators; everybody else reads why not."""

    @never_cache
    @login_required
    def guarded(request: HttpRequest, /, *args: P.args, **kwargs: P.kwargs) -> HttpResponse:
        if not request.user.is_annotator:  # type: ignore[union-attr]
            return refused(request, NOT_AN_ANNOTATOR, link=reverse("try"), action="Try judging")
        return view(request, worker_of(request.user), *args, **kwargs)  # type: ignore[arg-type]

    return guarded


def refused(
    request: HttpRequest, sentence: str, *, link: str = "", action: str = "", status: int = 403
) -> HttpResponse:
    """A page with one sentence that says why not, and where to go on."""
    context = {"sentence": sentence, "link": link, "action": action}
    return render(request, "annotation/refused.html", context, status=status)


def interface_title(question: Question) -> str:
    """What a question was about, in a line."""
    document = question.payload.get("document", {})
    sides = [question.payload[side]["gloss"] for side in ("a", "b") if side in question.payload]
    return " and ".join(sides) + (f", in {document['title']}" if document.get("title") else "")


@require_GET
@for_annotators
def next_question(request: HttpRequest, worker: Worker) -> HttpResponse:
    """To the question in hand, or the next one, or home if nothing is open."""
    return _to_next(request, worker)


def _to_next(request: HttpRequest, worker: Worker) -> HttpResponseRedirect:
    if worker.excluded_at is not None:
        messages.warning(request, EXCLUDED)
        return redirect("annotate")
    assignment = lease.lease(worker)
    if assignment is None and not has_consented(worker):
        return redirect("annotate_terms")
    if assignment is None and (lesson := lease.to_learn(worker)):
        return redirect("annotate_tutorial", interface=lesson)
    if assignment is None:
        messages.info(request, NOTHING_OPEN)
        return redirect("annotate")
    return redirect("annotate_question", token=assignment.token)


@for_annotators
def question(request: HttpRequest, worker: Worker, token: str) -> HttpResponse:
    """The question in a worker's hands (GET), or their answer to it (POST)."""
    assignment = _mine(worker, token)
    if assignment is None:
        return refused(request, NOT_YOURS, link=reverse("annotate_next"), action="Next question")
    if not assignment.consented:  # type: ignore[attr-defined]
        # The terms changed meanwhile: what was answered is kept, and shown again.
        if request.method == "POST":
            lease.renew(assignment, raw_of(request.POST))
        return redirect(reverse("annotate_terms") + f"?next={request.path}")
    if request.method == "POST":
        return _answer(request, worker, assignment)
    if assignment.status == "leased" or lease.revive(assignment):
        lease.renew(assignment)
        return _page(request, assignment, assignment.draft)
    messages.info(
        request, LOST if assignment.status == "returned" else "You have answered this one already."
    )
    return _to_next(request, worker)


def _mine(worker: Worker, token: str) -> Assignment | None:
    """The assignment with this token if it is this worker's; Http404 if there is none at all."""
    rows = Assignment.objects.select_related("hit__track").prefetch_related("hit__questions")
    assignment = get_object_or_404(rows.annotate(consented=agreed(OuterRef("worker"))), token=token)
    if assignment.worker_id != worker.pk:
        return None
    assignment.worker = worker
    return assignment


def _answer(request: HttpRequest, worker: Worker, assignment: Assignment) -> HttpResponse:
    raw = raw_of(request.POST)
    try:
        outcome = submit(assignment, raw)
    except BadAnswer as bad:
        lease.renew(assignment, raw)
        return _page(request, assignment, raw, error=str(bad))
    if outcome is Outcome.LOST:
        messages.info(request, LOST)
    return _to_next(request, worker)


def raw_of(form: QueryDict) -> dict[str, Any]:
    """A form exactly as it was sent, but for its CSRF token and for NUL, which no text has and no
    database keeps.
    """
    fields = (
        (name.replace("\0", ""), values)
        for name, values in form.lists()
        if name != "csrfmiddlewaretoken"
    )
    return {name: [value.replace("\0", "") for value in values] for name, values in fields}


def _page(
    request: HttpRequest, assignment: Assignment, answer: Any, *, error: str = ""
) -> HttpResponse:
    asked = assignment.hit.questions.all()[0]
    context = {
        "assignment": assignment,
        "standing": todays_set(assignment.worker, True),
        "addresses": {
            "draft": reverse("annotate_draft", args=[assignment.token]),
            "return": reverse("annotate_return", args=[assignment.token]),
            "whole": reverse("annotate_document", args=[assignment.token]),
            "next": reverse("annotate_next"),
        },
        "held": assignment.token,
        "elapsed": int((clock.now() - assignment.accepted_at).total_seconds()),
        "lease_seconds": int(lease.lease_time_of(assignment.hit).total_seconds()),
        "error": error,
    }
    return show(request, asked, answer, context, status=422 if error else 200)


def show(
    request: HttpRequest, asked: Question, answer: Any, context: dict[str, Any], status: int = 200
) -> HttpResponse:
    """A question on its interface's page."""
    interface = interface_of(asked.interface)
    shown = interface.render(asked, answer if isinstance(answer, dict) else None)
    page = {
        "reward": asked.reward,
        "seconds": asked.seconds,
        "script": interface.script,
        "page": shown,
        **context,
    }
    if interface.suggests_titles and _may_suggest(request, page) and Title.objects.exists():
        page["titles_url"] = reverse("annotate_titles")
    return render(request, interface.template, page, status=status)


def _may_suggest(request: HttpRequest, page: dict[str, Any]) -> bool:
    """Whether this page may ask for titles under our own login: a frame has an address of its own
    for them, or none.
    """
    return not page.get("framed") and request.user.is_authenticated


@require_GET
@login_required
def titles(request: HttpRequest) -> JsonResponse:
    """Titles that begin with `q`, as far as an index of them was loaded."""
    return JsonResponse({"titles": suggest(request.GET.get("q", "").replace("\0", ""))})


@require_POST
@for_annotators
def draft(request: HttpRequest, worker: Worker, token: str) -> HttpResponse:
    """Keeps a draft and renews the lease; says for how long."""
    assignment = _mine(worker, token)
    if assignment is None:
        return JsonResponse({"error": NOT_YOURS}, status=403)
    lease.revive(assignment)
    if not lease.renew(assignment, raw_of(request.POST)):
        return JsonResponse({"error": LOST}, status=409)
    return JsonResponse(
        {
            "saved": clock.now().isoformat(),
            "lease_seconds": int(lease.lease_time_of(assignment.hit).total_seconds()),
        }
    )


@require_POST
@for_annotators
def give_back(request: HttpRequest, worker: Worker, token: str) -> HttpResponse:
    """The worker would rather not answer this one."""
    assignment = _mine(worker, token)
    if assignment is None:
        return refused(request, NOT_YOURS, link=reverse("annotate_next"), action="Next question")
    if lease.give_back(assignment):
        messages.info(request, "You gave that question back. Here is another.")
    return _to_next(request, worker)


@require_GET
@for_annotators
def document(request: HttpRequest, worker: Worker, token: str) -> HttpResponse:
    """The whole document with the question's marks: a page of its own, from which the script takes
    the text.
    """
    assignment = _mine(worker, token)
    if assignment is None:
        return refused(request, NOT_YOURS, link=reverse("annotate_next"), action="Next question")
    return whole(request, assignment.hit.questions.select_related("target")[0])


def whole(request: HttpRequest, asked: Question) -> HttpResponse:
    """The document of a question, whole."""
    found = get_object_or_404(Document, pk=asked.target.document_id)
    context = interface_of(asked.interface).whole(asked, found.text) | {
        "title": found.title or found.key
    }
    return render(request, "annotation/document.html", context)


@require_GET
@login_required
def preview(request: HttpRequest, pk: int) -> HttpResponse:
    """A question as its workers see it, to be read only; for administrators."""
    if not request.user.is_staff:
        raise Http404
    return show(request, get_object_or_404(Question, pk=pk), None, {"preview": True})
