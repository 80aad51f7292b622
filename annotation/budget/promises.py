"""Computes commitments: the money that published questions of a payer may still cost."""

from __future__ import annotations

from decimal import Decimal

from django.db import connection
from django.db.models import QuerySet

from annotation.models import Question
from annotation.platforms.registry import local_platform_names
from kbpo.money.models import Budget, Purpose
from kbpo.money.spend import amount_over_cap, balance
from kbpo.tracks.models import Track

COMMITTED = """
    SELECT coalesce(sum(price * wanted), 0) + (
        SELECT coalesce(sum(q.price), 0) FROM annotation_question q
        WHERE q.staged AND q.answers_wanted = 2 AND NOT q.asked_again
            AND q.status IN ('published', 'answered') AND {which}
    ) FROM (
        SELECT q.price,
               CASE WHEN (q.status = 'published' AND h.status IN ('intent', 'open', 'closed'))
                      OR (q.payer_kind = 'gold' AND NOT h.platform = ANY(%s)
                          AND h.status IN ('intent', 'open'))
                    THEN greatest(
                   h.max_assignments - count(a.id) FILTER (WHERE a.status IN ('approved', 'paid')),
                   count(a.id) FILTER (WHERE a.status IN ('submitted', 'accepted')))
               ELSE count(a.id) FILTER (WHERE a.status IN ('leased', 'submitted',
                   'accepted')) END AS wanted
        FROM annotation_question q
        JOIN annotation_hit_questions hq ON hq.question_id = q.id
        JOIN annotation_hit h ON h.id = hq.hit_id
        LEFT JOIN annotation_assignment a ON a.hit_id = h.id
        WHERE {which}
        GROUP BY q.id, h.id
    ) AS each_hit
"""
"""What published questions of a payer may still cost: their open places, the answers that are not
yet paid, and the third person where two are asked first. Gold in a marketplace's HIT costs as many
places as the HIT has; on our own pages it costs what is currently leased."""


OF_PAYER = "q.payer_kind = %s AND q.payer_number = %s"


def payers_in_lock_order(questions: QuerySet[Question]) -> list[Purpose]:
    """Return the payers of these questions in the order in which they are locked."""
    payers = questions.order_by().values_list("payer_kind", "payer_number").distinct()
    return sorted(Purpose(kind, number) for kind, number in payers)


def committed_money(payer: Purpose) -> Decimal:
    """Return the most that a payer's published questions may still cost; its reservation must cover
    this sum.
    """
    with connection.cursor() as cursor:
        cursor.execute(COMMITTED.format(which=OF_PAYER), [*payer, local_platform_names(), *payer])
        return Decimal(cursor.fetchone()[0])


def unpromised_money(payer: Purpose) -> Decimal:
    """Return the reserved money of a payer that is not committed to published questions."""
    return balance(purpose=payer).open - committed_money(payer)


def money_left_to_publish(track: Track) -> Decimal | None:
    """Return how much may still be committed on a track whose cap was lowered below its
    reservations; None on other tracks.
    """
    cap = Budget.objects.filter(track=track, scope=Budget.Scope.TRACK).first()
    if cap is None or not amount_over_cap(track):
        return None
    with connection.cursor() as cursor:
        cursor.execute(
            COMMITTED.format(which="q.track_id = %s"), [track.pk, local_platform_names(), track.pk]
        )
        return Decimal(cap.cap - balance(track=track).spent - Decimal(cursor.fetchone()[0]))


def lock_payer(payer: Purpose, *, wait: bool = True) -> bool:
    """Lock the commitments of a payer for this transaction and return True; without `wait`, return
    False if another transaction holds the lock.
    """
    how = (
        "SELECT pg_advisory_xact_lock(%s), true" if wait else "SELECT pg_try_advisory_xact_lock(%s)"
    )
    with connection.cursor() as cursor:
        cursor.execute(how % "hashtext('annotation.hits.publish'), hashtext(%s)", [str(payer)])
        return bool(cursor.fetchone()[-1])
