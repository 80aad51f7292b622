"""The interval of the publication: the basic bootstrap of draws with replacement."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from scipy.stats import binom

from estimators.estimate import Estimate
from estimators.joint import joint_f1
from scoring.build import published_bootstrap_intervals
from scoring.data import Draws
from scoring.published import bootstrap_intervals, f1_with_floors, published_precision

N, RIGHT = 60, 42


def drawn(labels: list[list[float]]) -> tuple[Any, Draws]:
    """Systems that state apart from each other, each with so many draws of its own."""
    m = len(labels)
    owner = np.repeat(np.arange(m), [len(one) for one in labels])
    flat = np.array([label for one in labels for label in one])
    data = SimpleNamespace(
        systems=list(range(m)),
        saw=[],
        judged=np.arange(owner.size),
        f={"relation": np.repeat(flat[:, None], m, axis=1)},
    )
    P = np.where(owner[:, None] == np.arange(m), 0.01, 0.0)
    return data, Draws("instance", np.arange(owner.size), owner, P, np.diag(np.full(m, 0.01)))


@pytest.mark.parametrize("method", ["simple", "joint"])
def test_it_is_the_reflected_binomial_where_a_mean_of_labels_is_resampled(method: str) -> None:
    """Each system's draws by themselves, labelled ones alone; no width where all labels agree."""
    missing = [float("nan")] * 5
    mixed = [1.0] * RIGHT + [0.0] * (N - RIGHT)
    data, draws = drawn([mixed + missing, [1.0] * 20, missing])
    low, high = bootstrap_intervals(data, draws, [("relation", method)])["relation", method]
    share = RIGHT / N
    assert 2 * share - low[0] == pytest.approx(binom.ppf(0.9, N, share) / N, abs=1.01 / N)
    assert 2 * share - high[0] == pytest.approx(binom.ppf(0.1, N, share) / N, abs=1.01 / N)
    assert low[0] < published_precision(data, draws, "relation", method).value[0] < high[0]
    assert low[1] == pytest.approx(1.0) and high[1] == pytest.approx(1.0)
    assert np.isnan(low[2]) and np.isnan(high[2])
    every = bootstrap_intervals(data, draws, [("relation", "joint"), ("relation", "simple")])
    np.testing.assert_allclose(low, every["relation", method][0], atol=1e-12)


def test_an_evaluation_keeps_it_for_every_system_that_has_one() -> None:
    data, draws = drawn([[1.0, 0.0] * 20, [float("nan")] * 3])
    data.systems, data.draws = [41, 42], {"instance": draws}
    told = published_bootstrap_intervals(data, ("relation",), ("simple", "joint"))
    assert told.keys() == {("relation", "instance")}
    for of_method in told["relation", "instance"].values():
        (pk, (low, high)), *others = of_method.items()
        assert pk == 41 and low < 0.5 < high and not others
    data.draws = {}
    assert published_bootstrap_intervals(data, ("relation",), ("simple",)) == {}


def test_without_a_label_there_is_none() -> None:
    data, draws = drawn([[float("nan")] * 3])
    (ends,) = bootstrap_intervals(data, draws, [("relation", "joint")]).values()
    assert all(np.isnan(end).all() for end in ends)


def test_f1_has_what_is_allowed_for_under_its_recall() -> None:
    """Labels that all agree make neither of them certain, and so not F1."""
    half, nothing = np.array([0.5]), np.zeros(1)
    precision = Estimate(half, np.array([0.02]), np.array([9]), np.array([[0.1], [-0.1]]))
    recall = Estimate(half, nothing, np.array([9]), np.zeros((2, 1)), anticipated=np.array([0.03]))
    both = f1_with_floors(joint_f1(precision, recall), precision, recall)
    [told], [realised] = np.asarray(both.anticipated), np.asarray(both.variance)
    assert told == pytest.approx(0.25 * 0.02 + 0.25 * 0.03) and told > realised
