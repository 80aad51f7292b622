"""What samples reach, kept in the cache for as long as nothing that it is made from has changed.

Simulating a hundred times a thousand draws takes seconds: too long for every look at a page.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from hashlib import sha256
from typing import TypeVar

from django.core.cache import cache
from django.db.models import Count, Max

from kbpo.evaluation.studies.reach import Reach, Sharing, reach, read_incidence, sharing
from kbpo.sampling.models import DocumentSample
from kbpo.submissions.models import Submission
from kbpo.tracks.models import Track
from kbpo.tracks.recall import kind_with_recall

KEPT = 30 * 24 * 3600
"""Seconds; who does not come back for a month waits once more."""
VERSION = 3
"""To be raised with every change of what is computed"""
T = TypeVar("T")


@dataclass(frozen=True)
class Entities:
    """What is told of the entities of a track's corpus: how frequent they are, and what drawn
    documents share.
    """

    source: str
    by_frequency: list[tuple[int, int]]
    limits: tuple[float, float]
    sharing: list[Sharing]


def entities_of(track: Track) -> Entities | None:
    """The entities of a track; None if none is known."""

    def compute() -> Entities | None:
        incidence = read_incidence(track)
        if incidence is None:
            return None
        return Entities(
            incidence.source, incidence.by_frequency(), incidence.limits, sharing(incidence)
        )

    return _kept(["entities_of", *_state_of(track)], compute)


def reach_of(submission: Submission) -> list[Reach]:
    """What draws of a submission reach under every distribution."""
    own = [
        submission.pk,
        submission.received_at,
        submission.sampled_at,  # after a restore of the database it may be sampled anew
        submission.file_digest,
        submission.predictions.count(),
    ]
    return _kept(["reach", *own, *_state_of(submission.track)], lambda: reach(submission))


def _state_of(track: Track) -> list[object]:
    """What entities are told from: the corpus with the mentions that came with it, or what people
    found since.
    """
    corpus = track.corpus
    read = DocumentSample.objects.filter(track=track, settled_at__isnull=False)
    settled = read.aggregate(Count("pk"), Max("settled_at"))
    named = kind_with_recall(track).entities_known(list(read.values_list("document_id", flat=True)))
    of_rows = [*sorted(settled.items()), *named]
    return [corpus.pk, corpus.loaded_at, corpus.n_documents, track.pk, track.created_at, *of_rows]


def _kept(state: list[object], compute: Callable[[], T]) -> T:
    key = f"reach:{VERSION}:{sha256(repr(state).encode()).hexdigest()}"
    stored = cache.get(key)
    if stored is None:
        stored = (compute(),)  # in a tuple: that there is nothing can be known too
        cache.set(key, stored, KEPT)
    value: T = stored[0]
    return value
