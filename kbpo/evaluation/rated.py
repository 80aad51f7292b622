"""Adds to an estimate what people differ by, where single ratings stand for what people think.

A majority is taken for true; a rating is one person's opinion, and another person would have said
something else. So where every output has been rated there is still chance left
(`estimators.ratings`).
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from estimators.design import Design
from estimators.estimate import Estimate, with_columns
from estimators.ratings import rating_design, with_rating_noise
from kbpo.evaluation.default import Centred
from kbpo.tracks.base import Noise


def with_noise(
    arranged: Centred, kind: str, criterion: str, estimate: Estimate
) -> tuple[Estimate, Design]:
    """The weighted mean of every system under a distribution, with the annotators' term in its
    variance, and the design that its influence belongs to; both unchanged under a criterion whose
    judgments are taken for true.
    """
    under = arranged.under(criterion)
    noise = arranged.data.noise.get(criterion)
    if noise is None:
        return estimate, under.design
    p = arranged.data.pool.p[kind][under.row].toarray()
    count = noise.count[under.at]
    target, design = under.targets[1], under.design

    def widened(alone: Estimate, weight: np.ndarray, pi: np.ndarray) -> Estimate:
        return with_rating_noise(
            alone, weight, pi, count, noise.variance, target=target, design=design
        )

    expected = _expected(arranged, kind, noise)
    estimate = replace(estimate, anticipated=np.asarray(estimate.anticipated) + expected)
    of_all = widened(estimate, p * under.counts[:, None], under.row_pi)
    of_own = {}
    for column in arranged.data.seen:  # their probabilities are their own
        used, pi = under.own(column)
        of_own[column] = widened(_column(estimate, column), p[:, column] * used, pi)
    return with_columns(of_all, of_own), rating_design(under.row_pi, target=target, design=design)


def _expected(arranged: Centred, kind: str, noise: Noise) -> np.ndarray:
    """(m,) what people differ by once all is rated, as many of them a thing as there were so far:
    Σ p² σ_a²/c, for the floor of the variance.
    """
    rated = noise.count[noise.count > 0]
    inverse = float((1 / rated).mean()) if rated.size else 1.0
    squares = arranged.data.pool.p[kind].power(2).sum(axis=0)
    return np.asarray(squares).ravel() * noise.variance * inverse


def _column(estimate: Estimate, column: int) -> Estimate:
    """The estimate of one system alone."""
    shape = np.shape(estimate.value)
    names = ("value", "variance", "n", "anticipated", "total_g", "degrees_of_freedom")
    own = {name: np.broadcast_to(getattr(estimate, name), shape)[column] for name in names}
    return replace(estimate, influence=np.asarray(estimate.influence)[:, column], **own)
