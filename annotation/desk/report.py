"""What the rest of the service may know of the crowd, and may tell it: the one module that
`kbpo.web` imports.

Nothing here names a worker but by a hash.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from decimal import Decimal
from typing import Any

from django.db.models import Count, Max, Min, QuerySet, Sum
from django.utils import timezone

from annotation.budget.cents import STATES, Cents, cents
from annotation.budget.check_books import LastCheck, ask_to_check, last_check
from annotation.budget.halts import pause, resume, stop_publishing
from annotation.budget.promises import committed
from annotation.desk.adjudicate import (
    CannotAsk,
    dispute,
    dispute_names,
    queue_divided,
    queue_random,
)
from annotation.desk.adjudicate import counts as adjudication_counts
from annotation.desk.adjudicate import disputes as open_disputes
from annotation.desk.adjudicate import drop as drop_adjudication
from annotation.desk.adjudicate import entries as adjudicated
from annotation.desk.adjudicate import of_submission as disputes_of
from annotation.desk.adjudicate import remark as remark_on
from annotation.desk.command import (
    CannotDismiss,
    CannotRetry,
    check_dismissal,
    check_rejection,
    dismiss,
    erase_worker,
    exclude_worker,
    keep_worker,
    readmit_worker,
    reject_answer,
    retry,
    undo_rejection,
    why_again,
    write_to,
)
from annotation.desk.disputed import set_limit as set_divided_limit
from annotation.desk.journey import (
    Failure,
    InDoubt,
    Quarrel,
    Stage,
    failures,
    in_doubt,
    oldest,
    quarrels,
)
from annotation.desk.trail import trail
from annotation.hits.batch import (
    Batch,
    CannotChange,
    batch,
    batches,
    cost_of_extending,
    extend_batch,
    pause_batch,
    resume_batch,
    stop_batch,
)
from annotation.hits.take_down import take_down
from annotation.labels.exclude import Undecided, undecided
from annotation.labels.reject import CannotReject
from annotation.labels.revise import Revision, price_of_reader, revision
from annotation.labels.revise import switch as switch_aggregation
from annotation.marketplace.books import bonuses, explain_balance, platforms
from annotation.marketplace.give import admit as admit_worker
from annotation.marketplace.give import grant_to as grant
from annotation.models import ANSWERED, Assignment, Halt, Payment, Question, Response
from annotation.platforms.mturk.account import account
from annotation.platforms.registry import PLATFORMS, fee_rate_of
from annotation.quality.agreement import Measured, measure
from annotation.quality.describe import (
    AnswerLine,
    Record,
    WorkerLine,
    answer,
    online,
    record,
    title_of,
    workers,
)
from annotation.quality.error_rate import errors as crowd_errors
from annotation.quality.error_rate import errors_of_names as errors_of_names
from annotation.quality.fewer import OfSoMany
from annotation.quality.gold import CannotMake, policy_of
from annotation.quality.gold import candidates as gold_candidates
from annotation.quality.gold import money_left as gold_money
from annotation.quality.gold import retire as retire_gold
from annotation.quality.gold import set_aside as set_gold_aside
from annotation.quality.gold import set_rate as set_gold_rate
from annotation.quality.gold import standings as golds
from annotation.quality.judged import MARKED, NAMES, PAIRS
from annotation.quality.judged import WORDS as JUDGED
from annotation.quality.signals import Flag
from annotation.questions.follow_documents import document_orders
from annotation.questions.follow_up import order_sweep, plan_sweep, sweeps
from annotation.questions.order import CannotOrder, order_documents, plan_documents
from annotation.questions.order import add_money_to as add_money
from annotation.questions.pilot import DOCUMENTS as PILOT_DOCUMENTS
from annotation.questions.pilot import ITEMS as PILOT_ITEMS
from annotation.questions.pilot import PUBLISHED as PUBLISHED_AGREEMENT
from annotation.questions.pilot import WORKERS as PILOT_WORKERS
from annotation.questions.pilot import (
    CannotPilot,
    PilotPlan,
    launch_pilot,
    pilot_of,
    pilot_report,
    pilots,
    plan_pilot,
)
from annotation.questions.pilot import cost_of_as_many as cost_of_large_pilot
from annotation.questions.pilot import seed_of as seed_of_pilot
from annotation.questions.share import Shared, shared
from kbpo.tracks.models import Track

__all__ = [
    "JUDGED",
    "MARKED",
    "NAMES",
    "PAIRS",
    "PILOT_DOCUMENTS",
    "PILOT_ITEMS",
    "PILOT_WORKERS",
    "PLATFORMS",
    "PUBLISHED_AGREEMENT",
    "STATES",
    "AnswerLine",
    "Batch",
    "CannotAsk",
    "CannotChange",
    "CannotDismiss",
    "CannotMake",
    "CannotOrder",
    "CannotPilot",
    "CannotReject",
    "CannotRetry",
    "Cents",
    "Failure",
    "Flag",
    "InDoubt",
    "LastCheck",
    "Measured",
    "OfSoMany",
    "PilotPlan",
    "Quarrel",
    "Record",
    "Revision",
    "Shared",
    "Stage",
    "Undecided",
    "WorkerLine",
    "account",
    "add_money",
    "adjudicated",
    "adjudication_counts",
    "admit_worker",
    "answer",
    "ask_to_check",
    "batch",
    "batches",
    "bonuses",
    "cents",
    "check_dismissal",
    "check_rejection",
    "committed",
    "cost_of_extending",
    "cost_of_large_pilot",
    "crowd_errors",
    "dismiss",
    "dispute",
    "dispute_names",
    "disputes_of",
    "document_orders",
    "drop_adjudication",
    "erase_worker",
    "errors_of_names",
    "exclude_worker",
    "explain_balance",
    "extend_batch",
    "failures",
    "fee_rate_of",
    "gold_candidates",
    "gold_money",
    "golds",
    "grant",
    "halts",
    "in_doubt",
    "judgments",
    "keep_worker",
    "last_check",
    "launch_pilot",
    "measure",
    "oldest",
    "online",
    "open_disputes",
    "order_documents",
    "order_sweep",
    "owed",
    "pause",
    "pause_batch",
    "pilot_of",
    "pilot_report",
    "pilots",
    "plan_documents",
    "plan_pilot",
    "plan_sweep",
    "platforms",
    "policy_of",
    "price_of_reader",
    "progress",
    "quarrels",
    "queue_divided",
    "queue_random",
    "readmit_worker",
    "record",
    "reject_answer",
    "remark_on",
    "resume",
    "resume_batch",
    "retire_gold",
    "retry",
    "revision",
    "seed_of_pilot",
    "set_divided_limit",
    "set_gold_aside",
    "set_gold_rate",
    "shared",
    "stop_batch",
    "stop_publishing",
    "sweeps",
    "switch_aggregation",
    "take_down",
    "title_of",
    "trail",
    "undecided",
    "undo_rejection",
    "why_again",
    "workers",
    "write_to",
]

WINDOW = timedelta(hours=1)  # of answers, from which the rate is told
ZERO = Decimal("0.00")


@dataclass
class Votes:
    """What people said about one target. Of a pair: how many said that each directed predicate
    holds, and what was shown; of a mention: how many chose each span ("begin-end", or "other").
    `flags` said that it cannot be answered.
    """

    n: int = 0
    holds: Counter[str] = field(default_factory=Counter)
    shown: set[str] = field(default_factory=set)
    choices: Counter[str] = field(default_factory=Counter)
    flags: int = 0


def judgments(targets: Iterable[int]) -> dict[int, Votes]:
    """The votes on each of these targets that anybody answered; excluded answers do not count."""
    votes: dict[int, Votes] = defaultdict(Votes)
    rows = Response.objects.filter(
        target__in=list(targets), excluded_reason="", question__gold=None
    )
    for target, criterion, value, shown in rows.values_list(
        "target", "criterion", "value", "question__shown"
    ):
        one = votes[target]
        one.n += 1
        if criterion == "relation":
            one.holds.update(value["holds"])
            one.shown.update(shown)
        elif criterion == "linking":
            one.choices[value["choice"]] += 1
        else:
            one.flags += 1
    return dict(votes)


@dataclass(frozen=True)
class Progress:
    """Where the questions of one payer (or track) are. `seconds_left` is None until there is a rate
    to tell it from.
    """

    waiting: int
    published: int
    answered: int
    settled: int
    given_up: int
    answers: int
    answers_wanted: int
    reasons: dict[str, int]
    first_answer_at: datetime | None
    last_answer_at: datetime | None
    answers_per_hour: float
    seconds_left: float | None

    @property
    def asked(self) -> int:
        return self.waiting + self.published + self.answered + self.settled + self.given_up

    @property
    def done(self) -> int:
        return self.settled + self.given_up


def progress(*, payer: str = "", track: Track | None = None) -> Progress:
    """The counts, reasons and rate of a payer's questions, e.g.
    ``progress(payer=submission.purpose)``.
    """
    questions = Question.objects.filter(**_of(track, payer, "")).filter(gold=None)
    counts = dict(questions.values_list("status").annotate(Count("pk")).order_by())
    sent = Assignment.objects.filter(
        status__in=ANSWERED, hit__questions__gold=None, **_of(track, payer, "hit__questions__")
    )
    times = sent.aggregate(n=Count("pk"), first=Min("submitted_at"), last=Max("submitted_at"))
    wanted = questions.exclude(status="cancelled").aggregate(sum=Sum("answers_wanted"))["sum"] or 0
    rate = _rate(sent)
    left = _answers_left(questions)
    waiting = questions.filter(status="waiting").exclude(reason="")
    return Progress(
        waiting=counts.get("waiting", 0),
        published=counts.get("published", 0),
        answered=counts.get("answered", 0),
        settled=counts.get("settled", 0),
        given_up=counts.get("given_up", 0),
        answers=times["n"],
        answers_wanted=wanted,
        reasons=dict(waiting.values_list("reason").annotate(Count("pk")).order_by()),
        first_answer_at=times["first"],
        last_answer_at=times["last"],
        answers_per_hour=rate,
        seconds_left=3600 * left / rate if rate else (0.0 if not left else None),
    )


def _of(track: Track | None, payer: str, prefix: str) -> dict[str, Any]:
    where: dict[str, Any] = {}
    if track is not None:
        where[f"{prefix}track"] = track
    if payer:
        where[f"{prefix}payer"] = payer
    return where


def _rate(sent: QuerySet[Assignment]) -> float:
    """Answers an hour, from the last hour; over the time since its first answer if that is
    shorter.
    """
    now = timezone.now()
    recent = sent.filter(submitted_at__gte=now - WINDOW).aggregate(
        n=Count("pk"), first=Min("submitted_at")
    )
    if recent["n"] < 2:
        return 0.0
    return float(3600 * recent["n"] / max(1.0, (now - recent["first"]).total_seconds()))


def _answers_left(questions: QuerySet[Question]) -> int:
    live = questions.filter(status__in=["waiting", "published"])
    wanted = live.aggregate(sum=Sum("answers_wanted"))["sum"] or 0
    given = Assignment.objects.filter(hit__questions__in=live, status__in=ANSWERED).count()
    return max(0, wanted - given)


def halts() -> list[Halt]:
    """The stops that hold now."""
    return list(
        Halt.objects.filter(lifted_at=None).select_related("track", "who").order_by("since")
    )


def owed() -> Decimal:
    """What is owed to annotators and not yet paid."""
    return Payment.objects.filter(status="owed").aggregate(sum=Sum("amount"))["sum"] or ZERO
