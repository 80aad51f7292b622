"""Which drawn targets lack an answer, and for whom that matters.

A target was judged for all that was claimed of it when people were asked. A run that claims
something else of it has it asked anew, and waits for that. Nobody else does: whose sample was
answered keeps what it was answered. So a target that a settled batch holds counts, although a later
run waits for it. For that run it does not, while it is judged; and a run of which no batch has
settled yet counts by itself, as if none of the others had. To a run that was judged before, and is
asked again since answers were excluded, it is missing as what nobody answers is.

What a run that was withdrawn still waited for is asked no more, unless another needs it: that holds
up nothing of what is asked for the others.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field

import numpy as np

from kbpo.corpus.fetch import fetch
from kbpo.inclusion.route import Private
from kbpo.sampling.models import SampleBatch
from kbpo.submissions.models import GONE, Submission
from kbpo.tracks.models import Track
from scoring.arrays import Bools
from scoring.pool import Pool

SETTLED = """
    SELECT b.submission_id, h.target_id FROM sampling_threshold h
    JOIN sampling_samplebatch b ON b.id = h.batch_id
    JOIN submissions_submission s ON s.id = b.submission_id
    JOIN instances_target t ON t.id = h.target_id
    WHERE s.track_id = %(track)s AND b.settled_at IS NOT NULL
        AND h.target_id = ANY(%(targets)s) AND t.u < h.pi
    UNION
    SELECT b.submission_id, d.target_id FROM sampling_sample d
    JOIN sampling_samplebatch b ON b.id = d.batch_id
    JOIN submissions_submission s ON s.id = b.submission_id
    WHERE s.track_id = %(track)s AND b.settled_at IS NOT NULL AND b.design = 'iid'
        AND d.target_id = ANY(%(targets)s)
"""
"""Runs and the targets that a settled batch of theirs holds"""


@dataclass(frozen=True, eq=False)
class Waits:
    """What waits for an answer, in the targets (t,) of a pool."""

    everybody: Bools
    """It counts for nobody"""
    gone: Bools
    """Of these, what none waits for that takes part: nobody is asked about it any more"""
    again: Mapping[int, Bools] = field(default_factory=dict)
    """Column of a run that is judged -> what it waits for although it counts for others; each has
    one at least"""
    unsettled: frozenset[int] = frozenset()
    """Those of these columns of which no batch has settled"""

    @classmethod
    def of(
        cls, track: Track, pool: Pool, waiting: Mapping[int, Collection[int]], private: Private
    ) -> Waits:
        """Return what waits, of submission -> drawn targets with a claim of it that nobody judged.
        What a submission had asked of targets that are `private` to it counts for nobody else.
        """
        targets = sorted(set().union(*waiting.values()))
        counting = set[int]()
        if targets:
            hidden = {
                owner: set(np.intersect1d(some, targets).tolist())
                for owner, some in private.items()
            }
            rows = fetch(SETTLED, {"track": track.pk, "targets": targets})
            counting = {
                target
                for owner, target in rows
                if target not in waiting.get(owner, ()) and target not in hidden.get(owner, ())
            }
        taking_part = Submission.objects.filter(pk__in=waiting).exclude(status__in=GONE)
        asked = set[int]()
        for owner in taking_part.values_list("pk", flat=True):
            asked.update(waiting[owner])
        for_others = {
            owner: counting.intersection(targets_of_owner)
            for owner, targets_of_owner in waiting.items()
            if not counting.isdisjoint(targets_of_owner)
        }
        batches = SampleBatch.objects.filter(submission__in=for_others)
        judged = set(batches.filter(settled_at=None).values_list("submission", flat=True))
        settled = set(batches.exclude(settled_at=None).values_list("submission", flat=True))
        column_of = {pool.systems.index(owner): owner for owner in judged}
        return cls(
            _among(pool, set(targets) - counting),
            _among(pool, set(targets) - counting - asked),
            {column: _among(pool, for_others[owner]) for column, owner in column_of.items()},
            frozenset(column for column, owner in column_of.items() if owner not in settled),
        )

    def of_column(self, column: int | None) -> Bools:
        """Return (t,) what waits for one submission, or, for None, for everybody."""
        if column is None or column not in self.again:
            return self.everybody
        return self.everybody | self.again[column]

    def gone_of_column(self, column: int | None) -> Bools:
        """Return (t,) what of that nobody is asked about any more."""
        if column is None or column not in self.again:
            return self.gone
        return self.gone & ~self.again[column]


def _among(pool: Pool, targets: Collection[int]) -> Bools:
    some = np.fromiter(targets, dtype=np.int64, count=len(targets))
    return np.asarray(np.isin(pool.target_id, some))
