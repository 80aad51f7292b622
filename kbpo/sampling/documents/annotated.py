"""Tells which annotated documents count for recall, and with which probability.

Those of a batch go out in random order, and one counts as soon as all before it are annotated or
given up: what is quick to annotate must not come first. The second of two stages counts when it is
complete; from then on a document of it has its probability given the first stage, and those of the
first stand for nothing but themselves.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable

import numpy as np

from kbpo.instances.models import Label
from kbpo.sampling.models import DocumentSample
from kbpo.tracks.models import Track
from scoring.documents import Annotated

LEAST = 2
"""Fewer documents than this in a stage have no variance."""


def annotated_documents(track: Track) -> Annotated:
    """Return the annotated documents of a track that count now."""
    document_samples = list(
        DocumentSample.objects.filter(track=track).order_by("stage", "batch", "position")
    )
    gone = abandoned_documents(
        row.document_id for row in document_samples if row.settled_at is None
    )
    first_stage, second_stage = (
        [row for row in document_samples if row.stage == stage] for stage in (1, 2)
    )
    if not second_stage or any(
        row.settled_at is None and row.document_id not in gone for row in second_stage
    ):
        counted = sorted(_without_gaps(first_stage, gone))
        return Annotated(counted, counted)
    chance = {row.document_id: _response_rate(first_stage) for row in first_stage if row.settled_at}
    chance |= {
        row.document_id: row.probability * _response_rate(second_stage)
        for row in second_stage
        if row.settled_at
    }
    documents = sorted(chance)
    stage_one = sorted(row.document_id for row in first_stage if row.settled_at)
    return Annotated(documents, stage_one, np.array([chance[document] for document in documents]))


def abandoned_documents(documents: Iterable[int]) -> set[int]:
    """Return those of some documents whose annotation was abandoned: their label is empty."""
    labels = Label.objects.filter(
        target__document__in=list(documents), target__kind="document", value={}
    )
    return set(labels.values_list("target__document", flat=True))


def _without_gaps(document_samples: list[DocumentSample], gone: set[int]) -> list[int]:
    """Return the annotated documents of each batch before its first unannotated one."""
    before_gaps: list[int] = []
    waits: dict[int | None, bool] = defaultdict(bool)
    for row in document_samples:
        if row.settled_at is None:
            waits[row.batch_id] |= row.document_id not in gone
        elif row.batch_id is None or not waits[row.batch_id]:
            before_gaps.append(row.document_id)
    return before_gaps


def _response_rate(document_samples: list[DocumentSample]) -> float:
    """Return the share of sampled documents that were annotated. Nonresponse is assumed to be
    random, as for questions.
    """
    return sum(row.settled_at is not None for row in document_samples) / max(
        len(document_samples), 1
    )
