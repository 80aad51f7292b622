"""Reads answers, labels and agreement of a track, row by row, to be taken elsewhere. Whoever answered
stands in them under a code; what they remarked, which is for admins, does not.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from django.db.models import F

from annotation.interfaces.registry import interface_of
from annotation.models import Response
from annotation.quality.agreement import measure
from kbpo.instances.models import Label, Target
from kbpo.tracks.models import Track

Row = list[Any]
CHUNK = 200
"""Rows that are read at once: each may carry a whole document"""
ANSWERS = [
    "answer", "question", "interface", "round", "worker", "platform", "document", "kind", "target",
    "a_begin", "a_end", "b_begin", "b_end", "criterion", "value", "words", "counts", "why_not",
    "gold", "seconds", "sent_at",
]  # fmt: skip
LABELS = [
    "label", "document", "kind", "target", "a_begin", "a_end", "b_begin", "b_end", "value",
    "source", "method", "n", "disagreement", "origin", "made_at", "public_at",
]  # fmt: skip
AGREEMENT = [
    "interface", "unit", "questions", "units", "answers", "workers", "observed", "kappa", "alpha",
    "alpha_low80", "alpha_high80", "alpha_low95", "alpha_high95",
]  # fmt: skip


def answers(track: Track) -> Iterator[Row]:
    """Yields every judgment that was given on a track, counting or not, in the order of arrival."""
    rows = Response.objects.filter(question__track=track).select_related(
        "assignment__worker", "question", "target"
    )
    rows = rows.annotate(document=F("target__document__key"))
    for one in rows.order_by("pk").iterator(chunk_size=CHUNK):
        value = dict(one.value)
        value.pop("remark", None)
        one.value = value
        said = interface_of(one.question.interface).statements(one.question, [one])
        yield [
            one.assignment_id,
            one.question_id,
            one.question.interface,
            one.question.round,
            one.assignment.worker.handle,
            one.assignment.worker.platform,
            one.document,
            *_place(one.target),
            one.criterion,
            value,
            "; ".join(statement.words for statement in said),
            not one.excluded_reason,
            one.excluded_reason,
            one.question.payer_kind == "gold",
            one.assignment.seconds,
            one.assignment.submitted_at,
        ]


def labels(track: Track) -> Iterator[Row]:
    """Yields every label about the texts of a track, in the order in which they were made: of
    several about one target the last of the strongest source holds.
    """
    rows = Label.objects.filter(target__corpus=track.corpus).select_related("target")
    rows = rows.annotate(document=F("target__document__key"))
    for one in rows.order_by("pk").iterator(chunk_size=CHUNK):
        yield [
            one.pk,
            one.document,
            *_place(one.target),
            one.value,
            one.source,
            one.method,
            one.n,
            one.disagreement,
            one.origin,
            one.created_at,
            one.public_at,
        ]


def agreement(track: Track) -> Iterator[Row]:
    """Yields how far people agree on each kind of unit, with intervals of α."""
    for one in measure(track=track):
        yield [
            one.interface,
            one.what,
            one.questions,
            one.units,
            one.answers,
            one.workers,
            one.observed,
            one.kappa,
            one.alpha,
            one.low80,
            one.high80,
            one.low95,
            one.high95,
        ]


def _place(target: Target) -> Row:
    """Which target, and where it stands in its document."""
    spans = [target.a_begin, target.a_end, target.b_begin, target.b_end]
    return [target.kind, target.key, *spans]


EXPORTS: dict[str, tuple[list[str], Callable[[Track], Iterator[Row]]]] = {
    "answers": (ANSWERS, answers),
    "labels": (LABELS, labels),
    "agreement": (AGREEMENT, agreement),
}
"""What can be exported: its columns, and what yields the rows"""
