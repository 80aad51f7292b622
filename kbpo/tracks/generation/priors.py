"""What people and outputs differed by in other studies: for plans before anybody has been asked."""

from __future__ import annotations

from typing import NamedTuple


class Prior(NamedTuple):
    """Variances of a criterion that runs from 0 to 1."""

    sigma_a2: float
    """Of people about one output"""
    sigma_f2: float
    """Of the outputs of one system"""


PRIORS = {
    "fluency": Prior(0.32, 0.26),
    "redundancy": Prior(0.26, 0.43),
    "overall": Prior(0.28, 0.28),
    "edit": Prior(0.07, 0.18),
    "any_correct": Prior(0.14, 0.15),
    "avg_correct": Prior(0.12, 0.13),
}
"""Chaganty, Mussmann and Liang 2018, for ratings of summaries and answers"""
