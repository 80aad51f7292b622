"""Means about inputs like these: against closed forms, and held by resampling."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from scipy import sparse

from scoring.compare import covariance_of
from scoring.data import Data, Noise, SingleRatings
from scoring.documents import Annotated
from scoring.inclusion import Inclusion
from scoring.inputs import estimates_for_similar_inputs, expected_variance_of_means
from scoring.pool import Pool
from scoring.score import default_estimates

KEY = ("mean", "it", "instance")
NOBODY = SingleRatings(np.zeros(0, dtype=int), np.zeros(0, dtype=int), np.zeros(0))


def of(rating: Any, *, input: Any = None, pi: float = 1.0, seed: int = 0, **changes: Any) -> Data:
    """The data of systems (columns) whose outputs have these ratings, one target each, of which
    some are judged; rows are inputs where nothing else is said.
    """
    ratings = np.asarray(rating, dtype=float)
    n, m = ratings.shape
    rows = np.arange(n) if input is None else np.asarray(input)
    t, column = n * m, np.tile(np.arange(m), n)
    none, ones = np.zeros(t, dtype=np.int64), np.ones(t)
    p = sparse.csr_array((np.full(t, 1 / n), (np.arange(t), column)), shape=(t, m))
    drawn = np.random.default_rng(seed).random(t) < pi
    judged = np.flatnonzero(drawn)
    noise = Noise(np.ones(judged.size, dtype=np.int64), np.nan, NOBODY)
    pool = Pool(
        systems=list(range(m)), teams=[0] * m, instance=np.arange(t), target=np.arange(t),
        target_id=np.arange(t), u=np.zeros(t), document=none, stratum=none, types=none,
        subject=none, object=none, p={"instance": p}, confidence=p,
    )  # fmt: skip
    data = Data(
        pool=pool, shown=np.ones(m, dtype=np.bool_), judged=judged,
        f={"it": np.repeat(ratings.ravel()[judged, None], m, axis=1)}, draws={},
        inclusion=Inclusion(np.full(t, pi), drawn, np.full(t, pi), 1.0), g={"it": ones / 2},
        rho={"it": 0.0}, base="it", unweighed="instance", facts=None,
        documents=Annotated([], []), mark=-ones, noise={"it": noise},
        error={"it": np.full(t, ratings.var())}, input=np.repeat(rows, m), population="like",
    )  # fmt: skip
    return replace(data, **changes)


def like(data: Data) -> Any:
    return estimates_for_similar_inputs(data, default_estimates(data, ("it",), ()))[KEY]


def test_where_all_is_judged_it_is_the_variance_of_a_mean_of_inputs() -> None:
    ratings = np.random.default_rng(1).beta(2, 3, size=(30, 3))
    for g in (np.full(90, 0.5), np.random.default_rng(2).random(90)):  # whatever is guessed
        estimate, design = like(of(ratings, g={"it": g}))
        assert estimate.value == pytest.approx(ratings.mean(axis=0))
        assert estimate.variance == pytest.approx(ratings.var(axis=0, ddof=1) / 30)
        joint = covariance_of(estimate, design, np.arange(3))
        assert joint == pytest.approx(np.cov(ratings.T) / 30), "systems are paired by input"
        assert estimate.degrees_of_freedom.tolist() == [29, 29, 29]


def test_repeated_generations_of_an_input_are_one_cluster() -> None:
    once = np.random.default_rng(1).random((20, 2))
    twice, inputs = np.repeat(once, 3, axis=0), np.repeat(np.arange(20), 3)
    assert like(of(twice, input=inputs))[0].variance == pytest.approx(like(of(once))[0].variance)
    assert like(of(twice, input=inputs))[0].n.tolist() == [20, 20]


def test_ratings_of_two_values_are_never_surer_than_a_share() -> None:
    zeros = np.zeros((20, 2))
    zeros[0, 1] = 1
    estimate, _ = like(of(zeros))
    low, high = estimate.confidence_interval(0.8, method="wilson")
    assert low[0] == 0 and 0.08 < high[0] < 0.17
    same = zeros[:, [0, 0]]
    joint = covariance_of(*like(of(same)), np.arange(2))
    apart = joint[0, 0] + joint[1, 1] - 2 * joint[0, 1]
    assert apart >= 1 / 22**2, "nobody knows that two texts are alike because two were rated alike"


def test_the_other_population_and_relations_have_none_of_it() -> None:
    data = of(np.random.default_rng(1).random((20, 2)))
    assert estimates_for_similar_inputs(replace(data, population=""), {}) == {}


def test_intervals_hold_where_a_part_is_judged() -> None:
    rng, held, expected, seen = np.random.default_rng(3), [], [], []
    for seed in range(200):
        level = rng.normal(0.5, 0.12, size=(40, 1))
        ratings = np.clip(level + rng.normal(0, 0.1, size=(40, 2)), 0, 1)
        data = of(ratings, pi=0.6, seed=seed)
        these = default_estimates(data, ("it",), ())
        estimate, _ = estimates_for_similar_inputs(data, these)[KEY]
        low, high = estimate.confidence_interval(0.8, method="wilson")
        held.append((np.asarray(low) < 0.5) & (np.asarray(high) > 0.5))
        expected.append(expected_variance_of_means(data, KEY, these[KEY][0]))
        seen.append(estimate.variance)
    assert 0.75 < np.mean(held) < 0.85
    assert np.mean(expected) == pytest.approx(np.mean(seen), rel=0.1), (
        "what judging is held against"
    )
