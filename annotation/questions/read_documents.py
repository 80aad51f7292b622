"""Step 5a: asks about ordered documents in full: their mentions, then the relations between them.
Once all documents of an order are read, ties between readers go to one more person who has not read
the document; no document waits for that.

The stage of a document follows from its questions and its sample alone, so the step can be killed
at any point and does each thing once.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal

from django.db import connection, transaction
from django.db.models import Exists, OuterRef, QuerySet

from annotation.budget.promises import committed_money, lock_payer
from annotation.interfaces.base import units_paid
from annotation.interfaces.registry import document_interfaces, interface_by_name
from annotation.models import ANSWERABLE, UNSETTLED, DocumentOrder, Question
from annotation.questions.ask import new_questions
from annotation.questions.limits import (
    NOBODY_BESIDE,
    has_available_worker,
    has_other_worker,
    reading_questions,
)
from annotation.questions.order import assignment_price, assignment_reward, missing_money
from kbpo import clock
from kbpo.instances.models import Label
from kbpo.money.models import Purpose
from kbpo.money.spend import NOTHING, ZERO, Balance, balance, balances, release_money
from kbpo.queue import wake_step
from kbpo.sampling.documents.draw import settle_documents
from kbpo.sampling.models import DocumentSample
from kbpo.tracks.base import QuestionDraft
from kbpo.tracks.models import Track
from kbpo.tracks.recall import NAME, RELATION, kind_with_recall

log = logging.getLogger(__name__)

DEAD = ("unanswered", "cancelled")
SAMPLE = ("track__corpus", "document", "batch")
STAGES = ("not asked yet", "names being marked", "relations being judged", "read", "ended")


def tick() -> int:
    """Advance all due documents and close finished orders. Return how many documents advanced and
    orders closed.
    """
    moved = 0
    for order in DocumentOrder.objects.filter(closed_at=None).order_by("pk"):
        for sample in due_samples(order):
            try:
                moved += _advance_document(order, sample.pk)
            except Exception:  # one document's bug must not keep the others waiting
                log.exception("Document sample %s could not be asked about", sample.pk)
    for order in DocumentOrder.objects.filter(closed_at=None):
        try:
            moved += _close_finished_order(order)
        except Exception:  # nor one order's
            log.exception("Order of documents %s could not be closed", order.pk)
    return moved


def due_samples(order: DocumentOrder) -> QuerySet[DocumentSample]:
    """Return the documents of an order that have no open question and whose reading is not
    finished.
    """
    asked = Question.objects.filter(
        track=order.track_id,
        target__document=OuterRef("document"),
        target__kind="document",
        interface__in=document_interfaces(),
        status__in=UNSETTLED,
    )
    samples = DocumentSample.objects.filter(pk__in=order.samples, settled_at=None)
    return samples.exclude(Exists(asked)).order_by("pk")


@transaction.atomic
def _advance_document(order: DocumentOrder, pk: int) -> int:
    """Ask the next question about a document or settle it. Return 1 if something was done."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT pg_try_advisory_xact_lock(hashtext('annotation.questions.read_documents'), %s)",
            [pk],
        )
        if not cursor.fetchone()[0]:
            return 0
    sample = DocumentSample.objects.select_related(*SAMPLE).get(pk=pk)
    if sample.settled_at is not None:
        return 0
    kind = kind_with_recall(sample.track)
    mentions = latest_reading_question(sample, NAME)
    if mentions is None:
        return _ask_about_document(order, sample, kind.mentions_question(sample.document))
    if not is_read_in_full(mentions):
        return 0
    relations = latest_reading_question(sample, RELATION)
    if relations is None:
        draft = kind.relations_question(sample.document, mentions.pk)
        return (
            _ask_about_document(order, sample, draft)
            if draft is not None
            else _settle_document(sample, mentions)
        )
    return _settle_document(sample, relations) if is_read_in_full(relations) else 0


def latest_reading_question(sample: DocumentSample, reads: str) -> Question | None:
    """Return the latest question about all names, or all relations, of a sample's document."""
    questions = Question.objects.filter(
        track=sample.track_id,
        interface__in=document_interfaces(reads),
        target__document=sample.document_id,
        target__kind="document",
    )
    return questions.order_by("-round").first()


def is_read_in_full(question: Question) -> bool:
    """Return whether a question has labels and most of its readers did not flag it."""
    labels = Label.objects.filter(
        target=question.target_id, question=question.pk, again=None
    ).exclude(value={})
    return question.status == "settled" and labels.exists()


def has_ended_without_result(question: Question | None) -> bool:
    """Return whether a question ended without an answer."""
    if question is None:
        return False
    return question.status in DEAD or (
        question.status == "settled" and not is_read_in_full(question)
    )


def _ask_about_document(
    order: DocumentOrder, sample: DocumentSample, draft: QuestionDraft | None
) -> int:
    if draft is None:
        return 0
    interface = interface_by_name(draft.interface)
    first = interface.reads == NAME
    units = units_paid(draft.payload)
    each: Decimal = order.per_token if first else order.per_pair
    Question.objects.create(
        status="waiting",
        track=order.track,
        target_id=draft.target_id,
        interface=draft.interface,
        payload=draft.payload,
        **order.purpose.filter_condition("payer"),
        order=_reading_priority(sample) if first else _reading_priority(sample, has_begun=True),
        answers_wanted=order.workers,
        price=assignment_price(units, each, order.fee_rate),
        reward=assignment_reward(units, each),
        seconds=max(10, round(units * interface.terms.seconds_each)),
    )
    wake_step("publish")
    return 1


def _ask_about_ties(order: DocumentOrder) -> int:
    """Ask about the ties between readers of the order's documents, as far as the money suffices,
    and return the number of questions.
    """
    left = balance(purpose=order.purpose).open
    samples = DocumentSample.objects.filter(pk__in=order.samples).exclude(settled_at=None)
    asked = []
    for sample in samples.select_related(*SAMPLE).order_by("position", "pk"):
        for question in _new_tie_questions(order, sample):
            if question.price <= left:
                left -= question.price
                asked.append(question)
    Question.objects.bulk_create(asked)
    if asked:
        wake_step("publish")
    return len(asked)


def _new_tie_questions(order: DocumentOrder, sample: DocumentSample) -> Iterable[Question]:
    """Return new questions about the ties between the readers of a document; none if everybody
    available has read it.
    """
    mentions = latest_reading_question(sample, NAME)
    if mentions is None:
        return ()
    kind = kind_with_recall(sample.track)
    drafts = list(kind.tiebreak_questions(sample.document, mentions.pk))
    if not drafts or not has_available_worker(reading_questions(sample.document_id), sample.track):
        return ()
    terms = order.purpose, _reading_priority(sample) + 1
    payers = dict.fromkeys((draft.target_id for draft in drafts), terms)
    return new_questions(sample.track, payers, drafts)


def _reading_priority(sample: DocumentSample, *, has_begun: bool = False) -> float:
    """Return the priority of a question: documents of a batch in random order, started ones
    first.
    """
    size = sample.batch.size if sample.batch else 1
    return min(1.0, sample.position / max(1, size)) - (2 if has_begun else 0)


def _settle_document(sample: DocumentSample, last: Question) -> int:
    """Store the facts of a document as instances and count it as read in full. Return 1."""
    kind_with_recall(sample.track).store_facts(last.pk)
    settle_documents(sample.track, [sample.document_id])
    wake_step("estimate")
    return 1


@transaction.atomic
def _close_finished_order(order: DocumentOrder) -> int:
    """Close an order of documents whose readers have all answered, and release its money. If
    readers disagree, ask tie-break questions first. Return 1 if something was done.
    """
    lock_payer(order.purpose)
    if _is_in_progress(order):  # also before the lock, which is a write and triggers a step
        return 0
    orders = DocumentOrder.objects.select_for_update(of=("self",)).select_related("track")
    order = orders.get(pk=order.pk)
    if order.closed_at is not None or _is_in_progress(order):
        return 0
    if given_up := _give_up_unanswerable_questions(order):
        return given_up
    if (
        committed_money(order.purpose)
        or _unsettled_questions(order).exists()
        or _ask_about_ties(order)
    ):
        return 0
    why = "Its documents are read; unused money is returned"
    release_money(order.track, order.purpose, key=f"release:{order.purpose}", why=why)
    DocumentOrder.objects.filter(pk=order.pk).update(closed_at=clock.now())
    return 1


def _is_in_progress(order: DocumentOrder) -> bool:
    """Return whether a document of an order is unread, or people are asked about ties."""
    waiting = DocumentSample.objects.filter(pk__in=order.samples, settled_at=None)
    for sample in waiting:
        if not any(
            has_ended_without_result(latest_reading_question(sample, reads))
            for reads in (NAME, RELATION)
        ):
            return True
    return _unsettled_questions(order).exists() and not _unanswerable_questions(order)


def _unsettled_questions(order: DocumentOrder) -> QuerySet[Question]:
    return Question.objects.filter(status__in=UNSETTLED, **order.purpose.filter_condition("payer"))


def _unanswerable_questions(order: DocumentOrder) -> list[int]:
    """Return the open questions about ties between readers that no available worker can answer and
    nobody has leased.
    """
    asked = Question.objects.filter(
        status__in=ANSWERABLE, **order.purpose.filter_condition("payer")
    )
    free = asked.exclude(interface__in=document_interfaces()).exclude(
        hits__assignments__status__in=["leased", "submitted"]
    )
    found = free.select_related("track", "target")
    return [question.pk for question in found if not has_other_worker(question)]


def _give_up_unanswerable_questions(order: DocumentOrder) -> int:
    """End the tie-break questions that nobody is left to answer, and return their number. They
    are settled with the answers that they have.
    """
    free = Question.objects.filter(pk__in=_unanswerable_questions(order), status__in=ANSWERABLE)
    locked = free.select_for_update(of=("self",), skip_locked=True).order_by("pk")
    alone = list(locked)
    for question in alone:
        question.move("unanswered", NOBODY_BESIDE)
    if alone:
        wake_step("settle")
    return len(alone)


@dataclass(frozen=True)
class OrderState:
    """An order with the number of its documents in each stage, its money, and what is missing."""

    pk: int
    documents: int
    created_at: datetime
    closed_at: datetime | None
    who: str
    stages: list[tuple[str, int]]
    money: Balance
    missing: Decimal
    reason: str
    divided: int
    """Open questions to one more person about ties between readers"""


def document_orders(track: Track) -> list[OrderState]:
    """Return the orders of a track, newest first."""
    rows = list(DocumentOrder.objects.filter(track=track).select_related("who").order_by("-pk"))
    samples = DocumentSample.objects.in_bulk({pk for row in rows for pk in row.samples})
    questions, money = _questions_by_document(track), balances([row.purpose for row in rows])
    asked = [one for of_document in questions.values() for one in of_document]
    # Settled questions that most flagged have an empty label.
    settled = [question.pk for question in asked if question.status == "settled"]
    empty = Label.objects.filter(question__in=settled, again=None, value={})
    empty = empty.filter(target__kind="document").exclude(method="nonresponse")
    flagged = {number for number in empty.values_list("question", flat=True) if number is not None}
    payers = [row.purpose for row in rows if row.closed_at is None]
    beside = Question.objects.filter(
        payer_kind="documents", payer_number__in=[payer.number for payer in payers]
    )
    beside = (
        beside.exclude(interface__in=document_interfaces())
        .filter(status__in=UNSETTLED)
        .defer("payload")
    )
    divided: dict[Purpose, list[Question]] = {}
    for question in beside:
        divided.setdefault(question.payer, []).append(question)
    waiting = {question.payer for question in [*asked, *beside] if question.status == "waiting"}
    return [
        _order_state(
            row,
            [samples[pk] for pk in row.samples],
            questions,
            flagged,
            money.get(row.purpose, NOTHING),
            missing_money(row) if row.purpose in waiting else ZERO,
            divided.get(row.purpose, []),
        )
        for row in rows
    ]


def _questions_by_document(track: Track) -> dict[int, list[Question]]:
    """Return document -> its questions, without payloads."""
    questions = Question.objects.filter(track=track, target__kind="document")
    by_document: dict[int, list[Question]] = {}
    for question in questions.select_related("target").defer("payload").order_by("pk"):
        by_document.setdefault(question.target.document_id_or_error, []).append(question)
    return by_document


def _order_state(
    order: DocumentOrder,
    samples: list[DocumentSample],
    questions: dict[int, list[Question]],
    flagged: set[int],
    money: Balance,
    lacks: Decimal,
    divided: Sequence[Question],
) -> OrderState:
    counts: Counter[str] = Counter()
    for sample in samples:
        asked = questions.get(sample.document_id, [])
        counts["read" if sample.settled_at else _stage_text(asked, flagged)] += 1
    of_documents = [one for sample in samples for one in questions.get(sample.document_id, ())]
    waiting = [one.reason for one in [*of_documents, *divided] if one.reason]
    return OrderState(
        order.pk,
        len(order.samples),
        order.created_at,
        order.closed_at,
        order.who.get_username() if order.who else "a command",
        [(stage, counts[stage]) for stage in STAGES if counts[stage]],
        money,
        lacks,
        waiting[0] if waiting else "",
        len(divided),
    )


def _stage_text(questions: Sequence[Question], flagged: set[int]) -> str:
    if any(one.status in DEAD or one.pk in flagged for one in questions):
        return "ended"
    if not questions:
        return "not asked yet"
    open_ones = [question for question in questions if question.status != "settled"]
    at_names = any(question.interface in document_interfaces(NAME) for question in open_ones)
    return "names being marked" if at_names else "relations being judged"
