"""Excludes workers and reinstates them, with a reason. Exclusion never affects pay, and can be
undone.

The answers of an excluded worker no longer count in labels, settled ones included: settled
questions are aggregated again from the remaining answers (`recount.py`), and nothing is deleted.
Signals beyond a limit exclude automatically where the policy of the track says so; otherwise, and
while only few people are active, an admin decides.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from django.db import transaction
from django.db.models import QuerySet

from annotation.hits.ask_again import count_questions_left_short
from annotation.labels.recount import RecountResult, set_counting
from annotation.models import Assignment, Response, Signal, Worker
from annotation.quality.signals import Flag, doubtful_workers, flags_by_worker, signals_to_review
from annotation.quality.warn import flags_after_warning, warn_workers
from annotation.workers.speak import COUNTS_AGAIN, EXCLUDED, OFFERED_AGAIN, send_decision
from kbpo import clock
from kbpo.accounts.audit import write_audit_entry
from kbpo.accounts.models import Audit, User

ACTIVE = timedelta(days=7)
A_DAY = timedelta(days=1)
MOST_A_DAY = 0.1
"""Greatest share of active workers that signals exclude in a day; at least one worker"""
EXCLUDE = "leave out"
LEAST_LEFT = 4  # active workers: signals alone never leave fewer, or a batch would stand still


@dataclass(frozen=True)
class ExclusionResult:
    """How many judgments and labelled questions an exclusion or a reinstatement affected."""

    judgments: int
    settled: RecountResult

    def __str__(self) -> str:
        return f"{self.judgments} judgment{'' if self.judgments == 1 else 's'}; {self.settled}"


@dataclass(frozen=True)
class Undecided:
    """A worker whose signals passed a limit, for an admin to decide about."""

    worker: Worker
    flags: list[Flag]
    why: str
    """Why the worker is not excluded automatically, as a sentence"""

    @property
    def reason_in_sentences(self) -> str:
        """Return the signals against the worker, in sentences."""
        return " ".join(flag.sentence for flag in self.flags)


def exclude_flagged() -> int:
    """Exclude workers whose signals passed a limit, the worst first, and return their number. A
    worker is excluded only after a warning and further answers, only while enough others are
    active, and only if the money suffices to replace their answers; at most a share of the active
    workers is excluded in a day. The others are left to an admin (`undecided_workers`). Only
    workers with new signals are examined; those beyond a limit are examined again next time.
    """
    done: set[int] = set()
    seen = signals_to_review()
    if not seen:
        return 0
    warn_workers(list(seen))
    while (worst := _next_to_exclude(done)) is not None:
        worker, flags = worst
        exclude_worker(Worker.objects.get(pk=worker), " ".join(flag.sentence for flag in flags))
        done.add(worker)  # the signals of others change without these answers
    beyond = _flags_beyond_limits(list(seen))
    for worker, signals in seen.items():
        if worker not in beyond:  # signals that are stored meanwhile are checked next
            Signal.objects.filter(pk__in=signals).update(reviewed=True)
    return len(done)


def _next_to_exclude(considered: set[int]) -> tuple[int, list[Flag]] | None:
    """Return the next worker to exclude with the flags that exclude them; None if there is none."""
    warned = flags_after_warning(_flags_beyond_limits(list(signals_to_review()), excluding=True))
    if not warned:
        return None
    crowd = _Crowd.load_current()
    candidates = []
    for worker, flags in warned.items():
        if worker not in considered and not crowd.reason_not_to_exclude(worker):
            candidates.append((-max(flag.share for flag in flags), worker))
    if not candidates:
        return None
    _, worst = min(candidates)
    return worst, warned[worst]


@dataclass(frozen=True)
class _Crowd:
    """The active workers, and the number that signals excluded within a day."""

    active: set[int]
    excluded: int

    @classmethod
    def load_current(cls) -> _Crowd:
        now = clock.now()
        active = Worker.objects.filter(excluded_at=None, last_seen_at__gt=now - ACTIVE)
        return cls(set(active.values_list("pk", flat=True)), count_excluded_since(now - A_DAY))

    @property
    def max_exclusions_per_day(self) -> int:
        """Return how many workers signals may exclude within a day."""
        return max(1, int(MOST_A_DAY * (len(self.active) + self.excluded)))

    def reason_not_to_exclude(self, worker: int) -> str:
        """Return why signals do not exclude a worker now, as a sentence; empty if they do."""
        if len(self.active - {worker}) < LEAST_LEFT:
            return f"No more than {LEAST_LEFT} annotators are active, so signals exclude nobody."
        if self.excluded >= self.max_exclusions_per_day:
            return (
                f"Signals alone exclude at most {self.max_exclusions_per_day} of"
                f" {len(self.active)} active annotators a day."
            )
        if lacking := count_questions_left_short(worker):
            return (
                f"The reserved money does not pay for other answers to {lacking}"
                " of their questions."
            )
        return ""


def count_excluded_since(moment: datetime) -> int:
    """Return the number of workers whom signals, not admins, excluded after this moment."""
    notes = Audit.objects.filter(what=EXCLUDE, who=None, at__gt=moment)
    return notes.values("about").distinct().count()  # stored again for later answers


def undecided_workers() -> list[Undecided]:
    """Return the workers about whom an admin must decide, the worst first."""
    beyond = _flags_beyond_limits(doubtful_workers())
    if not beyond:
        return []
    crowd, excluding = _Crowd.load_current(), _flags_beyond_limits(list(beyond), excluding=True)
    warned = flags_after_warning(excluding)
    workers = Worker.objects.in_bulk(beyond)
    waiting = []
    for pk, flags in beyond.items():
        if pk not in excluding:
            why = "The track's policy leaves this to a person."
        elif pk not in warned:
            why = "They are warned first; further answers decide."
        else:
            why = (
                crowd.reason_not_to_exclude(pk)
                or "They are excluded when answers are settled next."
            )
        waiting.append(Undecided(workers[pk], flags, why))
    return sorted(waiting, key=lambda case: -max(flag.share for flag in case.flags))


def _flags_beyond_limits(
    workers: Sequence[int], *, excluding: bool = False
) -> dict[int, list[Flag]]:
    """Return worker -> flags beyond their limits; with `excluding`, only flags on tracks that
    exclude automatically.
    """
    exceeded: dict[int, list[Flag]] = defaultdict(list)
    for worker, flags in flags_by_worker(workers, excluding=excluding).items() if workers else ():
        for flag in flags:
            if flag.is_past_limit:
                exceeded[worker].append(flag)
    return dict(exceeded)


@transaction.atomic
def note_worker_reviewed(worker: Worker, who: User, why: str) -> None:
    """Record that an admin reviewed the evidence against a worker and kept them."""
    if not why.strip():
        raise ValueError("Say why they stay: it is logged.")
    row = Worker.objects.select_for_update(of=("self",), no_key=True).get(pk=worker.pk)
    if row.excluded_at is not None:
        raise ValueError("They are already excluded; reinstate them instead.")
    before = " ".join(
        flag.sentence for flag in _flags_beyond_limits([worker.pk]).get(worker.pk, ())
    )
    Worker.objects.filter(pk=worker.pk).update(reinstated_at=clock.now(), warned={})
    write_audit_entry("keep", f"worker:{worker.handle}", who=who, before=before, why=why)


@transaction.atomic
def exclude_worker(worker: Worker, reason: str, who: User | None = None) -> ExclusionResult:
    """Exclude a worker and return the effect; without `who`, signals did it.

    Nothing is deleted, and all work is paid. Open questions are settled without this worker, and
    other people are asked where fewer answers count than the track promises. Submitted answers are
    locked first, so that a process that is parsing one has stored its responses before.
    """
    if not reason.strip():
        raise ValueError("Say why: the reason is recorded, and the worker may appeal.")
    Worker.objects.select_for_update(of=("self",), no_key=True).get(pk=worker.pk)
    Worker.objects.filter(pk=worker.pk).update(excluded_at=clock.now(), excluded_reason=reason)
    mine = Assignment.objects.filter(worker=worker)
    in_hand = mine.filter(status__in=["leased", "submitted"]).select_for_update()
    list(in_hand.order_by("pk").values_list("pk"))
    mine.filter(status="leased").update(
        status="returned", status_since=clock.now(), reason="Excluded."
    )
    message = f"{reason}\n\nEverything that you have answered stays paid. You may appeal."
    send_decision(worker, EXCLUDED, message)
    responses = Response.objects.filter(assignment__in=mine, counts=True)
    return _set_responses_counting(worker, responses, reason, EXCLUDE, who, reason)


@transaction.atomic
def reinstate_worker(
    worker: Worker, who: User | None = None, why: str = "", *, is_answer: bool = False
) -> ExclusionResult:
    """Undo an exclusion and return the effect. Signals up to now do not exclude again. As the
    answer to an appeal (`is_answer`) the call sends the worker no message of its own.
    """
    row = Worker.objects.select_for_update(of=("self",), no_key=True).get(pk=worker.pk)
    Worker.objects.filter(pk=worker.pk).update(
        excluded_at=None, excluded_reason="", reinstated_at=clock.now(), warned={}
    )
    if not is_answer:
        send_decision(worker, OFFERED_AGAIN, COUNTS_AGAIN)
    responses = Response.objects.filter(
        assignment__worker=worker, counts=False, met_before=False
    ).exclude(assignment__status="rejected")
    return _set_responses_counting(
        worker, responses, "", "reinstate", who, why, row.excluded_reason
    )


def _set_responses_counting(
    worker: Worker,
    responses: QuerySet[Response],
    reason: str,
    action: str,
    who: User | None,
    why: str,
    earlier_reason: str = "",
) -> ExclusionResult:
    """Count these responses, or stop counting them for a reason, and aggregate their settled
    questions again.
    """
    # Why stands in the worker's log alone, which an erasure clears.
    sentence = f"Annotator {worker} was {'excluded' if reason else 'reinstated'}."
    judgments, settled = set_counting(responses, reason, sentence, who)
    done = ExclusionResult(judgments, settled)
    after = str(done) if judgments else ""
    write_audit_entry(
        action, f"worker:{worker.handle}", who=who, before=earlier_reason, after=after, why=why
    )
    return done
