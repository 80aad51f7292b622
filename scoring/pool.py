"""The pool: all predictions of the sampled submissions of a track, as sparse arrays."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from estimators.sums import Support, occurring_codes
from scoring.arrays import Floats, Ids, Matrix


@dataclass(frozen=True)
class Pool:
    """The union of the predictions of m submissions: u instances on t targets."""

    systems: list[int]
    teams: list[int]
    """Team of every submission."""
    instance: Ids
    """(u,) instance ids, ascending"""
    target: Ids
    """(u,) code of the target, an index into `target_id`"""
    target_id: Ids
    """(t,) primary keys of the targets"""
    u: Floats
    """(t,) the targets' random numbers"""
    document: Ids
    """(u,) document ids; 0 if the kind has none"""
    stratum: Ids
    """(u,) number of the stratum"""
    types: NDArray[Any]
    """(u,) code of the types of subject and object, by the first submission that predicts the
    instance"""
    subject: Ids
    """(u,) code of the subject's entity within its document: its canonical mention, by that
    submission"""
    object: Ids
    """(u,) the same for the object, with the same codes"""
    p: dict[str, Matrix]
    """kind -> (u, m) probabilities; columns sum to 1"""
    confidence: Matrix
    """(u, m) confidences; 1 if the system gives none"""
    features: Floats = field(default_factory=lambda: np.zeros((0, 0)))
    """(u, k) additional features of the kind for the model; may be empty"""
    scorers: list[int] = field(default_factory=list)
    """Metrics and judges in use that have scores for instances of the pool"""
    scores: Floats = field(default_factory=lambda: np.zeros((0, 0)))
    """(u, scorers) their scores; NaN without a score"""
    input: Ids = field(default_factory=lambda: np.zeros(0, dtype=np.int64))
    """(u,) code of the instance's input"""
    text: Matrix | None = None
    """(u, words) the weights of words in each text, if the model compares texts"""
    by_system: Mapping[str, NDArray[Any]] = field(default_factory=dict)
    """Cached result of `columns_as_arrays` for all tables; empty: computed when needed"""
    fixed: tuple[Any, ...] = ()
    """The state that determines all of this except the scores, its track first; empty if it may
    change
    """

    @property
    def target_id_range(self) -> list[int]:
        """Return the smallest and the greatest primary key of the targets. A condition with
        millions of ids is too large for a query; between the two ends are few additional labels.
        """
        return [int(self.target_id.min(initial=2**62)), int(self.target_id.max(initial=0))]

    @cached_property
    def member(self) -> Matrix:
        """Return the indicator matrix (u, m): 1 if the submission predicts the instance, with any
        positive weight.
        """
        tables = list(self.p.values())
        like = tables[0]
        alike = all(_at_same_places(table, like) and (table.data > 0).all() for table in tables)
        # Places are shared only where they are sorted: else sorting the members would move weights.
        if alike and like.has_sorted_indices:
            entries = np.ones(like.data.size)
            return sparse.csr_array((entries, like.indices, like.indptr), shape=like.shape)
        union, *more = (_positive_entries(table) for table in tables)
        for other in more:
            union = union + other
        return sparse.csr_array(union, dtype=np.float64)

    def columns(self, kind: str) -> sparse.csc_array:
        """Return the probabilities of a distribution, system by system."""
        if kind not in self._column_cache:
            self._column_cache.clear()  # one at a time: each is as large as all that is predicted
            self._column_cache[kind] = self._columns_uncached(kind)
        return self._column_cache[kind]

    def _columns_uncached(self, kind: str) -> sparse.csc_array:
        table = self.p[kind]
        if not _at_same_places(table, next(iter(self.p.values()))):
            return sparse.csc_array(table)
        order = self._column_order
        return sparse.csc_array(
            (table.data[order.data], order.indices, order.indptr), shape=table.shape
        )

    @property
    def has_equal_supports(self) -> bool:
        """Return whether all distributions give a positive weight to the same predictions, namely
        all. Then a system's `support` is where its `columns` have entries.
        """
        return _at_same_places(self.member, next(iter(self.p.values())))

    def support(self, column: int) -> Support:
        """Return the rows that one submission predicts, and which of them share a target."""
        if column not in self._support_by_column:
            self._support_by_column[column] = self._make_support(column)
        return self._support_by_column[column]

    def _make_support(self, column: int) -> Support:
        if not self.by_system:
            return Support.from_rows(self.predicted_rows(column), self.target)
        kept = self.by_system
        begin, end = kept["begin"][column : column + 2]
        several_begin, several_end = kept["several begin"][column : column + 2]
        group_begin, group_end = kept["group begin"][column : column + 2]
        return Support(
            kept["row"][begin:end],
            kept["several"][several_begin:several_end],
            kept["group"][group_begin:group_end],
        )

    @cached_property
    def _support_by_column(self) -> dict[int, Support]:
        """Return the cache of `support`: column of a submission -> its support. It is empty at
        first.
        """
        return {}

    def weight(self, kind: str, column: int) -> Floats:
        """Return (n,) the probabilities of one submission at the rows of its support."""
        rows, p = self.rows_and_probabilities(kind, column)
        return p if self.has_equal_supports else values_at_rows(rows, p, self.support(column).row)

    def weighted_rows(self, kind: str, column: int) -> tuple[Support, Floats]:
        """Return the rows to which a distribution gives a weight, and their probabilities."""
        rows, p = self.rows_and_probabilities(kind, column)
        if self.has_equal_supports:
            return self.support(column), p
        return Support.from_rows(rows[p > 0], self.target), p[p > 0]

    @cached_property
    def stratum_of_target(self) -> Ids:
        """Return (t,) a code of the stratum of each target: that of its first instance."""
        first_row = np.full(self.target_id.size, -1)
        first_row[self.target[::-1]] = np.arange(self.target.size)[::-1]
        code_of_target = np.zeros(
            first_row.size, dtype=np.int64
        )  # of a slice not every target has a row
        has_row = np.flatnonzero(first_row >= 0)
        of_them = self.stratum[first_row[has_row]]
        code_of_target[has_row] = occurring_codes(of_them, int(of_them.max(initial=-1)) + 1)[1]
        return code_of_target

    @cached_property
    def _column_cache(self) -> dict[str, sparse.csc_array]:
        return {}

    @cached_property
    def _column_order(self) -> sparse.csc_array:
        """Return, system by system, the position of each entry in the row-wise arrays of the first
        table.
        """
        table = next(iter(self.p.values()))
        places = np.arange(table.data.size, dtype=np.int32)
        return sparse.csc_array(
            sparse.csr_array((places, table.indices, table.indptr), shape=table.shape)
        )

    def rows_and_probabilities(self, kind: str, column: int) -> tuple[Ids, Floats]:
        """Return the rows that one submission predicts, ascending, and their probabilities under a
        distribution.
        """
        if self.by_system:
            begin, end = self.by_system["begin"][column : column + 2]
            return self.by_system["row"][begin:end], self.by_system[f"p {kind}"][begin:end]
        table = self.columns(kind)
        mine = slice(table.indptr[column], table.indptr[column + 1])
        return table.indices[mine], table.data[mine]

    def predicted_rows(self, column: int) -> Ids:
        """Return the rows that one submission predicts, ascending."""
        rows, p = self.rows_and_probabilities(next(iter(self.p)), column)
        if self.by_system:
            return rows
        predicted_rows = rows[p > 0]
        for kind in self.p:
            if not _at_same_places(self.p[kind], self.p[next(iter(self.p))]):
                rows, p = self.rows_and_probabilities(kind, column)
                predicted_rows = np.union1d(predicted_rows, rows[p > 0])
        return predicted_rows

    def restrict_to_rows(self, rows: Ids, p: dict[str, Matrix], targets: Ids, target: Ids) -> Pool:
        """Return the pool restricted to some rows and to their targets, with the weights `p`.
        `targets` are the positions of the kept targets, and `target` is the code of each kept row
        among them. Confidences and features of the model are dropped.
        """
        return replace(
            self,
            instance=self.instance[rows],
            target=target,
            target_id=self.target_id[targets],
            u=self.u[targets],
            document=self.document[rows],
            stratum=self.stratum[rows],
            types=self.types[rows],
            subject=self.subject[rows],
            object=self.object[rows],
            p=p,
            confidence=sparse.csr_array((rows.size, len(self.systems))),
            features=np.zeros((0, 0)),
            by_system={},
            fixed=(),
        )

    @property
    def n_targets(self) -> Ids:
        """Return (m,) the number of distinct targets of each submission's predictions."""
        return np.array([self.support(column).n_targets for column in range(len(self.systems))])

    def by_target(self, kind: str) -> Matrix:
        """Return (t, m) the probability that one draw of a submission hits each target: Σ_{x∈τ}
        p_i(x).
        """
        return sparse.csr_array(self._target_indicator @ self.p[kind])

    @property
    def _target_indicator(self) -> Matrix:
        """Return the indicator matrix (t, u): 1 if the instance is about the target."""
        shape = (self.target_id.size, self.instance.size)
        return sparse.csr_array(
            (np.ones(self.target.size), (self.target, np.arange(self.target.size))), shape=shape
        )


def values_at_rows(rows: Ids, values: Floats, wanted_rows: Ids) -> Floats:
    """Return the values of some ascending rows at the wanted rows; 0 at others."""
    place = np.minimum(np.searchsorted(rows, wanted_rows), max(rows.size - 1, 0))
    return (
        np.where(rows[place] == wanted_rows, values[place], 0.0)
        if rows.size
        else np.zeros(wanted_rows.size)
    )


def _at_same_places(table: Matrix, other: Matrix) -> bool:
    """Return whether two matrices share the memory of their entries' positions."""
    return np.may_share_memory(table.indices, other.indices) and table.data.size == other.data.size


def _positive_entries(p: Matrix) -> Matrix:
    """Return an indicator matrix of the positive entries, as a copy that may be changed in
    place.
    """
    positive = sparse.csr_array(p, copy=True)
    positive.data = positive.data > 0
    positive.eliminate_zeros()
    return positive


def columns_as_arrays(pool: Pool) -> dict[str, NDArray[Any]]:
    """Return the probabilities of a pool system by system: `p NAME` at `row` from each system's
    `begin` on; and which rows share a target, as in `Support`. Empty if distributions give a weight
    to different predictions.
    """
    if not pool.has_equal_supports:
        return {}
    supports = [pool.support(column) for column in range(len(pool.systems))]
    arrays = {f"p {kind}": pool.columns(kind).data for kind in pool.p}
    for name, parts in {
        "": [support.row for support in supports],
        "several ": [support.several for support in supports],
        "group ": [support.begins for support in supports],
    }.items():
        arrays[name.strip() or "row"] = np.concatenate(parts)
        arrays[f"{name}begin"] = np.cumsum([0, *(part.size for part in parts)])
    return arrays
