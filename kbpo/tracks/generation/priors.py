"""What people and outputs differed by in other studies: for plans before anybody has been asked."""

from __future__ import annotations

from typing import NamedTuple


class Prior(NamedTuple):
    """Variances of a criterion that runs from 0 to 1."""

    sigma_a2: float
    """Of people about one output"""
    sigma_f2: float
    """Of the outputs of one system"""

    @classmethod
    def published(cls, sigma_a2: float, sigma_f2: float, *, steps: int = 1) -> Prior:
        """That of a scale which runs over so many steps; at most ¼ in all, as far as ratings from 0
        to 1 can vary.
        """
        whole = (sigma_a2 + sigma_f2) / steps**2
        share = min(1.0, WIDEST / whole) / steps**2
        return cls(sigma_a2 * share, sigma_f2 * share)


WIDEST = 0.25
PRIORS = {
    "fluency": Prior.published(0.32, 0.26, steps=2),
    "redundancy": Prior.published(0.26, 0.43, steps=2),
    "overall": Prior.published(0.28, 0.28, steps=2),
    "edit": Prior.published(0.07, 0.18),
    "any_correct": Prior.published(0.14, 0.15),
    "avg_correct": Prior.published(0.12, 0.13),
}
"""Chaganty, Mussmann and Liang 2018, for ratings of summaries, from 1 to 3, and of answers"""
