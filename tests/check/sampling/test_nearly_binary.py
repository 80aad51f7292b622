"""What is drawn of criteria whose ratings are nearly all 0 or 1."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse

from estimators.poisson import water_fill
from kbpo.sampling.guess import LEAST_DOUBT, guess_ratings
from scoring.pool import Pool


def error_of(rating: np.ndarray, score: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """What is guessed of the outputs of one system, and its expected errors."""
    n = rating.size
    none, every = np.zeros(n, dtype=np.int64), sparse.csr_array(np.full((n, 1), 1 / n))
    pool = Pool(
        systems=[1], teams=[1], instance=np.arange(n), target=np.arange(n), target_id=np.arange(n),
        u=np.zeros(n), document=none, stratum=none, types=none, subject=none, object=none,
        p={"instance": every}, confidence=every, scorers=[1], scores=score[:, None],
        input=np.arange(n),
    )  # fmt: skip
    guess = guess_ratings(pool, rating, key="key")
    assert guess.error is not None
    return guess.g, guess.error


def test_outputs_in_doubt_are_drawn_more_often_where_ratings_are_0_or_1() -> None:
    rng = np.random.default_rng(5)
    score = rng.random(400)
    said = (rng.random(400) < 1 / (1 + np.exp(-12 * (score - 0.5)))).astype(float)
    g, error = error_of(said, score)
    doubt = np.maximum(g * (1 - g), LEAST_DOUBT)
    assert error / doubt == pytest.approx(np.full(400, error[0] / doubt[0])), "π ∝ √(g (1 − g))"
    assert error.mean() == pytest.approx(((said - g) ** 2).mean(), rel=0.05), "as large on average"
    pi = water_fill(np.full(400, 1 / 400), np.zeros(400), error, target_variance=2e-4)
    assert pi[np.abs(g - 0.5) < 0.1].mean() > 1.3 * pi[np.abs(g - 0.5) > 0.4].mean()


def test_ratings_of_a_scale_are_drawn_with_equal_chances() -> None:
    rng = np.random.default_rng(5)
    score = rng.random(400)
    _, error = error_of(np.clip(score + rng.normal(0, 0.1, 400), 0, 1), score)
    assert np.ptp(error) == 0
