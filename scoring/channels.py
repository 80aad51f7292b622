"""By what a run may tell which answers to an earlier run's sample its authors had read, beside what
it predicts: all of it that the model learns from, and that a score is made of.

Everything here is a function of what the two runs say, and of nothing that was drawn.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from estimators.leaks import Channel
from scoring.arrays import Bools, Floats, Ids

SURE, SUBJECT, OBJECT, TARGET = "sure", "subject", "object", "target"
WEIGHED, LINKED = "weighed", "linked"


@dataclass(frozen=True, eq=False)
class Said:
    """What a run says of the instances (u,) of a pool, on its targets (t,)."""

    target: Ids
    """(u,) code of the target"""
    n_targets: int
    subject: Ids
    """(u,) code of the subject's entity"""
    object: Ids
    relation: Ids
    """(u,)"""
    predicted: Bools
    """(u,) it predicts this"""
    confidence: Floats
    """(u,) how sure it is; 0 of what it does not predict"""
    weight: Mapping[str, Floats]
    """Distribution -> (u,) what it weighs"""

    def beside(
        self, earlier: Bools, weight: Mapping[str, Floats], linked: Bools
    ) -> Iterator[Channel]:
        """Yield the channels beside an earlier run, which predicts some instances (u,) and weighs
        them; `linked` are those that both predict and link to different names.
        """
        both = earlier & self.predicted
        everywhere, shared = np.ones(self.n_targets, dtype=np.bool_), self._count(both) > 0
        yield Channel(SURE, shared, self._most(both, self.confidence))
        for name, besides in ((SUBJECT, self._of_subject), (OBJECT, self._of_object)):
            yield Channel(name, everywhere, self._most(earlier, besides))
        yield Channel(TARGET, everywhere, self._count(self.predicted & ~earlier))
        for kind, own in self.weight.items():
            held, gives = self._sum(both, weight[kind]), self._sum(both, own)
            ratio = np.divide(gives, held, out=np.zeros(self.n_targets), where=held > 0)
            yield Channel(
                WEIGHED, shared & (held > 0), np.round(ratio / ratio.max(initial=1.0), 12)
            )
        yield Channel(LINKED, shared, self._count(both & linked))

    @cached_property
    def _of_subject(self) -> Floats:
        return self._besides(self.subject)

    @cached_property
    def _of_object(self) -> Floats:
        return self._besides(self.object)

    def _besides(self, entity: Ids) -> Floats:
        """(u,) how often it claims an instance's relation of the same entity on other targets."""
        slot = _codes_of(entity, self.relation)
        place = _codes_of(slot, self.target)
        of_slot, of_place = (
            np.bincount(code[self.predicted], minlength=code.size) for code in (slot, place)
        )
        return np.asarray(of_slot[slot] - of_place[place], dtype=np.float64)

    def _count(self, instances: Bools) -> Floats:
        """(t,) how many of some instances each target has."""
        return np.bincount(self.target[instances], minlength=self.n_targets).astype(np.float64)

    def _sum(self, instances: Bools, values: Floats) -> Floats:
        """(t,) the sum of a number over some instances of each target."""
        sums = np.bincount(
            self.target[instances], weights=values[instances], minlength=self.n_targets
        )
        return sums.astype(np.float64)

    def _most(self, instances: Bools, values: Floats) -> Floats:
        """(t,) the greatest number of some instances of each target; 0 without any."""
        greatest = np.zeros(self.n_targets)
        np.maximum.at(greatest, self.target[instances], values[instances])
        return greatest


def _codes_of(first: Ids, second: Ids) -> Ids:
    """(n,) the same code, below n, for rows that are alike in both columns."""
    codes = np.unique(second, return_inverse=True)[1].astype(np.int64)
    both = np.unique(first, return_inverse=True)[1] * (int(codes.max(initial=0)) + 1) + codes
    return np.asarray(np.unique(both, return_inverse=True)[1], dtype=np.int64)
