"""Steps 8 and 9: raw answers become responses, responses become labels, and everybody is paid, each
exactly once.

Rows are handled many at a time, in one transaction that holds their locks (`work_together` in
`kbpo.queue`): killed at any point, it has done all or nothing, and the rows are handled again, each
alone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from datetime import UTC, datetime, timedelta
from decimal import Decimal

from annotation.budget.accrue import approve
from annotation.budget.promises import lock_payer
from annotation.hits.ask_again import (
    LockHeld,
    ask_again,
    ask_one_more,
    count_answers,
    initial_places,
)
from annotation.interfaces.base import AggregatedLabel
from annotation.interfaces.registry import interface_of
from annotation.interfaces.shared.payload import joins_readers
from annotation.labels.accept import PUT_AWAY, accept
from annotation.labels.exclude import review
from annotation.labels.recount import (
    aggregate_labels,
    already_labelled,
    counted_responses,
    label_changes,
    lacking_answers,
    questions_with_tied_targets,
    recompare_answers,
)
from annotation.labels.revise import tick as revise
from annotation.models import HIT, Assignment, Question, Response
from annotation.quality.signals import compare_with_majority
from annotation.questions.limits import (
    MOST_ANSWERS,
    NOBODY_BESIDE,
    has_other_worker,
    max_answers,
)
from kbpo import clock
from kbpo.clock.served import beat, late_since
from kbpo.instances.models import Label
from kbpo.instances.record import NewLabel, record
from kbpo.money.purpose import Purpose
from kbpo.queue import work, work_together

BATCH = 200
ALL_EXCLUDED = "All answers were excluded; it is asked again."
"""Reason of a question that is asked again"""
AT_ITS_END = datetime(9000, 1, 1, tzinfo=UTC)
"""When a question that was given up, and labelled so, is looked at again; a late answer or Retry
sets another time."""
LONGEST = timedelta(days=1)
"""A question that was given up waits no longer for those who have it in hand."""
SOON = timedelta(minutes=1)
AT_ONCE = timedelta(seconds=5)


def tick() -> int:
    """Return how many assignments and questions changed."""
    beat()
    moved = work_together(Assignment, "submitted", accept, limit=BATCH)
    moved += work_together(Question, "answered", settle, limit=BATCH)
    moved += _work_all(Question, "unanswered", give_up)
    moved += work_together(Assignment, "accepted", approve, limit=BATCH)
    if moved:
        review()
    return moved + revise()


def _work_all(model: type[Question], status: str, handle: Callable[[Question], None]) -> int:
    moved = last = work(model, status, handle, limit=BATCH)
    while last == BATCH:
        last = work(model, status, handle, limit=BATCH)
        moved += last
    return moved


def settle(questions: Sequence[Question]) -> None:
    """Record the labels of these questions and close them. Questions with fewer answers than their
    track promises, since answers were excluded before they were parsed, are published again at
    once; tied ones are not labelled before one more person has answered. The caller holds the locks
    of the questions.
    """
    responses = counted_responses(questions)
    labels: dict[Question, list[AggregatedLabel]] = {}
    again: list[Question] = []
    free: dict[Purpose, Decimal] = {}
    said = {question: aggregate_labels(question, responses[question.pk]) for question in questions}
    tied = questions_with_tied_targets(said)
    short = lacking_answers([one for one in said if one.status == "answered"], responses)
    for question, found in said.items():
        try:
            if found and question in short and not lock_payer(question.payer, wait=False):
                raise LockHeld
            if not found:
                again.append(question)
            elif not (
                question.status == "answered"
                and (question in tied or _is_split(question, responses[question.pk]))
                and ask_one_more(question, free)
            ):
                labels[question] = found
        except LockHeld:
            _postpone(question, clock.now() + AT_ONCE)
    before = already_labelled(labels)
    record(change.label for change in label_changes(labels))
    compare_with_majority({question: responses[question.pk] for question in labels})
    _close_hits(labels, "closed")
    Question.objects.filter(pk__in=[label.pk for label in labels]).move("settled")
    if before:
        recompare_answers([question for question in labels if question.pk in before])
    ask_again([question for question in short if question in labels], responses)
    _ask_again(again)


def _is_split(question: Question, responses: Sequence[Response]) -> bool:
    """Return whether one more person is asked because the answers differ."""
    return question.staged and interface_of(question.interface).is_split(question, responses)


def _ask_again(questions: Sequence[Question]) -> None:
    """Publish questions without counted answers again, for as many people as at first. Questions
    with the maximal number of answers are given up, and so are those about ties between readers
    where no other worker is available.
    """
    places, given = initial_places(questions), count_answers(questions)
    anew = []
    for question in questions:
        wanted = min(
            question.answers_wanted,
            places.get(question.pk, MOST_ANSWERS),
            max_answers(question) - given[question.pk],
        )
        if wanted <= 0:
            question.move(
                "unanswered",
                f"{given[question.pk]} people answered it, and none of their answers counts.",
                ended_by="",
            )
        elif joins_readers(question.payload) and not has_other_worker(question):
            question.move("unanswered", NOBODY_BESIDE, ended_by="")
        else:
            question.answers_wanted = wanted
            anew.append(question)
    _close_hits(anew, "disposed")
    Question.objects.bulk_update(anew, ["answers_wanted"])
    Question.objects.filter(pk__in=[one.pk for one in anew]).move(
        "waiting", ALL_EXCLUDED, ended_by=""
    )


def _close_hits(questions: Iterable[Question], status: str) -> None:
    """Close the HITs of `questions`. Locks rows in primary-key order to avoid deadlocks."""
    hits = HIT.objects.filter(questions__in=list(questions)).exclude(status__in=PUT_AWAY)
    locked = (
        HIT.objects.select_for_update(of=("self",)).filter(pk__in=hits.values("pk")).order_by("pk")
    )
    pks = list(locked.values_list("pk", flat=True))
    HIT.objects.filter(pk__in=pks).update(status=status, status_since=clock.now())


def give_up(question: Question) -> None:
    """Settle a question that was given up, once nobody has it in hand, with its answers; without
    any, record a label for nonresponse.

    Later answers are used too (`accept` makes the question due again): they are paid, and whether
    somebody had the question in hand does not depend on its true answer. The label for nonresponse
    stays; the later one counts, and the response rate of the stratum is computed anew with every
    estimate.
    """
    _close_hits([question], "expired")
    if (until := _wait_until(question)) is not None:
        _postpone(question, until)
    elif aggregate_labels(question, counted_responses([question])[question.pk]):
        settle([question])
    else:
        missing = NewLabel(
            target_id=question.target_id,
            value={},
            source=Label.Source.CROWD,
            method="nonresponse",
            n=0,
            origin=f"{question.origin}/nonresponse",
            question=question.pk,
        )
        record([missing])
        _postpone(question, AT_ITS_END)


def _wait_until(question: Question) -> datetime | None:
    """Return when to try again, since somebody has the question in hand or an answer is not parsed
    yet; None otherwise.
    """
    now = clock.now()
    if question.status_since < late_since(LONGEST, now):
        return None
    assignments = Assignment.objects.filter(hit__questions=question)
    if assignments.filter(status="submitted").exists():
        return now + SOON
    leased = assignments.filter(status="leased", leased_until__gt=now).order_by("-leased_until")
    return leased.values_list("leased_until", flat=True).first()


def _postpone(question: Question, at: datetime) -> None:
    question.attempts, question.next_try_at = 0, at
    question.save(update_fields=["attempts", "next_try_at"])
