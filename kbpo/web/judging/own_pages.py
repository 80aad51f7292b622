"""The annotators' own pages: home, history, messages, feedback, appeals, receipts, leaving; and the
form for volunteers.
"""

from __future__ import annotations

from typing import Any

from django.contrib import messages
from django.contrib.auth import login
from django.core.paginator import Paginator
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse, QueryDict
from django.shortcuts import get_object_or_404, redirect, render
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_GET

from annotation.hits import lease
from annotation.hits.held import count_answers_today
from annotation.hits.mail_work import set_mail_wanted
from annotation.hits.parts import answer_statements
from annotation.interfaces.registry import interface_by_name, interface_names
from annotation.models import ANSWERED, Assignment, Worker
from annotation.quality.hourly import hourly_rates
from annotation.workers import consent, leave, payout, speak, teach, volunteer
from annotation.workers.intake import offered_questions, tracks_for_volunteers, volunteer_policy
from annotation.workers.models import Application, Payout
from annotation.workers.worker import worker_of_user
from kbpo import clock
from kbpo.accounts.backend import password_refusal
from kbpo.accounts.models import User
from kbpo.accounts.sign_up import SignUpForm
from kbpo.money.spend import ZERO
from kbpo.tracks.models import Track
from kbpo.web.http import client_address, client_network, has_typed_word, run_action
from kbpo.web.judging.views import for_annotators, interface_title

STATES = {
    "submitted": "under review",
    "accepted": "under review",
    "approved": "approved",
    "paid": "paid",
    "rejected": "rejected",
    "failed": "could not be read",
    "returned": "came too late to count, and is paid",
}
UNPAID = ("failed", "rejected")
A_PAGE = 50
COUNTED = 200
"""Greatest number of open questions that are counted; the page states when there are more"""


@for_annotators
def show_home(request: HttpRequest, worker: Worker) -> HttpResponse:
    """Return the home page: open questions, tutorials, earnings, messages and last answers. A POST
    runs the action of its form.
    """
    if request.method == "POST":
        return run_action(request, {"appeal": store_appeal, "work-mail": switch_work_mail}, worker)
    held = Assignment.objects.filter(
        worker=worker, status="leased", leased_until__gt=clock.now()
    ).first()
    learned, learnable = (
        teach.interfaces_worker_may_answer(worker),
        teach.learnable_interfaces(worker),
    )
    everything = lease.count_open_hits(worker, COUNTED, [*learned, *learnable])
    teams: list[str] = []  # on whose tracks the worker does not judge
    if worker.user is not None and worker.user.is_researcher:
        with_runs = worker.user.teams.filter(submissions__isnull=False)
        teams = list(with_runs.order_by("name").distinct().values_list("name", flat=True))
    context = {
        "worker": worker,
        "held": held,
        "leaving": leave.has_asked_to_leave(worker),
        "open": everything + bool(held),
        "waiting": _waiting_sentence(everything, bool(held)),
        "teams": teams,
        "kinds": _kinds_of_work(worker, learned, learnable, anything=everything > 0),
        "consented": consent.has_consented(worker),
        "today": count_answers_today(worker),
        "earned": payout.earnings_of_worker(worker),
        "history": _assignment_rows(_answered_assignments(worker)[:10]),
        "unread": worker.messages.filter(read_at=None).count(),
        "appeals": worker.appeals.order_by("-made_at")[:5],
        "refusals": speak.current_rejections(worker),
        "appealing": worker.appeals.filter(answered_at=None).exists(),
        "receipts": worker.payouts.filter(undoes=None).order_by("-paid_at")[:3],
        "prospect": payout.payment_forecast(worker, payout.debt_to_worker(worker)),
        "address": payout.mask_address(payout.payout_address(worker)),
        "email": request.user.email,  # type: ignore[union-attr]
        "gets_mail": worker.wants_mail,
    }
    return render(request, "annotators/home.html", context)


def _waiting_sentence(n: int, held: bool) -> str:
    """Return a sentence on the number of open questions."""
    more = " or more" if n >= COUNTED else ""
    if held:
        rest = f", and {n}{more} wait{'s' if n == 1 else ''} for you" if n else ""
        return f"You have a question in hand{rest}."
    return f"{n}{more} question{' waits' if n == 1 else 's wait'} for you."


def _kinds_of_work(
    worker: Worker, learned: list[str], learnable: list[str], *, anything: bool
) -> list[dict[str, Any]]:
    """Return the interfaces with open questions, with a paid tutorial, or with a failed one.
    `anything` is whether any question is open.
    """
    kinds = []
    rates, own = hourly_rates(), hourly_rates(worker=worker)
    tutorials = teach.tutorials()
    offers = lease.offers_by_interface(worker, [*learned, *learnable]) if anything else {}
    rewards = teach.rewards_offered(worker, [name for name in tutorials if name not in learned])
    for name in rates:  # a form may be declared meanwhile: the registry is read once
        offer, reward = offers.get(name), rewards.get(name, ZERO)
        failed = name not in learned and name not in learnable
        if (offer and offer.n) or reward > 0 or failed:
            kind = {
                "name": name,
                "title": interface_by_name(name).title,
                "n": offer.n if offer else 0,
                "offer": offer,
                "lesson": tutorials.get(name),
                "reward": reward,
                "hourly": rates[name],
                "own_hourly": own[name].measured,
            }
            kinds.append(kind | {"learned": name in learned, "learnable": name in learnable})
    return kinds


def _answered_assignments(worker: Worker) -> QuerySet[Assignment]:
    sent = worker.assignments.filter(submitted_at__isnull=False)
    return (
        sent.select_related("hit")
        .prefetch_related("hit__questions", "payment")
        .order_by("-submitted_at")
    )


def _assignment_rows(assignments: Any) -> list[dict[str, Any]]:
    return [
        {
            "pk": row.pk,
            "about": interface_title(row.hit.questions.all()[0]),
            "sent": row.submitted_at,
            "reward": ZERO if row.status in UNPAID else row.earned,
            "state": STATES.get(row.status, row.status),
            "reason": row.reason if row.status in UNPAID else "",
        }
        for row in assignments
    ]


@require_GET
@for_annotators
def show_history(request: HttpRequest, worker: Worker) -> HttpResponse:
    """Return all answers of the worker, fifty a page."""
    page = Paginator(_answered_assignments(worker), A_PAGE).get_page(request.GET.get("page"))
    context = {
        "page": page,
        "rows": _assignment_rows(page.object_list),
        "n": worker.assignments.filter(status__in=ANSWERED).count(),
    }
    return render(request, "annotators/history.html", context)


@require_GET
@for_annotators
def show_own_answer(request: HttpRequest, worker: Worker, pk: int) -> HttpResponse:
    """Return the page of one of the worker's own answers, without answers of others."""
    row = get_object_or_404(_answered_assignments(worker), pk=pk)
    context = {
        "answer": _assignment_rows([row])[0],
        "read": answer_statements(row),
        "refused": row.status == "rejected",
        "appealing": worker.appeals.filter(answered_at=None).exists(),
    }
    return render(request, "annotators/answer.html", context)


@require_GET
@for_annotators
def show_messages(request: HttpRequest, worker: Worker) -> HttpResponse:
    """Return the messages to a worker, and mark them as read."""
    letters = list(worker.messages.order_by("-at")[:200])
    speak.mark_messages_read(worker)
    return render(request, "annotators/messages.html", {"rows": letters})


@for_annotators
def show_feedback(request: HttpRequest, worker: Worker) -> HttpResponse:
    """Return the form for feedback to admins. A POST stores it."""
    refusal = ""
    if request.method == "POST":
        try:
            messages.success(request, store_feedback(worker, request.POST))
            return redirect("annotate")
        except speak.CannotSay as cannot:
            refusal = str(cannot)
    kinds = [(name, interface_by_name(name).title) for name in interface_names()]
    context = {"refusal": refusal, "sent": request.POST, "kinds": kinds}
    return render(request, "annotators/feedback.html", context, status=422 if refusal else 200)


def store_feedback(worker: Worker, form_data: QueryDict) -> str:
    """Store the feedback of a form, and return a sentence of thanks. Raises CannotSay."""
    if form_data.get("clear") not in ("yes", "no") or form_data.get("fair") not in ("yes", "no"):
        raise speak.CannotSay("Answer both questions.")
    speak.store_feedback(
        worker,
        form_data.get("interface", "") if form_data.get("interface") in interface_names() else "",
        clear=form_data["clear"] == "yes",
        fair=form_data["fair"] == "yes",
        comment=form_data.get("comment", ""),
    )
    return "Thank you. Only admins read it."


APPEALED = "Your appeal was sent. The answer will appear here."


def store_appeal(request: HttpRequest, worker: Worker) -> HttpResponse:
    """Store an appeal against an exclusion or refused pay."""
    try:
        speak.store_appeal(worker, request.POST.get("text", ""))
        messages.success(request, APPEALED)
    except speak.CannotSay as cannot:
        messages.error(request, str(cannot))
    return redirect("annotate")


@for_annotators
def show_payee(request: HttpRequest, worker: Worker) -> HttpResponse:
    """Return the address of payouts. A POST changes it, with the password, so that nobody else can
    redirect money.
    """
    assert isinstance(request.user, User)
    refusal = _change_payee(request, request.user, worker) if request.method == "POST" else ""
    if request.method == "POST" and not refusal:
        return redirect("annotate_payee")
    context = {
        "address": payout.payout_address(worker),
        "sent": request.POST if refusal else {},
        "rules": payout.payout_schedule(),
        "prospect": payout.payment_forecast(worker, payout.debt_to_worker(worker)),
        "gets_mail": worker.wants_mail,
        "refusal": refusal,
    }
    return render(request, "annotators/payee.html", context, status=422 if refusal else 200)


def _change_payee(request: HttpRequest, user: User, worker: Worker) -> str:
    """Store the address, and return why not, as a sentence; empty if it was stored."""
    if refusal := password_refusal(user, request.POST.get("password", "")):
        return refusal
    try:
        payout.set_payout_address(worker, request.POST.get("address", ""))
    except payout.CannotSet as cannot:
        return str(cannot)
    speak.send_message(
        worker,
        "Your payout address was changed",
        "If this was not you, change your password and write to us at once.",
    )
    messages.success(request, "Saved. The next payout goes there.")
    return ""


def switch_work_mail(request: HttpRequest, worker: Worker) -> HttpResponse:
    """Switch mails about work on or off."""
    wanted = request.POST.get("wanted") == "yes"
    if set_mail_wanted(worker, wanted=wanted):
        messages.success(request, "We will mail you when there is work, at most once a day.")
    elif wanted:
        messages.error(request, "Add an e-mail address below first.")
        return redirect("annotate_payee")
    else:
        messages.success(request, "You get no more mails about work.")
    return redirect("annotate_payee" if request.POST.get("from") == "payee" else "annotate")


@require_GET
@for_annotators
def list_receipts(request: HttpRequest, worker: Worker) -> HttpResponse:
    """Return the list of payouts."""
    rows = worker.payouts.filter(undoes=None).select_related("undone_by").order_by("-paid_at")
    return render(request, "annotators/receipts.html", {"rows": rows})


@require_GET
@for_annotators
def show_own_receipt(request: HttpRequest, worker: Worker, number: str) -> HttpResponse:
    """Return a receipt, if it belongs to this worker."""
    paid = get_object_or_404(Payout, number=number, worker=worker, undoes=None)
    return show_receipt(request, paid)


def show_receipt(request: HttpRequest, paid: Payout) -> HttpResponse:
    """Return the page of a receipt."""
    first, last = payout.payout_period(paid)
    known = interface_names()
    context = {
        "payout": paid,
        "lines": [
            {
                "what": interface_by_name(line.what).title if line.what in known else line.what,
                "line": line,
            }
            for line in payout.receipt_lines(paid)
        ],
        "first": first,
        "last": last,
        "payee": paid.worker.user,
        "undone": Payout.objects.filter(undoes=paid).first(),
    }
    return render(request, "annotators/receipt.html", context)


@for_annotators
def show_leaving(request: HttpRequest, worker: Worker) -> HttpResponse:
    """Return the page for erasing oneself. A POST asks for it, or withdraws it."""
    refusal = ""
    if request.method == "POST":
        refusal = _ask_to_leave(request, worker)
        if not refusal:
            gone = Worker.objects.filter(pk=worker.pk, user=None).exists()
            return redirect("annotate_gone" if gone else "annotate")
    assert isinstance(request.user, User)
    sums = payout.earnings_of_worker(worker)
    context = {
        "earned": sums,
        "unpaid": sums.answered + sums.approved,
        "address": payout.payout_address(worker),
        "worker": worker,
        "asked": leave.has_asked_to_leave(worker),
        "refusal": refusal,
        "more": leave.has_other_roles(request.user),
    }
    return render(request, "annotators/leave.html", context, status=422 if refusal else 200)


def _ask_to_leave(request: HttpRequest, worker: Worker) -> str:
    """Store the request to be erased, and return why not, as a sentence; empty if it was stored."""
    if request.POST.get("stay"):
        if leave.cancel_leaving(worker):
            messages.success(request, "Good. Nothing is erased.")
        return ""
    money = request.POST.get("money", "none")
    sums = payout.earnings_of_worker(worker)
    if not has_typed_word(request, "erase"):
        return "Nothing was erased: type the word erase to confirm."
    if sums.answered + sums.approved and money not in ("pay", "waive"):
        return "Choose what happens to the unpaid money."
    if money == "pay" and not payout.payout_address(worker):
        return "Enter a payout address first, or waive the money."
    if not leave.ask_to_leave(worker, waives=money == "waive"):
        messages.info(request, "You will be erased once everything is paid. You can still stay.")
    return ""


@never_cache
def show_erased(request: HttpRequest) -> HttpResponse:
    """Return the page after an erasure."""
    return render(request, "annotators/gone.html")


@never_cache
def volunteer_page(request: HttpRequest) -> HttpResponse:
    """Return the form for volunteers, or one button for people with an account."""
    user = request.user if isinstance(request.user, User) else None
    if user is not None and user.is_annotator:
        return redirect("annotate")
    application = Application.objects.filter(user=user).first() if user is not None else None
    form = None if user is not None else SignUpForm(request.POST or None)
    refusal, wait = "", 0
    if request.method == "POST" and application is None and (form is None or form.is_valid()):
        try:
            application = _store_application(request, user, form)
        except volunteer.CannotVolunteer as cannot:
            refusal, wait = str(cannot), cannot.wait
        else:
            if application.admitted:
                messages.success(request, "Welcome. This is your page.")
            return redirect("annotate" if application.admitted else "annotate_volunteer")
    context = {
        "form": form,
        "application": application,
        "why": volunteer.decline_reason(application) if application is not None else "",
        "mode": volunteer_policy(),
        "offers": offered_questions(Track.objects.filter(pk__in=tracks_for_volunteers())),
        "refusal": refusal,
        "closed": volunteer.CLOSED,
    }
    status = 429 if wait else 422 if request.method == "POST" else 200
    page = render(request, "annotators/volunteer.html", context, status=status)
    if wait:
        page["Retry-After"] = str(wait)
    return page


def _store_application(
    request: HttpRequest, user: User | None, form: SignUpForm | None
) -> Application:
    network = client_network(request)
    volunteer.check_sign_up(client_address(request), network)
    if user is None:
        assert form is not None
        user = form.save()
        login(request, user)
    application = volunteer.apply_as_volunteer(user, request.POST.get("why", ""), network)
    if application.admitted:
        worker_of_user(user)
    return application
