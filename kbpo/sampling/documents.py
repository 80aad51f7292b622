"""Draws documents to be annotated whole, and settles them when they are."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
from django.db import transaction
from django.utils import timezone

from kbpo.corpus.models import Document
from kbpo.sampling.models import DocumentSample
from kbpo.tracks.models import Track

UNIFORM = "uniform"


class CannotDraw(ValueError):
    """Documents that cannot be drawn; the text is a sentence."""


def draw_documents(track: Track, size: int, seed: int) -> list[int]:
    """The numbers of `size` documents, drawn uniformly without replacement; the same seed gives the same draw."""
    keys = list(Document.objects.filter(corpus=track.corpus).order_by("key").values_list("pk", flat=True))
    if not 1 <= size <= len(keys):
        raise CannotDraw(f"The corpus has {len(keys):,} documents; {size:,} cannot be drawn from them.")
    chosen = np.random.Generator(np.random.PCG64(seed)).choice(len(keys), size=size, replace=False)
    return [keys[at] for at in sorted(chosen.tolist())]


def named_documents(track: Track, keys: Iterable[str]) -> list[int]:
    """The numbers of documents named by their keys. Raises CannotDraw for one that the corpus does not have."""
    wanted = list(dict.fromkeys(keys))
    found = dict(Document.objects.filter(corpus=track.corpus, key__in=wanted).values_list("key", "pk"))
    if missing := [key for key in wanted if key not in found]:
        raise CannotDraw(f"The corpus has no document {missing[0]}{_and_more(len(missing) - 1)}.")
    if not wanted:
        raise CannotDraw("No document is named.")
    return [found[key] for key in wanted]


@transaction.atomic
def settle_documents(track: Track, documents: Sequence[int], *, seed: int | None = None) -> int:
    """How many documents of the track count as annotated whole, these included.

    They are taken for a uniform sample: each has the probability n/D, with n the number of all of them. A repeat
    changes nothing.
    """
    Track.objects.select_for_update().only("pk").get(pk=track.pk)  # the probability depends on all of them
    now, total = timezone.now(), track.corpus.n_documents
    rows = [
        DocumentSample(track=track, document_id=pk, design=UNIFORM, probability=1.0, seed=seed, settled_at=now)
        for pk in documents
    ]
    DocumentSample.objects.bulk_create(rows, ignore_conflicts=True, batch_size=2000)
    mine = DocumentSample.objects.filter(track=track, design=UNIFORM)
    mine.filter(document__in=documents, settled_at__isnull=True).update(settled_at=now)
    n = mine.count()
    mine.update(probability=n / total)
    return n


def _and_more(number: int) -> str:
    return f", nor {number:,} others" if number else ""
