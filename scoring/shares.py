"""The share of a fact that each prediction represents, so that a fact counts once however often it
is predicted.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from scoring.arrays import Bools, Floats, Ids
from scoring.documents import Facts
from scoring.pool import Pool, values_at_rows


@dataclass(frozen=True, eq=False)
class Shares:
    """The share that each prediction has of a fact of its system, and of a fact of the pool; 0 out
    of scope. Computed one system at a time to save memory.
    """

    predictions: Pool
    facts: Facts
    once: bool
    """Whether a fact counts once; otherwise each instance in scope counts by itself"""

    @classmethod
    def get_or_compute(cls, pool: Pool, facts: Facts, *, count_facts_once: bool) -> Shares:
        """Return the shares of a pool's predictions in these facts, computed once for the same
        pool. With `count_facts_once`, each fact counts once; otherwise each of its mentions counts.
        """
        kept = facts.shares.get(count_facts_once)
        if kept is None or kept.predictions is not pool:
            facts.shares[count_facts_once] = kept = cls(pool, facts, count_facts_once)
        return kept

    @cached_property
    def pool_shares(self) -> Floats:
        """Return (u,) the share that each instance has of a fact of the pool; 0 if no system whose
        facts are counted predicts it.
        """
        counted = self.facts.counted
        if not self.once:
            return counted.astype(np.float64)
        return np.where(counted, 1 / np.maximum(self._count_statements_of_fact(counted), 1), 0.0)

    @cached_property
    def has_uncounted_facts(self) -> Bools:
        """Return (m,) whether a system predicts facts in scope that are not counted, since no
        system whose facts are counted predicts them.
        """
        left_out = self.facts.in_scope & ~self.facts.counted
        columns = range(len(self.predictions.systems))
        return np.array(
            [left_out.any() and left_out[self.predictions.support(j).row].any() for j in columns],
            dtype=np.bool_,
        )

    def _count_statements_of_fact(self, counted: Bools) -> Ids:
        """Return (u,) the number of counted instances that state the same fact as each instance."""
        fact = self.facts.fact
        return np.bincount(fact[counted], minlength=int(fact.max(initial=-1)) + 1)[fact]

    def shares_of_system(self, column: int) -> Floats:
        """Return (n,) the share that each prediction of a submission has of a fact of its
        system.
        """
        n = self._cached_count(column)
        share: Floats = np.divide(1.0, n, out=np.zeros(n.size), where=n > 0)
        return share

    def shares_of_rows(self, rows: Ids) -> Floats:
        """Return (k, m) the weights of some rows of the pool under each system."""
        shares = np.zeros((rows.size, len(self.predictions.systems)))
        for column in range(shares.shape[1]):
            row = self.predictions.support(column).row
            shares[:, column] = values_at_rows(row, self.shares_of_system(column), rows)
        return shares

    def totals_by_system(self, values: Floats) -> Floats:
        """Return (m,) the sum of values (u,) over the facts that each submission predicts."""
        columns = range(len(self.predictions.systems))
        supports = (self.predictions.support(column).row for column in columns)
        return np.array(
            [
                self.shares_of_system(column) @ values[row]
                for column, row in zip(columns, supports, strict=True)
            ]
        )

    def _cached_count(self, column: int) -> NDArray[np.unsignedinteger]:
        """Return (n,) the number of a submission's rows in scope that state the same fact as each
        of its rows; 0 for rows out of scope.
        """
        if column not in self._count_cache:
            self._count_cache[column] = self._count_equal_facts(column)
        return self._count_cache[column]

    def _count_equal_facts(self, column: int) -> NDArray[np.unsignedinteger]:
        row = self.predictions.support(column).row
        if not self.once:
            return self.facts.in_scope[row].astype(np.uint8)
        # Most facts are predicted once; of the others it is counted how often.
        repeated = np.flatnonzero(self._is_fact_repeated[row])
        _, code, n = np.unique(
            self.facts.fact[row[repeated]], return_inverse=True, return_counts=True
        )
        count = self.facts.in_scope[row].astype(np.min_scalar_type(int(n.max(initial=1))))
        count[repeated] = n[code]
        return count

    @cached_property
    def _is_fact_repeated(self) -> NDArray[np.bool_]:
        """Return (u,) whether the row is in scope and another row in scope states an equal fact."""
        inside = self.facts.in_scope
        return (self._count_statements_of_fact(inside) > 1) & inside

    @cached_property
    def _count_cache(self) -> dict[int, NDArray[np.unsignedinteger]]:
        return {}
