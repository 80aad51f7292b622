"""Records labels. This module is the only writer of Label."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.db import connection

from kbpo import clock
from kbpo.corpus.models import Corpus
from kbpo.corpus.sql import fetch_rows
from kbpo.instances.merge import PEOPLE
from kbpo.instances.models import Label
from kbpo.queue import wake_step


@dataclass(frozen=True)
class NewLabel:
    """A judgment to be recorded as a label. `origin` names its source for people; a repeat of
    (target, origin) is ignored.
    """

    target_id: int
    value: dict[str, Any]
    source: str
    method: str
    n: int
    origin: str
    disagreement: float = 0.0
    question: int | None = None
    """The id of its question; None without a question"""
    again: int | None = None
    """Number of earlier aggregations of the question, if the label replaces their labels"""


PUBLIC = """
    SELECT t.id FROM instances_target t JOIN corpus_corpus c ON c.id = t.corpus_id
    WHERE t.id = ANY(%s) AND (t.is_dev OR c.opened_at IS NOT NULL) FOR SHARE OF c
"""
"""Targets with public judgments: those of the development part, and all targets of a corpus that is
open. The lock makes a closing wait until current writes are committed.
"""


def record_labels(labels: Iterable[NewLabel], *, is_public: bool = False) -> int:
    """Store labels and return how many were sent to the table; those with a known (target, origin)
    change nothing. With `is_public` they are public, e.g. judgments that were published elsewhere.
    """
    now, labels = clock.now(), list(labels)
    public = {pk for (pk,) in fetch_rows(PUBLIC, [[label.target_id for label in labels]])}
    rows = [
        Label(
            target_id=label.target_id,
            value=label.value,
            source=label.source,
            method=label.method,
            n=label.n,
            question=label.question,
            again=label.again,
            origin=label.origin,
            disagreement=label.disagreement,
            created_at=now,
            public_at=now if is_public or label.target_id in public else None,
        )
        for label in labels
    ]
    for row in rows:
        if row.source not in Label.Source.values:
            raise ValueError(
                f"{row.source!r} is not a source of labels; expected one of {Label.Source.values}"
            )
    Label.objects.bulk_create(rows, ignore_conflicts=True, batch_size=2000)
    if rows:
        wake_step("estimate")
    return len(rows)


RENAME = f"""
    UPDATE instances_label
    SET value = jsonb_set(value, '{{{PEOPLE}}}', replace(value ->> '{PEOPLE}', %s, %s)::jsonb)
    WHERE target_id = ANY(%s) AND position(%s IN value ->> '{PEOPLE}') > 0
"""


def rename_person(handle: str, replacement: str, target_ids: Iterable[int]) -> None:
    """Replace the keyed hash of the person who rated these targets. Their ratings are kept."""
    old, new = f'"{handle}"', f'"{replacement}"'
    with connection.cursor() as cursor:
        cursor.execute(RENAME, [old, new, list(target_ids), old])


def publish_labels(corpus: Corpus, public_from: datetime) -> int:
    """Make labels of a corpus public from `public_from` on, and return how many were not public
    before.
    """
    Corpus.objects.filter(pk=corpus.pk).update(opened_at=public_from)
    hidden = Label.objects.filter(target__corpus=corpus.pk, public_at__isnull=True)
    return hidden.update(public_at=public_from)
