"""Lists failed rows of the crowd, retries them, or dismisses them."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from django.db import transaction
from django.db.models import Q, QuerySet

from annotation.budget.promises import lock_payer, payers_in_lock_order, unpromised_money
from annotation.hits.batch import batch_names
from annotation.marketplace.compensations import spend_bonus_again
from annotation.models import (
    HIT,
    Assignment,
    Bonus,
    Payment,
    Question,
    WorkerIdentity,
)
from kbpo import clock
from kbpo.accounts.audit import DISMISS, dismissed_condition, write_audit_entry
from kbpo.accounts.models import Delivery, User
from kbpo.money.models import Purpose
from kbpo.money.spend import OverBudget
from kbpo.queue import wake_step

AGAIN = {
    # what         status      -> status it is tried again in
    ("question", "waiting"): "waiting",
    ("question", "answered"): "answered",
    ("hit", "intent"): "intent",
    ("hit", "failed"): "intent",
    ("assignment", "submitted"): "submitted",
    ("assignment", "accepted"): "accepted",
    (
        "payment",
        "failed",
    ): "unknown",  # payments are looked up on the platform before any is repeated
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
    """Return whether a row of this kind and status can be retried."""
    return (kind, status) == ("question", "unanswered") or (kind, status) in AGAIN


GIVEN_UP = ("failed", "unanswered")
LISTED = timedelta(days=14)
"""Failures older than this are hidden, except unpaid money"""
NAMES = {
    "question": "Question",
    "hit": "HIT",
    "assignment": "Answer",
    "payment": "Payment",
    "bonus": "Bonus",
}


class CannotDismiss(Exception):
    """Raised for a failure that cannot be hidden from the list; the text is a sentence for the
    admin.
    """


@transaction.atomic
def dismiss_failed_row(kind: str, pk: int, who: User, why: str) -> None:
    """Hide a failed row until it fails again. Raises CannotDismiss."""
    row = None
    if kind in MODELS:
        rows = MODELS[kind]._default_manager.select_for_update(of=("self",))
        row = rows.filter(pk=pk).first()
    if row is None:
        raise CannotDismiss(f"There is no {kind} {pk}.")
    check_dismissal(kind, row.status, why)
    write_audit_entry(DISMISS, f"{kind}:{pk}", who=who, before=row.status, why=why.strip())


def check_dismissal(kind: str, status: str, why: str) -> None:
    """Raise CannotDismiss for a row that has not failed, or without a reason."""
    if status not in GIVEN_UP:
        raise CannotDismiss(f"This {kind} is {status}: there is nothing to dismiss.")
    if not why.strip():
        raise CannotDismiss("Nothing was dismissed: give a reason.")


class CannotRetry(Exception):
    """Raised for a row that cannot be retried; the text is a sentence for the admin."""


@transaction.atomic
def retry_failed_row(kind: str, pk: int, who: User | None = None, why: str = "") -> str:
    """Retry a row at once and return its new status. A question that ended without enough answers
    is settled if it has any, else published again. Raises CannotRetry.
    """
    if kind == "hit":
        # Locks: payers, then questions, then the HIT (annotation/README.md).
        asked = Question.objects.filter(hits=pk)
        for payer in payers_in_lock_order(asked):
            lock_payer(payer)
        list(asked.select_for_update(of=("self",)).order_by("pk").values_list("pk"))
    row = MODELS[kind]._default_manager.select_for_update(of=("self",)).filter(pk=pk).first()
    if row is None:
        raise CannotRetry(f"There is no {kind} {pk}.")
    status = AGAIN.get((kind, row.status))
    if isinstance(row, Question) and row.status == "unanswered":
        status = "answered" if row.responses.filter(counts=True).exists() else "waiting"
        if status == "waiting":
            row.hits.update(status="disposed", status_since=clock.now())
    if status is None:
        raise CannotRetry(f"This {kind} is {row.status}; there is nothing to retry.")
    if isinstance(row, HIT) and row.status == "failed":
        _republish_refused_hit(row)
    if isinstance(row, Bonus):
        _reset_bonus(row)
    why = retry_log_text(why, row.reason)
    write_audit_entry(
        "retry", f"{kind}:{pk}", who=who, before=row.status, after=str(status), why=why
    )
    row.move(status, **({"ended_by": ""} if isinstance(row, Question) else {}))
    wake_step("publish")
    wake_step("settle")
    wake_step("pay_out")
    wake_step("mail")
    return str(status)


def retry_log_text(why: str, reason: str) -> str:
    """Return a sentence with the reason of a retry and the reason of the failure."""
    went_wrong = f"It had stopped because: {reason}" if reason else "No reason had been noted."
    return f"{why or 'Tried again from the desk.'} {went_wrong}"


def _republish_refused_hit(hit: HIT) -> None:
    """Publish again the questions of a HIT that its platform refused. Raises CannotRetry if they
    were published in another HIT.
    """
    asked = hit.questions.exclude(payer_kind="gold")
    if any(question.status != "waiting" for question in asked):
        raise CannotRetry(
            "Its questions have gone out in another HIT since, or are done; it is not"
            " needed any more."
        )
    payers = payers_in_lock_order(hit.questions.all())  # locked by the caller
    asked.update(
        status="published",
        status_since=clock.now(),
        reason="",
        asked_again=False,
        ended_by="",
    )
    HIT.objects.filter(pk=hit.pk).update(status="intent")  # so that its places are counted
    for payer in payers:
        short = -unpromised_money(payer)
        if short > 0:
            raise CannotRetry(
                f"Its questions would cost ${short} more than {payer} has reserved."
                " Reserve more first."
            )


def _reset_bonus(bonus: Bonus) -> None:
    """Reserve the money of an unpaid bonus again. Raises CannotRetry if a cap forbids it, or while
    the HIT of a compensation still exists.
    """
    if bonus.assignment_id is None and bonus.cleared_at is None:
        raise CannotRetry("Its HIT is not deleted yet. Try again once it is, in some minutes.")
    if not WorkerIdentity.objects.filter(worker=bonus.worker_id).exists():
        raise CannotRetry("Its worker was erased: the payee is unknown.")
    try:
        spend_bonus_again(bonus)
    except OverBudget as over:
        raise CannotRetry(str(over)) from over


@dataclass(frozen=True)
class Failure:
    """A row that failed or is retried, with the reason."""

    kind: str
    pk: int
    name: str
    state: str
    given_up: bool
    reason: str
    since: datetime
    next_try_at: datetime | None
    again: bool = True
    """Whether the page offers to retry the row"""
    is_money: bool = False
    url: str = ""
    """Address of the row's page, if there is one"""


def crowd_failures(limit: int = 100) -> list[Failure]:
    """Return the rows that need an admin, money first, then the newest. Rows that were stopped or
    dismissed, or that failed long ago, are left out.
    """
    since = clock.now() - LISTED
    unanswered = Question.objects.filter(status="unanswered", status_since__gte=since, ended_by="")
    hits = Q(status="failed", status_since__gte=since) | Q(status="intent", attempts__gt=0)
    hits |= ~Q(platform_status="gone") & ~Q(unread="")
    stuck = Q(status="failed", status_since__gte=since) | (
        Q(status__in=["submitted", "accepted"]) & ~Q(reason="")
    )
    assignments = Assignment.objects.filter(stuck)
    payments, bonuses = (model.objects.filter(status="failed") for model in (Payment, Bonus))
    waiting = [
        *_failures_of_kind("question", unanswered.defer("payload"), limit),
        *_failures_of_kind("hit", HIT.objects.filter(hits).select_related("track"), limit),
        *_failures_of_kind("assignment", assignments.select_related("hit__track", "worker"), limit),
        *_failures_of_kind("payment", payments.select_related("worker"), limit),
        *_failures_of_kind("bonus", bonuses.select_related("worker"), limit),
    ]
    waiting.sort(key=lambda failure: (failure.is_money, failure.since), reverse=True)
    return waiting[:limit]


def _failures_of_kind(kind: str, failed: QuerySet[Any], limit: int) -> list[Failure]:
    newest = list(failed.exclude(dismissed_condition(kind)).order_by("-status_since")[:limit])
    names = batch_names({row.payer for row in newest if isinstance(row, Question)})
    failures = []
    for row in newest:
        given_up = row.status in GIVEN_UP
        failure = Failure(
            kind=kind,
            pk=row.pk,
            name=f"{NAMES[kind]} {row.pk}: {_failure_subject(row, names)}",
            state=row.status,
            given_up=given_up,
            reason=row.reason,
            since=row.status_since,
            next_try_at=None if given_up else row.next_try_at,
            again=can_retry(kind, row.status),
            is_money=kind in ("payment", "bonus"),
        )
        failures.append(failure)
    return failures


def _failure_subject(row: Any, names: dict[Purpose, str]) -> str:
    if isinstance(row, Question):
        return names[row.payer]
    if isinstance(row, HIT):
        return row.track.name
    if isinstance(row, Assignment):
        return f"{row.hit.track.name}, by {row.worker.handle[:6]}"
    return f"${row.amount} to {row.worker.handle[:6]}"
