"""Plays out everything that may happen: a story asks for each of its chances,
and is told every answer once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import combinations, pairwise
from typing import Any


@dataclass
class Fate:
    """One way in which things may go."""

    told: list[tuple[int, int]]
    """Of each chance so far which of its answers, of how many"""
    probability: float = 1.0
    at: int = field(default=0, repr=False)

    def one_of(self, answers: Sequence[tuple[Any, float]]) -> Any:
        """One of the answers, each with its probability; those that cannot be are left out."""
        able = [(answer, p) for answer, p in answers if p > 0]
        if self.at == len(self.told):
            self.told.append((0, len(able)))
        which, _ = self.told[self.at]
        self.at += 1
        answer, p = able[which]
        self.probability *= p
        return answer

    def happens(self, probability: float) -> bool:
        return bool(self.one_of([(True, probability), (False, 1 - probability)]))

    def number(self, cuts: Sequence[float]) -> float:
        """A number that is uniform in [0, 1):
        all that is asked of it is between which of the cuts it lies.
        """
        ends = sorted({0.0, 1.0, *(cut for cut in cuts if 0 < cut < 1)})
        return float(self.one_of([((low + high) / 2, high - low) for low, high in pairwise(ends)]))

    def sample(self, some: Sequence[int], size: int) -> list[int]:
        """So many of some things, drawn without replacement."""
        ways = list(combinations(some, size))
        return list(self.one_of([(list(way), 1 / len(ways)) for way in ways]))


def fates(story: Callable[[Fate], Any]) -> Iterator[tuple[float, Any]]:
    """The probability of everything that may happen in a story, and what the story says of it."""
    told: list[tuple[int, int]] = []
    while True:
        fate = Fate(list(told))
        outcome = story(fate)
        yield fate.probability, outcome
        told = fate.told
        while told and told[-1][0] + 1 == told[-1][1]:
            told.pop()
        if not told:
            return
        told[-1] = (told[-1][0] + 1, told[-1][1])
