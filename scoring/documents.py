"""The documents that people annotated whole: which count, what they bring in, the facts in them."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from scoring.arrays import Bools, Floats, Ids
from scoring.pool import Pool

NO_MARK, NEVER = -1.0, 2.0


@dataclass(frozen=True, eq=False)
class Annotated:
    """The documents that count, by ascending number."""

    documents: list[int]
    first: list[int]
    """Those that are a uniform sample of the corpus: all of them, or the first of two stages"""
    inclusion: Floats | None = None
    """Probability of each, given the first stage; None: a uniform sample, n of D"""


@dataclass(frozen=True)
class KnownDocuments:
    """The documents that are a route, and what of them is known."""

    documents: list[int] = field(default_factory=list)
    """All annotated documents that count, or none"""
    closed: bool = False
    """What is not marked in them is false: nobody misses anything, and everything has this route"""
    followed: frozenset[int] | None = None
    """Submissions all of whose predictions in the annotated documents were asked about, also where
    documents are no route, since they were drawn with unequal probabilities; None: no follow-up
    covers the documents"""
    answered: float = 1.0
    """The share of what follow-ups asked that got an answer"""

    def predicted(self, pool: Pool, aware: Collection[int] = ()) -> Bools:
        """(u,) the instances of a pool that were asked about wherever they lie in annotated
        documents: those that submissions of the follow-up state, of columns that are not `aware`.
        """
        return predicted_by(pool, self._columns(pool, aware, followed=True))

    def _columns(self, pool: Pool, aware: Collection[int], *, followed: bool) -> list[int]:
        """The columns of submissions that the follow-up asked for, or of the others."""
        asked = self.followed or frozenset()
        columns = []
        for column, system in enumerate(pool.systems):
            if (system in asked) == followed and column not in aware:
                columns.append(column)
        return columns

    def unasked(self, pool: Pool, column: int) -> Bools:
        """(t,) the targets of which a column predicts something that no submission of the
        follow-up predicts.
        """
        not_asked = np.zeros(pool.target_id.size, dtype=np.bool_)
        if not self.closed:
            not_asked[pool.target[predicted_by(pool, [column]) & ~self.predicted(pool)]] = True
        return not_asked

    def eligible(self, pool: Pool, in_scope: Bools, aware: Collection[int] = ()) -> Bools:
        """(t,) the targets of a pool for which documents are a route, of those (t,) in the scope.

        Everything that is predicted of such a target was asked about: if a later submission
        predicts another relation of a pair, that is known just where readers marked no other, and
        so the target has no such route.
        `aware` are columns whose teams could know, when they decided, which documents were read:
        what they predict makes nothing eligible for others, and nothing ineligible, since it may
        depend on that.
        """
        if self.closed:
            return np.ones(pool.target_id.size, dtype=np.bool_)
        asked = self.predicted(pool, aware)
        later = predicted_by(pool, self._columns(pool, aware, followed=False))
        is_eligible = np.zeros(pool.target_id.size, dtype=np.bool_)
        is_eligible[pool.target[asked]] = True
        is_eligible[pool.target[later & ~asked]] = False
        return is_eligible & in_scope


def predicted_by(pool: Pool, columns: list[int]) -> Bools:
    """(u,) whether one of some columns predicts each instance."""
    chosen = np.zeros(len(pool.systems))
    chosen[columns] = 1
    return np.asarray(pool.member @ chosen > 0)


@dataclass(frozen=True)
class InDocuments:
    """Of every target of a pool, shape (t,)."""

    marked: Bools
    """Readers marked it, in a document where what they did not mark may be true all the same"""
    mark: Floats
    """A random number in [0, 1) where only readers judged it; NEVER where somebody had been
    asked in vain besides; else NO_MARK"""
    covered: Bools
    """A settled follow-up that nobody stopped covers it:
    it was asked, or marked, or labelled before
    """
    asked: Bools
    """Of these, what was asked by a follow-up"""

    def of(self, targets: Ids) -> InDocuments:
        """Return the same of some of the targets."""
        return InDocuments(
            self.marked[targets], self.mark[targets], self.covered[targets], self.asked[targets]
        )

    @property
    def spared(self) -> Bools:
        """Nobody had to be asked about it."""
        return (self.mark >= 0) & (self.mark < NEVER)


@dataclass(frozen=True)
class Facts:
    """What recall needs besides the draws."""

    fact: NDArray[np.int64]
    """(u,) code of the fact that the instance says"""
    in_scope: NDArray[np.bool_]
    """(u,) both mentions lie within the track's scope"""
    pool_weight: NDArray[np.float64]
    """(u,) 1 / number of instances that are counted and predict the same fact; 0 where it is not
    counted: out of the scope, or only submissions predict it that have not entered yet. A
    submission enters the pool whose true facts are counted when a batch of it has settled, so that
    nothing that nobody was asked about moves the recall of others"""
    predicted: NDArray[np.bool_]
    """(u, m) the submission predicts the fact"""
    document: NDArray[np.int64]
    """(t,) code 0 … n_annotated − 1 of the document of each true fact found by annotation"""
    stratum: NDArray[np.int64]
    """(t,) number of its stratum"""
    found: NDArray[np.bool_]
    """(t,) some submission that has entered predicts that fact"""
    n_annotated: int
    n_documents: int
    inside: NDArray[np.int64]
    """(u,) code of the annotated document that the instance lies in; −1: in none"""
    marked: NDArray[np.bool_]
    """(u,) annotation of its document found the fact that it predicts"""
    code: NDArray[np.int64]
    """(t,) its code in `fact`; -1 if no instance here predicts it"""
    links: NDArray[np.str_]
    """(t, 2) what people linked its ends to; empty where they did not"""
    missed: NDArray[np.int64]
    """(n_annotated,) true instances of each annotated document that annotation found and no
    submission that has entered predicts: a fact that is marked at three pairs of mentions is three
    instances"""

    @property
    def counted(self) -> Bools:
        """(u,) whether the instance is among what recall counts true facts of: in the scope, and
        predicted by a submission that has entered.
        """
        return self.pool_weight > 0

    @cached_property
    def shares(self) -> dict[bool, Any]:
        """What `scoring.shares` has made of them."""
        return {}
