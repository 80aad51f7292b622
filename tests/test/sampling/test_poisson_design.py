"""Design poisson in the service: the model's doubt drives the thresholds, and the realised variance
ends the stages.
"""

from __future__ import annotations

from dataclasses import replace
from decimal import Decimal
from types import SimpleNamespace

import numpy as np
import pytest

from annotation.models import Question
from annotation.questions import ask
from estimators.model import expected_error
from estimators.poisson import planned_variance, water_fill
from kbpo.evaluation.data import load_data
from kbpo.evaluation.due import finished_submissions
from kbpo.evaluation.run import score_track
from kbpo.pool.pool import read_pool
from kbpo.sampling import draw
from kbpo.sampling.confirm import confirm_plan
from kbpo.sampling.designs import design_of, poisson
from kbpo.sampling.designs.base import Realised, target_variance_of_submission
from kbpo.sampling.designs.poisson import (
    FIRST,
    Plan,
    _next_stage_goal,
)
from kbpo.sampling.designs.state import State
from kbpo.sampling.guess import VERSION
from kbpo.sampling.models import Sample, Threshold
from kbpo.submissions.models import Submission
from scoring.default import Centred
from tests.conftest import Toy
from tests.test.evaluation.replay import Replay

pytestmark = pytest.mark.django_db
N = 300


def test_the_first_plan_knows_no_model(toy: Toy) -> None:
    world = Replay.of(toy, N, 0.5)
    state = State(world.upload("Patterns", range(N)))
    assert state.guess.labels == 0
    assert (state.v == 0.25).all()
    assert state.total == pytest.approx(0.5)


def test_thresholds_are_raised_by_the_expected_error_of_the_model(toy: Toy) -> None:
    world, _ = Replay.judged(toy, N, 0.5)
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
    _, row = Replay.judged(toy, N, 0.5)
    target = target_variance_of_submission(row, row.plan["chosen"])
    told = [one.settings for one in row.batches.order_by("stage")]
    assert row.stage_reason == "target" and len(told) > 1
    assert told[0]["planned_variance"] == pytest.approx(FIRST * target)
    assert told[1]["planned_variance"] < told[0]["planned_variance"]
    expected = [one["realised"][1] for one in told]
    assert [one > 1.02 * target for one in expected] == [True] * (len(told) - 1) + [False]
    assert all(one["why"] == "target" and one["half_width"] == "0.050" for one in told)
    assert told[0]["labels"] == 0 < told[1]["labels"]
    assert {one["model"] for one in told} == {VERSION}
    assert 0 <= told[1]["correlation"] <= 1 and 0 < told[1]["total"] < 1
    raised = Threshold.objects.filter(batch__submission=row).select_related("batch")
    assert raised and all(one.batch.drawn_at for one in raised)


def test_a_stage_that_fell_short_makes_the_next_one_plan_for_less(toy: Toy) -> None:
    _, row = Replay.judged(toy, N, 0.5)
    target = target_variance_of_submission(row, row.plan["chosen"])
    last = row.batches.order_by("stage").last()
    Realised(0.0, 2 * target).store_in_batch(last)
    state = State(row)
    assert row.batches.count() > 1
    assert _next_stage_goal(row, state) == pytest.approx(0.995 * state.planned_variance / 2)
    assert (
        len(
            state.unpaid_targets(
                state.targets_below(state.thresholds_for(_next_stage_goal(row, state)))
            )
        )
        > 0
    )


def test_errors_that_do_not_go_together_narrow_what_is_anticipated(toy: Toy) -> None:
    Replay.judged(toy, N, 0.5)
    data = load_data(toy.track)
    # Every relation has a pair of its own: put them in twos, as a system does that says several
    # things of a pair.
    pool = replace(data.pool, target=data.pool.target // 2, fixed=(), by_system={})
    assert data.rho["relation"] == pytest.approx(1.0), (
        "nothing shares a target, so that the careful assumption stands"
    )
    apart, together = (
        Centred(replace(data, pool=pool, rho={"relation": rho}))._anticipated_variance(
            "instance", [0], np.full(N, 0.3)
        )
        for rho in (0.0, 1.0)
    )
    assert np.asarray(together)[0] == pytest.approx(2 * np.asarray(apart)[0], rel=0.2)


def test_a_stage_keeps_what_it_aimed_at_and_the_multiplier_of_its_thresholds(toy: Toy) -> None:
    _, row = Replay.judged(toy, N, 0.5)
    target = target_variance_of_submission(row, row.plan["chosen"])
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


@pytest.fixture
def standing_still(toy: Toy, monkeypatch: pytest.MonkeyPatch) -> Submission:
    """A run of which some is left, whose variance is almost all what people differ by."""
    _, row = Replay.judged(toy, 60, 0.5)
    each = Decimal(row.plan["options"][row.plan["chosen"]]["each"])
    monkeypatch.setattr(poisson, "balance", lambda **_: SimpleNamespace(open=60 * each))
    fixed = property(lambda _: 1.0, lambda *_: None)  # whatever is set
    monkeypatch.setattr(State, "noise", fixed, raising=False)
    return row


def _not_drawn(row: Submission) -> set[int]:
    """Return the targets that count in the guaranteed number and are not drawn yet."""
    _, target, p = poisson.submission_support(row, row.track.distribution)
    return set(target[p > 0].tolist()) - poisson._drawn_targets(row)


def _falls_short(row: Submission) -> Realised:
    realised = Realised(0.0, 2 * target_variance_of_submission(row, row.plan["chosen"]))
    realised.store_in_batch(row.batches.latest("stage"))
    return realised


def test_a_stage_that_would_ask_nothing_goes_further_until_all_is_asked(
    standing_still: Submission,
) -> None:
    """Stages of nothing followed each other, up to the twelfth, with things and money left."""
    row, design = standing_still, design_of(standing_still.track)
    before, left = row.batches.count(), _not_drawn(row)
    assert left
    while not (why := design.reason_to_stop(row, _falls_short(row))):
        state = State(row)
        assert not state.unpaid_targets(
            state.targets_below(state.thresholds_for(_next_stage_goal(row, state)))
        ), "it stands still"
        assert design.sample_next_batch(row) > 0 or not _not_drawn(row)
    assert why == "all" and _not_drawn(row) == set()
    further = [one.settings for one in row.batches.order_by("stage")[before:]]
    assert 0 < len(further) <= len(left) + 1 and {one["why"] for one in further} == {"further"}
    assert all(one["planned_variance"] >= 1.0 for one in further), "no less than people differ by"


def test_judging_ends_at_once_where_no_stage_could_ask_anything(
    standing_still: Submission, monkeypatch: pytest.MonkeyPatch
) -> None:
    row, design = standing_still, design_of(standing_still.track)
    short = _falls_short(row)
    assert design.reason_to_stop(row, short) == ""
    monkeypatch.setattr(poisson, "STAGES", row.batches.count())
    assert design.reason_to_stop(row, short) == "stages"
    monkeypatch.setattr(poisson, "balance", lambda **_: SimpleNamespace(open=Decimal(0)))
    assert design.reason_to_stop(row, short) == "budget"
    last = row.batches.latest("stage")
    last.samples.all().delete()
    last.thresholds.all().delete()
    monkeypatch.setattr(poisson, "targets_to_pay", lambda *_: set())
    monkeypatch.setattr(poisson, "STAGES", 99)
    assert design.reason_to_stop(row, short) == "exhausted", (
        "a stage added nothing: the next would neither"
    )
    nothing = np.zeros(0, dtype=np.int64)
    monkeypatch.setattr(poisson, "submission_support", lambda *_: (nothing, nothing, nothing))
    assert design.reason_to_stop(row, short) == "all", "nothing is left that money could ask about"


def _confirmed(world: Replay, *runs: tuple[str, range]) -> list[Submission]:
    rows = [world.upload(team, which) for team, which in runs]
    for row in rows:
        confirm_plan(row, world.toy.users["Admin"])
    return rows


@pytest.mark.parametrize("noise", [0.0, 0.003], ids=["people agree", "people differ"])
def test_runs_that_wait_at_the_same_time_are_planned_together(
    toy: Toy, monkeypatch: pytest.MonkeyPatch, noise: float
) -> None:
    """One after the other, the first raises what it predicts as if it were alone, and the second
    what is its own: where both would have done with less of what they share. Either way thresholds
    bring down what people do not differ by.
    """
    fixed = property(lambda _: noise, lambda *_: None)  # whatever is set
    monkeypatch.setattr(State, "noise", fixed, raising=False)
    world = Replay.of(toy, N, 0.5)
    rows = _confirmed(world, ("Patterns", range(200)), ("Neural", range(100, N)))
    plans = [Plan.plan_single_stage(row) for row in rows]
    first, second = (plan.state for plan in plans)
    sequential = first.thresholds_for(plans[0].goal)
    after = np.maximum(np.r_[sequential[100:], np.zeros(100)], 0.0)
    left = [plan.goal - noise for plan in plans]
    by_itself = water_fill(second.p, after, second.v, target_variance=left[1])
    assert draw.tick() == 2
    batches = [row.batches.get() for row in rows]
    assert [one.settings["together"] for one in batches] == [2, 2]
    for row, plan, goal in zip(rows, plans, left, strict=True):
        pi = np.array([_threshold(one) for one in plan.state.target_id.tolist()])
        assert planned_variance(
            plan.state.p, pi[plan.state.row], plan.state.v, target=plan.state.row
        ) == pytest.approx(goal, rel=1e-3), row.team
    targets = np.unique(np.concatenate([first.target_id, second.target_id]))
    together = sum(_threshold(one) for one in targets.tolist())
    assert together < 0.999 * (sequential[:100].sum() + by_itself.sum())


def _threshold(target: int) -> float:
    return max(Threshold.objects.filter(target=target).values_list("pi", flat=True), default=0.0)


def test_of_runs_planned_together_one_pays_for_each_question_and_each_for_its_part(
    toy: Toy,
) -> None:
    world = Replay.of(toy, N, 0.5)
    rows = _confirmed(world, ("Patterns", range(N)), ("Neural", range(N)))
    draw.tick()
    samples = Sample.objects.filter(batch__submission__in=rows)
    by_target: dict[int, list[bool]] = {}
    for target, pays in samples.values_list("target", "pays"):
        by_target.setdefault(target, []).append(pays)
    assert by_target and all(sorted(one) == [False, True] for one in by_target.values())
    each = [samples.filter(batch__submission=row, pays=True).count() for row in rows]
    assert [row.batches.get().size for row in rows] == each
    half = len(by_target) / 2
    assert abs(each[0] - half) < 4 * np.sqrt(half / 2), "they predict the same: half each"
    ask.tick()
    asked = [
        Question.objects.filter(**row.purpose.filter_condition("payer")).count() for row in rows
    ]
    assert asked == each


def test_who_cannot_pay_its_part_is_planned_after_the_others(
    toy: Toy, monkeypatch: pytest.MonkeyPatch
) -> None:
    world = Replay.of(toy, N, 0.5)
    rows = _confirmed(world, ("Patterns", range(N)), ("Neural", range(N)))
    each = Decimal(rows[0].plan["options"][rows[0].plan["chosen"]]["each"])
    poor = {rows[0].purpose: 3 * each, rows[1].purpose: 1000 * each}
    monkeypatch.setattr(poisson, "balance", lambda purpose: SimpleNamespace(open=poor[purpose]))
    draw.tick()
    told = [row.batches.get() for row in rows]
    assert [one.settings["together"] for one in told] == [1, 1]
    assert told[1].settings["why"] == "target" and told[0].size <= 3


def test_where_all_is_judged_there_is_no_stage(toy: Toy) -> None:
    world = Replay.of(toy, 6, 0.5)
    world.judge(world.upload("Patterns", range(6)))
    assert set(world.target) == set(Sample.objects.values_list("target", flat=True))
    row = world.upload("Neural", range(6))
    confirm_plan(row, toy.users["Admin"])
    assert draw.tick() == 1
    score_track(toy.track, finished_submissions(toy.track))
    row.refresh_from_db()
    [batch] = row.batches.all()
    assert (batch.size, row.status, row.stage_reason) == (0, "scored", "target")
