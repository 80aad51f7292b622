"""Chooses the documents that are annotated next: those that are drawn and wait, then new ones, drawn uniformly."""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Collection, Sequence
from dataclasses import dataclass

import numpy as np

from kbpo.corpus.models import Document
from kbpo.instances.models import Target
from kbpo.instances.targets import Place, targets_at
from kbpo.sampling.documents import UNIFORM, CannotDraw
from kbpo.sampling.models import DocumentSample, TrackKey
from kbpo.tracks.models import Track


@dataclass(frozen=True)
class Chosen:
    """Documents to be annotated next: samples that wait, and documents that are to be drawn with this seed."""

    waiting: list[DocumentSample]
    new: list[int]
    seed: int

    @property
    def documents(self) -> list[int]:
        return [sample.document_id for sample in self.waiting] + self.new


def choose_documents(track: Track, n: int, ordered: Collection[int]) -> Chosen:
    """The next `n` documents of a track, without the samples that are ordered already: the same, until one is drawn.

    New ones are drawn uniformly from the rest of the corpus, so that with those before they are a uniform sample.
    Raises CannotDraw if there are not so many, or if the track's documents are drawn by another design: then they are
    drawn before they are ordered.
    """
    if n < 1:
        raise CannotDraw("Order at least one document.")
    mine = DocumentSample.objects.filter(track=track)
    open_ones = list(mine.filter(settled_at__isnull=True).exclude(pk__in=ordered))
    numbers = random_numbers(track, [one.document_id for one in open_ones])
    waiting = sorted(open_ones, key=lambda one: numbers[one.document_id])[:n]
    missing = n - len(waiting)
    if missing and mine.exclude(design=UNIFORM).exists():
        raise CannotDraw(
            f"{len(waiting):,} drawn documents wait to be annotated. This track draws its documents in two stages: "
            "draw more before you order more."
        )
    rest = Document.objects.filter(corpus=track.corpus).exclude(pk__in=mine.values("document"))
    left = list(rest.order_by("key").values_list("pk", flat=True)) if missing else []
    if missing > len(left):
        raise CannotDraw(f"Only {len(waiting) + len(left):,} documents are left; {n:,} cannot be ordered.")
    seed = _seed(track, mine.count())
    rng = np.random.Generator(np.random.PCG64(seed))
    new = rng.choice(len(left), size=missing, replace=False).tolist() if missing else []
    return Chosen(waiting, [left[at] for at in new], seed)


def draw_chosen(track: Track, chosen: Chosen) -> list[DocumentSample]:
    """The samples of chosen documents; new ones are drawn now. Inside the caller's transaction."""
    DocumentSample.objects.bulk_create(
        DocumentSample(track=track, document_id=pk, design=UNIFORM, probability=1.0, seed=chosen.seed)
        for pk in chosen.new
    )
    if chosen.new:
        mine = DocumentSample.objects.filter(track=track, design=UNIFORM)
        mine.update(probability=min(1.0, mine.count() / track.corpus.n_documents))
    return list(DocumentSample.objects.filter(track=track, document__in=chosen.documents))


def random_numbers(track: Track, documents: Sequence[int]) -> dict[int, float]:
    """document -> the random number of its target: the order in which documents are annotated."""
    places = {Place("document", pk): pk for pk in documents}
    targets = targets_at(track.corpus, list(places))
    u = dict(Target.objects.filter(pk__in=targets.values()).values_list("pk", "u"))
    return {pk: u[targets[place]] for place, pk in places.items()}


def _seed(track: Track, drawn: int) -> int:
    """The seed of the next draw: nobody can tell it before, and everybody can check it once the track is closed."""
    key, _ = TrackKey.objects.get_or_create(track=track)
    message = f"documents|{drawn}".encode()
    return int.from_bytes(hmac.new(key.secret.encode(), message, hashlib.sha256).digest()[:7], "big")
