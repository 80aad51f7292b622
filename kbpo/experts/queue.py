"""Manages the queue of experts: open checks, who holds each, and who may answer it.

Checks and disputes are in one random order, so that experts cannot tell why they are asked.
"""

from __future__ import annotations

from datetime import timedelta
from enum import Enum
from typing import Any

from django.db import transaction
from django.db.models import Exists, OuterRef, Q, QuerySet

from kbpo import clock
from kbpo.accounts.models import User
from kbpo.sampling.models import ExpertCheck
from kbpo.submissions.limits import conflict_of_interest_filter
from kbpo.tracks.models import Track

HOLD = timedelta(minutes=30)
"""How long a check is reserved for the expert who last opened it or saved a draft."""
NOBODY = Q(pk__in=())


class Outcome(Enum):
    STORED = "stored"
    ALREADY = "already"  # answered before: the first answer counts
    LOST = "lost"  # assigned to another expert now
    NOT_YOURS = "not yours"  # they raised it, judged it, or predict it


def open_checks(track: Track) -> QuerySet[ExpertCheck]:
    """Return the open checks in order."""
    return ExpertCheck.objects.filter(track=track, status="open").order_by("order", "pk")


def answerable_checks(
    track: Track, expert: User, judged_filter: Q = NOBODY
) -> QuerySet[ExpertCheck]:
    """Return the open checks that an expert may answer, whoever holds them. Excluded are checks
    that the expert disputed or judged (`judged_filter`), those of a track where their team has a
    run, and checks for correction about a target that they answered before.
    """
    same = ExpertCheck.objects.filter(track=OuterRef("track"), target=OuterRef("target"))
    raised = Exists(same.filter(kind="dispute", raised_by=expert))
    answered = Q(kind="check") & Exists(same.filter(status="answered", expert=expert))
    checks = open_checks(track).exclude(raised).exclude(answered)
    return checks.exclude(judged_filter).exclude(conflict_of_interest_filter(expert))


def not_held_by_others_filter(expert: User) -> Q:
    """Return the condition that no other expert holds a check."""
    return (
        Q(holder=None)
        | Q(holder=expert)
        | Q(held_until__isnull=True)
        | Q(held_until__lte=clock.now())
    )


def checks_for_expert(
    track: Track, expert: User, judged_filter: Q = NOBODY
) -> QuerySet[ExpertCheck]:
    """Return the checks that an expert may be given now."""
    return answerable_checks(track, expert, judged_filter).filter(not_held_by_others_filter(expert))


@transaction.atomic
def take_next_check(track: Track, expert: User, judged_filter: Q = NOBODY) -> ExpertCheck | None:
    """Give the next check to an expert and return it; None if there is none for them."""
    checks = checks_for_expert(track, expert, judged_filter)
    row = checks.select_for_update(skip_locked=True, of=("self",)).first()
    if row is not None:
        _give_to_expert(row, expert)
    return row


@transaction.atomic
def hold_check(
    check: ExpertCheck, expert: User, judged_filter: Q = NOBODY, draft: dict[str, Any] | None = None
) -> Outcome:
    """Store a draft and hold the check for another half an hour; return the outcome. A new holder
    starts without a draft.
    """
    row = lock_check(check)
    outcome = answer_permission(row, expert, judged_filter)
    if outcome is Outcome.STORED and row is not None:
        _give_to_expert(row, expert, draft)
        check.draft = row.draft
    return outcome


def lock_check(check: ExpertCheck) -> ExpertCheck | None:
    """Lock a check and return it as stored; None if its round was ended."""
    return ExpertCheck.objects.select_for_update(of=("self",)).filter(pk=check.pk).first()


def answer_permission(
    check: ExpertCheck | None, expert: User, judged_filter: Q = NOBODY
) -> Outcome:
    """Return `STORED` if an expert may answer a locked check now, or the reason why not."""
    if check is None or check.status != "open":
        return Outcome.ALREADY
    if not answerable_checks(check.track, expert, judged_filter).filter(pk=check.pk).exists():
        return Outcome.NOT_YOURS
    return Outcome.STORED if _is_not_held_by_others(expert, check) else Outcome.LOST


def _is_not_held_by_others(expert: User, check: ExpertCheck) -> bool:
    """Return whether no other expert holds a locked check."""
    if check.holder_id in (None, expert.pk):
        return True
    return check.held_until is None or check.held_until <= clock.now()


def _give_to_expert(check: ExpertCheck, expert: User, draft: dict[str, Any] | None = None) -> None:
    if draft is not None or check.holder != expert:
        check.draft = draft
    check.holder, check.held_until = expert, clock.now() + HOLD
    check.save(update_fields=["holder", "held_until", "draft"])


def store_answer(
    check: ExpertCheck, raw: dict[str, Any], value: dict[int, Any], expert: User, *, agrees: bool
) -> None:
    """Store an expert's answer. An empty value means that the question cannot be answered."""
    check.agrees = agrees
    check.status, check.expert, check.answered_at = "answered", expert, clock.now()
    check.raw, check.value = raw, {str(target): verdict for target, verdict in value.items()}
    check.draft = check.holder = check.held_until = None
    check.save()
