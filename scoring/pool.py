"""The pool: everything that the sampled submissions of a track predict, as sparse arrays."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from scoring.arrays import Floats, Ids, Matrix


@dataclass(frozen=True)
class Pool:
    """The union of what some submissions predict: u instances on t targets, m submissions."""

    systems: list[int]
    teams: list[int]
    """Team of every submission."""
    instance: Ids
    """(u,) instance ids, ascending"""
    target: Ids
    """(u,) code of the target, an index into `target_id`"""
    target_id: Ids
    """(t,)"""
    u: Floats
    """(t,) the targets' random numbers"""
    document: Ids
    """(u,) document ids; 0 where a kind has none"""
    predicate: Ids
    """(u,) the stratum of each: of relations the predicate's id"""
    types: NDArray[Any]
    """(u,) code of the types of subject and object, as the first submission says that predicts
    it"""
    subject: Ids
    """(u,) code of the subject's entity within its document: its canonical mention, as that
    submission says"""
    object: Ids
    """(u,) the same of the object; the codes are those of subjects"""
    p: dict[str, Matrix]
    """kind -> (u, m) probabilities; columns sum to 1"""
    confidence: Matrix
    """(u, m) confidences; 1 where the system gives none"""
    features: Floats = field(default_factory=lambda: np.zeros((0, 0)))
    """(u, k) what else a kind tells the model of each; empty if that is nothing"""
    scorers: list[int] = field(default_factory=list)
    """Metrics and judges in use that say anything of what is in the pool"""
    scores: Floats = field(default_factory=lambda: np.zeros((0, 0)))
    """(u, scorers) what they say; NaN where one says nothing"""
    input: Ids = field(default_factory=lambda: np.zeros(0, dtype=np.int64))
    """(u,) code of what each was made for"""
    text: Matrix | None = None
    """(u, words) the weights of words in each, where the model is to see which say the same"""
    fixed: tuple[Any, ...] = ()
    """What all of this but the scores follows from, its track first; empty where it may change"""

    @property
    def ends(self) -> list[int]:
        """The least and the greatest number of a target. Millions of them are no condition of a
        query; what lies between the ends is few labels more.
        """
        return [int(self.target_id.min(initial=2**62)), int(self.target_id.max(initial=0))]

    @cached_property
    def member(self) -> Matrix:
        """(u, m): 1 where the submission predicts the instance: gives it any weight. A stored zero
        is none.
        """
        tables = list(self.p.values())
        like = tables[0]
        alike = all(_at_same_places(one, like) and (one.data > 0).all() for one in tables)
        # Places are shared only where they are sorted: else sorting the members would move weights.
        if alike and like.has_sorted_indices:
            ones = np.ones(like.data.size)
            return sparse.csr_array((ones, like.indices, like.indptr), shape=like.shape)
        first, *others = (_positive(one) for one in tables)
        for one in others:
            first = first + one
        return sparse.csr_array(first, dtype=np.float64)

    def columns(self, kind: str) -> sparse.csc_array:
        """The probabilities of a distribution, system by system."""
        if kind not in self._columns:
            self._columns.clear()  # one at a time: each is as large as all that is predicted
            table, by = self.p[kind], self._by_column
            alike = _at_same_places(table, next(iter(self.p.values())))
            self._columns[kind] = (
                sparse.csc_array((table.data[by.data], by.indices, by.indptr), shape=table.shape)
                if alike
                else sparse.csc_array(table)
            )
        return self._columns[kind]

    @cached_property
    def _columns(self) -> dict[str, sparse.csc_array]:
        return {}

    @cached_property
    def _by_column(self) -> sparse.csc_array:
        """The place of each entry of the first table, system by system."""
        table = next(iter(self.p.values()))
        places = np.arange(table.data.size, dtype=np.int32)
        return sparse.csc_array(
            sparse.csr_array((places, table.indices, table.indptr), shape=table.shape)
        )

    def of(self, kind: str, column: int) -> tuple[Ids, Floats]:
        """The rows that one submission predicts, ascending, and their probabilities."""
        table = self.columns(kind)
        mine = slice(table.indptr[column], table.indptr[column + 1])
        return table.indices[mine], table.data[mine]

    def predicted(self, column: int) -> Ids:
        """The rows that one submission predicts, ascending."""
        rows, p = self.of(next(iter(self.p)), column)
        found = rows[p > 0]
        for kind in self.p:
            if not _at_same_places(self.p[kind], self.p[next(iter(self.p))]):
                rows, p = self.of(kind, column)
                found = np.union1d(found, rows[p > 0])
        return found

    def of_rows(self, rows: Ids, p: dict[str, Matrix], targets: Ids, target: Ids) -> Pool:
        """The same of some rows, which weigh `p`, and of the targets that these have; nothing that
        the model is told of.
        """
        return replace(
            self,
            instance=self.instance[rows],
            target=target,
            target_id=self.target_id[targets],
            u=self.u[targets],
            document=self.document[rows],
            predicate=self.predicate[rows],
            types=self.types[rows],
            subject=self.subject[rows],
            object=self.object[rows],
            p=p,
            confidence=sparse.csr_array((rows.size, len(self.systems))),
            features=np.zeros((0, 0)),
            fixed=(),
        )

    @property
    def n_targets(self) -> Ids:
        """(m,) how many targets each submission predicts anything of."""
        summed = sparse.csc_array(self._chooser @ self.member)
        return np.asarray(np.diff(summed.indptr), dtype=np.int64)

    def by_target(self, kind: str) -> Matrix:
        """(t, m): Σ_{x∈τ} p_i(x)."""
        return sparse.csr_array(self._chooser @ self.p[kind])

    @property
    def _chooser(self) -> Matrix:
        """(t, u): 1 where the instance is about the target."""
        shape = (self.target_id.size, self.instance.size)
        return sparse.csr_array(
            (np.ones(self.target.size), (self.target, np.arange(self.target.size))), shape=shape
        )


def _at_same_places(one: Matrix, other: Matrix) -> bool:
    """Whether two matrices share the memory that says where their entries are."""
    return np.may_share_memory(one.indices, other.indices) and one.data.size == other.data.size


def _positive(p: Matrix) -> Matrix:
    """Where the entries of a matrix are positive. A copy: what is done to it in place must not
    reach the other.
    """
    found = sparse.csr_array(p, copy=True)
    found.data = found.data > 0
    found.eliminate_zeros()
    return found
