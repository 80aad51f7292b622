"""Handles a HIT that ended with too few usable answers: one more place, or labels from the answers
there are.
"""

from __future__ import annotations

from collections import defaultdict
from decimal import Decimal

from django.db import transaction

from annotation.budget.promises import lock_payer, unpromised_money
from annotation.labels.settle import answers_that_count, repeated_judgments
from annotation.models import HIT, PUT_AWAY, Assignment
from annotation.platforms.base import Platform, Refused
from kbpo import clock
from kbpo.money.purpose import Purpose
from kbpo.queue import nudge

SENT_IN = ("submitted", "accepted", "approved", "paid", "rejected", "failed")
ENDED = ("done", "gone")
NOBODY = "Nobody on the platform answered it in time."


def finish_under_answered(platform: Platform | None, hit: HIT) -> int:
    """Buy more places for an ended HIT or settle its questions with the answers they have, and
    return the number of changes.
    """
    places = _places_to_replace(hit)
    if places is None:
        return 0
    if platform is None or places <= 0 or not _reserve_places(platform, hit, places):
        return _settle_under_answered(hit)
    total = hit.max_assignments + places
    try:
        until = clock.now() + platform.capabilities.offered_for
        platform.offer(hit, until, more=places, key=f"{hit.token}:{total}")
    except Refused:
        HIT.objects.filter(pk=hit.pk).update(max_assignments=hit.max_assignments)
        return _settle_under_answered(hit)
    HIT.objects.filter(pk=hit.pk).update(
        checked_at=None, platform_status="open"
    )  # its siblings wait for it
    return 1


def _places_to_replace(hit: HIT) -> int | None:
    """Return the number of places to buy instead of unusable answers; None if nobody waits for this
    HIT, answers are still being parsed, or another HIT of the same questions may bring more.

    The other HITs have ended too: one place more here makes up for unusable answers there. A place
    that nobody took is not bought again: it was offered twice, and the question is settled with
    fewer answers.
    """
    questions = list(hit.questions.filter(status="published"))
    if not questions or hit.assignments.filter(status="submitted").exists():
        return None
    siblings = HIT.objects.filter(questions__in=questions).exclude(pk=hit.pk).distinct()
    if siblings.filter(status__in=["intent", "open"]).exclude(platform_status__in=ENDED).exists():
        return None
    answers = answers_that_count(questions)
    missing = max(question.answers_wanted - answers[question.pk] for question in questions)
    hits = HIT.objects.filter(questions__in=questions).exclude(status__in=PUT_AWAY).distinct()
    twice = repeated_judgments(questions).values("assignment").distinct().count()
    unusable = Assignment.objects.filter(hit__in=hits, status="failed").count() + twice
    sent = Assignment.objects.filter(hit__in=hits, status__in=SENT_IN).count()
    free = max(0, sum(hit.max_assignments for hit in hits) - sent)
    return min(missing, unusable) - free


@transaction.atomic
def _reserve_places(platform: Platform, hit: HIT, places: int) -> bool:
    """Return whether the platform's limit and every payer's reservation allow more places, and
    count them as ours before the platform is called. If the call never arrives, the platform's own
    number counts again (`_adopt` of `reconcile.py`).
    """
    if hit.max_assignments + places > platform.capabilities.max_assignments or hit.status != "open":
        return False
    prices: dict[Purpose, Decimal] = defaultdict(Decimal)
    for question in hit.questions.all():
        prices[question.payer] += question.price
    for payer in sorted(prices):
        lock_payer(payer)
    if any(
        _free_reservation(payer, price, hit) < price * places for payer, price in prices.items()
    ):
        return False
    HIT.objects.filter(pk=hit.pk).update(max_assignments=hit.max_assignments + places)
    return True


def _free_reservation(payer: Purpose, price: Decimal, hit: HIT) -> Decimal:
    """Return the part of a payer’s reservation that is free for more places of a HIT. A failed
    answer that was paid occurs twice in what is subtracted, as a payment and as an open place, so
    its price is added back.
    """
    paid = hit.assignments.filter(status="failed", payment__isnull=False).count()
    return unpromised_money(payer) + price * paid


@transaction.atomic
def _settle_under_answered(hit: HIT) -> int:
    moved = 0
    for question in (
        hit.questions.select_for_update(of=("self",)).filter(status="published").order_by("pk")
    ):
        if question.responses.filter(counts=True).exists():
            question.move("answered")
        else:
            question.move("unanswered", NOBODY)
        moved += 1
    if moved:
        nudge("settle")
    return moved
