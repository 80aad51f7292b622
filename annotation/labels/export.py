"""Yields the answers and labels of a track as rows for export, with pseudonyms and
without remarks.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from typing import Any, NamedTuple

from django.db.models import Exists, F, OuterRef

from annotation.interfaces.registry import interface_by_name
from annotation.models import Response
from kbpo import clock
from kbpo.instances.models import ENDS, Label
from kbpo.tracks.models import Track

Row = list[Any]
CHUNK = 200
"""Rows read at once; few, since each may contain a whole document"""
ANSWERS = [
    *["answer", "question", "interface", "round", "worker", "platform"],
    *["document", "kind", "target"],
    *ENDS,
    *["criterion", "value", "words", "counts", "why_not", "gold", "seconds", "sent_at"],
]
LABELS = [
    *["label", "document", "kind", "target"],
    *ENDS,
    *["value", "source", "method", "n", "disagreement", "origin", "made_at", "public_at"],
]


def judgment_rows(track: Track) -> Iterator[Row]:
    """Yield all judgments of a track, counted or not, in order of arrival."""
    responses = Response.objects.filter(question__track=track).select_related(
        "assignment__worker", "question", "target"
    )
    responses = responses.annotate(document=F("target__document__key"))
    for response in responses.order_by("pk").iterator(chunk_size=CHUNK):
        value = dict(response.value)
        value.pop("remark", None)
        response.value = value
        interface = interface_by_name(response.question.interface)
        statements = interface.statements(response.question, [response])
        yield [
            response.assignment_id,
            response.question_id,
            response.question.interface,
            response.question.round,
            response.assignment.worker.handle,
            response.assignment.worker.platform,
            response.document,
            response.target.kind,
            response.target.key,
            *response.target.span_offsets,
            response.criterion,
            value,
            "; ".join(statement.words for statement in statements),
            response.counts,
            response.excluded_reason,
            response.question.payer_kind == "gold",
            response.assignment.seconds,
            response.assignment.submitted_at,
        ]


def label_rows(track: Track) -> Iterator[Row]:
    """Yield all labels about the texts of a track in order of creation. Among several labels of one
    target, the last one of the strongest source is current.
    """
    rows = Label.objects.filter(target__corpus=track.corpus).select_related("target")
    rows = rows.annotate(document=F("target__document__key"))
    for row in rows.order_by("pk").iterator(chunk_size=CHUNK):
        yield [
            row.pk,
            row.document,
            row.target.kind,
            row.target.key,
            *row.target.span_offsets,
            row.value,
            row.source,
            row.method,
            row.n,
            row.disagreement,
            row.origin,
            row.created_at,
            row.public_at,
        ]


EXPORTS: dict[str, tuple[list[str], Callable[[Track], Iterator[Row]]]] = {
    "answers": (ANSWERS, judgment_rows),
    "labels": (LABELS, label_rows),
}
"""Name of an export -> its columns and its rows"""


class SingleRating(NamedTuple):
    """One person's rating of one target; the person as a keyed hash."""

    target: int
    worker: str
    criterion: str
    value: float
    seconds: float | None


def single_ratings(targets: Collection[int], *, public: bool = False) -> Iterator[SingleRating]:
    """Yield the counted ratings of these targets in order of arrival; with `public`, only ratings
    of questions with a public label.
    """
    responses = Response.objects.filter(
        target__in=targets, counts=True, value__has_key="value"
    ).order_by("pk")
    if public:
        labels = Label.objects.filter(target=OuterRef("target"), question=OuterRef("question"))
        labels = labels.filter(again=None, public_at__lte=clock.now())
        responses = responses.filter(Exists(labels.exclude(method="nonresponse")))
    ratings = responses.values_list(
        "target", "assignment__worker__handle", "criterion", "value__value", "assignment__seconds"
    )
    for target, handle, criterion, value, seconds in ratings.iterator():
        if isinstance(value, int | float):
            yield SingleRating(target, handle, criterion, float(value), seconds)
