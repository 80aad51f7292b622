"""Leaves workers out, and readmits them: soft, with a reason, never of anybody's pay, and undone by a click.

When a worker's signals pass a limit, their answers leave the labels, also those that are settled, and they get no more
questions; admins can do the same with a reason of their own, and undo both. Nothing is deleted: settled questions are
added up again from the answers that are left (`again.py`). Which kinds of signals do so by themselves is the setting
LEAVE_OUT_FOR; the others are shown and leave it to a person.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from datetime import timedelta

from django.conf import settings
from django.db import transaction
from django.db.models import QuerySet
from django.utils import timezone

from annotation.again import Again, add_up_again, lock
from annotation.models import Assignment, Response, Worker
from annotation.quality import MET_BEFORE, Flag, flags_of
from kbpo.accounts.audit import note
from kbpo.accounts.models import User

ACTIVE = timedelta(days=7)
LEAST_LEFT = 4  # workers: signals alone never leave fewer active ones, or a batch would stand still


@dataclass(frozen=True)
class LeftOut:
    """What leaving a worker out, or readmitting them, did: to how many judgments, and to settled questions."""

    judgments: int
    settled: Again

    def __str__(self) -> str:
        return f"{self.judgments} judgment{'' if self.judgments == 1 else 's'}; {self.settled}"


def review() -> int:
    """How many workers were left out because their signals passed a limit; never the last few who are active."""
    beyond: dict[int, list[Flag]] = defaultdict(list)
    active = Worker.objects.filter(excluded_at=None, last_seen_at__gt=timezone.now() - ACTIVE)
    workers = list(active.values_list("pk", flat=True))
    for worker, some in flags_of(workers).items():
        beyond[worker] += [flag for flag in some if flag.beyond and flag.kind in settings.LEAVE_OUT_FOR]
    left = len(workers)
    done = 0
    for worker, some in sorted(beyond.items(), key=lambda one: -max((flag.share for flag in one[1]), default=0.0)):
        if left <= LEAST_LEFT:
            break
        if some:
            exclude(Worker.objects.get(pk=worker), " ".join(flag.sentence for flag in some))
            left, done = left - 1, done + 1
    return done


@transaction.atomic
def exclude(worker: Worker, reason: str, who: User | None = None) -> LeftOut:
    """What no longer counts of a worker's answers, and what became of the labels. Without `who`, signals did it.

    Nothing is deleted, and all work stays paid. Questions in progress settle without this worker. The answers that
    wait to be read are locked, so that whoever is reading one has written down what it says before.
    """
    if not reason.strip():
        raise ValueError("Say why: the reason is recorded, and the worker may appeal.")
    Worker.objects.select_for_update(of=("self",), no_key=True).get(pk=worker.pk)
    Worker.objects.filter(pk=worker.pk).update(excluded_at=timezone.now(), excluded_reason=reason)
    mine = Assignment.objects.filter(worker=worker)
    list(mine.filter(status__in=["leased", "submitted"]).select_for_update().order_by("pk").values_list("pk"))
    mine.filter(status="leased").update(status="returned", status_since=timezone.now(), reason="Excluded.")
    rows = Response.objects.filter(assignment__in=mine, excluded_reason="")
    return _count_again(worker, rows, reason, "leave out", who, reason)


@transaction.atomic
def readmit(worker: Worker, who: User | None = None, why: str = "") -> LeftOut:
    """What counts again after an exclusion was taken back. What is known by now does not exclude again."""
    before = Worker.objects.select_for_update(of=("self",), no_key=True).get(pk=worker.pk).excluded_reason
    Worker.objects.filter(pk=worker.pk).update(excluded_at=None, excluded_reason="", readmitted_at=timezone.now())
    rows = Response.objects.filter(assignment__worker=worker).exclude(assignment__status="rejected")
    return _count_again(worker, rows.exclude(excluded_reason__in=["", MET_BEFORE]), "", "readmit", who, why, before)


def _count_again(
    worker: Worker, rows: QuerySet[Response], reason: str, what: str, who: User | None, why: str, before: str = ""
) -> LeftOut:
    """These judgments count, or not for a reason, and the settled questions they answer are added up again."""
    questions = lock(set(rows.values_list("question", flat=True)))
    judgments = rows.update(excluded_reason=reason)
    # Why stands in the worker's log alone, which an erasure clears.
    settled = add_up_again(questions, f"Annotator {worker} was {'left out' if reason else 'readmitted'}.", who)
    done = LeftOut(judgments, settled)
    note(what, f"worker:{worker.handle}", who=who, before=before, after=str(done) if judgments else "", why=why)
    return done
