"""What becomes of a HIT that ended with too few usable answers: one more place, or a label from what there is."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from decimal import Decimal

from django.conf import settings
from django.db import transaction
from django.utils import timezone

from annotation.models import HIT, Assignment, Question
from annotation.platforms.base import Platform
from annotation.publish import committed
from kbpo.money.spend import balance
from kbpo.queue import nudge

GOOD = ("accepted", "approved", "paid")
ENDED = ("done", "gone")
NOBODY = "Nobody on the platform answered it in time."


@dataclass(frozen=True)
class Shortage:
    """How many answers of a HIT could not be used, and how many are missing."""

    unusable: int
    missing: int


def finish_short(platform: Platform | None, hit: HIT) -> int:
    """How many questions of an ended HIT moved: those that get no further answer are settled with what they have."""
    shortage = _shortage(hit)
    if shortage is None:
        return 0
    places = min(shortage.missing, shortage.unusable)
    if platform is not None and places > 0 and _has_room(platform, hit, places):
        total = hit.max_assignments + places
        platform.extend(hit, places, f"{hit.token}:{total}")
        platform.renew(hit, timezone.now() + timedelta(hours=settings.MTURK_HIT_HOURS))
        HIT.objects.filter(pk=hit.pk).update(max_assignments=total, checked_at=None)
        return 1
    return _settle_short(hit)


def _shortage(hit: HIT) -> Shortage | None:
    """None if nobody waits for this HIT, answers are still being read, or a sibling may bring more."""
    questions = hit.questions.filter(status="published")
    if not questions.exists() or hit.assignments.filter(status="submitted").exists():
        return None
    siblings = HIT.objects.filter(questions__in=questions).exclude(pk=hit.pk).distinct()
    if siblings.filter(status__in=["intent", "open"]).exclude(platform_status__in=ENDED).exists():
        return None
    unusable = hit.assignments.filter(status="failed").count()
    wanted = max(questions.values_list("answers_wanted", flat=True))
    hits = HIT.objects.filter(questions__in=questions).exclude(status__in=["disposed", "failed"]).distinct()
    good = Assignment.objects.filter(hit__in=hits, status__in=GOOD).count()
    return Shortage(unusable, wanted - good)


def _has_room(platform: Platform, hit: HIT, places: int) -> bool:
    """Whether the platform's limit and every payer's reservation allow more places."""
    if hit.max_assignments + places > platform.capabilities.max_assignments or hit.status != "open":
        return False
    return all(_left(question, hit) >= question.price * places for question in hit.questions.all())


def _left(question: Question, hit: HIT) -> Decimal:
    """What is free of the payer's reservation; unusable answers are paid, so their places cost nothing more."""
    paid = hit.assignments.filter(status="failed", payment__isnull=False).count()
    return balance(purpose=question.payer).open - committed(question.payer) + question.price * paid


@transaction.atomic
def _settle_short(hit: HIT) -> int:
    moved = 0
    for question in hit.questions.select_for_update(of=("self",)).filter(status="published"):
        if question.responses.filter(excluded_reason="").exists():
            question.move("answered")
        else:
            question.move("given_up", NOBODY)
        moved += 1
    if moved:
        nudge("settle")
    return moved
