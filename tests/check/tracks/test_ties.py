"""Where many of the pairs are ties, a guess of ½ errs by less, and intervals are as narrow as
that.
"""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
from scipy import sparse

from estimators.horvitz_thompson import centred_difference_estimate
from estimators.ratings import (
    anticipated_rating_variance,
    estimate_with_rating_noise,
    verdict_variance,
)
from kbpo.sampling.guess import guess_under_criterion, mean_verdict_over_systems

PAIRS, CHANCE, REPEATS = 400, 0.25, 300
OF_THREE = (0.15, 0.6, 0.25)
"""How often the second text is better, neither, and the first"""
KIND: Any = SimpleNamespace(opposes=True)


def error_of(first_wins: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """The squared error that is expected of ½, of judgments of pairs of two systems."""
    both = np.stack([first_wins, 1 - first_wins], axis=1)
    member = sparse.csr_array(np.ones(both.shape))
    lesson: Any = SimpleNamespace(pool=SimpleNamespace(member=member))
    guess = guess_under_criterion(
        KIND, "better", lesson, mean_verdict_over_systems(KIND, both, member)
    )
    assert guess.error is not None and set(guess.g) == {0.5}
    return guess.error


def test_the_error_of_a_half_is_what_judgments_show() -> None:
    nothing = np.full(40, np.nan)
    assert set(error_of(nothing)) == {0.25}
    assert set(error_of(np.where(np.arange(40) < 3, 1.0, nothing))) == {0.25}
    halves = error_of(np.repeat([0.0, 0.5, 0.5, 1.0], 50))
    assert np.ptp(halves) == 0 and 0.125 < halves[0] < 0.13
    two = error_of(np.where(np.arange(40) < 2, 0.5, nothing))[0]
    assert 0.17 < two < 0.25, "two ties say little"


def test_ties_of_some_systems_say_nothing_of_those_that_win() -> None:
    """With one error for all, of a system that wins or loses beside twins too little was asked."""
    of_twins = np.arange(80) < 60
    member = sparse.csr_array(np.stack([~of_twins, of_twins, np.ones(80)], axis=1))
    lesson: Any = SimpleNamespace(pool=SimpleNamespace(member=member))
    guess = guess_under_criterion(KIND, "better", lesson, np.where(of_twins, 0.5, 1.0))
    assert guess.error is not None
    assert guess.error[of_twins].max() < 0.03 and guess.error[~of_twins].min() > 0.2


def test_intervals_of_pairs_with_ties_hold_as_often_as_they_say() -> None:
    """With ¼ for all they were 1.4 times as wide, and held 0.96 of the time."""
    rng = np.random.default_rng(5)
    chance = rng.dirichlet(20 * np.array(OF_THREE), PAIRS)
    truth = float((chance @ [0.0, 0.5, 1.0]).mean())
    p, half = np.full(PAIRS, 1 / PAIRS), np.full(PAIRS, 0.5)
    held = []
    for _ in range(REPEATS):
        drawn = np.flatnonzero(rng.random(PAIRS) < CHANCE)
        said = np.full(PAIRS, np.nan)
        said[drawn] = (rng.random((drawn.size, 1)) > chance[drawn].cumsum(axis=1)).sum(axis=1) / 2
        pi = np.full(drawn.size, CHANCE)
        alone = centred_difference_estimate(p[drawn], pi, said[drawn], half[drawn], 0.5)
        floor = anticipated_rating_variance(p[:, None], np.full(PAIRS, CHANCE), error_of(said))
        rated = np.ones((drawn.size, 1))
        noise = float(verdict_variance(said[drawn][:, None], rated)[0])
        estimate = estimate_with_rating_noise(
            replace(alone, anticipated=float(floor[0]), total_g=0.5),
            p[drawn],
            pi,
            np.ones(drawn.size),
            noise,
        )
        low, high = estimate.confidence_interval(0.8, method="wilson")
        held.append(low <= truth <= high)
    assert 0.74 < np.mean(held) < 0.9
