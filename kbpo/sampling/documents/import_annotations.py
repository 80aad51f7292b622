"""Imports exhaustive annotation of documents as labels, from the command line or the browser, so
that recall can be measured before anybody annotates here.
"""

from __future__ import annotations

import hashlib
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

from django.db import transaction

from kbpo.corpus.load import CannotLoad
from kbpo.corpus.models import Corpus, Document
from kbpo.corpus.upload import Found, process_uploads
from kbpo.instances.merge import Value
from kbpo.instances.models import Label
from kbpo.instances.record import NewLabel, record_labels
from kbpo.instances.targets import Place, make_targets
from kbpo.queue import OwnersFault
from kbpo.sampling.documents.draw import (
    CannotDraw,
    draw_documents,
    settle_documents,
    waiting_documents,
)
from kbpo.sampling.models import AnnotationUpload
from kbpo.tracks.models import Track
from kbpo.tracks.recall import kind_with_recall

CHUNK = 5_000
METHOD = "gold"
Values = Iterator[tuple[Place, Value]]


@dataclass(frozen=True)
class ImportCounts:
    """The counts of an import."""

    labels: Mapping[str, int]
    """What is labelled, in words -> number of labels"""
    documents: int
    unmarked: int
    """Number of imported documents without any mark"""
    annotated: int
    """Number of documents of the track that are annotated now"""
    lacking: int = 0
    """Number of mentions in relations that the file of mentions lacks"""
    first_lacking: int = 0
    """Line of the first such mention"""


@transaction.atomic
def import_annotations(
    track: Track,
    gold: Path,
    mentions: Path,
    documents: Sequence[int],
    *,
    closed: bool = False,
    seed: int | None = None,
    is_public: bool = False,
) -> ImportCounts:
    """Import annotations of these documents, mark the documents as settled, and return the counts.
    All or nothing; a repetition changes nothing.

    Marked relations are true. Unmarked ones are missing, unless the annotation is `closed`: then
    they are false, which only the label of the document states. The files may cover more documents.
    Mentions in relations that the file of mentions lacks are counted, not refused. Raises
    CannotLoad (kbpo.corpus.load). With `is_public` the annotation was published elsewhere, so
    everybody may see it; later runs carry a mark.
    """
    corpus = track.corpus
    origin = f"import:{_content_digest(gold, mentions)}"
    marks = kind_with_recall(track).read_marks(gold, mentions, documents)
    marked: set[int] = set()
    labels = {
        what: _record_labels(corpus, origin, _collect_documents(marked, values), is_public)
        for what, values in marks.values.items()
    }
    whole = {"scope": "document", "closed": closed}
    of_documents = ((Place("document", pk), whole) for pk in documents)
    _record_labels(corpus, f"{origin}:{'closed' if closed else 'open'}", of_documents, is_public)
    return ImportCounts(
        labels,
        documents=len(set(documents)),
        unmarked=len(set(documents) - marked),
        annotated=settle_documents(track, documents, seed=seed),
        lacking=len(marks.lacking),
        first_lacking=min(marks.lacking.values(), default=0),
    )


def _collect_documents(marked: set[int], values: Values) -> Values:
    """Yield the values unchanged, and add their documents to `marked`."""
    for place, value in values:
        marked.add(place.document)
        yield place, value


def _record_labels(corpus: Corpus, origin: str, values: Values, is_public: bool) -> int:
    """Record values as labels, some thousands at a time, and return their number."""
    total = 0
    while chunk := list(islice(values, CHUNK)):
        targets = make_targets(corpus, [place for place, _ in chunk])
        source = Label.Source.IMPORT
        labels = (
            NewLabel(targets[place], value, source, METHOD, 1, origin) for place, value in chunk
        )
        record_labels(labels, is_public=is_public)
        total += len(chunk)
    return total


def _content_digest(*paths: Path) -> str:
    """Return a short digest of the files' contents."""
    digest = hashlib.sha256()
    for path in paths:
        if path.exists():
            digest.update(hashlib.sha256(path.read_bytes()).digest())
    return digest.hexdigest()[:16]


def tick() -> int:
    """Check uploaded annotations by a trial load, or load those that an admin confirmed; return how
    many.
    """
    return process_uploads(AnnotationUpload, _load_upload)


def _load_upload(upload: AnnotationUpload) -> Found:
    """Load one upload and return its counts. Raises CannotLoad, or OwnersFault if the file matches
    no sampled document.
    """
    try:
        done = import_annotations(
            upload.track,
            Path(upload.file.path),
            Path(upload.mentions.path),
            _annotated_documents(upload),
            closed=upload.closed,
            seed=upload.seed if upload.which == AnnotationUpload.Which.SAMPLE else None,
            is_public=upload.is_public,
        )
    except CannotDraw as refusal:
        raise OwnersFault(str(refusal)) from None
    found: Found = {
        "documents": done.documents,
        **done.labels,
        "annotated in all": done.annotated,
    }
    if done.unmarked:
        found[upload.UNMARKED] = done.unmarked
    if done.lacking:
        found[upload.LACKING] = done.lacking
        found[upload.FIRST_LACKING] = done.first_lacking
    return found


def _annotated_documents(upload: AnnotationUpload) -> list[int]:
    """Return the documents that are annotated. Raises CannotDraw, CannotLoad."""
    if upload.which == AnnotationUpload.Which.SAMPLE:
        return draw_documents(upload.track, upload.size or 0, upload.seed)
    if upload.which == AnnotationUpload.Which.ALL:
        documents = Document.objects.filter(corpus=upload.track.corpus)
        return list(documents.order_by("pk").values_list("pk", flat=True))
    if waiting := waiting_documents(upload.track):
        return waiting
    # Read the files, so that wrong lines are reported first.
    marks = kind_with_recall(upload.track).read_marks(
        Path(upload.file.path), Path(upload.mentions.path), ()
    )
    for values in marks.values.values():
        deque(values, maxlen=0)
    raise CannotLoad("No document was drawn and waits: draw some first.")
