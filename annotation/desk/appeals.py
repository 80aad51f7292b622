"""Answers appeals: reinstates workers, or pays answers whose pay was refused."""

from __future__ import annotations

from django.db import transaction

from annotation.labels import exclude, reject
from annotation.labels.reject import CannotReject
from annotation.models import WorkerIdentity
from annotation.platforms.registry import local_platform_names
from annotation.workers.models import Appeal, Message
from annotation.workers.speak import (
    ANSWERED,
    COUNTS_AGAIN,
    IS_PAID,
    LONGEST,
    LONGEST_OUT,
    STAYS,
    CannotSay,
    clean_text,
    current_rejections,
    send_decision,
)
from kbpo import clock
from kbpo.accounts.audit import write_audit_entry
from kbpo.accounts.models import User

DECIDED = 300
"""Greatest number of characters of a decision in a message"""


def answer_appeal(appeal_pk: int, who: User, text: str, *, reinstate: bool) -> Appeal:
    """Store the answer to an appeal and the decision, and return the appeal. Raises CannotSay, also
    if it was answered before.

    The marketplace is called first, outside of the transaction. If the call fails, or the process
    is killed, the appeal stays open; answers that were paid count as paid when the appeal is
    answered again.
    """
    answer = clean_text(text, "The answer", max_length=LONGEST - DECIDED)
    row = Appeal.objects.select_related("worker").filter(pk=appeal_pk, answered_at=None).first()
    if row is not None and row.about_pay and reinstate:
        refused = current_rejections(row.worker).filter(made_at__lte=row.made_at)
        try:
            for rejection in refused.select_related("assignment__hit"):
                reject.undo_rejection(
                    rejection.assignment, who, f"Appeal: {answer}", is_answer=True
                )
        except CannotReject as cannot:
            raise CannotSay(str(cannot)) from cannot
    return _store_appeal_answer(appeal_pk, who, answer, reinstate=reinstate)


@transaction.atomic
def _store_appeal_answer(appeal_pk: int, who: User, answer: str, *, reinstate: bool) -> Appeal:
    appeals = Appeal.objects.select_for_update(of=("self",)).select_related("worker")
    row = appeals.filter(pk=appeal_pk).first()
    if row is None:
        raise CannotSay("There is no such appeal any more.")
    if row.answered_at is not None:
        raise CannotSay("This appeal was answered already.")
    row.answer, row.reinstated = answer, reinstate
    row.answered_at, row.answered_by = clock.now(), who
    row.save(update_fields=["answer", "reinstated", "answered_at", "answered_by"])
    if reinstate and not row.about_pay:
        exclude.reinstate_worker(row.worker, who, f"Appeal: {answer}", is_answer=True)
    elif not reinstate:
        action = "uphold rejection" if row.about_pay else "uphold exclusion"
        about, why = f"worker:{row.worker.handle}", f"Appeal: {answer}"
        write_audit_entry(action, about, who=who, before=row.excluded_reason, why=why)
    is_local = row.worker.platform in local_platform_names()
    if not is_local and WorkerIdentity.objects.filter(worker=row.worker).exists():
        text = answer[:LONGEST_OUT]
        Message.objects.create(worker=row.worker, subject=ANSWERED, text=text, by=who)
    else:
        granted = IS_PAID if row.about_pay else COUNTS_AGAIN
        send_decision(row.worker, ANSWERED, f"{answer}\n\n{granted if reinstate else STAYS}")
    return row
