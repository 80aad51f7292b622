"""The judging pages: one question at a time, and drafts."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any, Concatenate, ParamSpec

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.contrib.auth.views import redirect_to_login
from django.http import (
    Http404,
    HttpRequest,
    HttpResponse,
    HttpResponseRedirect,
    JsonResponse,
    QueryDict,
)
from django.middleware.csrf import get_token
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_GET, require_POST

from annotation.hits import lease
from annotation.hits.held import (
    HeldAssignment,
    assignment_by_token,
    count_answers_today,
    has_conflict_of_interest,
    questions_of_hit,
)
from annotation.hits.submit import Outcome, submit_answer
from annotation.interfaces.base import BadAnswer
from annotation.interfaces.registry import interface_by_name, interface_names
from annotation.models import Assignment, Question, Worker
from annotation.workers import volunteer
from annotation.workers.consent import has_consented
from annotation.workers.teach import interfaces_worker_may_answer
from annotation.workers.worker import (
    keyboard_settings_json,
    store_keyboard_settings,
    worker_of_user,
)
from kbpo import clock
from kbpo.corpus.models import Document
from kbpo.tracks.models import cached_guidelines
from kbpo.web.errors import error_page, is_script

RENEWS_BEFORE = timedelta(days=7)

P = ParamSpec("P")
View = Callable[Concatenate[HttpRequest, P], HttpResponse]
WorkerView = Callable[Concatenate[HttpRequest, Worker, P], HttpResponse]

NOT_AN_ANNOTATOR = "These pages are for annotators. Ask an admin for an invitation link."
IN_THE_QUEUE = "These pages are for annotators. No admin has answered your request yet."
TURNED_AWAY = "These pages are for annotators. An admin has answered your request."
NOT_YOURS = "This question was given to somebody else. Your next question is ready."
LOGGED_OUT = "You are logged out. Log in again: your answer is kept and will be sent."
LOGGED_OUT_KEPT = "You were logged out, and nothing was sent. Log in and send your saved answer."
OTHER_LOGIN = "You are logged in as {name} now. Log in as before and send your saved answer."
NOT_KEYS = "These shortcuts are not available. The old ones are kept."
STALE = "Nothing was sent, as you have logged in again. Send it again."
STALE_ELSEWHERE = "Nothing was changed: your login changed or cookies are blocked. Reload the page."
EXCLUDED = "We do not offer you more questions."
LOST = "Your time for this question ran out. Here is the next."
MAY_BE_SENT = "Your time ran out. Your answer no longer counts, but is paid if it is complete."
LATE = "Your answer came too late to count, but it is paid. Here is the next."
UNPAID = "Your answer came too late, and there is no money left to pay it. Here is the next."
ANSWERED_ALREADY = "You have already answered this question."
OF_YOUR_TEAM = "Your team pays for this question or predicts its answer: others judge it. "
NOT_TAKEN = OF_YOUR_TEAM + "Your answer was not stored. Here is the next."
GIVEN_BACK = "You returned this question. Here is the next."
NOTHING_OPEN = "Nothing to judge now."
NO_MORE = "No more questions of that kind. Choose another, or come back later."
STOPPED = "You stopped. Your draft is saved, unless somebody else takes the question."


def for_annotators(view: WorkerView[P]) -> View[P]:
    """Wrap a view for annotators; other users get a page on why they may not judge."""

    @never_cache
    def view_for_annotators(
        request: HttpRequest, /, *args: P.args, **kwargs: P.kwargs
    ) -> HttpResponse:
        if not request.user.is_authenticated:
            return _log_in_again_response(request, kwargs.get("token"))
        if not request.user.is_annotator:
            asked = volunteer.application_of_user(request.user)
            if asked is None:
                return refusal_page(
                    request, NOT_AN_ANNOTATOR, link=reverse("try"), action="Try judging"
                )
            sentence = IN_THE_QUEUE if asked.admitted is None else TURNED_AWAY
            link = reverse("annotate_volunteer")
            return refusal_page(request, sentence, link=link, action="Your request")
        return view(request, worker_of_user(request.user), *args, **kwargs)

    return view_for_annotators


def _log_in_again_response(request: HttpRequest, token: object) -> HttpResponse:
    """Return the page for logging in again after the session has ended. Posted fields are stored as
    a draft, which is safe since the address of a question is a secret of its holder.
    """
    back = request.get_full_path() if request.method == "GET" else reverse("annotate_next")
    if request.method == "POST" and token is not None:
        assignment = Assignment.objects.filter(token=token, status="leased").first()
        if assignment is not None and lease.renew_lease(assignment, raw_fields(request.POST)):
            back = reverse("annotate_question", args=[token])
    if is_script(request) or request.path.endswith("/draft/"):
        return JsonResponse({"error": LOGGED_OUT, "login": reverse("login")}, status=401)
    if request.method == "POST":
        messages.warning(request, LOGGED_OUT_KEPT)
    return redirect_to_login(back)


def _other_login(request: HttpRequest) -> JsonResponse:
    """Return the answer to a script whose page belongs to another login."""
    name = request.user.get_username()
    return JsonResponse(
        {"error": OTHER_LOGIN.format(name=name), "login": reverse("login")}, status=403
    )


def handle_stale_form(request: HttpRequest, reason: str = "") -> HttpResponse:
    """Return the response to a form that is older than the login of its sender, or came from
    another site. The form of a question is shown again with its fields; a script gets a new token
    and sends again.
    """
    match = request.resolver_match
    if match is not None and match.url_name in ("annotate_question", "annotate_draft"):
        if is_script(request):
            return JsonResponse({"error": STALE, "csrf": get_token(request)}, status=403)
        if (kept := _page_of_stale_form(request, match.kwargs["token"])) is not None:
            return kept
    return error_page(request, 403, STALE_ELSEWHERE)


def _page_of_stale_form(request: HttpRequest, token: str) -> HttpResponse | None:
    """Return the page of a question with the posted fields; None if another worker holds it."""
    if not getattr(request.user, "is_annotator", False):
        return None
    in_hand = _own_assignment(worker_of_user(request.user), token)  # type: ignore[arg-type]
    raw = raw_fields(request.POST)
    if in_hand is None or not _renew_lease(in_hand, raw):
        return None
    answer = _question_page(request, in_hand, raw, error=STALE)
    answer.status_code = 403
    return answer


def refusal_page(
    request: HttpRequest, sentence: str, *, link: str = "", action: str = "", status: int = 403
) -> HttpResponse:
    """Return a page with a refusal, and a link."""
    context = {"sentence": sentence, "link": link, "action": action}
    return render(request, "annotation/refused.html", context, status=status)


def interface_title(question: Question) -> str:
    """Return the subject of a question in a line."""
    title = question.payload.get("document", {}).get("title", "")
    sides = [question.payload[side]["gloss"] for side in ("a", "b") if side in question.payload]
    words = ", in ".join(part for part in (" and ".join(sides), title) if part)
    return words or question.payload.get("title") or interface_by_name(question.interface).title


@require_GET
@for_annotators
def redirect_to_next_question(request: HttpRequest, worker: Worker) -> HttpResponse:
    """Redirect to the current or next question, or home if none is open; `kind` sets the kind of
    question from now on.
    """
    kind = request.GET.get("kind")
    if kind is not None and (kind in interface_names() or not kind):
        lease.choose_interface(worker, kind)
    return _redirect_to_next(request, worker)


def _redirect_to_next(request: HttpRequest, worker: Worker) -> HttpResponseRedirect:
    following = _next_assignment(request, worker)
    if isinstance(following, Assignment):
        return redirect("annotate_question", token=following.token)
    return following


def _next_assignment(request: HttpRequest, worker: Worker) -> Assignment | HttpResponseRedirect:
    """Return the next assignment, or a redirect if there is none."""
    if worker.excluded_at is not None:
        messages.warning(request, EXCLUDED)
        return redirect("annotate")
    assignment = lease.lease_next(worker)
    if assignment is not None:
        return assignment
    if not has_consented(worker):
        return redirect("annotate_terms")
    if worker.wants in interfaces_worker_may_answer(worker):
        lease.choose_interface(worker, "")
        messages.info(request, NO_MORE)
        return redirect("annotate")
    if lesson := lease.tutorial_to_learn(worker):
        return redirect("annotate_tutorial", interface=lesson)
    messages.info(request, NOTHING_OPEN)
    return redirect("annotate")


@for_annotators
def show_question(request: HttpRequest, worker: Worker, token: str) -> HttpResponse:
    """Return a leased question (GET), or store the answer to it (POST)."""
    in_hand = _own_assignment(worker, token)
    if in_hand is None and is_script(request):
        return _other_login(request)
    if in_hand is None:
        return refusal_page(
            request, NOT_YOURS, link=reverse("annotate_next"), action="Next question"
        )
    if not in_hand.consented:
        # The terms changed meanwhile: what was answered is kept, and shown again.
        if request.method == "POST":
            _renew_lease(in_hand, raw_fields(request.POST))
        terms = reverse("annotate_terms") + f"?next={request.path}"
        return JsonResponse({"next": terms}) if is_script(request) else redirect(terms)
    if request.method == "POST":
        return _store_answer(request, worker, in_hand)
    assignment = in_hand.assignment
    taken_back = in_hand.in_team and lease.return_if_conflicted(assignment)
    if not taken_back and (assignment.status == "leased" or lease.revive_expired_lease(assignment)):
        _renew_lease(in_hand)
        return _question_page(request, in_hand, assignment.draft)
    is_lost = taken_back or assignment.status == "returned"
    messages.info(request, _lost_reason(assignment) if is_lost else ANSWERED_ALREADY)
    return _redirect_to_next(request, worker)


def _lost_reason(assignment: Assignment) -> str:
    """Return why a worker no longer holds a question, and what happens to their answer."""
    if assignment.raw is not None:
        return LATE
    if has_conflict_of_interest(assignment.worker_id, assignment.hit_id):
        return NOT_TAKEN
    return GIVEN_BACK if assignment.returned_by == Assignment.ReturnedBy.WORKER else LOST


def _own_assignment(worker: Worker, token: str) -> HeldAssignment | None:
    """Return the assignment with this token; None if another worker has it. Raises Http404 if there
    is none.
    """
    in_hand = assignment_by_token(token)
    if in_hand is None:
        raise Http404
    if in_hand.assignment.worker_id != worker.pk:
        return None
    in_hand.assignment.worker = worker
    return in_hand


def _renew_lease(held_assignment: HeldAssignment, draft: dict[str, Any] | None = None) -> bool:
    """Renew a lease, and return whether it was valid."""
    return lease.renew_lease(held_assignment.assignment, draft, questions=held_assignment.questions)


def _store_answer(
    request: HttpRequest, worker: Worker, held_assignment: HeldAssignment
) -> HttpResponse:
    raw = raw_fields(request.POST)
    try:
        outcome = submit_answer(held_assignment.assignment, raw, held_assignment.questions)
    except BadAnswer as bad:
        _renew_lease(held_assignment, raw)
        if is_script(request):
            return JsonResponse({"error": str(bad)}, status=422)
        return _question_page(request, held_assignment, raw, error=str(bad))
    if outcome is Outcome.LATE:
        messages.info(request, LATE)
    elif outcome is Outcome.LOST:
        why = _lost_reason(held_assignment.assignment)
        ran_out = held_assignment.assignment.returned_by == Assignment.ReturnedBy.LEASE
        messages.info(request, UNPAID if why == LOST and ran_out else why)
    return (
        _next_page_json(request, worker)
        if is_script(request)
        else _redirect_to_next(request, worker)
    )


def _next_page_json(request: HttpRequest, worker: Worker) -> JsonResponse:
    """Return the address of the next question as JSON, with the HTML of its page, so that the
    script need not load it. The question is leased when its page is rendered.
    """
    following = _next_assignment(request, worker)
    if not isinstance(following, Assignment):
        return JsonResponse({"next": following.url})
    following.worker = worker
    leased = HeldAssignment(
        following, questions_of_hit(following.hit_id), consented=True, in_team=False
    )
    shown = _question_page(request, leased, following.draft, only_question=True).content.decode()
    return JsonResponse(
        {"next": reverse("annotate_question", args=[following.token]), "page": shown}
    )


def raw_fields(form: QueryDict) -> dict[str, Any]:
    """Return the fields of a form as sent, without the CSRF token and NUL characters."""
    fields = (
        (name.replace("\0", ""), values)
        for name, values in form.lists()
        if name != "csrfmiddlewaretoken"
    )
    return {name: [value.replace("\0", "") for value in values] for name, values in fields}


def _question_page(
    request: HttpRequest,
    held_assignment: HeldAssignment,
    answer: Any,
    *,
    error: str = "",
    only_question: bool = False,
) -> HttpResponse:
    """Return the page of an assignment, or with `only_question` only the part that changes with the
    question.
    """
    assignment, asked = held_assignment.assignment, held_assignment.questions
    context = {
        "assignment": assignment,
        "today": count_answers_today(assignment.worker),
        "unread": getattr(assignment.worker, "unread", None),
        "addresses": {
            "draft": reverse("annotate_draft", args=[assignment.token]),
            "return": reverse("annotate_return", args=[assignment.token]),
            "stop": reverse("annotate_stop", args=[assignment.token]),
            "whole": reverse("annotate_document", args=[assignment.token]),
            "next": reverse("annotate_next"),
        },
        "held": assignment.token,
        "elapsed": int((clock.now() - assignment.accepted_at).total_seconds()),
        "lease_seconds": _lease_seconds(held_assignment),
        "session_ends": _session_ends(request),
        "error": error,
        "part": only_question,
    }
    return render_question(request, asked[0], answer, context, status=422 if error else 200)


def _lease_seconds(held_assignment: HeldAssignment) -> int:
    """Return the seconds of a lease."""
    return int(
        lease.lease_time(
            question.interface for question in held_assignment.questions
        ).total_seconds()
    )


def _session_ends(request: HttpRequest) -> str:
    """Return the end of the session as ISO text for the script. An active session is extended long
    before.
    """
    ends: datetime | None = getattr(request.session, "ends", None)
    if ends is None or ends > clock.now() + RENEWS_BEFORE:
        return "" if ends is None else ends.isoformat()
    request.session.modified = True
    return request.session.get_expiry_date().isoformat()


def render_question(
    request: HttpRequest,
    question: Question,
    answer: Any,
    context: dict[str, Any],
    status: int = 200,
) -> HttpResponse:
    """Return the page of a question."""
    interface = interface_by_name(question.interface)
    folder = f"interfaces/{interface.folder or interface.name}"
    shown = interface.render(question, answer if isinstance(answer, dict) else None)
    home = reverse("annotate") if getattr(request.user, "is_annotator", False) else "/"
    filled = {
        "reward": question.reward,
        "extra": question.extra,
        "seconds": question.seconds,
        "script": f"{folder}/page.js",
        "page": shown,
        "guidelines": cached_guidelines(question.track_id),
        "home": "" if context.get("framed") else home,
        **context,
    }
    if "keys_url" not in filled and filled["home"] == reverse("annotate"):
        answering = context.get("assignment")
        worker = (
            answering.worker
            if isinstance(answering, Assignment)
            else Worker.objects.filter(user=request.user).first()  # type: ignore[misc]
        )
        filled |= {"keys_url": reverse("annotate_keys"), "keys": keyboard_settings_json(worker)}
    return render(request, f"{folder}/page.html", filled, status=status)


@require_POST
@for_annotators
def set_shortcuts(request: HttpRequest, worker: Worker) -> HttpResponse:
    """Store the single-key shortcuts of a worker."""
    return store_shortcuts(worker, request.POST.get("keys", ""))


def store_shortcuts(worker: Worker, keys: str) -> HttpResponse:
    """Store shortcuts, and return an error if they are invalid."""
    if store_keyboard_settings(worker, keys):
        return HttpResponse(status=204)
    return JsonResponse({"error": NOT_KEYS}, status=422)


@require_POST
@for_annotators
def store_draft(request: HttpRequest, worker: Worker, token: str) -> HttpResponse:
    """Store a draft, renew the lease, and return its seconds."""
    in_hand = _own_assignment(worker, token)
    if in_hand is None:
        return _other_login(request)
    assignment = in_hand.assignment
    lease.revive_expired_lease(assignment)
    if not _renew_lease(in_hand, raw_fields(request.POST)):
        late = assignment.returned_by == Assignment.ReturnedBy.LEASE
        sentence = MAY_BE_SENT if late else _lost_reason(assignment)
        return JsonResponse({"error": sentence, "late": late}, status=409)
    return JsonResponse(
        {
            "saved": clock.now().isoformat(),
            "lease_seconds": _lease_seconds(in_hand),
            "session_ends": _session_ends(request),
        }
    )


@require_POST
@for_annotators
def return_question(request: HttpRequest, worker: Worker, token: str) -> HttpResponse:
    """Give a question back, and go to the next one."""
    in_hand = _own_assignment(worker, token)
    if in_hand is None:
        return refusal_page(
            request, NOT_YOURS, link=reverse("annotate_next"), action="Next question"
        )
    if lease.return_to_queue(in_hand.assignment):
        messages.info(request, "You returned that question. Here is another.")
    return _redirect_to_next(request, worker)


@require_POST
@for_annotators
def stop_judging(request: HttpRequest, worker: Worker, token: str) -> HttpResponse:
    """Stop for now, and keep the draft."""
    in_hand = _own_assignment(worker, token)
    if in_hand is not None and lease.return_temporarily(
        in_hand.assignment, raw_fields(request.POST)
    ):
        messages.info(request, STOPPED)
    return redirect("annotate")


@require_GET
@for_annotators
def show_document(request: HttpRequest, worker: Worker, token: str) -> HttpResponse:
    """Return the whole document with the marks of the question, from which the script takes the
    text.
    """
    in_hand = _own_assignment(worker, token)
    if in_hand is None:
        return refusal_page(
            request, NOT_YOURS, link=reverse("annotate_next"), action="Next question"
        )
    return show_whole_document(request, in_hand.questions[0])


def show_whole_document(request: HttpRequest, question: Question) -> HttpResponse:
    """Return the whole document of a question."""
    document = get_object_or_404(Document, pk=question.target.document_id)
    context = interface_by_name(question.interface).document_with_marks(question, document.text) | {
        "title": document.title or document.key
    }
    return render(request, "annotation/document.html", context)


@require_GET
@login_required
def preview_question(request: HttpRequest, pk: int) -> HttpResponse:
    """Return a question as workers see it, for admins."""
    if not request.user.is_staff:
        raise Http404
    return render_question(request, get_object_or_404(Question, pk=pk), None, {"preview": True})
