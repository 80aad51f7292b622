"""What exhaustive follow-ups (`FollowUp`) did: what they covered, and the chance that a target had
been asked and labelled before one would have asked about it.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from kbpo.inclusion.documents import inside
from kbpo.inclusion.draws import Draws
from kbpo.inclusion.moment import moment_of
from kbpo.inclusion.route import NOTHING, Private
from kbpo.inclusion.thresholds import Thresholds
from kbpo.sampling.models import FollowUp
from kbpo.tracks.models import Track
from scoring.arrays import Bools, Floats
from scoring.combine import any_of
from scoring.documents import predicted_by
from scoring.pool import Pool


@dataclass(frozen=True, eq=False)
class FollowUps:
    """The settled follow-ups of a track, in their order, over the targets of a pool."""

    track: Track
    pool: Pool

    @cached_property
    def rows(self) -> list[FollowUp]:
        settled = FollowUp.objects.filter(track=self.track, settled_at__isnull=False)
        return list(settled.order_by("pk"))

    @cached_property
    def covered(self) -> Bools:
        """(t,) What one that nobody stopped covers: what its submissions predict, in its
        documents."""
        is_covered = np.zeros(self.pool.target_id.size, dtype=np.bool_)
        for row, predicted, documents in zip(
            self.rows, self._predicted, self._documents, strict=True
        ):
            if row.stopped_at is None:
                is_covered |= predicted & inside(self.pool, documents)
        return is_covered

    def labelled_before(self, but: Collection[int] = (), besides: Private = NOTHING) -> Floats:
        """Return (t,) the probability that a target was drawn and labelled (or given up) before a
        follow-up would have asked about it, if it lies in a document that was followed up: that
        asks only about the others, and what is drawn of those later is not asked.

        Which follow-up that is depends on the document, drawn from those that each was the first to
        cover, and on when the target was first predicted: none before that asked about it. `but`
        are documents that are left out. What a submission drew of targets that are private
        `besides` did not ask what is claimed of them now.
        """
        earlier, labelled = set(but), self._labelled_besides(besides) if besides else self._labelled
        total, n = np.zeros(self.pool.target_id.size), 0
        for number, documents in enumerate(self._documents):
            first_covered = documents - earlier
            earlier |= first_covered
            total, n = (
                total + self._by_first(number, labelled) * len(first_covered),
                n + len(first_covered),
            )
        return np.asarray(total / max(n, 1))

    def _by_first(self, number: int, labelled: list[Floats]) -> Floats:
        """(t,) `labelled_before` in a document that this follow-up was the first to cover."""
        probability = labelled[-1].copy()
        left = np.ones(self.pool.target_id.size, dtype=np.bool_)
        for predicted, chance in zip(self._predicted[number:], labelled[number:], strict=True):
            probability = np.where(left & predicted, chance, probability)
            left &= ~predicted
        return probability

    @cached_property
    def _documents(self) -> list[set[int]]:
        return [set(row.documents.values_list("document", flat=True)) for row in self.rows]

    @cached_property
    def _predicted(self) -> list[Bools]:
        """(t,) for each the targets on which its submissions predict anything."""
        predicted_each = []
        for row in self.rows:
            submissions = set(row.submissions.values_list("pk", flat=True))
            columns = [
                column for column, system in enumerate(self.pool.systems) if system in submissions
            ]
            rows = predicted_by(self.pool, columns)
            predicted = np.zeros(self.pool.target_id.size, dtype=np.bool_)
            predicted[self.pool.target[rows]] = True
            predicted_each.append(predicted)
        return predicted_each

    @cached_property
    def _labelled(self) -> list[Floats]:
        return self._labelled_besides(NOTHING)

    def _labelled_besides(self, besides: Private) -> list[Floats]:
        """(t,) for each the probability that a target had a label of its own when it was ordered.

        Of what readers marked it is the same as of the others: it may depend on nothing that is
        true.
        """
        nothing = np.zeros(self.pool.target_id.size, dtype=np.bool_)
        thresholds = Thresholds(self.track, self.pool, nothing, NOTHING)
        draws = Draws(self.track, self.pool, nothing, besides)
        probabilities = []
        for row, predicted in zip(self.rows, self._predicted, strict=True):
            moment = moment_of(self.pool, self.track, row.ordered_at, predicted).without_marks()
            probabilities.append(any_of(thresholds.at(moment), draws.at(moment)))
        return probabilities
