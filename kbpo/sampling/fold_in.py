"""Tells which annotated documents bring the labels of predictions in them in, and for which
predictions that holds.

Two ways in: a target is drawn, or its document is. The second is a way only where all predictions
of a document get a label, whatever is true: where what is not marked is false (closed annotation),
or where all that was not marked is asked about (a sweep). Of a sweep that holds for what was stated
when it was ordered: whatever document it lies in, since otherwise the documents that were drawn
would decide which targets have two ways in.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from kbpo.instances.models import Label
from kbpo.pool.pool import Pool
from kbpo.sampling.annotated import Annotated
from kbpo.sampling.documents.draw import LEAST
from kbpo.sampling.models import Sweep, SweepTarget
from kbpo.sampling.seen import Seen
from kbpo.tracks.models import Track
from kbpo.tracks.recall import Facts

Bools = NDArray[np.bool_]
LEAST_ANSWERED = 0.5
"""If less of a sweep was answered, what is known in the documents is mostly what was marked, and
true: nothing comes in with them."""


@dataclass(frozen=True)
class FoldIn:
    """The documents that are a second way in, and what of them is known."""

    documents: list[int] = field(default_factory=list)
    """All annotated documents that count, or none"""
    closed: bool = False
    """What is not marked in them is false: nobody misses anything, and everything has this way
    in"""
    swept: frozenset[int] | None = None
    """Submissions all of whose predictions in the annotated documents were asked about, also
    where documents are no way in, since they were drawn with unequal probabilities; None: no
    sweep covers the documents"""

    answered: float = 1.0
    """The share of what sweeps asked that got an answer"""

    def stated(self, pool: Pool, aware: Collection[int] = ()) -> Bools:
        """(u,) the instances of a pool that were asked about wherever they lie in annotated
        documents: those that submissions of the sweep state, of columns that are not `aware`.
        """
        swept = self.swept or frozenset()
        return _of(
            pool,
            [at for at, system in enumerate(pool.systems) if system in swept and at not in aware],
        )

    def unasked(self, pool: Pool, column: int) -> Bools:
        """(t,) the targets of which a column states something that no submission of the sweep
        states.
        """
        found = np.zeros(pool.target_id.size, dtype=np.bool_)
        if not self.closed:
            found[pool.target[_of(pool, [column]) & ~self.stated(pool)]] = True
        return found

    def eligible(self, pool: Pool, in_scope: Bools, aware: Collection[int] = ()) -> Bools:
        """(t,) the targets of a pool for which documents are a way in, of those (t,) in the scope.

        Everything that is stated of such a target was asked about: if a later submission states
        another relation of a pair, that is known just where readers marked no other, and so the
        target has no such way in.
        `aware` are columns whose teams could know, when they decided, which documents were read:
        what they state makes nothing eligible for others, and nothing ineligible, since it may
        depend on that.
        """
        if self.closed:
            return np.ones(pool.target_id.size, dtype=np.bool_)
        asked, swept = self.stated(pool, aware), self.swept or frozenset()
        later = _of(
            pool,
            [
                at
                for at, system in enumerate(pool.systems)
                if system not in swept and at not in aware
            ],
        )
        found = np.zeros(pool.target_id.size, dtype=np.bool_)
        found[pool.target[asked]] = True
        found[pool.target[later & ~asked]] = False
        return found & in_scope


def _of(pool: Pool, columns: list[int]) -> Bools:
    """(u,) whether one of some columns states each instance."""
    return np.asarray(np.asarray(pool.member[:, columns].sum(axis=1)).ravel() > 0)


def in_scope(pool: Pool, facts: Facts | None) -> Bools:
    """(t,) whether recall asks for relations of each target."""
    found = np.zeros(pool.target_id.size, dtype=np.bool_)
    if facts is not None:
        found[pool.target] = facts.in_scope
    return found


def aware(found: Mapping[int, Seen]) -> set[int]:
    """Columns whose teams could know which documents were read when they decided."""
    return {column for column, one in found.items() if one.beta > 0}


def fold_in(track: Track, documents: Annotated) -> FoldIn:
    """What the annotated documents that count bring in, as everything stands now."""
    uniform = documents.documents if documents.inclusion is None else []
    enough = uniform if len(uniform) >= LEAST else []
    if uniform and _closed(uniform):
        return FoldIn(enough, closed=True)
    sweep = covering(track, documents.documents)
    if sweep is None:
        return FoldIn()
    share, swept = share_answered(track), frozenset(sweep.submissions.values_list("pk", flat=True))
    return FoldIn(enough if share >= LEAST_ANSWERED else [], swept=swept, answered=share)


def share_answered(track: Track) -> float:
    """The share of what sweeps of a track asked, and are done with, that got an answer; 1 if that
    is nothing. What was stopped was not asked.
    """
    asked = SweepTarget.objects.filter(sweep__track=track, done_at__isnull=False).values("target")
    labels = Label.objects.filter(target__in=asked).exclude(source__in=Label.OF_DOCUMENTS)
    n, answers = (
        some.values("target").distinct().count() for some in (labels, labels.exclude(value={}))
    )
    return answers / n if n else 1.0


def covering(track: Track, documents: Collection[int]) -> Sweep | None:
    """The last settled sweep of a track that nobody stopped, if it covers just these documents."""
    last = (
        Sweep.objects.filter(track=track, settled_at__isnull=False, stopped_at=None)
        .order_by("-pk")
        .first()
    )
    if last is None or not documents:
        return None
    covered = set(last.documents.values_list("document", flat=True))
    return last if covered == set(documents) else None


def _closed(documents: list[int]) -> bool:
    """Whether in all of the documents what is not marked is false; people miss facts."""
    rows = Label.objects.filter(
        target__kind="document", target__document__in=documents, value__closed=True
    )
    return set(rows.values_list("target__document", flat=True)) == set(documents)
