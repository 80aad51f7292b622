"""Takes down all open HITs at once, and reopens them when the stop is lifted.

On our own pages the HITs expire here; on other platforms their reconciler takes them down when it
sees the same stop. Started work may be finished, and is paid.
"""

from __future__ import annotations

from django.db import transaction
from django.db.models import QuerySet

from annotation.budget.halts import halted_hits, pause_work
from annotation.budget.promises import lock_payer, payers_in_lock_order, unpromised_money
from annotation.models import HIT, Halt, Question
from annotation.platforms.registry import local_platform_names
from kbpo import clock
from kbpo.accounts.models import User
from kbpo.money.models import Purpose
from kbpo.tracks.models import Track

GONE = "It was taken down, and its money was returned before it could be published again."


@transaction.atomic
def take_down_open_hits(track: Track | None, who: User | None, why: str) -> int:
    """Expire the open HITs of a track (None: of all tracks) until the stop is lifted, and return
    their number.
    """
    pause_work(track, who, why)
    hits = HIT.objects.filter(
        platform__in=local_platform_names(),
        status__in=["intent", "open"],
        questions__status="published",
    )
    if track is not None:
        hits = hits.filter(track=track)
    offered = HIT.objects.filter(pk__in=hits.values("pk"))
    return offered.update(
        status="expired",
        status_since=clock.now(),
        taken_down_at=clock.now(),
        reason="Taken down by an administrator.",
    )


def tick() -> int:
    """Reopen HITs whose stop was lifted, and return their number."""
    down = _open_halted_hits().exclude(pk__in=halted_hits(Halt.Scope.ALL))
    payers = payers_in_lock_order(
        Question.objects.filter(status="published", hits__in=down.values("pk"))
    )
    return sum(_reopen_hits(payer) for payer in payers)


def _open_halted_hits() -> QuerySet[HIT]:
    return HIT.objects.filter(
        platform__in=local_platform_names(),
        status="expired",
        taken_down_at__isnull=False,
        questions__status="published",
    )


@transaction.atomic
def _reopen_hits(payer: Purpose) -> int:
    """Reopen the HITs of a payer that were taken down, in publishing order, and return their
    number. HITs that the payer's reservation does not cover expire.
    """
    lock_payer(payer)
    taken_down = (
        _open_halted_hits()
        .filter(**payer.filter_condition("questions__payer"))
        .order_by("order", "pk")
    )
    put_back = 0
    asked = Question.objects.filter(pk__in=taken_down.values("questions"))
    list(
        asked.select_for_update(of=("self",)).order_by("pk").values_list("pk")
    )  # before the HITs: see annotation/README.md
    for hit in (
        HIT.objects.select_for_update(of=("self",))
        .filter(pk__in=taken_down.values("pk"))
        .order_by("order", "pk")
    ):
        hit.move("open", taken_down_at=None)
        if unpromised_money(payer) >= 0:
            put_back += 1
            continue
        hit.move("expired", GONE)
        for question in hit.questions.filter(status="published"):
            question.move("unanswered", GONE, ended_by=Question.EndedBy.TAKE_DOWN)
    return put_back
