"""Task pages: a HIT inside the frame of a marketplace. HTTP only; no cookie is read, set or needed.

A preview shows the first question and stores nothing. Accepted, the questions come one after the other; each answer is
checked here and carried on in the form. At the end the page sends the whole of it to the marketplace by a plain form,
and from there it comes back to us: what we keep meanwhile is a draft, and never an answer.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from functools import wraps
from typing import Any, Concatenate, ParamSpec
from urllib.parse import urlencode, urlsplit

from django.conf import settings
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, render
from django.urls import reverse
from django.views.decorators.cache import never_cache
from django.views.decorators.clickjacking import xframe_options_exempt
from django.views.decorators.csrf import csrf_exempt
from django.views.decorators.http import require_GET, require_http_methods

from annotation import proof
from annotation.elsewhere import hint
from annotation.interfaces.base import BadAnswer
from annotation.interfaces.registry import interface_of
from annotation.keep_draft import keep_draft
from annotation.models import ANSWERED, HIT, Assignment, Bonus, Question, Worker
from annotation.parts import joined, part, read
from annotation.platforms.mturk.question import duration_of
from annotation.views import raw_of, show
from annotation.worker import handle_of
from kbpo.corpus.models import Document

P = ParamSpec("P")
NOT_AVAILABLE = "ASSIGNMENT_ID_NOT_AVAILABLE"
LONGEST_ID = 120
ENDED = ("cancelled", "settled", "given_up")
CARRIED = ("proof", "answer")
NOT_OURS = "This page was not opened by a marketplace that we know. Nothing can be sent from here."
MET = "You have judged this text before. Please return this HIT: another one will be new to you."
EXCLUDED = "We do not offer you more questions. Please return this HIT; it costs you nothing."
GONE = "This HIT is not needed any more. Please return it; it costs you nothing."


@dataclass(frozen=True)
class Go:
    """One worker's go at a HIT, as the marketplace or our own signed form names it."""

    hit: HIT
    assignment: str
    handle: str
    site: str

    @property
    def proof(self) -> str:
        return proof.prove(self.hit.pk, self.assignment, self.handle, self.site)


def framed(view: Callable[Concatenate[HttpRequest, P], HttpResponse]) -> Callable[..., HttpResponse]:
    """The view, for pages that the marketplaces we know may show in a frame, and nobody else."""

    @wraps(view)
    @never_cache
    @csrf_exempt
    @xframe_options_exempt
    def guarded(request: HttpRequest, /, *args: P.args, **kwargs: P.kwargs) -> HttpResponse:
        response = view(request, *args, **kwargs)
        sites = " ".join(settings.MTURK_WORKER_SITES) or "'none'"
        response["Content-Security-Policy"] = f"frame-ancestors {sites}; form-action 'self' {sites}"
        response["Referrer-Policy"] = "no-referrer"
        return response

    return guarded


@framed
@require_http_methods(["GET", "HEAD", "POST"])
def task(request: HttpRequest, signed: str) -> HttpResponse:
    """A HIT: its preview, its questions one after the other, and the form that sends it in."""
    hit = get_object_or_404(HIT.objects.select_related("track"), pk=proof.hit_of(signed) or 0)
    questions = list(hit.questions.order_by("order", "pk"))
    if not questions:
        raise Http404
    assignment = request.GET.get("assignmentId", NOT_AVAILABLE)
    if request.method != "POST" and (assignment == NOT_AVAILABLE or "workerId" not in request.GET):
        return show(request, questions[0], None, {"preview": True, "framed": True, "about": _about(questions)})
    go = _go_of_form(request, hit) if request.method == "POST" else _go_of_address(request, hit, assignment)
    if go is None:
        return _no(request, NOT_OURS, 403)
    if why := _why_not(go, questions):
        return _no(request, why)
    return _answer(request, go, questions) if request.method == "POST" else _begin(request, go, questions)


def _go_of_address(request: HttpRequest, hit: HIT, assignment: str) -> Go | None:
    """The go that a marketplace names in the address; None if it is not one that we know."""
    worker, site = request.GET["workerId"], origin_of(request.GET.get("turkSubmitTo", ""))
    sound = 0 < len(worker) <= LONGEST_ID and 0 < len(assignment) <= LONGEST_ID
    if not sound or site not in settings.MTURK_WORKER_SITES:
        return None
    return Go(hit, assignment, handle_of(hit.platform, worker), site)


def _go_of_form(request: HttpRequest, hit: HIT) -> Go | None:
    """The go that our own form names; None if the form is not ours, or of another HIT."""
    said = proof.proven(request.POST.get("proof", ""))
    if said.get("hit") != hit.pk or said.get("site") not in settings.MTURK_WORKER_SITES:
        return None
    return Go(hit, said["assignment"], said["worker"], said["site"])


def origin_of(address: str) -> str:
    """Scheme, host and port of an address; nothing if it has more than these that could lead elsewhere."""
    try:
        parts = urlsplit(address)
        plain = parts.scheme in ("https", "http") and parts.hostname and "@" not in parts.netloc
    except ValueError:
        return ""
    return f"{parts.scheme}://{parts.netloc}" if plain else ""


def _why_not(go: Go, questions: list[Question]) -> str:
    """Why this worker cannot do this HIT, as a sentence; nothing if they can."""
    worker = Worker.objects.filter(handle=go.handle).first()
    if worker is not None and worker.excluded_at is not None:
        return EXCLUDED
    in_hand = go.hit.assignments.filter(worker__handle=go.handle, external_id=go.assignment, draft__isnull=False)
    if all(question.status in ENDED for question in questions) and not in_hand.exists():
        return GONE
    if worker is None:
        return ""
    met = Assignment.objects.filter(worker=worker, status__in=[*ANSWERED, "rejected", "failed"])
    targets = [question.target_id for question in questions]
    others = met.filter(hit__questions__target__in=targets, hit__questions__interface=questions[0].interface)
    rounds = {question.round for question in questions}
    return MET if others.filter(hit__questions__round__in=rounds).exclude(external_id=go.assignment).exists() else ""


def _begin(request: HttpRequest, go: Go, questions: list[Question]) -> HttpResponse:
    """The first question; what this worker left half done in this go is still there."""
    draft = keep_draft(go.hit, go.assignment, go.handle, None, timedelta(seconds=duration_of(go.hit)))
    done = {question.pk: part(question, draft) for question in questions if _is_done(question, draft)}
    return _next(request, go, questions, done)


def _is_done(question: Question, raw: dict[str, Any]) -> bool:
    mine = part(question, raw) if raw else {}
    try:
        return bool(mine) and bool(interface_of(question.interface).parse(question, mine))
    except BadAnswer:
        return False


def _answer(request: HttpRequest, go: Go, questions: list[Question]) -> HttpResponse:
    """The next question, or the same one with what is missing, or the form that sends everything in."""
    carried = read(request.POST.get("answer", ""))
    done = {question.pk: part(question, carried) for question in questions if _is_done(question, carried)}
    asked = next((question for question in questions if question.pk not in done), None)
    if asked is None:
        return _send(request, go, questions, done)
    raw = {name: values for name, values in raw_of(request.POST).items() if name not in CARRIED}
    try:
        interface_of(asked.interface).parse(asked, raw)
    except BadAnswer as bad:
        return _page(request, go, questions, done, answer=raw, error=str(bad))
    done[asked.pk] = raw
    keep_draft(go.hit, go.assignment, go.handle, joined(questions, done), timedelta(seconds=duration_of(go.hit)))
    return _next(request, go, questions, done)


def _next(request: HttpRequest, go: Go, questions: list[Question], done: dict[int, dict[str, Any]]) -> HttpResponse:
    if len(done) == len(questions):
        return _send(request, go, questions, done)
    return _page(request, go, questions, done)


def _page(
    request: HttpRequest, go: Go, questions: list[Question], done: dict[int, dict[str, Any]], *,
    answer: dict[str, Any] | None = None, error: str = "",
) -> HttpResponse:  # fmt: skip
    asked = next(question for question in questions if question.pk not in done)
    whole = reverse("task_document", kwargs={"signed": request.resolver_match.kwargs["signed"], "pk": asked.pk})  # type: ignore[union-attr]
    context = {
        "framed": True, "about": _about(questions), "number": len(done) + 1, "of": len(questions), "error": error,
        "carried": [("proof", go.proof), ("answer", json.dumps(joined(questions, done)))],
        "addresses": {"whole": f"{whole}?{urlencode({'proof': go.proof})}"},
    }  # fmt: skip
    return show(request, asked, answer, context, status=422 if error else 200)


def _send(request: HttpRequest, go: Go, questions: list[Question], done: dict[int, dict[str, Any]]) -> HttpResponse:
    """The form that carries the whole answer to the marketplace."""
    hint(go.hit.platform, [go.hit.external_id])
    fields = [("assignmentId", go.assignment), ("proof", go.proof), ("answer", json.dumps(joined(questions, done)))]
    context = {"action": f"{go.site}/mturk/externalSubmit", "fields": fields, "n": len(questions)}
    return render(request, "annotation/task_send.html", context)


def _about(questions: list[Question]) -> dict[str, Any]:
    """What the line on top says of the whole HIT."""
    return {
        "of": len(questions),
        "reward": sum(question.reward for question in questions),
        "seconds": sum(question.seconds for question in questions),
    }


def _no(request: HttpRequest, sentence: str, status: int = 200) -> HttpResponse:
    return render(request, "annotation/task_no.html", {"sentence": sentence}, status=status)


@framed
@require_GET
def document(request: HttpRequest, signed: str, pk: int) -> HttpResponse:
    """The whole document of a question, for whoever has the HIT in hand."""
    said = proof.proven(request.GET.get("proof", ""))
    if not said or said.get("hit") != proof.hit_of(signed):
        return _no(request, NOT_OURS, 403)
    asked = get_object_or_404(Question.objects.select_related("target"), pk=pk, hits=said["hit"])
    found = get_object_or_404(Document, pk=asked.target.document_id)
    context = interface_of(asked.interface).whole(asked, found.text) | {"title": found.title or found.key}
    return render(request, "annotation/document.html", context)


@framed
@require_GET
def thanks(request: HttpRequest, signed: str) -> HttpResponse:
    """The page by which somebody takes a payment that we owe them: one button."""
    bonus = get_object_or_404(Bonus, pk=proof.bonus_of(signed) or 0)
    site = origin_of(request.GET.get("turkSubmitTo", ""))
    assignment = request.GET.get("assignmentId", NOT_AVAILABLE)
    ready = site in settings.MTURK_WORKER_SITES and assignment != NOT_AVAILABLE
    fields = [("assignmentId", assignment[:LONGEST_ID]), ("thanks", "taken")] if ready else []
    context = {"action": f"{site}/mturk/externalSubmit" if ready else "", "fields": fields, "bonus": bonus}
    return render(request, "annotation/task_thanks.html", context)


@csrf_exempt
@require_http_methods(["POST"])
def notify(request: HttpRequest, signed: str) -> HttpResponse:
    """A marketplace's notification: a hint where to look, and nothing else. The address itself is the secret."""
    platform = proof.platform_of_hook(signed)
    if platform is None:
        raise Http404
    hint(platform, _hits_named(request.body[:100_000]))
    return HttpResponse(status=204)


def _hits_named(body: bytes) -> list[str]:
    """The HITs that a notification names, inside the envelope of the service that delivered it."""
    try:
        said = json.loads(body)
        said = json.loads(said["Message"]) if isinstance(said.get("Message"), str) else said
        return [str(event["HITId"]) for event in said.get("Events", [])][:100]
    except (ValueError, TypeError, KeyError, AttributeError):
        return []
