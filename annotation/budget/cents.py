"""Splits all reserved money by track, purpose, worker and state."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal

from kbpo.corpus.sql import fetch_rows
from kbpo.money.models import Purpose

SET_ASIDE, GIVEN_BACK, FEE, SPENT = "set aside", "given back", "fee", "spent"
OF_PAYMENTS = ("owed", "sent", "unknown", "failed", "withheld", "paid", "waived")
STATES = (*OF_PAYMENTS, SPENT, FEE, SET_ASIDE, GIVEN_BACK)
"""States of money, in display order. `spent` is money that left without a payment of ours that
could be followed."""

CENTS = """
    WITH live AS (
        SELECT * FROM money_ledger WHERE state <> 'failed' AND (%(track)s::bigint IS NULL
            OR track_id = %(track)s)
    ), spends AS (
        SELECT l.track_id, l.purpose_kind, l.purpose_number, l.amount, l.key,
               CASE WHEN l.key ~ '^assignment:[0-9]+(/[0-9]+)?$'
                    THEN split_part(split_part(l.key, ':', 2), '/', 1)::bigint END AS assignment_id,
               CASE WHEN l.key ~ '^assignment:[0-9]+/[0-9]+$'
                   THEN split_part(l.key, '/', 2)::bigint END AS question_id
        FROM live l WHERE l.kind = 'spend'
    ), followed AS (
        SELECT s.track_id, s.purpose_kind, s.purpose_number, s.amount,
               coalesce(pa.worker_id, pt.worker_id, b.worker_id, e.worker_id) AS worker_id,
               coalesce(pa.status, pt.status, b.status, e.status, 'spent') AS state,
               greatest(0, least(s.amount, coalesce(q.reward, pa.amount, pt.amount, b.amount,
                   e.amount, s.amount))) AS reward
        FROM spends s
        LEFT JOIN annotation_payment pa ON pa.assignment_id = s.assignment_id
        LEFT JOIN annotation_payment pt ON s.assignment_id IS NULL AND pt.token = s.key
        LEFT JOIN annotation_bonus b ON s.key = 'bonus:' || b.id || ':spend'
        LEFT JOIN annotation_bonus e ON s.key = e.token
        LEFT JOIN annotation_question q ON q.id = s.question_id
    ), cents AS (
        SELECT track_id, purpose_kind, purpose_number, worker_id, state, reward AS amount
            FROM followed
        UNION ALL
        SELECT track_id, purpose_kind, purpose_number, worker_id, 'fee', amount - reward
            FROM followed WHERE amount > reward
        UNION ALL
        SELECT track_id, purpose_kind, purpose_number, NULL, 'given back', amount FROM live
            WHERE kind = 'release'
        UNION ALL
        SELECT track_id, purpose_kind, purpose_number, NULL, 'set aside',
               sum(CASE kind WHEN 'reserve' THEN amount ELSE -amount END) FROM live
                   GROUP BY track_id, purpose_kind, purpose_number
    )
    SELECT t.id, t.name, c.purpose_kind, c.purpose_number, coalesce(w.handle, ''), c.state,
           sum(c.amount)
    FROM cents c JOIN tracks_track t ON t.id = c.track_id LEFT JOIN annotation_worker w
        ON w.id = c.worker_id
    GROUP BY t.id, t.name, c.purpose_kind, c.purpose_number, w.handle, c.state
    HAVING sum(c.amount) <> 0
    ORDER BY t.name, t.id, c.purpose_kind, c.purpose_number, coalesce(w.handle, ''), c.state
"""


@dataclass(frozen=True)
class Cents:
    """An amount of one track and purpose in one state, and the hash of the worker who receives it,
    if any.
    """

    track: int
    track_name: str
    purpose: Purpose
    worker: str
    state: str
    amount: Decimal


def money_by_state(track: int | None = None) -> list[Cents]:
    """Return all money that was ever reserved, on one track or on all, split by state. The amounts
    of a purpose add up to its reservation.
    """
    return [
        Cents(number, name, Purpose(kind, payer_number), *parts)
        for number, name, kind, payer_number, *parts in fetch_rows(CENTS, {"track": track})
    ]
