"""A judge that came late and repeats the judgments it has seen: given the answers of that moment,
later draws still give an unbiased mean whose interval holds.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from estimators.horvitz_thompson import centred_difference_estimate
from scoring.inclusion import Inclusion

N, REPEATS = 300, 1500
Floats = NDArray[np.float64]


def test_later_labels_correct_a_judge_that_repeats_earlier_ones() -> None:
    rng = np.random.default_rng(11)
    truth = (rng.random(N) < 0.6).astype(float)
    first, both = rng.uniform(0.15, 0.5, N), rng.uniform(0.55, 0.8, N)
    conditional, believed, held = [], [], 0
    for _ in range(REPEATS):
        u = rng.random(N)
        ratio = u / first
        # Half of what was drawn is answered, in the order of u/π, as the judge arrives.
        known = ratio <= np.quantile(ratio[ratio < 1], 0.5)
        g = np.where(known, np.clip(truth, 0.01, 0.99), 0.35)
        inclusion = Inclusion(asked=both, drawn=u < both, threshold=both, released=1.0)
        after, certain = inclusion.at_time_of_answers(u, first, known)
        assert (certain == known).all() and (after.asked[certain] == 1).all()
        estimate = mean(g, truth, after.drawn, after.asked)
        conditional.append(np.asarray(estimate.value).item())
        low, high = (np.asarray(end).item() for end in estimate.confidence_interval(0.8))
        held += int(low <= truth.mean() <= high)
        believed.append(np.asarray(mean(g, truth, after.drawn, both).value).item())
    error = np.array(conditional) - truth.mean()
    assert abs(error.mean()) < 3 * error.std() / REPEATS**0.5
    assert 0.77 < held / REPEATS < 0.85
    wrong = np.array(believed) - truth.mean()
    assert abs(wrong.mean()) > 10 * wrong.std() / REPEATS**0.5, "without the condition it is biased"


def mean(g: Floats, truth: Floats, drawn: NDArray[np.bool_], pi: Floats):  # type: ignore[no-untyped-def]
    at = np.flatnonzero(drawn)
    weight = np.full((at.size, 1), 1 / N)
    return centred_difference_estimate(
        weight, pi[at], truth[at, None], g[at], np.array([g.mean()]), target=np.arange(at.size),
        n_targets=at.size,
    )  # fmt: skip
