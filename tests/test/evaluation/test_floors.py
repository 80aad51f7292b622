"""Recall, F1 and corrected recall are never surer than the model expects: labels that agree by luck
prove little.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from estimators.anticipated import combine_variances
from kbpo.evaluation.data import load_data
from kbpo.evaluation.run import score_track
from kbpo.sampling.documents.draw import settle_documents
from kbpo.submissions.models import Submission
from scoring.data import Data
from scoring.default import Centred
from scoring.floors import Floors
from scoring.score import CORRECTED, default_estimates
from tests.conftest import Toy
from tests.reports import figures_of
from tests.test.evaluation.world import World

pytestmark = pytest.mark.django_db


@pytest.fixture
def world(toy: Toy) -> World:
    """Two systems of which half is asked, and six documents read in full."""
    world = World(toy, is_study=True, n_documents=16)
    world.answer(world.sample(world.system("one", lambda one: one.pk % 2 > 0), 0.5))
    world.answer(world.sample(world.system("two", lambda one: one.pk % 3 > 0, team="Neural"), 0.7))
    world.read_in_full(world.documents[:6], lambda one: True)
    settle_documents(world.track, [one.pk for one in world.documents[:6]])
    return world


def by_hand(data: Data, own: np.ndarray, taken: np.ndarray) -> np.ndarray:
    """c Σ_τ (1/π − 1) {ρ [Σ |u − s v| √(g(1−g))]² + (1 − ρ) Σ (u − s v)² g (1−g)}, without a sparse
    matrix.
    """
    arranged = Centred(data)
    g, f = data.g["relation"], data.f["relation"][arranged.judged_positions, 0]
    known = ~np.isnan(f)
    at = arranged.row[known]
    c = max(1.0, ((f[known] - g[at]) ** 2).sum() / (g[at] * (1 - g[at])).sum())
    spread = (
        np.abs(own - np.outer(arranged.fact_shares("fact").pool_shares, taken))
        * np.sqrt(g * (1 - g))[:, None]
    )
    total, rho = np.zeros(own.shape[1]), data.rho["relation"]
    for target in range(data.pool.target_id.size):
        rows = data.pool.target == target
        odds = 1 / arranged.pi[rows][0] - 1
        total += odds * (
            rho * spread[rows].sum(axis=0) ** 2 + (1 - rho) * (spread[rows] ** 2).sum(axis=0)
        )
    return np.asarray(c * total)


def every_share(arranged: Centred) -> np.ndarray:
    """(u, m) the share of a fact of its system that each prediction of the pool stands for."""
    return arranged.fact_shares("fact").shares_of_rows(np.arange(arranged.data.pool.instance.size))


def test_the_floors_are_those_of_the_formula(world: World) -> None:
    data = replace(load_data(world.track), rho={"relation": 0.3, "linking": 0.3, "correct": 0.3})
    arranged = Centred(data)
    found = Floors(arranged).recall("relation")
    assert found is not None
    truth = found.totals.pool.value + found.unseen.value
    share, r = every_share(arranged), np.asarray(found.recall.value)
    n = arranged.counted_targets[0].size
    z, design = found.recall.influence, found.design
    documents = np.asarray(design.variance(z)) - (1 - design.pi[:n]) @ z[:n] ** 2
    assert (documents > 0).all()
    expected = combine_variances(by_hand(data, share / truth, r / truth), z[:n], design.pi[:n])
    np.testing.assert_allclose(found.recall.anticipated, expected + documents)
    freedom = found.unseen.degrees_of_freedom * ((expected + documents) / documents) ** 2
    np.testing.assert_allclose(found.recall.degrees_of_freedom, freedom)

    precision = arranged.precision("instance", "relation")
    p = np.asarray(precision.value)
    both = Floors(arranged).f1("instance", "relation", precision, found)
    by_p, by_r = 2 * r**2 / (p + r) ** 2, 2 * p**2 / (p + r) ** 2
    own = data.pool.p["instance"].toarray() * by_p + share * by_r / truth
    documents = (
        np.asarray(design.variance(both.influence)) - (1 - design.pi[:n]) @ both.influence[:n] ** 2
    )
    expected = combine_variances(
        by_hand(data, own, by_r * r / truth), both.influence[:n], design.pi[:n]
    )
    np.testing.assert_allclose(both.anticipated, expected + documents)


def test_where_nearly_all_of_the_pool_is_judged_a_step_of_recall_and_of_f1_is_allowed_for(
    world: World,
) -> None:
    data = load_data(world.track)
    assert (Floors(Centred(data)).recall("relation").recall.half_step == 0).all()  # type: ignore[union-attr]
    for column in range(2):
        world.answer(world.sample(Submission.objects.get(pk=data.systems[column]), 1.0))
    data = load_data(world.track)
    left = np.array([3, 20])  # rows of the pool whose questions found no answer
    f = {
        name: np.where(np.isin(data.judged, left)[:, None], np.nan, one)
        for name, one in data.f.items()
    }
    arranged = Centred(replace(data, f=f))
    found = Floors(arranged).recall("relation")
    assert found is not None
    truth = found.totals.pool.value + found.unseen.value
    share, r = every_share(arranged), np.asarray(found.recall.value)
    moved = np.abs(share / truth - np.outer(arranged.fact_shares("fact").pool_shares, r / truth))[
        left
    ]
    expected = 0.5 * (moved**2).sum(axis=0) / moved.sum(axis=0)
    assert (expected > 0).all()
    np.testing.assert_allclose(found.recall.half_step, expected)
    precision = arranged.precision("instance", "relation")
    p = np.asarray(precision.value)
    both = Floors(arranged).f1("instance", "relation", precision, found)
    by_p, by_r = 2 * r**2 / (p + r) ** 2, 2 * p**2 / (p + r) ** 2
    own = data.pool.p["instance"].toarray() * by_p + share * by_r / truth
    moved = np.abs(own - np.outer(arranged.fact_shares("fact").pool_shares, by_r * r / truth))[left]
    np.testing.assert_allclose(both.half_step, 0.5 * (moved**2).sum(axis=0) / moved.sum(axis=0))


def test_labels_that_agree_with_the_model_by_luck_make_nothing_certain(world: World) -> None:
    """What if every label said just what the model guesses? The realised variance of targets would
    be nothing.
    """
    data = load_data(world.track)
    lucky = {
        name: np.where(np.isnan(f), f, data.g["relation"][data.judged][:, None])
        for name, f in data.f.items()
    }
    data = replace(data, f=lucky, facts=replace(data.facts, found=np.ones_like(data.facts.found)))
    estimates = default_estimates(data, ("relation",), ("relation",))
    for quantity in ("recall", "f1"):
        found, _ = estimates[quantity, "relation", "instance"]
        assert (np.asarray(found.variance) < 1e-12).all(), "all that chance could do is hidden"
        assert (np.asarray(found.anticipated) > 1e-4).all()
        low, high = found.confidence_interval(0.8, method="wilson")
        assert (np.asarray(high) - np.asarray(low) > 0.02).all()


@pytest.mark.soak
def test_what_is_printed_rests_on_the_larger_variance(world: World) -> None:
    estimates = default_estimates(load_data(world.track), ("relation",), ("relation",))
    assert CORRECTED in {key[0] for key in estimates}
    evaluation = score_track(world.track)
    for quantity in ("recall", "f1", CORRECTED):
        found, _ = estimates[quantity, "relation", "instance"]
        of = {"quantity": quantity, "criterion": "relation", "method": "centred", "slice": ""}
        rows = [figure.variance for _, figure in sorted(figures_of(evaluation, **of).items())]
        assert rows == pytest.approx(np.maximum(found.variance, found.anticipated).tolist())
        assert (np.asarray(found.anticipated) > 0).all()
