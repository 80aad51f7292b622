"""Loads annotations of whole documents that came through the browser, as trial and for good."""

from __future__ import annotations

from collections import deque
from pathlib import Path

from kbpo.corpus.load import CannotLoad
from kbpo.corpus.models import Document
from kbpo.corpus.upload import Found, process_uploads
from kbpo.queue import OwnersFault
from kbpo.sampling.documents.draw import CannotDraw, draw_documents, waiting_documents
from kbpo.sampling.documents.import_annotations import import_annotations
from kbpo.sampling.models import AnnotationUpload
from kbpo.tracks.recall import kind_with_recall


def tick() -> int:
    """Return how many uploads were tried or loaded."""
    return process_uploads(AnnotationUpload, _load)


def _load(row: AnnotationUpload) -> Found:
    """Load one upload and return its counts. Raises CannotLoad, or OwnersFault where the file
    matches no sampled document.
    """
    try:
        done = import_annotations(
            row.track,
            Path(row.file.path),
            Path(row.mentions.path),
            _documents(row),
            closed=row.closed,
            seed=row.seed if row.which == AnnotationUpload.Which.SAMPLE else None,
            is_public=row.is_public,
        )
    except CannotDraw as refusal:
        raise OwnersFault(str(refusal)) from None
    found: Found = {
        "documents": done.documents,
        **done.labels,
        "annotated in all": done.annotated,
    }
    if done.unmarked:
        found[row.UNMARKED] = done.unmarked
    if done.lacking:
        found[row.LACKING] = done.lacking
        found[row.FIRST_LACKING] = done.first_lacking
    return found


def _documents(row: AnnotationUpload) -> list[int]:
    """Return the documents that are annotated. Raises CannotDraw, CannotLoad."""
    if row.which == AnnotationUpload.Which.SAMPLE:
        return draw_documents(row.track, row.size or 0, row.seed)
    if row.which == AnnotationUpload.Which.ALL:
        documents = Document.objects.filter(corpus=row.track.corpus)
        return list(documents.order_by("pk").values_list("pk", flat=True))
    if waiting := waiting_documents(row.track):
        return waiting
    _read_all(row)
    raise CannotLoad("No document was drawn and waits: draw some first.")


def _read_all(row: AnnotationUpload) -> None:
    """Read the files, so that wrong lines are reported first. Raises CannotLoad."""
    marks = kind_with_recall(row.track).read_marks(Path(row.file.path), Path(row.mentions.path), ())
    for values in marks.values.values():
        deque(values, maxlen=0)
