"""Design poisson in the service: the model's doubt drives the thresholds, and the realised variance
ends the stages.
"""

from __future__ import annotations

from dataclasses import replace
from decimal import Decimal
from types import SimpleNamespace

import numpy as np
import pytest

from estimators.model import expected_error
from estimators.poisson import planned_variance
from kbpo.evaluation.data import read
from kbpo.evaluation.default import Centred
from kbpo.pool.pool import read_pool
from kbpo.sampling.designs import poisson
from kbpo.sampling.designs.base import Realised, target_variance
from kbpo.sampling.designs.poisson import FIRST, _affordable, _goal
from kbpo.sampling.designs.state import State
from kbpo.sampling.guess import VERSION, guess
from kbpo.sampling.models import Threshold
from tests.conftest import Toy
from tests.evaluation.replay import Replay

pytestmark = pytest.mark.django_db
N = 300


def test_the_first_plan_knows_no_model(toy: Toy) -> None:
    world = Replay.of(toy, N, 0.5)
    state = State(world.upload("Patterns", range(N)))
    assert state.guess.labels == 0
    assert (state.v == 0.25).all()
    assert state.total == pytest.approx(0.5)


def test_thresholds_are_raised_by_the_expected_error_of_the_model(toy: Toy) -> None:
    world = Replay.of(toy, N, 0.5)
    world.judge(world.upload("Patterns", range(N)))
    state = State(world.upload("Neural", range(0, N, 2)))
    assert state.guess.labels > 30
    pool = read_pool(
        toy.track, list(toy.track.submissions.order_by("pk").values_list("pk", flat=True))
    )
    g = state.guess.g[np.flatnonzero(pool.member[:, [1]].toarray().ravel())]
    assert np.array_equal(
        state.v, expected_error(state.p, g, state.row, correlation=state.guess.rho)
    )
    assert state.total == pytest.approx(float(state.p @ g))


def test_what_a_stage_came_to_is_kept_and_ends_the_judging(toy: Toy) -> None:
    world = Replay.of(toy, N, 0.5)
    row = world.judge(world.upload("Patterns", range(N)))
    target = target_variance(row, row.plan["chosen"])
    told = [one.settings for one in row.batches.order_by("stage")]
    assert row.stage_reason == "target" and len(told) > 1
    assert told[0]["planned_variance"] == pytest.approx(FIRST * target)
    assert told[1]["planned_variance"] < told[0]["planned_variance"]
    assert [one["realised_variance"] > 1.02 * target for one in told] == [True] * (
        len(told) - 1
    ) + [False]
    assert all(one["why"] == "target" and one["half_width"] == "0.050" for one in told)
    assert told[0]["labels"] == 0 < told[1]["labels"]
    assert {one["model"] for one in told} == {VERSION}
    assert 0 <= told[1]["correlation"] <= 1 and 0 < told[1]["total"] < 1
    raised = Threshold.objects.filter(batch__submission=row).select_related("batch")
    assert raised and all(one.batch.drawn_at for one in raised)


def test_a_stage_that_fell_short_makes_the_next_one_plan_for_less(toy: Toy) -> None:
    world = Replay.of(toy, N, 0.5)
    row = world.judge(world.upload("Patterns", range(N)))
    target = target_variance(row, row.plan["chosen"])
    last = row.batches.order_by("stage").last()
    Realised(2 * target, target).keep(last)
    state = State(row)
    assert row.batches.count() > 1
    assert _goal(row, state) == pytest.approx(0.995 * state.planned / 2**0.5)
    assert len(state.new(state.asked(state.raised(_goal(row, state))))) > 0


def test_errors_that_do_not_go_together_narrow_what_is_anticipated(toy: Toy) -> None:
    world = Replay.of(toy, N, 0.5)
    world.judge(world.upload("Patterns", range(N)))
    data = read(toy.track)
    # Every relation has a pair of its own: put them in twos, as a system does that says several
    # things of a pair.
    pool = replace(data.pool, target=data.pool.target // 2)
    assert data.rho["relation"] == pytest.approx(1.0), (
        "nothing shares a target, so that the careful assumption stands"
    )
    apart, together = (
        Centred(replace(data, pool=pool, rho={"relation": rho}))._anticipated(
            pool.p["instance"],
            np.full(N, 0.3),
            "relation",
            Centred(data).precision("instance", "relation"),
        )
        for rho in (0.0, 1.0)
    )
    assert np.asarray(together)[0] == pytest.approx(2 * np.asarray(apart)[0], rel=0.2)


def test_too_few_labels_teach_nothing(toy: Toy) -> None:
    world = Replay.of(toy, 40, 0.5)
    row = world.upload("Patterns", range(40))
    pool = read_pool(toy.track, [row.pk])
    label = np.where(np.arange(40) < 29, 1.0, np.nan)
    found = guess(pool, label, key="k", seen={})
    assert (found.g == 0.5).all() and found.rho == 1.0 and found.labels == 0
    label[29] = 0.0
    assert guess(pool, label, key="k", seen={}).labels == 30


def test_a_stage_keeps_what_it_aimed_at_and_the_multiplier_of_its_thresholds(toy: Toy) -> None:
    world = Replay.of(toy, N, 0.5)
    row = world.judge(world.upload("Patterns", range(N)))
    target = target_variance(row, row.plan["chosen"])
    first = row.batches.get(stage=1)
    assert first.settings["target_variance"] == pytest.approx(target)
    each = (
        np.sqrt(0.25) / N
    )  # s of a target of the first stage: no model, every prediction weighs the same
    wanted = first.settings["lambda"] * each
    assert 0 < wanted < 1
    raised = np.array(list(Threshold.objects.filter(batch=first).values_list("pi", flat=True)))
    assert raised == pytest.approx(np.full(N, wanted))
    assert float((each**2 * (1 / raised - 1)).sum()) == pytest.approx(
        first.settings["planned_variance"]
    )
    assert all(one.settings["lambda"] > 0 for one in row.batches.all())
    assert {one.settings["target_variance"] for one in row.batches.all()} == {
        first.settings["target_variance"]
    }


def test_where_the_money_ends_the_plan_that_it_reached_is_kept(
    toy: Toy, monkeypatch: pytest.MonkeyPatch
) -> None:
    world = Replay.of(toy, N, 0.5)
    row = world.upload("Patterns", range(N))
    each = Decimal(row.plan["options"][row.plan["chosen"]]["each"])
    monkeypatch.setattr(poisson, "balance", lambda **_: SimpleNamespace(open=40 * each))
    state = State(row)
    goal = target_variance(row, row.plan["chosen"]) / 10
    pi, reached, why = _affordable(row, state, goal)
    assert why == "budget" and reached > goal
    assert (
        0 < len(state.new(state.asked(pi))) <= 40 < len(state.new(state.asked(state.raised(goal))))
    )
    assert np.array_equal(pi, state.raised(reached))
    assert planned_variance(state.p, pi[state.row], state.v, target=state.row) == pytest.approx(
        reached
    )
