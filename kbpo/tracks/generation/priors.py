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
    "fluency": Prior.published(0.323, 0.099, steps=2),
    "redundancy": Prior.published(0.274, 0.291, steps=2),
    "overall": Prior.published(0.291, 0.134, steps=2),
    "edit": Prior.published(0.067, 0.149),
    "hter": Prior.published(0.067, 0.149),
    "any_correct": Prior.published(0.139, 0.084),
    "avg_correct": Prior.published(0.119, 0.078),
}
"""Of the judgments of Chaganty, Mussmann and Liang 2018: ratings of summaries from 1 to 3, words
edited (HTER, which stands for characters too), and answers. σ_f² of their table is the variance of
means of two or three judgments, which contains annotator noise a second time; here it is taken out
(`benchmarks/price_components.py`)."""
