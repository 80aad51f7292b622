"""What an administrator may tell the crowd: retry, pause, resume, stop publishing, exclude,
reinstate, refuse pay.
"""

from __future__ import annotations

import logging

from django.db import transaction

from annotation.budget.promises import committed, one_publisher, payers_of
from annotation.labels import exclude, reject
from annotation.labels.exclude import LeftOut
from annotation.labels.reject import CannotReject
from annotation.marketplace.compensations import accrue_again
from annotation.models import (
    HIT,
    Assignment,
    Bonus,
    Payment,
    Question,
    Worker,
    WorkerIdentity,
)
from annotation.workers import leave, speak
from kbpo import clock
from kbpo.accounts.audit import DISMISS, note
from kbpo.accounts.models import Delivery, User
from kbpo.money.spend import OverBudget, balance
from kbpo.queue import nudge

log = logging.getLogger(__name__)

AGAIN = {
    # what         status      -> status it is tried again in
    ("question", "waiting"): "waiting",
    ("question", "answered"): "answered",
    ("hit", "intent"): "intent",
    ("hit", "failed"): "intent",
    ("assignment", "submitted"): "submitted",
    ("assignment", "accepted"): "accepted",
    ("payment", "failed"): "unknown",  # the platform's books are asked before anything is paid
    ("bonus", "failed"): "unknown",
    ("mail", "failed"): "waiting",
}
MODELS = {
    "question": Question,
    "hit": HIT,
    "assignment": Assignment,
    "payment": Payment,
    "bonus": Bonus,
    "mail": Delivery,
}


def can_retry(kind: str, status: str) -> bool:
    """Return whether such a row can be tried again at once in this status."""
    return (kind, status) == ("question", "unanswered") or (kind, status) in AGAIN


GIVEN_UP = ("failed", "unanswered")


class CannotDismiss(Exception):
    """A failure stays on the list; the text is a sentence for the administrator."""


@transaction.atomic
def dismiss(kind: str, pk: int, who: User, why: str) -> None:
    """Remove a failed row from the list until it fails again. Raises CannotDismiss."""
    row = (
        MODELS[kind]._default_manager.select_for_update(of=("self",)).filter(pk=pk).first()
        if kind in MODELS
        else None
    )
    if row is None:
        raise CannotDismiss(f"There is no {kind} {pk}.")
    check_dismissal(kind, row.status, why)
    note(DISMISS, f"{kind}:{pk}", who=who, before=row.status, why=why.strip())


def check_dismissal(kind: str, status: str, why: str) -> None:
    """Raise CannotDismiss for a row that has not failed, or without a reason."""
    if status not in GIVEN_UP:
        raise CannotDismiss(f"This {kind} is {status}, not given up: there is nothing to dismiss.")
    if not why.strip():
        raise CannotDismiss("Nothing was dismissed: say why nobody needs to look at it any more.")


class CannotRetry(Exception):
    """There is nothing to retry; the text is a sentence for the administrator."""


@transaction.atomic
def retry(kind: str, pk: int, who: User | None = None, why: str = "") -> str:
    """Return the status in which a question, HIT, assignment, payment, bonus or mail is tried again
    at once. Raises CannotRetry.

    A question that was given up goes back to those who may answer it, or to settling if enough did.
    """
    if (
        kind == "hit"
    ):  # what it may cost before its questions, and these before itself: see annotation/README.md
        for payer in payers_of(Question.objects.filter(hits=pk)):
            one_publisher(payer)
        list(
            Question.objects.select_for_update(of=("self",))
            .filter(hits=pk)
            .order_by("pk")
            .values_list("pk")
        )
    row = MODELS[kind]._default_manager.select_for_update(of=("self",)).filter(pk=pk).first()
    if row is None:
        raise CannotRetry(f"There is no {kind} {pk}.")
    status = (
        _reopened(row)
        if isinstance(row, Question) and row.status == "unanswered"
        else AGAIN.get((kind, row.status))
    )
    if status is None:
        raise CannotRetry(f"This {kind} is {row.status}; there is nothing to retry.")
    if isinstance(row, HIT) and row.status == "failed":
        _take_up_again(row)
    if isinstance(row, Bonus):
        _owe_again(row)
    note(
        "retry",
        f"{kind}:{pk}",
        who=who,
        before=row.status,
        after=str(status),
        why=why_again(why, row.reason),
    )
    row.move(status, **({"ended_by": ""} if isinstance(row, Question) else {}))
    nudge("publish")
    nudge("settle")
    nudge("pay_out")
    nudge("mail")
    return str(status)


def why_again(why: str, reason: str) -> str:
    """Return why something is tried again, and what had gone wrong."""
    went_wrong = f"It had stopped so: {reason}" if reason else "No reason had been noted."
    return f"{why or 'Tried again from the desk.'} {went_wrong}"


def _take_up_again(hit: HIT) -> None:
    """Publish the questions of a refused HIT in it again. Raises CannotRetry if it is not needed
    any more: its questions would be published twice.
    """
    asked = hit.questions.exclude(payer_kind="gold")
    if any(question.status != "waiting" for question in asked):
        raise CannotRetry(
            "Its questions have gone out in another HIT since, or are done; it is not"
            " needed any more."
        )
    payers = payers_of(hit.questions.all())  # they are locked by whoever retries
    asked.update(
        status="published",
        status_since=clock.now(),
        reason="",
        asked_again=False,
        ended_by="",
    )
    HIT.objects.filter(pk=hit.pk).update(status="intent")  # so that its places are counted
    for payer in payers:
        short = committed(payer) - balance(purpose=payer).open
        if short > 0:
            raise CannotRetry(
                f"Its questions would cost ${short} more than {payer} has set aside. Set"
                " more aside first."
            )


def _owe_again(bonus: Bonus) -> None:
    """Spend the money of an unpaid bonus again. Raises CannotRetry if a cap leaves too little, or
    while the HIT of a compensation still exists.
    """
    if bonus.assignment_id is None and bonus.cleared_at is None:
        raise CannotRetry("Its HIT is not deleted yet. Try again once it is, in some minutes.")
    if not WorkerIdentity.objects.filter(worker=bonus.worker_id).exists():
        raise CannotRetry("Its worker was erased: nobody knows any more whom to pay.")
    try:
        accrue_again(bonus)
    except OverBudget as over:
        raise CannotRetry(str(over)) from over


def _reopened(question: Question) -> str:
    """Answered if it has answers, else waiting for new HITs; the old ones are put away."""
    if question.responses.filter(counts=True).exists():
        return "answered"
    question.hits.update(status="disposed", status_since=clock.now())
    return "waiting"


def exclude_worker(handle: str, who: User, reason: str) -> LeftOut:
    """Return what no longer counts of a worker's answers, and what became of the labels."""
    log.warning("%s excluded worker %s: %s", who, handle, reason)
    signed = f"{reason.strip()} ({who.get_username()})" if reason.strip() else ""
    return exclude.exclude(Worker.objects.get(handle=handle), signed, who)


def reinstate_worker(handle: str, who: User, why: str = "", *, is_answer: bool = False) -> LeftOut:
    """Return what counts again of a worker's answers, and what became of the labels. The answer to
    an appeal tells the worker itself.
    """
    log.warning("%s reinstated worker %s", who, handle)
    return exclude.reinstate(Worker.objects.get(handle=handle), who, why, is_answer=is_answer)


def keep_worker(handle: str, who: User, why: str) -> None:
    """Keep a worker although signals passed their limits. Raises ValueError without a reason."""
    exclude.keep(Worker.objects.get(handle=handle), who, why)


def answer_of(pk: int) -> Assignment:
    """Return the answer with this number. Raises CannotReject if there is none."""
    row = Assignment.objects.filter(pk=pk).select_related("hit").first()
    if row is None:
        raise CannotReject("There is no such answer.")
    return row


def check_rejection(pk: int, evidence: str) -> None:
    """Raise CannotReject if an answer cannot be rejected with this evidence."""
    reject.check(answer_of(pk), evidence)


def reject_answer(pk: int, who: User, evidence: str) -> None:
    """Reject an answer, which is then not paid, for a reason that its worker reads. Raises
    CannotReject.
    """
    reject.reject(answer_of(pk), who, evidence)


def undo_rejection(pk: int, who: User, why: str, *, is_answer: bool = False) -> None:
    """Undo a rejection: the answer counts and is paid. The answer to an appeal tells the worker
    itself. Raises CannotReject.
    """
    reject.undo(answer_of(pk), who, why, is_answer=is_answer)


def write_to(handle: str, who: User, subject: str, text: str) -> str:
    """Return what became of a message to a worker, as a sentence. Raises ValueError with one."""
    worker = Worker.objects.get(handle=handle)
    try:
        speak.write(worker, subject, text, who)
    except speak.CannotSay as cannot:
        raise ValueError(str(cannot)) from cannot
    if worker.user_id is not None:
        return "Sent. It stands on their page."
    return "The marketplace is asked to hand it over; what becomes of it stands under Messages."


def erase_worker(handle: str, who: User, why: str) -> str:
    """Return what became of the erasure of a marketplace's worker, as a sentence. Raises ValueError
    with one.
    """
    return leave.erase_elsewhere(Worker.objects.get(handle=handle), who, why)
