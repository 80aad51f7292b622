"""Draws documents to be read in full, settles them when they were read, and selects those used for
recall.

Design uniform: n of D without replacement; more may follow at any time, and all of them together
are again a uniform sample. Design two_stage: a fifth is uniform; once it is annotated,
`second_stage` draws the others.

Documents of a batch are assigned in random order. A document is used as soon as all before it are
annotated or ended without annotation; otherwise documents that are quick to annotate would come
first. The second of two stages is used when it is complete. From then on its documents have their
probabilities conditional on the first stage, and documents of the first stage represent only
themselves.
"""

from __future__ import annotations

import math
import secrets
from collections import defaultdict
from collections.abc import Iterable, Sequence

import numpy as np
from django.db import transaction

from kbpo import clock
from kbpo.accounts.audit import COMMAND, write_audit_entry
from kbpo.accounts.models import User
from kbpo.corpus.models import Document, Part
from kbpo.instances.models import Label
from kbpo.queue import wake_step
from kbpo.sampling.models import DocumentBatch, DocumentSample
from kbpo.tracks.models import Track
from scoring.documents import Annotated

UNIFORM_SHARE = 0.5
"""Default share of the second stage's probabilities that is uniform: no document weighs more than
twice as much as in a uniform draw."""
LEAST_UNIFORM = 0.1
"""Smallest uniform share; with less, single documents could weigh more than ten times as much."""
UNIFORM, TWO_STAGE = DocumentBatch.Design.UNIFORM, DocumentBatch.Design.TWO_STAGE
FIRST_SHARE = 0.2
"""Share of the documents that the first of two stages draws."""


class CannotDraw(ValueError):
    """Raised for documents that cannot be drawn; the text is a sentence."""


def draw_documents(track: Track, size: int, seed: int) -> list[int]:
    """Return the primary keys of `size` documents, drawn uniformly without replacement; the same
    seed gives the same draw.
    """
    keys = list(
        Document.objects.filter(corpus=track.corpus, part=Part.TEST)
        .order_by("key")
        .values_list("pk", flat=True)
    )
    if not 1 <= size <= len(keys):
        raise CannotDraw(
            f"The corpus has {len(keys):,} documents; {size:,} cannot be drawn from them."
        )
    chosen = np.random.Generator(np.random.PCG64(seed)).choice(len(keys), size=size, replace=False)
    return [keys[place] for place in sorted(chosen.tolist())]


def named_documents(track: Track, keys: Iterable[str]) -> list[int]:
    """Return the primary keys of documents with these keys. Raises CannotDraw if the corpus does
    not have one of them.
    """
    wanted = list(dict.fromkeys(keys))
    number_of = dict(
        Document.objects.filter(corpus=track.corpus, key__in=wanted, part=Part.TEST).values_list(
            "key", "pk"
        )
    )
    if missing := [key for key in wanted if key not in number_of]:
        raise CannotDraw(
            f"The test part of the corpus has no document {missing[0]}"
            f"{_and_more_text(len(missing) - 1)}."
        )
    if not wanted:
        raise CannotDraw("No document is named.")
    return [number_of[key] for key in wanted]


def waiting_documents(track: Track) -> list[int]:
    """Return the documents that were drawn and are not annotated yet, in the order of
    assignment.
    """
    document_samples = DocumentSample.objects.filter(track=track, settled_at__isnull=True)
    return list(
        document_samples.order_by("stage", "batch", "position").values_list(
            "document_id", flat=True
        )
    )


@transaction.atomic
def order_documents(
    track: Track,
    size: int,
    design: str = UNIFORM,
    *,
    seed: int | None = None,
    uniform_share: float = UNIFORM_SHARE,
    user: User | None = None,
    why: str = COMMAND,
) -> DocumentBatch:
    """Draw documents and return the batch. With two stages, `size` includes both, and documents
    that were drawn uniformly before form the first; `uniform_share` of the second stage's
    probabilities is uniform.

    Raises CannotDraw.
    """
    _lock_document_draws(track)
    drawn = set(DocumentSample.objects.filter(track=track).values_list("document_id", flat=True))
    _check_order(track, size, design, len(drawn))
    now, seed = clock.now(), secrets.randbelow(2**31) if seed is None else seed
    number, settings = size, dict[str, float]()
    if design == TWO_STAGE:
        number = max(0, first_stage_size(size) - len(drawn))
        if not LEAST_UNIFORM <= uniform_share <= 1:
            raise CannotDraw(
                f"The uniform share of the second stage must be from {LEAST_UNIFORM} to 1; got"
                f" {uniform_share:g}."
            )
        settings = {"both_stages": size, "uniform_share": uniform_share}
    batch = DocumentBatch.objects.create(
        track=track,
        design=design,
        stage=1,
        size=number,
        seed=seed,
        settings=settings,
        user=user,
        drawn_at=now,
    )
    chosen = documents_of_uniform_draw(batch)
    DocumentSample.objects.bulk_create(
        DocumentSample(
            track=track,
            batch=batch,
            document_id=pk,
            position=position,
            design=UNIFORM,
            probability=1.0,
            seed=seed,
            drawn_at=now,
        )
        for position, pk in enumerate(chosen)
    )
    _store_uniform_probabilities(track)
    write_audit_entry(
        "draw documents",
        f"track:{track.slug}",
        who=user,
        why=why,
        track=track.slug,
        after=f"{len(chosen)} documents, {design}, seed {seed}",
    )
    wake_step("documents")
    return batch


def describe_draw(batch: DocumentBatch) -> str:
    """Return one or two sentences on the documents that an order drew and on the next step."""
    track, settings = batch.track, batch.settings
    drew = f"Drew {batch.size:,} documents of {track.name} (seed {batch.seed})."
    if batch.design != TWO_STAGE:
        return f"{drew} They wait to be annotated."
    if batch.size:
        return f"{drew} The second stage is drawn when they are annotated."
    drawn = DocumentSample.objects.filter(track=track).count()
    return (
        f"The {drawn:,} documents of {track.name} that were drawn before are the first stage. The"
        f" second, {settings['both_stages'] - drawn:,} more, is drawn when all of them are"
        " annotated, at once where they are."
    )


def first_stage_size(size: int) -> int:
    """Return how many documents of a two-stage draw the first stage draws."""
    return max(LEAST, math.ceil(FIRST_SHARE * size - 1e-9))


def documents_of_uniform_draw(batch: DocumentBatch) -> list[int]:
    """Return the documents of a uniform draw in their random order, recomputed from its seed."""
    before = DocumentSample.objects.filter(track=batch.track_id, drawn_at__lt=batch.drawn_at)
    left = Document.objects.filter(corpus=batch.track.corpus_id, part=Part.TEST).exclude(
        pk__in=before.values("document_id")
    )
    keys = list(left.order_by("key").values_list("pk", flat=True))
    order = np.random.Generator(np.random.PCG64(batch.seed)).permutation(len(keys))
    return [keys[place] for place in order[: batch.size].tolist()]


def _check_order(track: Track, size: int, design: str, drawn: int) -> None:
    """Raise CannotDraw if such an order cannot be drawn."""
    total = track.corpus.n_test
    if design not in DocumentBatch.Design.values:
        raise CannotDraw(
            f"There is no design {design}; there are {', '.join(DocumentBatch.Design.values)}."
        )
    if has_two_stages(track):
        raise CannotDraw(
            f"The documents of {track.name} are drawn in two stages: what is added later would have"
            " no probability."
        )
    if design == UNIFORM and not 1 <= size <= total - drawn:
        raise CannotDraw(
            f"The corpus has {total:,} documents, {drawn:,} of them drawn already; {size:,} more"
            " cannot be drawn."
        )
    if design == TWO_STAGE and not 2 * LEAST <= size <= total:
        raise CannotDraw(
            f"Two stages draw between {2 * LEAST} and {total:,} documents; {size:,}"
            " cannot be drawn."
        )
    if design == TWO_STAGE and size - max(first_stage_size(size), drawn) < LEAST:
        raise CannotDraw(
            f"{drawn:,} documents are drawn already: of {size:,} in both stages together fewer"
            f" than {LEAST} are left for the second."
        )


def has_two_stages(track: Track) -> bool:
    """Return whether the track's documents are drawn in two stages."""
    return DocumentBatch.objects.filter(track=track, design=TWO_STAGE).exists()


@transaction.atomic
def settle_documents(track: Track, documents: Sequence[int], *, seed: int | None = None) -> int:
    """Mark documents as read in full, and return how many documents of the track are read in full
    now. A repeat changes nothing.

    Drawn documents keep their probabilities. Others are treated as a uniform sample: each then has
    n/D, with n the number of all uniform ones. Raises CannotDraw for others if documents are drawn
    in two stages.
    """
    _lock_document_draws(track)  # the probability depends on all of them
    now = clock.now()
    drawn = set(DocumentSample.objects.filter(track=track).values_list("document_id", flat=True))
    new = [pk for pk in documents if pk not in drawn]
    if new and has_two_stages(track):
        raise CannotDraw(
            f"The documents of {track.name} are drawn in two stages; {len(new):,} of these were not"
            " drawn, and so have no probability."
        )
    DocumentSample.objects.bulk_create(
        (
            DocumentSample(
                track=track,
                document_id=pk,
                design=UNIFORM,
                probability=1.0,
                seed=seed,
                settled_at=now,
            )
            for pk in dict.fromkeys(new)
        ),
        batch_size=2000,
    )
    mine = DocumentSample.objects.filter(track=track)
    mine.filter(document__in=documents, settled_at__isnull=True).update(settled_at=now)
    _store_uniform_probabilities(track)
    wake_step("documents")
    return mine.filter(settled_at__isnull=False).count()


def _lock_document_draws(track: Track) -> None:
    Track.objects.select_for_update().only("pk").get(pk=track.pk)


def _store_uniform_probabilities(track: Track) -> None:
    """Store the probability n/D of every uniformly drawn document."""
    mine = DocumentSample.objects.filter(track=track, design=UNIFORM)
    mine.update(probability=mine.count() / track.corpus.n_test if mine.exists() else 1.0)


def _and_more_text(number: int) -> str:
    return f", nor {number:,} others" if number else ""


LEAST = 2
"""Number of documents in a stage below which there is no variance"""


def annotated_documents(track: Track) -> Annotated:
    """Return the annotated documents of a track that are used now."""
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
        counted = sorted(_annotated_before_first_gap(first_stage, gone))
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
    """Return the documents whose annotation ended without a result: their label is empty."""
    labels = Label.objects.filter(
        target__document__in=list(documents), target__kind="document", value={}
    )
    return set(labels.values_list("target__document", flat=True))


def _annotated_before_first_gap(
    document_samples: list[DocumentSample], gone: set[int]
) -> list[int]:
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
