"""Compares our own records: ledger, payments, assignments, payouts. Each disagreement is reported
as a sentence.

The check reads whole tables, so no page runs it: the clock does, every ten minutes or when an admin
asks. The result is stored.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass
from datetime import timedelta

from django.db import DatabaseError, connection, transaction

from kbpo import clock
from kbpo.accounts.models import User
from kbpo.corpus.sql import fetch_rows
from kbpo.money.models import BooksCheck
from kbpo.queue import wake_step

log = logging.getLogger(__name__)

MOST = 50
"""Greatest number of sentences of one kind that are listed; the others are only counted"""
EVERY = timedelta(minutes=10)
KEPT = timedelta(days=30)
"""How long results are stored, to show since when the records disagree"""

CHECKS: dict[str, str] = {
    "overspent": (
        """
        SELECT purpose_kind || ':' || purpose_number || ' has spent or given back $'
               || -sum(CASE kind WHEN 'reserve' THEN amount ELSE -amount END)
               || ' more than was reserved.'
        FROM money_ledger WHERE state <> 'failed' GROUP BY purpose_kind, purpose_number
        HAVING sum(CASE kind WHEN 'reserve' THEN amount ELSE -amount END) < 0
        ORDER BY purpose_kind, purpose_number"""
    ),
    "unpaid": (
        """
        SELECT 'Answer ' || a.id || ' is ' || a.status || ', and nobody is owed anything for it.'
        FROM annotation_assignment a LEFT JOIN annotation_payment p ON p.assignment_id = a.id
        WHERE a.status IN ('approved', 'paid') AND p.id IS NULL ORDER BY a.id"""
    ),
    "not_approved": (
        """
        SELECT 'Payment ' || p.id || ' is ' || p.status
               || ', and its answer ' || a.id || ' is ' || a.status || '.'
        FROM annotation_payment p JOIN annotation_assignment a ON a.id = p.assignment_id
        WHERE (p.status IN ('owed', 'sent', 'unknown', 'waived')
            AND a.status NOT IN ('approved', 'failed'))
           OR (p.status = 'paid' AND a.status NOT IN ('paid', 'failed')) ORDER BY p.id"""
    ),
    "wrong_worker": (
        """
        SELECT 'Payment ' || p.id || ' is not to the worker of its answer ' || a.id || '.'
        FROM annotation_payment p JOIN annotation_assignment a ON a.id = p.assignment_id
        WHERE p.worker_id <> a.worker_id ORDER BY p.id"""
    ),
    "wrong_amount": (
        """
        SELECT 'Payment ' || p.id || ' is $' || p.amount || CASE WHEN b.amount IS NULL THEN ''
               ELSE ' and $' || b.amount || ' of bonus' END
               || ', and its answer earned $' || h.reward + a.extra || '.'
        FROM annotation_payment p JOIN annotation_assignment a ON a.id = p.assignment_id
        JOIN annotation_hit h ON h.id = a.hit_id
        LEFT JOIN (SELECT assignment_id, sum(amount) AS amount FROM annotation_bonus
            WHERE payer_kind IS NOT NULL GROUP BY 1) b ON b.assignment_id = a.id
        WHERE p.amount + coalesce(b.amount, 0) <> h.reward + a.extra ORDER BY p.id"""
    ),
    "bonus_not_spent": (
        """
        SELECT 'Bonus ' || b.id || ' of $' || b.amount || ' is ' || b.status
               || ', and the ledger has $' || coalesce(l.amount, 0) || ' for it.'
        FROM annotation_bonus b LEFT JOIN money_ledger l ON l.key = b.token AND l.kind = 'spend'
            AND l.state <> 'failed'
        WHERE b.payer_kind IS NOT NULL
            AND CASE WHEN b.status = 'failed' THEN coalesce(l.amount, 0) <> 0
                ELSE coalesce(l.amount, 0) < b.amount END
        ORDER BY b.id"""
    ),
    "no_spending": (
        """
        SELECT 'Payment ' || p.id || ' of $' || p.amount || ' is ' || p.status
               || ', and the ledger has $' || coalesce(s.amount, 0) || ' for it.'
        FROM annotation_payment p LEFT JOIN (
            SELECT CASE WHEN l.key LIKE 'assignment:%%' THEN split_part(l.key, '/', 1)
                ELSE l.key END AS key,
                   sum(l.amount) AS amount
            FROM money_ledger l WHERE l.kind = 'spend' AND l.state <> 'failed' GROUP BY 1
        ) s ON s.key = CASE WHEN p.assignment_id IS NULL THEN p.token
            ELSE 'assignment:' || p.assignment_id END
        WHERE CASE WHEN p.status = 'waived' THEN coalesce(s.amount, 0) <> 0
            ELSE coalesce(s.amount, 0) < p.amount END
        ORDER BY p.id"""
    ),
    "spent_for_nobody": (
        """
        SELECT 'The ledger spent $' || l.amount || ' as ' || l.key
               || ', and no payment belongs to it.'
        FROM money_ledger l
        LEFT JOIN annotation_payment a ON a.assignment_id = CASE
            WHEN l.key ~ '^assignment:[0-9]+(/[0-9]+)?$'
             THEN split_part(split_part(l.key, ':', 2), '/', 1)::bigint END
        LEFT JOIN annotation_payment t ON t.token = l.key
        WHERE l.kind = 'spend' AND l.state <> 'failed' AND (l.key LIKE 'assignment:%%'
            OR l.key LIKE 'tutorial:%%' OR l.key LIKE 'late:%%')
          AND a.id IS NULL AND t.id IS NULL ORDER BY l.id"""
    ),
    "promised_to_nobody": (
        """
        SELECT 'tutorial:' || l.purpose_number || ' has $'
               || sum(CASE l.kind WHEN 'reserve' THEN l.amount ELSE -l.amount END)
               || ' set aside, and no attempt at a tutorial is promised it.'
        FROM money_ledger l WHERE l.purpose_kind = 'tutorial' AND l.state <> 'failed'
            AND NOT EXISTS (SELECT 1 FROM annotators_tutorialrun r
                WHERE r.promise_id = l.purpose_number AND r.promised > 0)
        GROUP BY l.purpose_number
        HAVING sum(CASE l.kind WHEN 'reserve' THEN l.amount ELSE -l.amount END) > 0
        ORDER BY l.purpose_number"""
    ),
    "payout": (
        """
        SELECT 'Payout ' || o.number || ' is $' || o.amount
               || ', and its payments are $' || coalesce(sum(p.amount), 0) || '.'
        FROM annotators_payout o LEFT JOIN annotators_payoutitem i ON i.payout_id = o.id
        LEFT JOIN annotation_payment p ON p.id = i.payment_id AND p.status = 'paid'
            AND p.worker_id = o.worker_id
        WHERE o.undoes_id IS NULL AND NOT EXISTS (SELECT 1 FROM annotators_payout u
            WHERE u.undoes_id = o.id)
        GROUP BY o.id HAVING coalesce(sum(p.amount), 0) <> o.amount ORDER BY o.id"""
    ),
    "payout_undone": (
        """
        SELECT 'Payout ' || o.number || ' was undone with $' || u.amount
               || ', and was $' || o.amount || '.'
        FROM annotators_payout u JOIN annotators_payout o ON o.id = u.undoes_id
        WHERE u.amount <> -o.amount OR u.worker_id <> o.worker_id
           OR EXISTS (SELECT 1 FROM annotators_payoutitem i WHERE i.payout_id = o.id
               AND NOT i.undone)
        ORDER BY u.id"""
    ),
    "paid_without_payout": (
        """
        SELECT 'Payment ' || p.id || ' is paid, and no payout says so.'
        FROM annotation_payment p JOIN annotation_worker w ON w.id = p.worker_id
        LEFT JOIN annotators_payoutitem i ON i.payment_id = p.id AND NOT i.undone
        WHERE p.status = 'paid' AND i.id IS NULL AND w.platform IN ('pool', 'simulated')
            ORDER BY p.id"""
    ),
}


@dataclass(frozen=True)
class Finding:
    """A disagreement between our records: the name of the check and a sentence."""

    check: str
    sentence: str


@dataclass(frozen=True)
class LastCheck:
    """The result of the last check of the money records (None before the first), and whether a
    check is queued.
    """

    row: BooksCheck | None
    queued: bool

    @property
    def time_since_check(self) -> timedelta | None:
        return clock.now() - self.row.finished_at if self.row and self.row.finished_at else None

    @property
    def is_overdue(self) -> bool:
        """Return whether the next regular check is long overdue."""
        return self.time_since_check is not None and self.time_since_check > 3 * EVERY


def check_books() -> list[Finding]:
    """Return all disagreements, at most fifty of a kind."""
    findings = []
    for name, sql in CHECKS.items():
        sentences = [sentence for (sentence,) in fetch_rows(f"{sql} LIMIT {MOST + 1}", {})]
        findings += [Finding(name, sentence) for sentence in sentences[:MOST]]
        if len(sentences) > MOST:
            findings.append(Finding(name, f"There are more than {MOST} like this."))
    return findings


def tick() -> int:
    """Check the books if somebody asked for it or a check is due. Return 1 if they were checked."""
    if not _is_check_due():
        return 0
    with transaction.atomic():
        with connection.cursor() as cursor:
            cursor.execute(
                "SELECT pg_try_advisory_xact_lock(hashtext('annotation.budget.check_books'))"
            )
            [is_ours] = cursor.fetchone()
        return _run_queued_check() if is_ours and _is_check_due() else 0


def queue_check(who: User | None) -> bool:
    """Queue a check, and return whether none was queued before."""
    _, made = BooksCheck.objects.get_or_create(finished_at=None, defaults={"who": who})
    wake_step("books")
    return made


def last_check_result() -> LastCheck:
    """Return the result of the last check, and whether the next one is queued."""
    asked = BooksCheck.objects.filter(finished_at=None).exists()
    return LastCheck(
        BooksCheck.objects.exclude(finished_at=None).order_by("-finished_at").first(), asked
    )


def _is_check_due() -> bool:
    if BooksCheck.objects.filter(finished_at=None).exists():
        return True
    return not BooksCheck.objects.filter(finished_at__gt=clock.now() - EVERY).exists()


def _run_queued_check() -> int:
    """Run a queued check and store its result. A check that is killed stays queued."""
    begin = clock.now()
    disagreements: list[Finding] = []
    trouble = ""
    try:
        with transaction.atomic():
            disagreements = check_books()
    except DatabaseError as error:
        log.exception("The books could not be checked")
        trouble = f"The books could not be read ({type(error).__name__}). It is logged."
    now = clock.now()
    BooksCheck.objects.get_or_create(finished_at=None)
    BooksCheck.objects.filter(finished_at=None).update(
        finished_at=now,
        seconds=(now - begin).total_seconds(),
        trouble=trouble,
        findings=[
            {"check": finding.check, "sentence": finding.sentence} for finding in disagreements
        ],
    )
    BooksCheck.objects.filter(finished_at__lt=now - KEPT).delete()
    return 1
