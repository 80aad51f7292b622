"""The route of design iid: a target is asked if one of the draws with replacement holds it.

Over all settled batches j that is the case with 1 − Π_j (1 − p_j(τ))^n_j. Of an open batch, what is
drawn is answered in the order of u: it counts if u lies below the least u that waits.

The draws of a batch are a fixed number: a team that could see m of them knows that n − m are left
for all other targets. So for its submission a batch that was drawn by then has n − m draws from the
rest of p_j.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from django.db.models import Q, QuerySet, Sum

from estimators.horvitz_thompson import inclusion_iid
from kbpo.inclusion.route import Moment, Private, Route, under_way
from kbpo.sampling.models import Sample, SampleBatch
from kbpo.tracks.models import Track
from scoring.arrays import Bools, Floats
from scoring.combine import TINY, any_of
from scoring.inclusion import History
from scoring.pool import Pool


@dataclass(frozen=True, eq=False)
class Draws(Route):
    """Draws of a track's submissions on the targets of a pool, but for those that are `private`."""

    track: Track
    pool: Pool
    waiting: Bools
    """(t,) drawn, by any design, and without a judgment"""
    private: Private
    asks_again: bool = False
    """Settled batches count as if they were open: what they asked is asked again"""
    history: History | None = None
    """What a team could see, for its own submission"""
    gone: Bools | None = None
    """(t,) What waits and nobody is asked about any more; None: nothing"""

    def chance(self) -> Floats:
        settled, still = self._chance(self._settled), self._chance(self._under_way)
        return any_of(settled, still * self.released)

    @cached_property
    def released(self) -> float:
        """The least random number that waits, of what open batches drew and will be asked; 1 where
        nothing waits.
        """
        waiting = self.waiting if self.gone is None else self.waiting & ~self.gone
        gaps = self.pool.u[waiting & self._drawn(self._under_way)]
        return float(gaps.min()) if gaps.size else 1.0

    def realised(self) -> Bools:
        still = self._drawn(self._under_way) & (self.pool.u < self.released)
        return np.asarray(self._drawn(self._settled) | still)

    def at(self, moment: Moment) -> Floats:
        """The probability that each target was drawn and judged by then.

        The draws of a submission that a target is private to are no route to it, now or then; they
        say nothing of the draws that are.
        """
        drawn = self._batches.filter(drawn_at__lte=moment.when)
        settled = drawn.filter(settled_at__lte=moment.when)
        still = drawn.exclude(settled_at__lte=moment.when)
        open_samples = Sample.objects.filter(batch__in=still).values_list("target_id", flat=True)
        asked = np.isin(self.pool.target_id, list(open_samples.distinct()))
        return any_of(self._chance(settled), moment.share(asked) * self._chance(still))

    @property
    def _batches(self) -> QuerySet[SampleBatch]:
        return SampleBatch.objects.filter(
            submission__track=self.track, submission__in=self.pool.systems, design="iid"
        )

    @property
    def _counts_as_settled(self) -> Q:
        return Q(pk__in=()) if self.asks_again else Q(settled_at__isnull=False)

    @property
    def _settled(self) -> QuerySet[SampleBatch]:
        return self._batches.filter(self._counts_as_settled)

    @property
    def _still_open(self) -> QuerySet[SampleBatch]:
        return self._batches.exclude(self._counts_as_settled)

    @property
    def _under_way(self) -> QuerySet[SampleBatch]:
        return self._still_open.filter(under_way())

    def _drawn(self, batches: QuerySet[SampleBatch]) -> Bools:
        """(t,) whether some batches drew a target, for a submission that it is not private to."""
        hidden = set[tuple[int, int]]()
        for owner, targets in self.private.items():
            hidden.update((owner, target) for target in targets.tolist())
        samples = Sample.objects.filter(batch__in=batches)
        pairs = samples.values_list("batch__submission_id", "target_id").distinct()
        return np.isin(self.pool.target_id, [pair[1] for pair in pairs if pair not in hidden])

    def _chance(self, batches: QuerySet[SampleBatch]) -> Floats:
        """(t,) the probability that some batches draw each target at least once, for a submission
        that it is not private to.
        """
        if self.history is None:
            return np.asarray(1 - self._missed(batches))
        batches_then = batches.filter(drawn_at__lte=self.history.when)
        missed = np.where(
            self.history.known,
            self._missed(batches_then),
            self._missed_besides(batches_then, self.history.known),
        )
        later = self._missed(batches.exclude(drawn_at__lte=self.history.when))
        return np.asarray(1 - missed * later)

    def _missed_besides(self, batches: QuerySet[SampleBatch], known: Bools) -> Floats:
        """(t,) the probability that no draw of some batches holds a target that is not known, given
        how many of them hold one that is.
        """
        pool, missed = self.pool, np.ones(self.pool.target_id.size)
        holds_known = Sample.objects.filter(
            batch__in=batches, target__in=pool.target_id[known].tolist()
        )
        hits = dict(holds_known.values_list("batch").annotate(Sum("multiplicity")))
        batch_rows = batches.order_by("pk").values_list(
            "pk", "distribution__kind", "submission_id", "size"
        )
        for pk, kind, submission, size in batch_rows:
            column = pool.systems.index(submission)
            p = pool.by_target(kind)[:, [column]].toarray().ravel()
            unseen = 1 - float(p[known].sum())
            if unseen <= TINY:
                continue
            p[known | np.isin(pool.target_id, self.private.get(submission, []))] = 0
            missed = missed * (1 - np.minimum(p / unseen, 1.0)) ** (size - hits.get(pk, 0))
        return missed

    def _missed(self, batches: QuerySet[SampleBatch]) -> Floats:
        """(t,) the probability that no draw of some batches holds each target."""
        pool, missed = self.pool, np.ones(self.pool.target_id.size)
        sizes = list(batches.values_list("distribution__kind", "submission_id", "size"))
        kinds = {kind for kind, _, _ in sizes}
        for kind in sorted(kinds):  # in one order: rounding is the same in every process
            n = np.zeros(len(pool.systems), dtype=np.int64)
            for name, submission, size in sizes:
                n[pool.systems.index(submission)] += size if name == kind else 0
            p = pool.by_target(kind).toarray()
            for submission in set(self.private) & set(pool.systems):
                hidden = np.isin(pool.target_id, self.private[submission])
                p[hidden, pool.systems.index(submission)] = 0
            missed = missed * (1 - inclusion_iid(p, n))
        return missed
