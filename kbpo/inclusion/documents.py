"""The route by documents that were drawn uniformly and annotated whole.

It is one only where all predictions of a document get a label, whatever is true: where what is not
marked is false (closed annotation), or where all that was not marked is asked about (an exhaustive
follow-up). Of a follow-up that holds for what was predicted when it was ordered: whatever document
it lies in, since otherwise the documents that were drawn would decide which targets have this
route.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property

import numpy as np

from kbpo.inclusion.annotated import LEAST
from kbpo.inclusion.route import Moment, Route
from kbpo.instances.models import Label
from kbpo.sampling.models import DocumentSample, FollowUp, FollowUpTarget
from kbpo.tracks.models import Track
from scoring.arrays import Bools, Floats, Ids
from scoring.documents import Annotated, KnownDocuments
from scoring.pool import Pool

LEAST_ANSWERED = 0.5
"""If less of a follow-up was answered, what is known in the documents is mostly what was marked,
and true: nothing comes in with them.
"""


def known_documents(track: Track, documents: Annotated) -> KnownDocuments:
    """Return what the annotated documents that count bring in, as everything stands now."""
    uniform = documents.documents if documents.inclusion is None else []
    enough = uniform if len(uniform) >= LEAST else []
    if uniform and _closed(uniform):
        return KnownDocuments(enough, closed=True)
    follow_up = covering(track, documents.documents)
    if follow_up is None:
        return KnownDocuments()
    share = share_answered(track)
    followed = frozenset(follow_up.submissions.values_list("pk", flat=True))
    kept = enough if share >= LEAST_ANSWERED else []
    return KnownDocuments(kept, followed=followed, answered=share)


@dataclass(frozen=True, eq=False)
class Documents(Route):
    """The route by annotated `documents` of a track, for the `eligible` targets of a pool."""

    track: Track
    pool: Pool
    documents: Sequence[int]
    eligible: Bools

    @property
    def share(self) -> float:
        """The probability with which each of the documents was annotated."""
        return self.track.corpus.share(len(self.documents))

    @cached_property
    def cluster(self) -> Ids:
        """(t,) Position of each target's document among `documents`; −1: in none of them, or they
        are no route for it.
        """
        document_place = np.full(self.pool.target_id.size, -1, dtype=np.int64)
        rows = np.flatnonzero(np.isin(self.pool.document, self.documents))
        order = np.argsort(self.documents)
        ascending = np.asarray(self.documents)[order]
        place = order[np.searchsorted(ascending, self.pool.document[rows])] if rows.size else rows
        document_place[self.pool.target[rows]] = place
        return np.where(self.eligible, document_place, -1)

    def chance(self) -> Floats:
        return np.where(self.eligible, self.share, 0.0)

    def at(self, moment: Moment) -> Floats:
        read = annotated_by(self.track, self.documents, moment.when)
        return np.where(self.eligible, self.track.corpus.share(len(read)), 0.0)

    def realised(self) -> Bools:
        return np.asarray(self.cluster >= 0)


def annotated_by(track: Track, documents: Sequence[int], when: datetime) -> list[int]:
    """Return those of the documents whose annotation was complete by a moment."""
    settled = DocumentSample.objects.filter(
        track=track, document__in=documents, settled_at__lte=when
    )
    return list(settled.values_list("document_id", flat=True))


def inside(pool: Pool, documents: Collection[int]) -> Bools:
    """Return (t,) whether each target lies in one of some documents."""
    is_inside = np.zeros(pool.target_id.size, dtype=np.bool_)
    is_inside[pool.target[np.isin(pool.document, list(documents))]] = True
    return is_inside


def share_answered(track: Track) -> float:
    """Return the share of what follow-ups of a track asked, and are done with, that got an answer;
    1 if that is nothing. What was stopped was not asked.
    """
    asked = FollowUpTarget.objects.filter(follow_up__track=track, done_at__isnull=False).values(
        "target"
    )
    labels = Label.objects.filter(target__in=asked).exclude(source__in=Label.OF_DOCUMENTS)
    n = labels.values("target").distinct().count()
    answers = labels.exclude(value={}).values("target").distinct().count()
    return answers / n if n else 1.0


def covering(track: Track, documents: Collection[int]) -> FollowUp | None:
    """Return the last settled follow-up of a track that nobody stopped, if it covers just these
    documents.
    """
    last = (
        FollowUp.objects.filter(track=track, settled_at__isnull=False, stopped_at=None)
        .order_by("-pk")
        .first()
    )
    if last is None or not documents:
        return None
    covered = set(last.documents.values_list("document", flat=True))
    return last if covered == set(documents) else None


def _closed(documents: list[int]) -> bool:
    """Whether what is not marked is false in all of the documents, as imports can say."""
    closed_labels = Label.objects.filter(
        target__kind="document", target__document__in=documents, value__closed=True
    )
    return set(closed_labels.values_list("target__document", flat=True)) == set(documents)
