"""Refuses pay for an answer, with evidence, and undoes that.

The answer is kept and no longer counts, also in settled labels. Its money stays reserved, so that
the answer is paid at once if the rejection is undone. Paid money is not reclaimed.
"""

from __future__ import annotations

from django.db import transaction
from django.db.models import QuerySet

from annotation.labels.recount import set_counting
from annotation.models import Assignment, Bonus, Payment, Rejection, Response
from annotation.platforms.base import PlatformDown, Refused, UnknownOutcome
from annotation.platforms.registry import local_platform_names, platform_by_name
from annotation.workers.speak import IS_PAID, PAID_AFTER_ALL, REFUSED, send_decision
from kbpo import clock
from kbpo.accounts.audit import write_audit_entry
from kbpo.accounts.models import User
from kbpo.queue import wake_step

LEAST_EVIDENCE = 20  # characters: a reason that its worker can answer
REJECTABLE = ("accepted", "approved")


class CannotReject(ValueError):
    """Raised for a rejection that cannot be made or undone; the text is a sentence for the
    admin.
    """


def check_rejectable(assignment: Assignment, evidence: str) -> None:
    """Raise CannotReject if the answer cannot be rejected with this evidence."""
    if len(evidence.strip()) < LEAST_EVIDENCE:
        raise CannotReject(
            f"Say what is wrong, in {LEAST_EVIDENCE} characters or more: the worker reads it."
        )
    if assignment.status == "rejected":
        raise CannotReject("This answer is rejected already.")
    if assignment.status not in REJECTABLE:
        raise CannotReject(f"An answer that is {assignment.status} cannot be rejected.")
    for owed in _owed_rows(assignment):
        paid = owed.exclude(status="owed").first()
        if paid is not None:
            raise CannotReject(
                f"Its payment is {paid.status}: what has been paid is not asked back."
            )


def _owed_rows(assignment: Assignment) -> tuple[QuerySet[Payment], QuerySet[Bonus]]:
    """Return the payments and the bonuses of an answer."""
    return (
        Payment.objects.filter(assignment=assignment),
        Bonus.objects.filter(assignment=assignment).exclude(payer_kind=None),
    )


def _answer_description(assignment: Assignment) -> str:
    """Return when an answer was sent and its pay, as a text for its worker."""
    sent = assignment.submitted_at or assignment.accepted_at
    owed = Payment.objects.filter(assignment=assignment).values_list("amount", flat=True)
    worth = f", ${sum(owed):.2f}" if owed else ""
    return f"Your answer of {sent.day} {sent:%B %Y, %H:%M} UTC{worth}:"


def reject_answer(assignment: Assignment, who: User, evidence: str) -> Rejection:
    """Reject an answer and return the rejection. The platform is called first, and the call can be
    repeated. Raises CannotReject, in which case nothing has changed.
    """
    check_rejectable(assignment, evidence)
    _report_decision(assignment, evidence, approve=False)
    return _store_rejection(assignment, who, evidence.strip()[:2000])


@transaction.atomic
def _store_rejection(assignment: Assignment, who: User, evidence: str) -> Rejection:
    row = Assignment.objects.select_for_update(of=("self",)).get(pk=assignment.pk)
    check_rejectable(row, evidence)
    rejection = Rejection.objects.create(assignment=row, who=who, evidence=evidence, was=row.status)
    for owed in _owed_rows(row):
        owed.filter(status="owed").update(
            status="withheld", status_since=clock.now(), reason=evidence
        )
    row.move(
        "rejected", evidence
    )  # first: it is not among the answers that a question has, if more are asked for
    _set_answer_counting(row, row.responses.filter(counts=True), f"Rejected: {evidence}", who)
    appeal = "You may appeal; a person answers."
    page = f"answers/{row.pk}/#refused"
    send_decision(row.worker, REFUSED, f"{_answer_description(row)} {evidence}\n\n{appeal}", page)
    about, was = f"assignment:{row.pk}", rejection.was
    write_audit_entry("reject", about, who=who, why=evidence, before=was, after="rejected")
    return rejection


def undo_rejection(
    assignment: Assignment, who: User, why: str, *, is_answer: bool = False
) -> Rejection:
    """Undo a rejection and return it: the answer counts and is paid. Raises CannotReject, also
    without a reason. As the answer to an appeal (`is_answer`) the call sends the worker no message
    of its own.
    """
    if assignment.status != "rejected":
        raise CannotReject("This answer is not rejected.")
    if not why.strip():
        raise CannotReject("Nothing was undone: say why. It is logged.")
    _report_decision(assignment, why, approve=True)
    return _store_undone_rejection(assignment, who, why, is_answer=is_answer)


@transaction.atomic
def _store_undone_rejection(
    assignment: Assignment, who: User, why: str, *, is_answer: bool
) -> Rejection:
    rows = Assignment.objects.select_for_update(of=("self",)).select_related("worker")
    row = rows.get(pk=assignment.pk)
    rejection = Rejection.objects.select_for_update().filter(assignment=row, undone_at=None).first()
    if row.status != "rejected" or rejection is None:
        raise CannotReject("This answer is not rejected.")
    rejection.undone_at, rejection.undone_by = clock.now(), who
    rejection.save(update_fields=["undone_at", "undone_by"])
    for owed in _owed_rows(row):
        owed.filter(status="withheld").update(status="owed", status_since=clock.now(), reason="")
    excluded = row.worker.excluded_reason if row.worker.excluded_at else ""
    row.move(rejection.was)
    # Whatever the reason was: it may have been excluded with its worker before, who was reinstated
    # since.
    _set_answer_counting(
        row, row.responses.filter(counts=False).filter(met_before=False), excluded, who
    )
    if not is_answer:
        send_decision(row.worker, PAID_AFTER_ALL, f"{_answer_description(row)} {IS_PAID}")
    about, was = f"assignment:{row.pk}", rejection.was
    write_audit_entry("undo rejection", about, who=who, why=why, before="rejected", after=was)
    wake_step("settle")
    return rejection


def _set_answer_counting(
    assignment: Assignment, responses: QuerySet[Response], reason: str, who: User
) -> None:
    """Count an answer, or stop counting it for a reason, also in settled labels."""
    what = "no longer counts" if reason else "counts"
    set_counting(
        responses,
        reason,
        f"The answer in assignment {assignment.pk} {what}.",
        who,
        answer=assignment,
    )


def _report_decision(assignment: Assignment, words: str, *, approve: bool) -> None:
    """Report an approval or a rejection to the platform of an answer. The call can be repeated."""
    platform = platform_by_name(assignment.hit.platform)
    if platform.name in local_platform_names():
        return
    if not platform.capabilities.rejects:
        raise CannotReject(f"On {platform.name} nothing is rejected.")
    try:
        platform.decide(assignment, refused=None if approve else words)
    except (PlatformDown, UnknownOutcome, Refused) as error:
        raise CannotReject(
            f"{platform.name} did not answer ({error}). Nothing was changed; try again."
        ) from error
