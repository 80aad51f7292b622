"""Holds our own books against each other: ledger, payments, assignments, payouts. Each quarrel is a sentence."""

from __future__ import annotations

from dataclasses import dataclass

from django.core.cache import cache

from kbpo.corpus.fetch import fetch

MOST = 50
"""Sentences of one kind: the rest is counted."""
KEY = "annotation.check_books"
SECONDS = 60

CHECKS: dict[str, str] = {
    "overspent": """
        SELECT purpose || ' has spent or given back $' || -sum(CASE kind WHEN 'reserve' THEN amount ELSE -amount END)
               || ' more than was reserved.'
        FROM money_ledger WHERE state <> 'failed' GROUP BY purpose
        HAVING sum(CASE kind WHEN 'reserve' THEN amount ELSE -amount END) < 0 ORDER BY purpose""",
    "unpaid": """
        SELECT 'Answer ' || a.id || ' is ' || a.status || ', and nobody is owed anything for it.'
        FROM annotation_assignment a LEFT JOIN annotation_payment p ON p.assignment_id = a.id
        WHERE a.status IN ('approved', 'paid') AND p.id IS NULL ORDER BY a.id""",
    "not_approved": """
        SELECT 'Payment ' || p.id || ' is ' || p.status || ', and its answer ' || a.id || ' is ' || a.status || '.'
        FROM annotation_payment p JOIN annotation_assignment a ON a.id = p.assignment_id
        WHERE (p.status IN ('owed', 'sent', 'unknown', 'waived') AND a.status NOT IN ('approved', 'failed'))
           OR (p.status = 'paid' AND a.status NOT IN ('paid', 'failed')) ORDER BY p.id""",
    "wrong_worker": """
        SELECT 'Payment ' || p.id || ' is not to the worker of its answer ' || a.id || '.'
        FROM annotation_payment p JOIN annotation_assignment a ON a.id = p.assignment_id
        WHERE p.worker_id <> a.worker_id ORDER BY p.id""",
    "wrong_amount": """
        SELECT 'Payment ' || p.id || ' is $' || p.amount || ', and its question promised $' || h.reward || '.'
        FROM annotation_payment p JOIN annotation_assignment a ON a.id = p.assignment_id
        JOIN annotation_hit h ON h.id = a.hit_id WHERE p.amount <> h.reward ORDER BY p.id""",
    "no_spending": """
        SELECT 'Payment ' || p.id || ' of $' || p.amount || ' is ' || p.status || ', and the ledger has $'
               || coalesce(s.amount, 0) || ' for it.'
        FROM annotation_payment p LEFT JOIN LATERAL (
            SELECT sum(l.amount) AS amount FROM money_ledger l
            WHERE l.kind = 'spend' AND l.state <> 'failed'
              AND (l.key IN ('assignment:' || p.assignment_id, p.token)
                   OR l.key LIKE 'assignment:' || p.assignment_id || '/%%')
        ) s ON true
        WHERE CASE WHEN p.status = 'waived' THEN coalesce(s.amount, 0) <> 0 ELSE coalesce(s.amount, 0) < p.amount END
        ORDER BY p.id""",
    "spent_for_nobody": """
        SELECT 'The ledger spent $' || l.amount || ' as ' || l.key || ', and no payment belongs to it.'
        FROM money_ledger l
        LEFT JOIN annotation_payment a ON a.assignment_id = CASE WHEN l.key ~ '^assignment:[0-9]+(/[0-9]+)?$'
             THEN split_part(split_part(l.key, ':', 2), '/', 1)::bigint END
        LEFT JOIN annotation_payment t ON t.token = l.key
        WHERE l.kind = 'spend' AND l.state <> 'failed' AND (l.key LIKE 'assignment:%%' OR l.key LIKE 'tutorial:%%')
          AND a.id IS NULL AND t.id IS NULL ORDER BY l.id""",
    "payout": """
        SELECT 'Payout ' || o.number || ' is $' || o.amount || ', and its payments are $' || coalesce(sum(p.amount), 0)
               || '.'
        FROM annotators_payout o LEFT JOIN annotators_payoutitem i ON i.payout_id = o.id
        LEFT JOIN annotation_payment p ON p.id = i.payment_id AND p.status = 'paid' AND p.worker_id = o.worker_id
        GROUP BY o.id HAVING coalesce(sum(p.amount), 0) <> o.amount ORDER BY o.id""",
    "paid_without_payout": """
        SELECT 'Payment ' || p.id || ' is paid, and no payout says so.'
        FROM annotation_payment p JOIN annotation_worker w ON w.id = p.worker_id
        LEFT JOIN annotators_payoutitem i ON i.payment_id = p.id
        WHERE p.status = 'paid' AND i.id IS NULL AND w.platform IN ('pool', 'simulated') ORDER BY p.id""",
}


@dataclass(frozen=True)
class Finding:
    """Where the books disagree: which check, and the sentence."""

    check: str
    sentence: str


def check_books() -> list[Finding]:
    """Everything that disagrees, at most fifty of a kind; an empty list says that the books agree."""
    found = []
    for name, sql in CHECKS.items():
        rows = [sentence for (sentence,) in fetch(f"{sql} LIMIT {MOST + 1}", {})]
        found += [Finding(name, sentence) for sentence in rows[:MOST]]
        if len(rows) > MOST:
            found.append(Finding(name, f"There are more than {MOST} like this."))
    return found


def checked_lately() -> list[Finding]:
    """The same, at most a minute old: for a page that is looked at all the time."""
    try:
        found: list[Finding] | None = cache.get(KEY)
        if found is None:
            found = check_books()
            cache.set(KEY, found, SECONDS)
    except (ConnectionError, OSError):  # without a cache they are read each time
        return check_books()
    return found
