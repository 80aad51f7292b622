"""Design poisson: a target is drawn iff its random number u lies below its threshold.

The threshold of a target is the highest that any batch set. Questions go out in the order of u/π,
so what is answered at any moment is a sample too: with r the smallest u/π among targets that wait
for an answer, a target counts iff u < max(π of settled batches, r π of open batches). Of an open
batch of a withdrawn run the part counts that was answered when the run went
(`SampleBatch.answered_below`).
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from kbpo.corpus.fetch import fetch_arrays
from kbpo.corpus.kept import Arrays, cached_arrays
from kbpo.sampling.models import SampleBatch
from kbpo.submissions.models import GONE
from kbpo.tracks.models import Track
from scoring.arrays import Bools, Floats, Ids
from scoring.pool import Pool, spread


@dataclass(frozen=True, eq=False)
class Thresholds:
    """The thresholds of a track on the targets (t,) of a pool."""

    track: Track
    pool: Pool
    waiting: Bools
    """(t,) drawn for a run that takes part, and without an answer"""

    @property
    def highest(self) -> Floats:
        """(t,) The highest threshold so far, answered or not; 0: never considered."""
        return np.asarray(self._stored["highest"])

    @property
    def settled(self) -> Floats:
        """(t,) The same of settled batches alone."""
        return np.asarray(self._stored["settled"])

    @cached_property
    def _stored(self) -> Arrays:
        """The thresholds of all batches, of settled ones, and of open ones; labels change none."""
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
            # Their moments, too: after a restore another batch may have the number of a lost one.
            (*fixed, batches) if fixed else None,
            lambda: {
                "highest": thresholds_of([row[0] for row in batches], self.pool.target_id),
                "settled": thresholds_of(settled, self.pool.target_id),
                "open": thresholds_of(still, self.pool.target_id),
            },
        )

    @cached_property
    def released(self) -> float:
        """r: the smallest u/π among targets that wait; 1 when everything drawn is answered."""
        still = self._stored["open"]
        ratio = np.divide(
            self.pool.u, still, out=np.full(self.pool.u.size, np.inf), where=still > 0
        )
        gaps = ratio[self.waiting & (ratio < 1)]
        return float(gaps.min()) if gaps.size else 1.0

    def chance(self) -> Floats:
        """(t,) The threshold below which all targets are answered, or known to be unanswerable."""
        return np.maximum(self.settled, np.asarray(self._stored["open"]) * self.released)

    def realised(self) -> Bools:
        """(t,) Whether each target lies below that threshold."""
        return np.asarray(self.pool.u < self.chance())


def thresholds(track: Track, target_ids: Ids) -> Floats:
    """Return the highest threshold of each target on a track; 0 where there is none."""
    batches = SampleBatch.objects.filter(submission__track=track)
    return thresholds_of(list(batches.values_list("pk", flat=True)), target_ids)


def thresholds_of(batches: Collection[int], target_ids: Ids) -> Floats:
    """Return the highest threshold that some batches set on each of some ascending targets."""
    highest = fetch_arrays(
        {"target": "h.target_id", "pi": "max(h.pi * coalesce(b.answered_below, 1))"},
        "FROM sampling_threshold h JOIN sampling_samplebatch b ON b.id = h.batch_id"
        " WHERE h.batch_id = ANY(%s) GROUP BY h.target_id ORDER BY h.target_id",
        [list(batches)],
        reals=("pi",),
    )
    return spread(highest["target"], highest["pi"], target_ids)
