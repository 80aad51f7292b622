"""Reads the progress and the cost of a track's document orders."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal

from annotation.interfaces.registry import reading
from annotation.models import UNSETTLED, DocumentOrder, Question
from annotation.questions.order import missing
from annotation.questions.read_documents import DEAD
from kbpo.instances.models import Label
from kbpo.money.purpose import Purpose
from kbpo.money.spend import NOTHING, ZERO, Balance, balances
from kbpo.sampling.models import DocumentSample
from kbpo.tracks.models import Track
from kbpo.tracks.recall import NAME

STAGES = ("not asked yet", "at the names", "at the relations", "read", "given up")


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
    """Questions of one person more about what its readers were divided about, to be answered"""


def document_orders(track: Track) -> list[OrderState]:
    """Return the orders of a track, newest first."""
    rows = list(DocumentOrder.objects.filter(track=track).select_related("who").order_by("-pk"))
    samples = DocumentSample.objects.in_bulk({pk for row in rows for pk in row.samples})
    questions, money = _questions(track), balances([row.purpose for row in rows])
    asked = [one for of_document in questions.values() for one in of_document]
    flagged = _flagged_questions(asked)
    payers = [row.purpose for row in rows if row.closed_at is None]
    beside = Question.objects.filter(
        payer_kind="documents", payer_number__in=[payer.number for payer in payers]
    )
    beside = beside.exclude(interface__in=reading()).filter(status__in=UNSETTLED).defer("payload")
    divided: dict[Purpose, list[Question]] = {}
    for question in beside:
        divided.setdefault(question.payer, []).append(question)
    waiting = {question.payer for question in [*asked, *beside] if question.status == "waiting"}
    return [
        _state(
            row,
            [samples[pk] for pk in row.samples],
            questions,
            flagged,
            money.get(row.purpose, NOTHING),
            missing(row) if row.purpose in waiting else ZERO,
            divided.get(row.purpose, []),
        )
        for row in rows
    ]


def _questions(track: Track) -> dict[int, list[Question]]:
    """Return document -> its questions, without payloads."""
    questions = (
        Question.objects.filter(track=track, target__kind="document")
        .select_related("target")
        .defer("payload")
    )
    found: dict[int, list[Question]] = {}
    for question in questions.order_by("pk"):
        found.setdefault(question.target.lies_in, []).append(question)
    return found


def _state(
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
        counts["read" if sample.settled_at else _stage(asked, flagged)] += 1
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


def _stage(asked: Sequence[Question], flagged: set[int]) -> str:
    if any(one.status in DEAD or one.pk in flagged for one in asked):
        return "given up"
    if not asked:
        return "not asked yet"
    open_ones = [question for question in asked if question.status != "settled"]
    return (
        "at the names"
        if any(open_one.interface in reading(NAME) for open_one in open_ones)
        else "at the relations"
    )


def _flagged_questions(questions: Sequence[Question]) -> set[int]:
    """Return the settled questions that were flagged by most: their label is empty."""
    settled = [question.pk for question in questions if question.status == "settled"]
    empty = Label.objects.filter(
        question__in=settled, again=None, value={}, target__kind="document"
    ).exclude(method="nonresponse")
    return {number for number in empty.values_list("question", flat=True) if number is not None}
