"""How far workers agree beyond chance: Fleiss' kappa over yes-or-no judgments, for unequal numbers of answers."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from math import nan


@dataclass(frozen=True)
class Agreement:
    """`observed` is the share of pairs of answers that agree; `kappa` what of it is beyond chance (NaN: undefined)."""

    items: int
    answers: int
    observed: float
    kappa: float


def fleiss(items: Iterable[tuple[int, int]]) -> Agreement:
    """The agreement over items, each given as (how many said yes, how many answered).

    Items with one answer say nothing. Fleiss (1971) with two categories, each item weighted alike. Kappa is NaN
    where everybody said the same of all.
    """
    rated = [(yes, n) for yes, n in items if n > 1]
    if not rated:
        return Agreement(0, 0, nan, nan)
    observed = sum((yes * (yes - 1) + (n - yes) * (n - yes - 1)) / (n * (n - 1)) for yes, n in rated) / len(rated)
    answers = sum(n for _, n in rated)
    share = sum(yes for yes, _ in rated) / answers
    chance = share**2 + (1 - share) ** 2
    kappa = (observed - chance) / (1 - chance) if chance < 1 else nan
    return Agreement(len(rated), answers, observed, kappa)
