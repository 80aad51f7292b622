"""Step 5b: asks directly about all that systems predict in annotated documents and that nobody
marked or judged.

Readers overlook things, so what they did not mark is missing, not false. A follow-up asks about it:
then everything that was predicted in these documents when it was ordered has a label, and the
documents are a route of their own (for what, is said in `kbpo.inclusion.documents`). Its money is
set aside with the order; where a follow-up stands follows from its targets, their labels and their
questions alone, so that this step may be killed anywhere and does each thing once.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal

import numpy as np
from django.db import connection, transaction
from django.db.models import Count, Q

from annotation.budget.promises import committed, one_publisher
from annotation.models import UNSETTLED, Question
from annotation.questions.ask import BATCH, holds_lock, new_questions, terms_of
from annotation.questions.order import CannotOrder
from kbpo import clock
from kbpo.accounts.audit import COMMAND, note
from kbpo.accounts.models import User
from kbpo.corpus.fetch import fetch
from kbpo.inclusion.annotated import LEAST, annotated
from kbpo.inclusion.documents import covering, known_documents
from kbpo.money.models import Price
from kbpo.money.purpose import Purpose
from kbpo.money.spend import ZERO, Balance, balance, release, reserve
from kbpo.pool.random_numbers import numbers
from kbpo.queue import nudge
from kbpo.sampling.models import DocumentSample, FollowUp, FollowUpTarget
from kbpo.submissions.models import Submission
from kbpo.tracks.models import Track
from kbpo.tracks.recall import kind_with_recall
from kbpo.tracks.registry import kind_of

log = logging.getLogger(__name__)

DUE = """
    SELECT s.target_id, s."order" FROM sampling_followuptarget s
    WHERE s.follow_up_id = %(follow_up)s AND s.done_at IS NULL
      AND NOT EXISTS (SELECT 1 FROM annotation_question q WHERE q.target_id = s.target_id
          AND q.status = ANY(%(open)s))
    ORDER BY s."order" LIMIT %(limit)s
"""
"""Targets of a follow-up that are not being asked about: nobody has begun, or whoever asked has
ended."""


@dataclass(frozen=True)
class FollowUpPlan:
    """What asking about all that is left in the annotated documents would take."""

    documents: list[int]
    submissions: list[int]
    targets: list[int]
    """What has no label: one question each, unless somebody else asks it first"""
    predictions: int
    """Relations that systems predict of these"""
    workers: int
    price: Price

    @property
    def at_most(self) -> Decimal:
        return len(self.targets) * self.workers * self.price.per_answer

    @property
    def work_seconds(self) -> int:
        """Time of all answers together."""
        return len(self.targets) * self.workers * self.price.seconds


def plan_follow_up(track: Track) -> FollowUpPlan:
    """What a follow-up of all annotated documents that count would ask about, as everything stands
    now.

    Raises CannotOrder with a sentence.
    """
    if track.status in (Track.Status.DRAFT, Track.Status.CLOSED):
        raise CannotOrder(
            f"{track.name} is {track.get_status_display().lower()}: nothing is asked on it."
        )
    reads = annotated(track)
    if not reads.documents:
        raise CannotOrder("No document counts as read yet. Order some documents first.")
    if known_documents(track, reads).closed:
        raise CannotOrder(
            "What is not marked in these documents is false, as their annotation says:"
            " nothing is open."
        )
    if len(reads.documents) < LEAST:
        raise CannotOrder(
            f"It takes {LEAST} documents that count as read; {len(reads.documents)} does so far."
        )
    if FollowUp.objects.filter(track=track, settled_at=None).exists():
        raise CannotOrder(
            "One such order is still being judged. The next one can follow when it is done."
        )
    sampled = Submission.objects.filter(track=track, sampled_at__isnull=False).order_by("pk")
    submissions = list(sampled.values_list("pk", flat=True))
    if not submissions:
        raise CannotOrder("No system predicts anything yet: its sample must be drawn first.")
    targets, predictions = _unjudged(track, reads.documents, submissions)
    last = covering(track, reads.documents)
    if (
        last is not None
        and not targets
        and set(submissions) <= set(last.submissions.values_list("pk", flat=True))
    ):
        raise CannotOrder("All that systems predict in the documents that count is judged already.")
    price = terms_of(track, kind_of(track).asking[0].interface)
    return FollowUpPlan(
        reads.documents, submissions, targets, predictions, track.workers_per_question, price
    )


def _unjudged(track: Track, documents: list[int], submissions: list[int]) -> tuple[list[int], int]:
    """What these submissions predict in the scope of these documents and no label answers: targets,
    and how many relations are predicted of them.
    """
    rows = fetch(
        "SELECT p.submission_id, i.target_id, i.id FROM instances_instance i"
        " JOIN submissions_prediction p ON p.instance_id = i.id"
        " WHERE i.document_id = ANY(%s) AND p.submission_id = ANY(%s)",
        [documents, submissions],
    )
    kind = kind_with_recall(track)
    inside = kind.in_scope(sorted({target for _, target, _ in rows}))
    of: dict[int, set[int]] = {}
    for submission, target, _ in rows:
        if target in inside:
            of.setdefault(submission, set()).add(target)
    left: set[int] = set().union(*kind.unanswered(of).values()) if of else set()
    return sorted(left), len({instance for _, target, instance in rows if target in left})


@transaction.atomic
def order_follow_up(
    track: Track, at_most: Decimal, *, who: User | None = None, why: str = ""
) -> FollowUp:
    """The order: its money is set aside, and the clock asks.

    `at_most` is the price that was shown; whoever orders says what for. Raises CannotOrder if it
    would be more by now, OverBudget if a cap forbids it, and then nothing has changed.
    """
    if who is not None and not why.strip():
        raise CannotOrder("Nothing was ordered: say what it is asked for. It stands in the log.")
    track = (
        Track.objects.select_for_update(of=("self",)).select_related("corpus").get(pk=track.pk)
    )  # one comes first
    plan = plan_follow_up(track)
    if plan.at_most > at_most:
        raise CannotOrder(
            f"This would cost up to ${plan.at_most} by now, not ${at_most}. Look at"
            " the price again."
        )
    follow_up = FollowUp.objects.create(
        track=track,
        workers=plan.workers,
        price=plan.price.per_answer,
        reward=plan.price.reward,
        seconds=plan.price.seconds,
        who=who,
    )
    follow_up.documents.set(DocumentSample.objects.filter(track=track, document__in=plan.documents))
    follow_up.submissions.set(plan.submissions)
    order = numbers(track, str(follow_up.purpose), np.array(plan.targets, dtype=np.int64)).tolist()
    FollowUpTarget.objects.bulk_create(
        (
            FollowUpTarget(follow_up=follow_up, target_id=pk, order=at)
            for pk, at in zip(plan.targets, order, strict=True)
        ),
        batch_size=2000,
    )
    told = (
        f"{len(plan.targets)} questions about {len(plan.documents)} documents, at most"
        f" ${plan.at_most}"
    )
    if plan.at_most > ZERO:
        reserve(
            track,
            None,
            follow_up.purpose,
            plan.at_most,
            key=str(follow_up.purpose),
            who=who,
            why=told,
        )
    note(
        "order follow-up",
        follow_up.purpose,
        who=who,
        why=why.strip() or COMMAND,
        track=track.slug,
        after=told,
    )
    nudge("follow_up")
    return follow_up


def tick() -> int:
    """How many targets of follow-ups were asked about or found to be done, and follow-ups settled
    and closed.
    """
    moved = 0
    for pk in FollowUp.objects.filter(closed_at=None).order_by("pk").values_list("pk", flat=True):
        try:
            while (asked := _ask(pk)) is not None:
                moved += asked
            moved += _settle(pk) + _close(pk)
        except (
            Exception
        ):  # one follow-up's bug must not keep the others waiting; the clock comes round again
            log.exception("Follow-up %s could not go on", pk)
    return moved


@transaction.atomic
def _ask(pk: int) -> int | None:
    """How many targets were asked about, or have their answer; None if none is due, or another
    worker is asking.
    """
    if not holds_lock():
        return None
    follow_up = FollowUp.objects.select_related("track__corpus").get(pk=pk)
    due = _due(follow_up)
    if not due:
        return None
    kind, systems = (
        kind_of(follow_up.track),
        list(follow_up.submissions.values_list("pk", flat=True)),
    )
    of = dict.fromkeys(systems, due.keys() if follow_up.stopped_at is None else [])
    left: set[int] = set().union(*kind.unanswered(of).values()) if of else set()
    drafts = kind.questions([target for target in due if target in left], systems)
    payers = {target: (follow_up.purpose, order) for target, order in due.items()}
    questions = list(new_questions(follow_up.track, payers, drafts, like=follow_up))
    Question.objects.bulk_create(questions)
    asked = {question.target_id for question in questions}
    done = FollowUpTarget.objects.filter(
        follow_up=follow_up, target__in=[target for target in due if target not in asked]
    )
    done.update(done_at=clock.now())
    if questions:
        nudge("publish")
    return len(due)


def _due(follow_up: FollowUp) -> dict[int, float]:
    """Target -> its place, of the next ones that nobody is being asked about, in their order."""
    with connection.cursor() as cursor:
        cursor.execute(DUE, {"follow_up": follow_up.pk, "open": list(UNSETTLED), "limit": BATCH})
        return dict(cursor.fetchall())


@transaction.atomic
def _settle(pk: int) -> int:
    """1 if all of it is judged now, or known to be missing, or stopped: unless it was, its labels
    can come by the document route.
    """
    follow_up = FollowUp.objects.select_for_update(of=("self",)).get(pk=pk)
    if follow_up.settled_at is not None or follow_up.targets.filter(done_at=None).exists():
        return 0
    FollowUp.objects.filter(pk=pk).update(settled_at=clock.now())
    nudge("estimate")
    return 1


@transaction.atomic
def _close(pk: int) -> int:
    """1 if nothing of it is left to be paid: what it has not spent goes back to the budget."""
    one_publisher(FollowUp.objects.get(pk=pk).purpose)
    follow_up = FollowUp.objects.select_for_update(of=("self",)).select_related("track").get(pk=pk)
    open_ones = Question.objects.filter(status__in=UNSETTLED, **follow_up.purpose.at("payer"))
    if (
        follow_up.settled_at is None
        or follow_up.closed_at is not None
        or open_ones.exists()
        or committed(follow_up.purpose)
    ):
        return 0
    done = "All is judged" if follow_up.stopped_at is None else "It was stopped"
    why = f"{done}; what was not needed is given back"
    release(follow_up.track, follow_up.purpose, key=f"release:{follow_up.purpose}", why=why)
    FollowUp.objects.filter(pk=pk).update(closed_at=clock.now())
    return 1


@dataclass(frozen=True)
class FollowUpState:
    """One follow-up: what it asks about, how much of that is done, its money, and what the
    questions wait for.
    """

    pk: int
    purpose: Purpose
    ordered_at: datetime
    settled_at: datetime | None
    stopped_at: datetime | None
    who: str
    documents: int
    targets: int
    done: int
    money: Balance
    reason: str
    holds: bool
    """It covers the documents that count now"""


def follow_ups(track: Track) -> list[FollowUpState]:
    """The track's follow-ups, newest first."""
    reads = annotated(track)
    holding = covering(track, reads.documents)
    if (
        reads.inclusion is None and not known_documents(track, reads).documents
    ):  # too little of it was answered
        holding = None
    rows = FollowUp.objects.filter(track=track).select_related("who").order_by("-pk")
    return [_state(row, holding is not None and holding.pk == row.pk) for row in rows]


def _state(follow_up: FollowUp, holds: bool) -> FollowUpState:
    counts = follow_up.targets.aggregate(
        all=Count("pk"), done=Count("pk", filter=Q(done_at__isnull=False))
    )
    waiting = (
        Question.objects.filter(status="waiting", **follow_up.purpose.at("payer"))
        .exclude(reason="")
        .first()
    )
    return FollowUpState(
        follow_up.pk,
        follow_up.purpose,
        follow_up.ordered_at,
        follow_up.settled_at,
        follow_up.stopped_at,
        follow_up.who.get_username() if follow_up.who else "a command",
        follow_up.documents.count(),
        counts["all"],
        counts["done"],
        balance(purpose=follow_up.purpose),
        waiting.reason if waiting else "",
        holds,
    )
