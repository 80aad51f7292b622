"""Erases annotators who ask for it, once nothing is owed to them, and releases money that was
promised for unfinished tutorials.

Answers are kept without an owner: the row of the worker loses its account, its id on the platform
and its hash.
"""

from __future__ import annotations

import secrets
from datetime import datetime, timedelta

from django.db import connection, transaction
from django.db.models import Exists, OuterRef, Q

from annotation.budget.accrue import return_waived_money
from annotation.models import (
    UNPROVEN,
    Assignment,
    Bonus,
    Payment,
    Rejection,
    Response,
    Worker,
)
from annotation.platforms.registry import local_platform_names
from annotation.workers.models import Application, TutorialRun
from annotation.workers.teach import release_promise
from kbpo import clock
from kbpo.accounts.audit import ERASED, erase_person, write_audit_entry
from kbpo.accounts.close import close_account, delete_belongings
from kbpo.accounts.close import erase_person_from_log as forget_person
from kbpo.accounts.models import User
from kbpo.instances.record import rename_person
from kbpo.money.spend import cancel_payment, release_money

PATIENCE = timedelta(days=14)
"""How long the promise for a tutorial is kept for a worker who has begun it, or failed it once."""
UNPAID = ("owed", "sent", "unknown", "stopped")
"""Statuses of bonuses that a marketplace can pay only to a known worker"""
LEAVING = Q(leaves_at__isnull=False, erased_at=None)
"""Workers who asked to be erased and are not erased yet"""
REMARKS = """
    UPDATE annotation_response r SET value = r.value - 'remark'
    FROM annotation_assignment a WHERE a.id = r.assignment_id AND a.worker_id = %s
        AND r.value ? 'remark'
"""


def tick() -> int:
    """Erase annotators and release promises; return how many of both."""
    pending = Worker.objects.filter(LEAVING).values_list("pk", flat=True)
    return sum(erase_if_settled(pk) for pk in list(pending)) + _release_stale_promises()


def has_asked_to_leave(worker: Worker) -> bool:
    """Return whether a worker asked to be erased and is not erased yet."""
    return worker.leaves_at is not None and worker.erased_at is None


def ask_to_leave(worker: Worker, *, waives: bool) -> bool:
    """Store a worker's request to be erased, and return whether they are erased now. Otherwise they
    are erased as soon as nothing is owed to them. With `waives`, open payments are waived.
    """
    with transaction.atomic():
        Worker.objects.select_for_update(of=("self",), no_key=True).get(pk=worker.pk)
        Worker.objects.filter(pk=worker.pk).update(leaves_at=clock.now(), waives=waives)
        Assignment.objects.filter(worker=worker, status="leased").update(
            status="returned", status_since=clock.now(), returned_by=Assignment.ReturnedBy.WORKER
        )
    return erase_if_settled(worker.pk)


def cancel_leaving(worker: Worker) -> bool:
    """Withdraw a request to be erased, and return whether that was possible."""
    return bool(Worker.objects.filter(LEAVING, pk=worker.pk).update(leaves_at=None))


@transaction.atomic
def erase_if_settled(worker_pk: int) -> bool:
    """Erase a worker who asked for it if none of their answers is being processed and nothing is
    owed; return whether they were erased.
    """
    worker = Worker.objects.select_for_update(of=("self",)).get(pk=worker_pk)
    unread = worker.assignments.filter(status__in=["submitted", "accepted"])
    if not has_asked_to_leave(worker) or unread.exists():
        return False
    payments = Payment.objects.select_for_update(of=("self",)).filter(worker=worker)
    owed = payments.exclude(status__in=["paid", "waived", "withheld"])
    if owed.exclude(status="owed").exists() or (owed.exists() and not worker.waives):
        return False
    if worker.platform not in local_platform_names():
        # A marketplace may still list answers of theirs, or owe them a bonus.
        listed = worker.assignments.exclude(status="returned").exclude(hit__platform_status="gone")
        if listed.exists() or worker.bonuses.filter(status__in=UNPAID).exists():
            return False
    _waive_payments(list(owed))
    _erase_worker(worker)
    return True


def erase_marketplace_worker(worker: Worker, who: User, why: str) -> str:
    """Erase a marketplace worker for an admin, at once or when possible, and return a sentence
    about what was done. Answers, payments and the ledger are kept. Raises ValueError.
    """
    if worker.platform in local_platform_names():
        raise ValueError("Annotators with an account here erase themselves, from their own page.")
    if not why.strip():
        raise ValueError("Say why: it is recorded.")
    if worker.erased_at is not None:
        raise ValueError("This worker is erased already.")
    write_audit_entry("erase", f"worker:{worker.handle[:6]}", who=who, why=why)
    if ask_to_leave(worker, waives=False):
        return "Erased. Answers and payments stay, and belong to nobody."
    return (
        "Asked for. They are erased once everything of theirs is read, paid, and gone"
        " from the marketplace."
    )


def _waive_payments(payments: list[Payment]) -> None:
    """Waive these payments: the money returns to its payers."""
    for payment in payments:
        cancel_payment(
            f"assignment:{payment.assignment_id}" if payment.assignment_id else payment.token
        )
        return_waived_money(payment)
        payment.move("waived", "Waived by its worker, who left.")
    for run in TutorialRun.objects.filter(
        worker__payments__in=payments, promised__gt=0, passed=True
    ).distinct():
        if run.track is not None:
            why = "Waived by its worker, who left"
            release_money(run.track, run.purpose, key=f"{run.purpose}/waived", why=why)


def _erase_words_about(worker: Worker) -> None:
    """Erase the reasons of exclusions and rejections of a worker; the decisions stay."""
    mine = Assignment.objects.filter(worker=worker)
    refused = mine.filter(rejections__isnull=False)
    for pk in refused.values_list("pk", flat=True).distinct():
        erase_person(f"assignment:{pk}", f"assignment:{pk}")
    refused.update(reason=ERASED)
    Rejection.objects.filter(assignment__worker=worker).update(evidence=ERASED)
    for table in (Payment, Bonus):
        table.objects.filter(worker=worker, status="withheld").update(reason=ERASED)
    excluded = Response.objects.filter(assignment__worker=worker, counts=False, met_before=False)
    excluded.update(excluded_reason=ERASED)
    if worker.excluded_reason:
        worker.excluded_reason = ERASED


def _erase_worker(worker: Worker) -> None:
    # The money promised for tutorials, before the attempts are deleted. Local annotators who passed
    # have a payment; marketplace workers cannot be paid any more.
    runs = TutorialRun.objects.filter(worker=worker, promised__gt=0, promise__isnull=False)
    if worker.platform in local_platform_names():
        runs = runs.exclude(passed=True)
    for run in runs.select_for_update(of=("self",)).order_by("pk"):
        release_promise(run, "The annotator left")
    delete_belongings(worker)
    mine = Assignment.objects.filter(worker=worker)
    mine.update(draft=None, external_id="")
    for assignment in mine.exclude(raw=None):
        raw = assignment.raw if isinstance(assignment.raw, dict) else {}
        erased = {name for name in raw if name.endswith(".remark")} | {"remark", UNPROVEN}
        kept = {name: value for name, value in raw.items() if name not in erased}
        if kept != raw:
            Assignment.objects.filter(pk=assignment.pk).update(raw=kept)
    with connection.cursor() as cursor:
        cursor.execute(REMARKS, [worker.pk])
    user, worker.user = worker.user, None
    _erase_words_about(worker)
    before, worker.handle, worker.last_seen_at = worker.handle, secrets.token_hex(16), None
    erase_person(f"worker:{before}", f"worker:{worker.handle}")
    rated = Response.objects.filter(assignment__worker=worker).values_list("target", flat=True)
    rename_person(before, worker.handle, rated.distinct())
    worker.erased_at, worker.wants_mail, worker.mailed_at = clock.now(), False, None
    changed = ["user", "handle", "last_seen_at", "excluded_reason"]
    worker.save(update_fields=[*changed, "erased_at", "wants_mail", "mailed_at"])
    if user is not None:
        _delete_account_or_role(user)


def has_other_roles(user: User) -> bool:
    """Return whether an account has other roles than annotator, and must be kept."""
    return user.is_staff or user.is_researcher or user.teams.exists()


def _delete_account_or_role(user: User) -> None:
    """Delete an account whose only role was annotator; otherwise remove the role. Accounts of
    former team members are kept as a number, so that the same person cannot judge runs of that
    team.
    """
    if has_other_roles(user) or user.former_teams.exists():
        user.is_annotator = user.is_volunteer = False
        user.save(update_fields=["is_annotator", "is_volunteer"])
        Application.objects.filter(user=user).delete()
        if not has_other_roles(user):
            close_account(user)
    else:
        forget_person(user)
        user.delete()


def _release_stale_promises() -> int:
    """Release the promises of attempts that were not finished, or failed and were not repeated.
    Return their number.
    """
    late = clock.now() - PATIENCE
    stale = TutorialRun.objects.filter(
        Q(passed=None, started_at__lt=late) | Q(passed=False, ended_at__lt=late), promised__gt=0
    )
    taken = 0
    for pk in list(stale.values_list("pk", flat=True)[:500]):
        with transaction.atomic():
            row = stale.select_for_update(of=("self",)).filter(pk=pk).first()
            if row is not None:
                begun = row.passed is None
                what = "The tutorial was not finished" if begun else "It was not tried again"
                release_promise(row, f"{what} within a fortnight")
                taken += 1
    return taken + _release_unclaimed_promises(late)


def _release_unclaimed_promises(deadline: datetime) -> int:
    """Release promises to marketplace workers who passed and never submitted a HIT: they cannot be
    paid.
    """
    tutorial_runs = TutorialRun.objects.filter(
        passed=True, promised__gt=0, ended_at__lt=deadline, promise__isnull=False
    )
    sent = Assignment.objects.filter(worker=OuterRef("worker"), raw__isnull=False)
    taken = 0
    strangers = tutorial_runs.exclude(worker__platform__in=local_platform_names()).exclude(
        Exists(sent)
    )
    for run in strangers[:500]:
        with transaction.atomic():
            row = TutorialRun.objects.select_for_update(of=("self",)).get(pk=run.pk)
            release_promise(row, "Nothing was sent in after it")
            taken += 1
    return taken
