"""Reads how a pool's targets were sampled. This is the only module that combines the designs."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from django.db.models import QuerySet

from estimators.horvitz_thompson import iid_inclusion_probabilities
from kbpo.corpus.cache import Arrays, cached_arrays
from kbpo.corpus.sql import fetch_arrays, fetch_rows
from kbpo.instances.merge import IN_PLACE
from kbpo.instances.models import Label
from kbpo.pool.probabilities import random_numbers
from kbpo.sampling.models import Sample, SampleBatch
from kbpo.submissions.models import GONE
from kbpo.tracks.models import Track
from scoring.arrays import Bools, Floats, Ids
from scoring.documents import NEVER, NO_MARK
from scoring.inclusion import Inclusion, union_probability
from scoring.pool import Pool, values_at_rows


@dataclass(frozen=True, eq=False)
class Thresholds:
    """The thresholds (inclusion probabilities) that a track's batches set on the targets (t,) of a
    pool.
    """

    track: Track
    pool: Pool
    waiting: Bools
    """(t,) whether the target is drawn for a participating run, without an answer"""

    @property
    def highest_threshold(self) -> Floats:
        """Return (t,) the highest threshold that was set on each target so far, answered or not; 0
        if none was set.
        """
        return np.asarray(self._stored_thresholds["highest"])

    @property
    def settled(self) -> Floats:
        """Return (t,) the highest threshold of batches whose questions are all finished."""
        return np.asarray(self._stored_thresholds["settled"])

    @cached_property
    def _stored_thresholds(self) -> Arrays:
        """Return the thresholds of all batches, of finished and of open ones. They do not depend on
        labels.
        """
        of_track = SampleBatch.objects.filter(submission__track=self.track).order_by("pk")
        batches = list(
            of_track.values_list(
                "pk", "drawn_at", "settled_at", "answered_below", "submission__status"
            )
        )
        settled = [pk for pk, _, ended, below, _ in batches if ended or below is not None]
        still = [pk for pk, _, ended, _, status in batches if not ended and status not in GONE]
        fixed = self.pool.fixed
        return cached_arrays(
            f"thresholds-{self.track.pk}",
            # With their times: after a restore another batch may have the number of a lost one.
            (*fixed, batches) if fixed else None,
            lambda: {
                "highest": thresholds_of_batches([row[0] for row in batches], self.pool.target_id),
                "settled": thresholds_of_batches(settled, self.pool.target_id),
                "open": thresholds_of_batches(still, self.pool.target_id),
            },
        )

    @cached_property
    def released(self) -> float:
        """Return the released share r of the open batches: the smallest u/π among targets without
        an answer (u: random number, π: threshold); 1 if all are answered.
        """
        still = self._stored_thresholds["open"]
        ratio = np.divide(
            self.pool.u, still, out=np.full(self.pool.u.size, np.inf), where=still > 0
        )
        gaps = ratio[self.waiting & (ratio < 1)]
        return float(gaps.min()) if gaps.size else 1.0

    def chance(self) -> Floats:
        """Return (t,) the threshold on the random number u below which all targets are answered, or
        known to be unanswerable.
        """
        return np.maximum(self.settled, np.asarray(self._stored_thresholds["open"]) * self.released)

    def is_drawn(self) -> Bools:
        """Return (t,) whether the random number of each target lies below `chance`, so that the
        target is in the sample.
        """
        return np.asarray(self.pool.u < self.chance())


def highest_thresholds(track: Track, target_ids: Ids) -> Floats:
    """Return the highest threshold of each target on a track; 0 if there is none."""
    batches = SampleBatch.objects.filter(submission__track=track)
    return thresholds_of_batches(list(batches.values_list("pk", flat=True)), target_ids)


def thresholds_of_batches(batches: Collection[int], target_ids: Ids) -> Floats:
    """Return the highest threshold that some batches set on each target; targets are ascending."""
    highest = fetch_arrays(
        {"target": "h.target_id", "pi": "max(h.pi * coalesce(b.answered_below, 1))"},
        "FROM sampling_threshold h JOIN sampling_samplebatch b ON b.id = h.batch_id"
        " WHERE h.batch_id = ANY(%s) GROUP BY h.target_id ORDER BY h.target_id",
        [list(batches)],
        reals=("pi",),
    )
    return values_at_rows(highest["target"], highest["pi"], target_ids)


@dataclass(frozen=True, eq=False)
class Draws:
    """The draws with replacement of a track's submissions on the targets (t,) of a pool."""

    track: Track
    pool: Pool
    waiting: Bools
    """(t,) whether the target is drawn for a participating run, without an answer"""

    def chance(self) -> Floats:
        """Return (t,) the probability that the target is in a draw whose judgments are used now."""
        return union_probability(
            self._probability_of_draw(self._settled_batches),
            self._probability_of_draw(self._open_batches) * self.released,
        )

    @cached_property
    def released(self) -> float:
        """Return the smallest random number without an answer in an open batch; 1 if there
        is none.
        """
        gaps = self.pool.u[self.waiting & self._is_drawn_by(self._open_batches)]
        return float(gaps.min()) if gaps.size else 1.0

    def is_drawn(self) -> Bools:
        """Return (t,) whether the target is in a draw whose judgments are used now."""
        still = self._is_drawn_by(self._open_batches) & (self.pool.u < self.released)
        return np.asarray(self._is_drawn_by(self._settled_batches) | still)

    @property
    def _iid_batches(self) -> QuerySet[SampleBatch]:
        return SampleBatch.objects.filter(
            submission__track=self.track, submission__in=self.pool.systems, design="iid"
        )

    @property
    def _settled_batches(self) -> QuerySet[SampleBatch]:
        return self._iid_batches.filter(settled_at__isnull=False)

    @property
    def _open_batches(self) -> QuerySet[SampleBatch]:
        return self._iid_batches.filter(settled_at=None).exclude(submission__status__in=GONE)

    def _is_drawn_by(self, batches: QuerySet[SampleBatch]) -> Bools:
        samples = Sample.objects.filter(batch__in=batches).values_list("target_id", flat=True)
        return np.isin(self.pool.target_id, list(samples.distinct()))

    def _probability_of_draw(self, batches: QuerySet[SampleBatch]) -> Floats:
        """Return (t,) the probability that some batches draw each target at least once."""
        pool, missed = self.pool, np.ones(self.pool.target_id.size)
        sizes = list(batches.values_list("distribution__kind", "submission_id", "size"))
        for kind in sorted({kind for kind, _, _ in sizes}):  # in one order: rounding is the same
            n = np.zeros(len(pool.systems), dtype=np.int64)
            for name, submission, size in sizes:
                n[pool.systems.index(submission)] += size if name == kind else 0
            missed = missed * (1 - iid_inclusion_probabilities(pool.by_target(kind).toarray(), n))
        return 1 - missed


def read_inclusion(track: Track, pool: Pool, waiting: Collection[int] = ()) -> Inclusion:
    """Return how the targets of a pool were sampled so far.

    Parameters
    ----------
    track : Track
        The track whose batches count.
    pool : Pool
        The predictions of its sampled submissions.
    waiting : collection of int
        Targets that were drawn for a participating submission, and have no answer yet. Plans
        leave them out, as if all questions were answered.
    """
    lacks_answer = np.isin(pool.target_id, list(waiting))
    thresholds = Thresholds(track, pool, lacks_answer)
    draws = Draws(track, pool, lacks_answer)
    return Inclusion(
        asked=union_probability(thresholds.chance(), draws.chance()),
        drawn=(thresholds.is_drawn() | draws.is_drawn()) & ~lacks_answer,
        threshold=thresholds.highest_threshold,
        released=min(thresholds.released, draws.released),
    )


def marks_by_readers(track: Track, pool: Pool, closed: set[int]) -> Floats:
    """Return (t,) a random number if only readers judged the target; `NEVER` if an earlier question
    about it ended unanswered; else `NO_MARK`. In `closed` documents, where unmarked relations are
    false, a mark carries no more information than its absence.
    """
    mark = np.full(pool.target_id.size, NO_MARK)
    marked = fetch_rows(
        f"SELECT target_id, bool_or(NOT {Label.IS_MARK} AND value <> '{{}}'::jsonb),"
        f" bool_or(NOT {Label.IS_MARK} AND value = '{{}}'::jsonb)"
        f" FROM instances_label l WHERE target_id BETWEEN %s AND %s AND {IN_PLACE}"
        f" GROUP BY target_id HAVING bool_or({Label.IS_MARK} AND value <> '{{}}'::jsonb)",
        pool.target_id_range,
    )
    if not marked:
        return mark
    inside = np.zeros(pool.target_id.size, dtype=np.bool_)
    inside[pool.target[np.isin(pool.document, list(closed))]] = True
    open_ones = set(pool.target_id[~inside].tolist())
    only_marked = [row for row in marked if not row[1] and row[0] in open_ones]
    alone = np.array(sorted(row[0] for row in only_marked), dtype=np.int64)
    if alone.size:
        mark[np.searchsorted(pool.target_id, alone)] = random_numbers(track, "mark", alone)
    mark[np.isin(pool.target_id, [row[0] for row in only_marked if row[2]])] = NEVER
    return mark
