"""Leaves out of a release what withdrawn runs predict and nobody judged."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np

from scoring.arrays import Bools
from scoring.data import Data
from scoring.release import Row


@dataclass(frozen=True)
class LeftOut:
    """What the numbers of those who take part need of withdrawn runs: what was judged.

    Draws with replacement rest on the overlaps of whole runs, and the pool of recall on guesses of
    what was never judged. There the numbers stay, and what they are about is not `told`.
    """

    withdrawn: frozenset[int]
    judged: frozenset[int]
    """Targets"""
    needed: frozenset[int]
    """Targets of which any number is needed"""
    told: frozenset[int]
    """Targets that were judged, or of which those predict something who take part"""
    with_replacement: bool
    target_of: dict[int, int]
    """Instance -> its target"""

    @classmethod
    def of(cls, data: Data) -> LeftOut:
        """Return it for the data of a release."""
        pool, with_replacement = data.pool, bool(data.draws)
        judged, told = (np.zeros(pool.target_id.size, dtype=np.bool_) for _ in range(2))
        judged[pool.target[data.judged]] = True
        predicted = pool.member[:, np.flatnonzero(data.shown)].sum(axis=1) > 0
        told[pool.target[predicted]] = True
        told |= judged
        needed = told | data.inclusion.drawn | with_replacement
        if data.facts is not None and data.facts.n_annotated > 1:  # else there is no recall
            needed[pool.target[data.facts.counted]] = True

        def ids(chosen: Bools) -> frozenset[int]:
            return frozenset(pool.target_id[chosen].tolist())

        gone = zip(data.systems, data.shown.tolist(), strict=True)
        targets = pool.target_id[pool.target]
        return cls(
            withdrawn=frozenset(system for system, takes_part in gone if not takes_part),
            judged=ids(judged),
            needed=ids(needed),
            told=ids(told),
            with_replacement=with_replacement,
            target_of=dict(zip(pool.instance.tolist(), targets.tolist(), strict=True)),
        )

    def kept(self, rows: Iterable[Row]) -> Iterator[Row]:
        """Yield the rows of a table that stay: of withdrawn runs those of what was judged."""
        for row in rows:
            target = row["target"] if "target" in row else self.target_of[row["instance"]]
            if self.with_replacement or target in self.judged:
                yield row
            elif target in self.needed and row.get("system") not in self.withdrawn:
                yield self._unnamed(row)

    def _unnamed(self, row: Row) -> Row:
        """Return the row of what was not judged, without the withdrawn runs that predict it."""
        if "predicted_by" not in row:
            return row
        others = [system for system in row["predicted_by"] if system not in self.withdrawn]
        return row | {"predicted_by": others}
