"""Pays marketplace workers for tutorials that they passed: by a bonus on an answer that the
platform has of them.
"""

from __future__ import annotations

import logging

from django.db import transaction

from annotation.marketplace.give import grant
from annotation.models import Assignment
from annotation.workers.models import TutorialRun
from annotation.workers.teach import passed_reason, payment_key
from kbpo.money.spend import release

log = logging.getLogger(__name__)
SENT_IN = ("submitted", "accepted", "approved", "paid")


def pay_lessons(platform: str) -> int:
    """Return how many promises became bonuses. A promise that became one is none any more."""
    runs = TutorialRun.objects.filter(
        worker__platform=platform,
        worker__identity__isnull=False,
        passed=True,
        promised__gt=0,
        promise__isnull=False,
    )
    return sum(_pay(pk) for pk in list(runs.values_list("pk", flat=True)[:200]))


def _pay(pk: int) -> int:
    try:
        with transaction.atomic():
            return _grant(
                TutorialRun.objects.select_for_update(of=("self",))
                .select_related("track", "worker")
                .get(pk=pk)
            )
    except ValueError as error:  # a cap was lowered meanwhile: it is promised, and tried again
        log.warning("Tutorial %s could not be paid yet: %s", pk, error)
        return 0


def _grant(run: TutorialRun) -> int:
    """1 if the worker is owed a bonus now. Its money is what was promised, and no more."""
    answer = (
        Assignment.objects.filter(worker=run.worker, status__in=SENT_IN)
        .exclude(external_id="")
        .first()
    )
    if answer is None or run.track is None or run.promise_id is None:
        return 0
    release(run.track, run.purpose, key=f"{run.purpose}/bonus", why="It is paid by a bonus")
    grant(
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
