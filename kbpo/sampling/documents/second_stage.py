"""Draws the second stage of documents, in proportion to their mentions of the entities that people
found in the first stage.

Entities come from settled annotation (experts, imports, whole documents), never from a system's
linker or the corpus's own mentions; otherwise the systems' predictions would decide which documents
are read. A document is weighted by the TF-IDF of the entities' names, mixed with a uniform share,
so that every document has a positive probability. The probability is conditional on the first
stage, whose documents represent themselves.
"""

from __future__ import annotations

import logging
import secrets
from collections.abc import Sequence
from datetime import datetime
from typing import Any

import numpy as np
from django.db import transaction

from estimators.second_stage import (
    proportional_inclusion_probabilities,
    summed_tf_idf,
    systematic_sample,
)
from kbpo import clock
from kbpo.corpus.lookup import name_occurrences
from kbpo.corpus.models import Corpus, Document, Part
from kbpo.queue import wake_step
from kbpo.sampling.documents.draw import LEAST, TWO_STAGE, UNIFORM_SHARE, abandoned_documents
from kbpo.sampling.models import DocumentBatch, DocumentSample
from kbpo.tracks.models import Track
from kbpo.tracks.recall import kind_with_recall
from scoring.arrays import Floats

log = logging.getLogger(__name__)


def tick() -> int:
    """Draw the second stages that are due; return how many."""
    waiting = DocumentBatch.objects.filter(design=TWO_STAGE, stage=1).exclude(
        track__in=DocumentBatch.objects.filter(stage=2).values("track")
    )
    return sum(
        _draw_second_stage_or_log(document_batch.track)
        for document_batch in waiting.select_related("track__corpus").order_by("pk")
    )


def _draw_second_stage_or_log(track: Track) -> bool:
    try:
        return draw_second_stage(track) is not None
    except (
        Exception
    ):  # one track's bug must not keep the others waiting; the clock comes round again
        log.exception("The second stage of %s could not be drawn", track.name)
        return False


def draw_second_stage(track: Track, *, seed: int | None = None) -> DocumentBatch | None:
    """Draw the second stage and return it; None while the first is not annotated, or if it was
    drawn already.
    """
    if not _is_second_stage_due(track):
        return None
    when, seed = clock.now(), secrets.randbelow(2**31) if seed is None else seed
    document_batch = DocumentBatch.objects.get(track=track, design=TWO_STAGE, stage=1)
    before = _drawn_documents(track)
    size = min(document_batch.settings["both_stages"], track.corpus.n_test) - len(before)
    if size < LEAST:
        log.warning("The second stage of %s has nothing left to draw.", track.name)
        return None
    documents, pi, settings = _document_probabilities(
        track, before, size, when, document_batch.settings.get("uniform_share", UNIFORM_SHARE)
    )  # reads all texts: not while the track is locked
    with transaction.atomic():
        Track.objects.select_for_update().only("pk").get(pk=track.pk)
        if not _is_second_stage_due(track) or _drawn_documents(track) != before:
            return None
        batch = DocumentBatch.objects.create(
            track=track,
            design=TWO_STAGE,
            stage=2,
            size=size,
            seed=seed,
            settings=settings,
            user=document_batch.user,
            drawn_at=when,
        )
        rng = np.random.Generator(np.random.PCG64(seed))
        DocumentSample.objects.bulk_create(
            DocumentSample(
                track=track,
                batch=batch,
                document_id=documents[index],
                position=place,
                design=TWO_STAGE,
                stage=2,
                probability=min(1.0, float(pi[index])),
                seed=seed,
                drawn_at=when,
            )
            for place, index in enumerate(systematic_sample(pi, rng).tolist())
        )
        wake_step("documents")
    return batch


def document_tf_idf(corpus: Corpus, names: dict[str, int], documents: Sequence[int]) -> Floats:
    """Return the summed TF-IDF of entities in some documents; frequencies are those of the whole
    corpus.
    """
    total = corpus.n_test
    place: dict[int, int] = {}
    triples = [
        (place.setdefault(document, len(place)), code, number)
        for document, code, number in name_occurrences(corpus, names)
    ]
    if not triples:
        return np.zeros(len(documents))
    document, entity, count = (
        np.array(column, dtype=np.int64) for column in zip(*triples, strict=True)
    )
    weight = summed_tf_idf(document, entity, count, max(total, len(place)))
    return np.array(
        [weight[place[document]] if document in place else 0.0 for document in documents]
    )


def _document_probabilities(
    track: Track, drawn_before: set[int], size: int, moment: datetime, uniform: float
) -> tuple[list[int], Floats, dict[str, Any]]:
    """Return the documents that are not drawn yet, the probability of each, and the intermediate
    numbers of the computation.
    """
    test = Document.objects.filter(corpus=track.corpus_id, part=Part.TEST)
    left = test.exclude(pk__in=drawn_before).order_by("key")
    documents = list(left.values_list("pk", flat=True))
    names = kind_with_recall(track).read_entities(sorted(drawn_before), moment)
    weight = document_tf_idf(track.corpus, names, documents)
    settings = {
        "entities": len(set(names.values())),
        "naming_some": int((weight > 0).sum()),
        "uniform_share": uniform,
        "first_stage": len(drawn_before),
    }
    return documents, proportional_inclusion_probabilities(weight, size, uniform=uniform), settings


def _is_second_stage_due(track: Track) -> bool:
    """Return whether the first stage is annotated as far as possible and the second is not
    drawn.
    """
    batches = DocumentBatch.objects.filter(track=track, design=TWO_STAGE)
    if set(batches.values_list("stage", flat=True)) != {1}:
        return False
    document_samples = DocumentSample.objects.filter(track=track)
    waiting = set(
        document_samples.filter(settled_at__isnull=True).values_list("document_id", flat=True)
    )
    return document_samples.filter(
        settled_at__isnull=False
    ).exists() and not waiting - abandoned_documents(waiting)


def _drawn_documents(track: Track) -> set[int]:
    document_samples = DocumentSample.objects.filter(track=track)
    return set(document_samples.values_list("document_id", flat=True))
