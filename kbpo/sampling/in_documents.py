"""What reading whole documents and sweeping them did to a pool's targets: who was marked, asked, or
labelled before.

People mark what is true, so that a mark must not make a target known more often than a question
would have: each has a random number, by which it counts as often as questions beside it got an
answer (`kbpo.evaluation.default`).
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from kbpo.corpus.fetch import fetch
from kbpo.instances.merge import IN_PLACE
from kbpo.instances.models import Label
from kbpo.pool.pool import Pool
from kbpo.pool.random_numbers import numbers
from kbpo.sampling.inclusion import either
from kbpo.sampling.models import Sweep, SweepTarget
from kbpo.sampling.probabilities import Floats
from kbpo.sampling.seen import labelled_by
from kbpo.tracks.models import Track

Bools = NDArray[np.bool_]
NO_MARK, NEVER = -1.0, 2.0


@dataclass(frozen=True)
class InDocuments:
    """Of every target of a pool, shape (t,)."""

    marked: Bools
    """Readers marked it, in a document where what they did not mark may be true all the same"""
    mark: Floats
    """A random number in [0, 1) where only readers judged it; NEVER where somebody had been
    asked in vain besides; else NO_MARK"""
    covered: Bools
    """A settled sweep that nobody stopped covers it: it was asked, or marked, or labelled before"""
    asked: Bools
    """Of these, what was asked by a sweep"""

    @property
    def spared(self) -> Bools:
        """Nobody had to be asked about it."""
        return (self.mark >= 0) & (self.mark < NEVER)


def in_documents(track: Track, pool: Pool, in_scope: Bools) -> InDocuments:
    """What reading and sweeping did to each target of a pool; (t,) sweeps ask about what is in the
    scope.
    """
    marked, mark = _marks(track, pool)
    asked = SweepTarget.objects.filter(sweep__track=track, sweep__settled_at__isnull=False)
    covered = _covered(track, pool) & in_scope
    return InDocuments(
        marked, mark, covered, covered & _among(pool, asked.values_list("target_id", flat=True))
    )


def _marks(track: Track, pool: Pool) -> tuple[Bools, Floats]:
    rows = fetch(
        "SELECT target_id, bool_or(source <> ALL(%s) AND value <> '{}'::jsonb),"
        " bool_or(source <> ALL(%s) AND value = '{}'::jsonb)"
        f" FROM instances_label l WHERE target_id = ANY(%s) AND {IN_PLACE} GROUP BY target_id"
        " HAVING bool_or(source = ANY(%s) AND value <> '{}'::jsonb)",
        [
            list(Label.OF_DOCUMENTS),
            list(Label.OF_DOCUMENTS),
            pool.target_id.tolist(),
            list(Label.OF_DOCUMENTS),
        ],
    )
    open_ones = _not_closed(pool)
    rows = [row for row in rows if open_ones[np.searchsorted(pool.target_id, row[0])]]
    alone = np.array(sorted(target for target, judged, _ in rows if not judged), dtype=np.int64)
    mark = np.full(pool.target_id.size, NO_MARK)
    if alone.size:
        mark[np.searchsorted(pool.target_id, alone)] = numbers(track, "mark", alone)
    mark[_among(pool, [target for target, judged, in_vain in rows if in_vain and not judged])] = (
        NEVER
    )
    return _among(pool, [row[0] for row in rows]), mark


def _not_closed(pool: Pool) -> Bools:
    """(t,) whether a target lies in no document where what is not marked is false: there no mark
    says more.
    """
    documents = np.unique(pool.document).tolist()
    rows = Label.objects.filter(
        target__kind="document", target__document__in=documents, value__closed=True
    )
    return ~_inside(pool, set(rows.values_list("target__document", flat=True)))


def _inside(pool: Pool, documents: Collection[int]) -> Bools:
    found = np.zeros(pool.target_id.size, dtype=np.bool_)
    found[pool.target[np.isin(pool.document, list(documents))]] = True
    return found


def _among(pool: Pool, targets: Collection[int]) -> Bools:
    return np.isin(pool.target_id, list(targets))


def _settled(track: Track) -> list[Sweep]:
    return list(Sweep.objects.filter(track=track, settled_at__isnull=False).order_by("pk"))


def _stated(pool: Pool, sweep: Sweep) -> Bools:
    """(t,) the targets on which submissions of a sweep state anything."""
    submissions = set(sweep.submissions.values_list("pk", flat=True))
    columns = [at for at, system in enumerate(pool.systems) if system in submissions]
    found = np.zeros(pool.target_id.size, dtype=np.bool_)
    found[pool.target[np.asarray(pool.member[:, columns].sum(axis=1)).ravel() > 0]] = True
    return found


def _documents(sweep: Sweep) -> set[int]:
    return set(sweep.documents.values_list("document", flat=True))


def _covered(track: Track, pool: Pool) -> Bools:
    found = np.zeros(pool.target_id.size, dtype=np.bool_)
    for sweep in _settled(track):
        if sweep.stopped_at is not None:
            continue
        found |= _stated(pool, sweep) & _inside(pool, _documents(sweep))
    return found


def labelled_before(track: Track, pool: Pool) -> Floats:
    """(t,) the probability that a target was drawn and labelled (or given up) before a sweep would
    have asked about it, if it lies in a swept document: the sweep asks only about the others, and
    what is drawn of those later is not asked.

    Which sweep that is depends on the document, drawn from those that each was the first to cover,
    and on when the target was first stated: no sweep before that asked about it.
    """
    sweeps, known = _settled(track), set[int]()
    stated, chance = (
        [_stated(pool, one) for one in sweeps],
        [_labelled(track, pool, one) for one in sweeps],
    )
    total, n = np.zeros(pool.target_id.size), 0
    for at, sweep in enumerate(sweeps):
        first = _documents(sweep) - known
        known |= first
        there, todo = chance[-1].copy(), np.ones(pool.target_id.size, dtype=np.bool_)
        for later in range(at, len(sweeps)):
            there = np.where(todo & stated[later], chance[later], there)
            todo &= ~stated[later]
        total, n = total + there * len(first), n + len(first)
    return total / max(n, 1)


def _labelled(track: Track, pool: Pool, sweep: Sweep) -> Floats:
    """(t,) the probability that a target had a label of its own when a sweep was ordered."""
    return either(*labelled_by(pool, track, sweep.ordered_at, _stated(pool, sweep)))
