"""Reads how a pool's targets came in: the only place where the routes are put together.

Scoring reads it with what waits for an answer; a plan reads it as if all that was asked were
answered.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from kbpo.inclusion.disclosure import aware, disclosed, drawn_by_then, private
from kbpo.inclusion.documents import Documents, known_documents
from kbpo.inclusion.draws import Draws
from kbpo.inclusion.follow_ups import FollowUps
from kbpo.inclusion.route import NOTHING, Private
from kbpo.inclusion.thresholds import Thresholds
from kbpo.inclusion.waits import Waits
from kbpo.submissions.models import Submission
from kbpo.tracks.models import Track
from scoring.arrays import Bools, Floats
from scoring.combine import Chances
from scoring.documents import Annotated, Facts, KnownDocuments
from scoring.inclusion import Disclosed, Inclusion
from scoring.pool import Pool

NOTHING_WAITS: Mapping[int, Collection[int]] = {}


@dataclass(frozen=True, eq=False)
class Routes:
    """The routes by which a pool's targets came in, and what of that was disclosed to whom."""

    track: Track
    pool: Pool
    waiting: Mapping[int, Collection[int]]
    """Submission -> drawn targets with a claim of it that nobody judged"""
    known: KnownDocuments
    """The documents that are a route"""
    in_scope: Bools
    """(t,) recall asks for relations of it"""
    follow_ups: FollowUps
    disclosed: dict[int, Disclosed]
    """Column -> what its team could see when it decided, where that is anything"""

    @cached_property
    def everybody(self) -> Inclusion:
        """How targets came in for whoever saw nothing."""
        return self._inclusion(None)

    def own(self, column: int, *, besides: Private = NOTHING) -> Inclusion:
        """Return the same for a submission: what was asked for it alone counts, too, and what was
        asked of targets that are private `besides` does not. What its team could see is taken in by
        `Disclosed.given`, of what `saw` tells.
        """
        return self._inclusion(column, besides)

    def saw(self, column: int, *, besides: Private = NOTHING) -> Disclosed:
        """Return what the team of a submission could see when it decided. Draws that are no sample
        of it now, of targets that are private `besides`, were none then: else a target that they
        may have held, and did not, could never be asked.
        """
        if not besides:
            return self.disclosed[column]
        submission = Submission.objects.select_related("track__corpus").get(
            pk=self.pool.systems[column]
        )
        drawn = drawn_by_then(self.pool, submission, self._hidden(column, besides))
        return replace(self.disclosed[column], drawn=drawn)

    @cached_property
    def waits(self) -> Waits:
        """Which targets lack an answer, for everybody, and for whom besides."""
        return Waits.of(self.track, self.pool, self.waiting, private(self.pool, self.disclosed))

    @cached_property
    def _documents(self) -> Documents:
        eligible = np.zeros(self.pool.target_id.size, dtype=np.bool_)
        if self.known.documents:
            eligible = self.known.eligible(self.pool, self.in_scope, aware(self.disclosed))
        return Documents(self.track, self.pool, self.known.documents, eligible)

    @cached_property
    def _before(self) -> Floats:
        return self.follow_ups.labelled_before()

    def _before_of(self, saw: Disclosed | None, besides: Private) -> Floats:
        """(t,) `_before` for a team: where the document is chance for it, over those documents that
        it could not know.
        """
        of_all = self.follow_ups.labelled_before(besides=besides) if besides else self._before
        if saw is None or not saw.read:
            return of_all
        return np.where(saw.inside, of_all, self.follow_ups.labelled_before(saw.read, besides))

    def _hidden(self, column: int | None, besides: Private) -> Private:
        hidden = dict(private(self.pool, self.disclosed, but=column))
        for owner, targets in besides.items():
            hidden[owner] = np.union1d(hidden.get(owner, targets[:0]), targets)
        return hidden

    def settled(self, column: int) -> Floats:
        """Return (t,) the highest thresholds of settled batches that count for a submission."""
        nothing = np.zeros(self.pool.target_id.size, dtype=np.bool_)
        hidden = self._hidden(column, NOTHING)
        return Thresholds(self.track, self.pool, nothing, hidden).settled

    def _inclusion(self, column: int | None, besides: Private = NOTHING) -> Inclusion:
        hidden = self._hidden(column, besides)
        saw = None if column is None else self.disclosed.get(column)
        waiting, asks_again = self.waits.of_column(column), column in self.waits.unsettled
        gone, history = self.waits.gone_of_column(column), saw.history if saw else None
        thresholds = Thresholds(self.track, self.pool, waiting, hidden, asks_again, gone)
        draws = Draws(self.track, self.pool, waiting, hidden, asks_again, history, gone)
        drawn = (thresholds.realised() | draws.realised()) & ~waiting
        return Inclusion(
            chances=Chances(
                thresholds.chance(),
                draws.chance(),
                self._documents.chance(),
                self._before_of(saw, besides),
            ),
            drawn=drawn,
            counts=drawn | self._documents.realised(),
            cluster=self._documents.cluster,
            of_document=self._documents.share,
            n_clusters=len(self.known.documents),
            threshold=thresholds.highest,
            released=min(thresholds.released, draws.released),
        )


def read(
    track: Track,
    pool: Pool,
    documents: Annotated,
    facts: Facts | None,
    waiting: Mapping[int, Collection[int]] = NOTHING_WAITS,
) -> Routes:
    """Return the routes of a pool as everything stands now.

    `documents` are the annotated ones that count; `facts` of the pool tell what is in the scope of
    recall; `waiting` are the drawn targets of each submission with a claim of it that nobody
    judged.
    """
    known_route = known_documents(track, documents)
    in_scope = np.zeros(pool.target_id.size, dtype=np.bool_)
    if facts is not None:
        in_scope[pool.target] = facts.in_scope
    return Routes(
        track=track,
        pool=pool,
        waiting=waiting,
        known=known_route,
        in_scope=in_scope,
        follow_ups=FollowUps(track, pool),
        disclosed=disclosed(pool, known_route.documents),
    )
