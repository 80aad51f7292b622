"""Reads the data that admins see about a worker: answers, checks, rejections and money."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from decimal import Decimal
from typing import TYPE_CHECKING

from django.db.models import Avg, Count, F, Sum

from annotation.models import ANSWERED, Assignment, Payment, Question, Rejection, Signal, Worker
from annotation.platforms.registry import local_platform_names
from annotation.quality.signals import NAMES, Flag, flags_by_worker
from annotation.workers.worker import is_reachable
from kbpo import clock
from kbpo.accounts.models import Audit

if TYPE_CHECKING:
    from annotation.workers.models import Appeal, Message

ONLINE = timedelta(minutes=5)
SHORT = 80
"""Greatest number of characters of a text in a title"""
ZERO = Decimal("0.00")


@dataclass(frozen=True)
class WorkerLine:
    """A row of the list of annotators."""

    handle: str
    platform: str
    answers: int
    seconds: float | None
    signals: int
    flags: list[Flag]
    owed: Decimal
    last_seen_at: datetime | None
    excluded_reason: str

    @property
    def is_online(self) -> bool:
        return self.last_seen_at is not None and self.last_seen_at > clock.now() - ONLINE

    @property
    def agreement(self) -> Flag | None:
        """Return the flag of the comparison with the majority."""
        return next((flag for flag in self.flags if flag.kind == "majority"), None)

    @property
    def flags_past_limit(self) -> list[Flag]:
        """Return the flags that exceed their limits."""
        return [flag for flag in self.flags if flag.is_past_limit]


@dataclass(frozen=True)
class AnswerLine:
    """A row of the list of a worker's answers."""

    pk: int
    about: str
    interface: str
    question: int
    sent_at: datetime | None
    seconds: float | None
    status: str
    reward: Decimal
    majority: bool | None
    """Whether it agrees with most of the others; None if unknown"""
    gold: bool | None
    signals: list[str]
    rejection: Rejection | None

    @property
    def can_be_rejected(self) -> bool:
        return self.status in ("accepted", "approved")

    @property
    def is_doubted(self) -> bool:
        """Return whether the answer has signals or was rejected."""
        return bool(self.signals) or self.rejection is not None


@dataclass(frozen=True)
class Record:
    """The data on the page of a worker."""

    worker: Worker
    line: WorkerLine
    flags: list[Flag]
    answers: list[AnswerLine]
    history: list[Audit]
    paid: Decimal
    writable: bool
    """Whether a message can reach the worker"""
    elsewhere: bool
    """Whether the worker is on a marketplace, and can only be erased by an admin"""

    @property
    def excluded(self) -> str:
        """Return the effect of the exclusion on judgments and labels; empty if it had none."""
        return next((one.after for one in self.history if one.what == "leave out"), "")

    @property
    def appeals(self) -> list[Appeal]:
        """Return the worker's appeals, the latest first."""
        return list(self.worker.appeals.select_related("answered_by").order_by("-made_at")[:20])

    @property
    def messages_to_worker(self) -> list[Message]:
        """Return the messages to the worker, the latest first."""
        return list(self.worker.messages.select_related("by").order_by("-at")[:20])


def count_online() -> int:
    """Return how many annotators requested a question within the last minutes."""
    return Worker.objects.filter(last_seen_at__gt=clock.now() - ONLINE).count()


def worker_lines(limit: int = 200) -> list[WorkerLine]:
    """Return annotators, the most recently seen first."""
    latest = Worker.objects.order_by(F("last_seen_at").desc(nulls_last=True), "-pk")
    return _worker_lines(list(latest[:limit]))


def _worker_lines(workers: list[Worker]) -> list[WorkerLine]:
    ids = [row.pk for row in workers]
    done = Assignment.objects.filter(worker__in=ids, status__in=ANSWERED)
    numbers = done.values_list("worker").annotate(Count("pk"), Avg("seconds")).order_by()
    counts: dict[int, tuple[int, float | None]] = {worker: (n, mean) for worker, n, mean in numbers}
    against = Signal.objects.filter(assignment__worker__in=ids, against=True)
    signals = dict(against.values_list("assignment__worker").annotate(Count("pk")).order_by())
    owed = Payment.objects.filter(status="owed", worker__in=ids)
    debts = dict(owed.values_list("worker").annotate(Sum("amount")).order_by())
    known = flags_by_worker(ids)
    return [
        WorkerLine(
            row.handle,
            row.platform,
            *counts.get(row.pk, (0, None)),
            signals.get(row.pk, 0),
            known.get(row.pk, []),
            debts.get(row.pk, ZERO),
            row.last_seen_at,
            row.excluded_reason,
        )
        for row in workers
    ]


def worker_record(handle: str, limit: int = 60) -> Record | None:
    """Return the record of a worker with their latest answers; None if there is no such worker."""
    worker = Worker.objects.filter(handle=handle).first()
    if worker is None:
        return None
    assignments = Assignment.objects.filter(worker=worker, raw__isnull=False).select_related("hit")
    assignments = assignments.prefetch_related("hit__questions", "signals", "rejections__who")
    line = _worker_lines([worker])[0]
    log = Audit.objects.filter(about=f"worker:{handle}").select_related("who")
    paid = Payment.objects.filter(worker=worker, status="paid").aggregate(sum=Sum("amount"))["sum"]
    return Record(
        worker=worker,
        line=line,
        flags=line.flags,
        answers=[_answer_line(row) for row in assignments.order_by("-submitted_at", "-pk")[:limit]],
        history=list(log.order_by("-at")[:50]),
        paid=paid or ZERO,
        writable=is_reachable(worker),
        elsewhere=worker.platform not in local_platform_names(),
    )


def worker_and_answer(pk: int) -> tuple[Worker, AnswerLine] | None:
    """Return a worker and their answer; None if there is no such answer."""
    answers = Assignment.objects.filter(pk=pk, raw__isnull=False)
    row = answers.select_related("hit", "worker").first()
    return None if row is None else (row.worker, _answer_line(row))


def _answer_line(assignment: Assignment) -> AnswerLine:
    questions = sorted(
        assignment.hit.questions.all(),
        key=lambda question: (question.payer_kind == "gold", question.order, question.pk),
    )
    checks = {signal.kind: not signal.against for signal in assignment.signals.all()}
    undone = [rejection for rejection in assignment.rejections.all() if rejection.undone_at is None]
    return AnswerLine(
        pk=assignment.pk,
        about=question_title(questions[0]) if questions else "",
        interface=questions[0].interface if questions else "",
        question=questions[0].pk if questions else 0,
        sent_at=assignment.submitted_at,
        seconds=assignment.seconds,
        status=assignment.status,
        reward=assignment.earned,
        majority=checks.get("majority"),
        gold=checks.get("gold"),
        signals=[NAMES[kind].lower() for kind, agrees in checks.items() if not agrees],
        rejection=undone[0] if undone else None,
    )


def question_title(question: Question) -> str:
    """Return the subject of a question in one line."""
    payload = question.payload
    document = payload.get("document") or {}
    sides = [payload[side]["gloss"] for side in ("a", "b") if side in payload]
    place = document.get("title") or document.get("key") or ""
    return (
        " and ".join(sides) + (f", in {place}" if sides and place else place)
        or " to ".join(
            _quote_start(payload[part]) for part in ("text", "question") if payload.get(part)
        )
        or f"question {question.pk}"
    )


def _quote_start(text: str) -> str:
    line = " ".join(text.split())
    return f"“{line}”" if len(line) <= SHORT else f"“{line[:SHORT]}…”"
