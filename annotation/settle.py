"""Steps 8 and 9: raw answers become responses, responses become labels, and everybody is paid, each exactly once.

Every handler runs in one transaction that holds its row's lock (see `kbpo.queue`): killed at any point, it has done all
or nothing, and the row is handled again.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import TypeVar

from django.utils import timezone

from annotation.gold import grade
from annotation.interfaces.base import AggregatedLabel, BadAnswer, ParsedResponse
from annotation.interfaces.registry import interface_of
from annotation.models import HIT, Assignment, Payment, Question, Response
from annotation.parts import part
from annotation.quality import MET_BEFORE, hold_against_the_others, note_signals, review
from annotation.revise import ask_one_more
from annotation.revise import tick as revise
from kbpo.instances.models import Label
from kbpo.instances.record import NewLabel, record
from kbpo.money.spend import spend
from kbpo.queue import Moving, OwnersFault, nudge, work

BATCH = 200
PATIENCE = timedelta(minutes=10)
AT_ITS_END = datetime(9000, 1, 1, tzinfo=UTC)
"""When a question that was given up, and labelled so, is looked at again; Retry sets another time."""

Row = TypeVar("Row", bound=Moving)


def tick() -> int:
    """How many assignments and questions moved."""
    moved = _work(Assignment, "submitted", accept)
    moved += _work(Question, "answered", settle)
    moved += _work(Question, "given_up", give_up)
    moved += _work(Assignment, "accepted", approve)
    if moved:
        review()
    return moved + revise()


def _work(model: type[Row], status: str, handle: Callable[[Row], None]) -> int:
    moved = last = work(model, status, handle, limit=BATCH)
    while last == BATCH:
        last = work(model, status, handle, limit=BATCH)
        moved += last
    return moved


def accept(assignment: Assignment) -> None:
    """Parses the raw answer into responses; the last one of a question makes it answered."""
    hit = HIT.objects.select_for_update(of=("self",)).get(pk=assignment.hit_id)
    reason = assignment.worker.excluded_reason if assignment.worker.excluded_at else ""
    questions = list(hit.questions.select_for_update(of=("self",)))
    Response.objects.bulk_create(
        Response(
            assignment=assignment,
            question=question,
            target_id=parsed.target_id,
            criterion=parsed.criterion,
            value=parsed.value,
            excluded_reason=_met_before(question, assignment) or reason,
        )
        for question in questions
        for parsed in _parsed(question, assignment)
    )
    note_signals(assignment)
    grade(assignment)
    assignment.move("accepted")
    for question in questions:
        if question.status == "published" and _complete(question, hit):
            question.move("answered")
            nudge("settle")


def _met_before(question: Question, assignment: Assignment) -> str:
    """Why an answer does not count although it is paid: on a platform somebody may get at a question twice."""
    met = Response.objects.filter(
        assignment__worker=assignment.worker_id, target=question.target_id, question__interface=question.interface,
        question__round=question.round,
    )  # fmt: skip
    return MET_BEFORE if met.exclude(assignment=assignment).exists() else ""


def _parsed(question: Question, assignment: Assignment) -> list[ParsedResponse]:
    try:
        return interface_of(question.interface).parse(question, part(question, assignment.raw or {}))
    except BadAnswer as bad:
        raise OwnersFault(f"The answer cannot be used: {bad}") from bad


def _complete(question: Question, hit: HIT) -> bool:
    """Whether the question has the answers that it wants, over its HIT and the siblings of that."""
    hits = question.hits.exclude(status__in=["disposed", "failed"])  # one more answer has a HIT of its own
    done = Assignment.objects.filter(hit__in=hits, status__in=["accepted", "approved", "paid"]).count()
    places = sum(hits.values_list("max_assignments", flat=True)) or hit.max_assignments
    return done >= min(places, question.answers_wanted)


def settle(question: Question) -> None:
    """Writes the labels that the responses add up to, and closes the question."""
    labels = _aggregated(question)
    if not labels:  # every answer was excluded: it is asked again, as far as the money reaches
        _close(question, "disposed")
        question.move("waiting", "All answers were excluded; it is asked again.")
        return
    if question.status == "answered" and ask_one_more(question):
        return
    record(_new_label(question, label) for label in labels)
    hold_against_the_others(question)
    _close(question, "closed")
    question.move("settled")


def _aggregated(question: Question) -> list[AggregatedLabel]:
    counting = question.responses.filter(excluded_reason="").order_by("pk")
    return interface_of(question.interface).aggregate(question, list(counting))


def _new_label(question: Question, label: AggregatedLabel) -> NewLabel:
    return NewLabel(
        target_id=label.target_id,
        value=label.value,
        source=label.source,
        method=label.method,
        n=label.n,
        origin=question.origin,
        disagreement=label.disagreement,
    )


def _close(question: Question, status: str) -> None:
    question.hits.exclude(status__in=["disposed", "failed"]).update(status=status, status_since=timezone.now())


def give_up(question: Question) -> None:
    """Settles a question that was given up with the answers it has; without any, its label says that it is missing."""
    if _aggregated(question):
        settle(question)
        return
    _close(question, "expired")
    missing = NewLabel(question.target_id, {}, Label.Source.CROWD, "given_up", 0, f"{question.origin}/given_up")
    record([missing])
    question.next_try_at = AT_ITS_END
    question.save(update_fields=["next_try_at"])


def approve(assignment: Assignment) -> None:
    """Spends the answer's price out of the payer's reservation and notes what its worker is owed."""
    if owe(assignment):
        assignment.move("approved")


def owe(assignment: Assignment) -> bool:
    """Whether the money for an answer was there; its worker is owed the reward then, once."""
    for question in assignment.hit.questions.select_related("track"):
        try:
            spend(question.track, question.payer, question.price, key=_key(assignment, question), why=str(question))
        except ValueError as error:  # the work was done and will be paid; it waits for money, never for ever in vain
            assignment.attempts = 0
            assignment.reason = f"Not enough is reserved: {error}"
            assignment.next_try_at = timezone.now() + PATIENCE
            assignment.save(update_fields=["attempts", "reason", "next_try_at"])
            return False
    Payment.objects.get_or_create(
        assignment=assignment,
        defaults={"status": "owed", "worker_id": assignment.worker_id, "amount": assignment.hit.reward},
    )
    return True


def _key(assignment: Assignment, question: Question) -> str:
    """The ledger's key: one movement for each question of an assignment; most have one."""
    single = assignment.hit.questions.count() == 1
    return f"assignment:{assignment.pk}" if single else f"assignment:{assignment.pk}/{question.pk}"
