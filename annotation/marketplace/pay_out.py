"""Step 9c: pays workers of other platforms there, by approvals, rejections, bonuses and
compensations.

Each row is an intent first ("sent", committed), then comes the call, then the outcome. A row that
was sent without an outcome is never repeated blindly: the platform's records are read first.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import TypeVar

from django.db import transaction
from django.db.models import Q

from annotation.budget.accrue import record_earned_pay
from annotation.marketplace import compensations
from annotation.marketplace.give import grant_bonus
from annotation.models import HIT, Assignment, Bonus, Payment, Qualification, Worker
from annotation.platforms.base import Lost, Platform, PlatformDown, Refused, UnknownOutcome
from annotation.platforms.registry import marketplace_names, platform_by_name
from annotation.workers.models import TutorialRun
from annotation.workers.speak import deliver_messages, notify_of_exclusions, notify_of_refusals
from annotation.workers.teach import passed_reason, payment_key
from kbpo import clock
from kbpo.money.models import Ledger
from kbpo.money.spend import cancel_payment, release_money
from kbpo.queue import BACKOFF, MAX_ATTEMPTS, Moving

log = logging.getLogger(__name__)

Row = TypeVar("Row", Payment, Bonus)
SENT_IN = ("submitted", "accepted", "approved", "paid")
CRASHED = 3
"""A row that is still "sent" after this multiple of the longest call was left by a process that
died"""
MOST_DOUBLINGS = 8
BATCH = 200


def pay_tutorials(platform: str) -> int:
    """Turn promises for passed tutorials into bonuses, and return their number."""
    runs = TutorialRun.objects.filter(
        worker__platform=platform,
        worker__identity__isnull=False,
        passed=True,
        promised__gt=0,
        promise__isnull=False,
    )
    paid = 0
    for pk in list(runs.values_list("pk", flat=True)[:BATCH]):
        try:
            with transaction.atomic():
                locked = TutorialRun.objects.select_for_update(of=("self",))
                paid += _grant_tutorial_bonus(locked.select_related("track", "worker").get(pk=pk))
        except ValueError as error:  # a cap was lowered meanwhile; it stays promised and is retried
            log.warning("Tutorial %s could not be paid yet: %s", pk, error)
    return paid


def _grant_tutorial_bonus(run: TutorialRun) -> int:
    """Grant the bonus for a tutorial with the promised money, and return 1; return 0 if the bonus
    cannot be granted yet.
    """
    answers = Assignment.objects.filter(worker=run.worker, status__in=SENT_IN)
    answer = answers.exclude(external_id="").first()
    if answer is None or run.track is None or run.promise_id is None:
        return 0
    release_money(run.track, run.purpose, key=f"{run.purpose}/bonus", why="It is paid by a bonus")
    grant_bonus(
        run.worker,
        run.track,
        run.promised,
        passed_reason(run),
        assignment=answer,
        key=payment_key(run.worker_id, run.interface),
    )
    run.promise = None
    run.save(update_fields=["promise"])
    return 1


def tick() -> int:
    """Pay what is owed on other platforms; return the number of rows that changed."""
    return sum(_pay_platform(name) for name in marketplace_names())


def _pay_platform(name: str) -> int:
    bonuses = Bonus.objects.filter(worker__platform=name)
    if not HIT.objects.filter(platform=name).exists() and not bonuses.exists():
        return 0
    platform = platform_by_name(name)
    moved = (
        _record_pay_for_unusable_answers(name)
        + pay_tutorials(name)
        + compensations.owe_after_lifted_halt(name)
    )
    compensations.make_halted_due(name)
    moved += _pay_each_row(
        Payment, Q(assignment__hit__platform=name), lambda row: _approve_assignment(platform, row)
    )
    moved += _pay_each_row(Bonus, Q(worker__platform=name), lambda row: _send_bonus(platform, row))
    moved += compensations.delete_ended_hits(platform)
    moved += _reject_on_platform(platform) + _update_qualifications(platform)
    if platform.capabilities.messages:
        notify_of_exclusions(name)
        notify_of_refusals(name)
        moved += deliver_messages(platform)
    return moved


def _record_pay_for_unusable_answers(name: str) -> int:
    """Record that the reward of unusable answers is owed, since only a person rejects."""
    assignments = Assignment.objects.filter(
        hit__platform=name, status="failed", payment=None, next_try_at__lte=clock.now()
    )
    owed = 0
    unusable = assignments.exclude(platform_status__in=["", "rejected"])
    for pk in unusable.values_list("pk", flat=True)[:BATCH]:
        with transaction.atomic():
            owed += len(
                record_earned_pay([Assignment.objects.select_for_update(of=("self",)).get(pk=pk)])
            )
    return owed


def _pay_each_row(model: type[Row], condition: Q, pay: Callable[[Row], bool]) -> int:
    moved, tried = 0, set[int]()
    while len(tried) < BATCH and (row := _claim_row(model, condition, tried)) is not None:
        tried.add(row.pk)
        moved += _pay_row(row, pay)
    return moved


@transaction.atomic
def _claim_row(model: type[Row], condition: Q, tried: set[int]) -> Row | None:
    """Return the next row to be paid, or None. The row is stored as “sent” before the platform is
    called, so that a crash leaves a trace. `asked_before` is set on rows that may have been sent
    already: then the platform is first asked whether they were paid.
    """
    now = clock.now()
    slowest = max(
        platform_by_name(name).capabilities.answers_within for name in marketplace_names()
    )
    patience = CRASHED * slowest
    due = Q(status__in=["owed", "unknown"], next_try_at__lte=now) | Q(
        status="sent", status_since__lt=now - patience
    )
    claimable = model._default_manager.select_for_update(skip_locked=True, of=("self",)).filter(
        due & condition
    )
    row: Row | None = claimable.exclude(pk__in=tried).order_by("status_since", "pk").first()
    if row is not None:
        row.asked_before = row.status != "owed"
        row.attempts = min(row.attempts + 1, 1000)
        row.status, row.status_since = "sent", now
        row.save(update_fields=["status", "status_since", "attempts"])
    return row


def _pay_row(row: Row, pay: Callable[[Row], bool]) -> int:
    """Pay a row, and return 1 if it reached a final status."""
    try:
        done = pay(row)
    except PlatformDown as down:
        return _postpone_payment(row, "unknown" if row.asked_before else "owed", str(down))
    except UnknownOutcome as doubt:
        return _postpone_payment(row, "unknown", str(doubt))
    except compensations.Withdrawn as no:
        return compensations.return_bonus_money(row, no) if isinstance(row, Bonus) else 0
    except Lost as lost:
        return _give_up_payment(row, str(lost))
    except Refused as no:
        if row.attempts < MAX_ATTEMPTS:  # a balance may be too small only for now
            return _postpone_payment(row, "unknown" if row.asked_before else "owed", str(no))
        return _give_up_payment(row, str(no))
    except Exception as error:
        log.exception("%s could not be paid", row)
        why = f"An internal error ({type(error).__name__}). It is logged."
        return _postpone_payment(row, "unknown", why)
    if not done:
        return _postpone_payment(row, "owed", "It waits until the worker takes it.")
    return _mark_paid(row)


def _postpone_payment(payment: Moving, status: str, sentence: str) -> int:
    wait = BACKOFF * 2 ** min(payment.attempts, MOST_DOUBLINGS)
    type(payment)._default_manager.filter(pk=payment.pk, status="sent").update(
        status=status, reason=sentence, next_try_at=clock.now() + wait
    )
    return 0


@transaction.atomic
def _mark_paid(payment: Moving) -> int:
    now = clock.now()
    sent = type(payment)._default_manager.filter(pk=payment.pk, status="sent")
    if not sent.update(status="paid", status_since=now, reason=""):
        return 0
    if isinstance(payment, Payment):
        mine = Assignment.objects.filter(payment=payment)
        mine.update(platform_status="approved")
        mine.filter(status="approved").update(status="paid", status_since=now)
    return 1


@transaction.atomic
def _give_up_payment(payment: Moving, sentence: str) -> int:
    """Leave a row that the platform will not pay to an admin. The money of a bonus that was not
    paid is released; that of a bonus that may have been paid through a lost HIT is not.
    """
    payment.move("failed", sentence)
    if isinstance(payment, Bonus):
        if payment.payer is not None:  # returned to the reservation of its payer
            cancel_payment(payment.token)
            return 1
        lost = payment.assignment_id is None
        state = Ledger.State.UNKNOWN if lost else Ledger.State.FAILED
        Ledger.objects.filter(**payment.purpose.filter_condition("purpose")).update(state=state)
        Bonus.objects.filter(pk=payment.pk).update(cleared_at=clock.now() if lost else None)
    return 1


def _approve_assignment(platform: Platform, payment: Payment) -> bool:
    """Approve an assignment. Repeating it changes nothing."""
    assert payment.assignment is not None  # the rows are chosen by their HIT
    platform.decide(payment.assignment)
    return True


def _send_bonus(platform: Platform, bonus: Bonus) -> bool:
    if bonus.assignment is None:
        return compensations.offer_payment(platform, bonus)
    platform.pay_bonus(bonus)
    return True


def _reject_on_platform(platform: Platform) -> int:
    """Reject on the platform what admins rejected here; the worker reads why."""
    assignments = Assignment.objects.filter(
        hit__platform=platform.name, status="rejected", platform_status="submitted"
    )
    n_rejected = 0
    for row in assignments.filter(next_try_at__lte=clock.now())[:BATCH]:
        try:
            platform.decide(row, refused=row.reason)
        except (PlatformDown, UnknownOutcome, Refused) as trouble:
            # A repeated call has the same result.
            later = clock.now() + BACKOFF * 2**MOST_DOUBLINGS
            Assignment.objects.filter(pk=row.pk).update(next_try_at=later)
            log.warning(
                "Assignment %s could not be rejected on %s: %s", row.pk, platform.name, trouble
            )
            continue
        Assignment.objects.filter(pk=row.pk).update(platform_status="rejected")
        n_rejected += 1
    return n_rejected


def _update_qualifications(platform: Platform) -> int:
    """Update the platform's qualifications of workers who were excluded, reinstated, or passed a
    tutorial.
    """
    _mark_exclusions_to_send(platform.name)
    qualifications = Qualification.objects.filter(
        worker__platform=platform.name, worker__identity__isnull=False
    )
    qualifications = qualifications.filter(next_try_at__lte=clock.now())
    n_told = 0
    for row in qualifications.filter(Qualification.UNTOLD).select_related("worker__identity")[
        :BATCH
    ]:
        try:
            platform.set_qualification(row.worker, row.name, row.wanted)
        except Refused as no:  # this one alone; the platform takes the others
            log.warning("Worker %s may not be qualified on %s: %s", row.worker, platform.name, no)
            refusals = min(row.refusals + 1, 1000)
            wait = BACKOFF * 2 ** min(refusals, MOST_DOUBLINGS)
            Qualification.objects.filter(pk=row.pk).update(
                refusals=refusals, reason=str(no), next_try_at=clock.now() + wait
            )
            continue
        except (PlatformDown, UnknownOutcome) as trouble:
            log.warning(
                "Worker %s could not be qualified on %s: %s", row.worker, platform.name, trouble
            )
            break
        Qualification.objects.filter(pk=row.pk).update(
            told=row.wanted, told_at=clock.now(), refusals=0, reason=""
        )
        n_told += 1
    return n_told


def _mark_exclusions_to_send(name: str) -> None:
    workers = Worker.objects.filter(platform=name)
    new = workers.filter(excluded_at__isnull=False).exclude(qualifications__name="excluded")
    Qualification.objects.bulk_create(
        [Qualification(worker=worker, name="excluded", wanted=True) for worker in new],
        ignore_conflicts=True,
    )
    qualifications = Qualification.objects.filter(name="excluded", worker__platform=name)
    now = clock.now()
    qualifications.filter(worker__excluded_at=None, wanted=True).update(wanted=False, wanted_at=now)
    qualifications.filter(worker__excluded_at__isnull=False, wanted=False).update(
        wanted=True, wanted_at=now
    )
