"""By draws with replacement, fewer are drawn for a run where others' draws count for its joint
score, and only there: never for a run whose team could see judgments, nor those of one.
"""

from __future__ import annotations

import pytest
from undone import undone

from kbpo.evaluation.models import Estimate
from kbpo.sampling.confirm import confirm
from kbpo.sampling.designs.iid import LEAST
from kbpo.sampling.draw import tick
from kbpo.sampling.models import LeakTest
from kbpo.submissions.models import Submission
from tests.conftest import Toy
from tests.evaluation.replay import Replay

pytestmark = pytest.mark.django_db
N = 400


def on_board(toy: Toy) -> Replay:
    """A world with two honest runs on the board, the second of which predicts everything."""

    def play() -> tuple[Replay, None]:
        world = Replay.of(toy, N, 0.4, design="iid")
        world.judge(world.upload("Patterns", range(300)))
        world.judge(world.upload("Neural", range(N)))
        return world, None

    return Replay.once(toy, "two honest runs by draws", play)[0]


def told(row: Submission) -> int:
    """Draws of the plan that was told."""
    return int(row.plan["options"][row.plan["chosen"]]["draws"]["instance"])


def test_a_run_whose_team_saw_gets_the_draws_that_it_was_told_and_joint_the_width(toy: Toy) -> None:
    world = on_board(toy)
    row = world.judge(world.upload("Patterns", range(20, N)))
    assert row.batches.get().size == told(row)
    joint = Estimate.objects.get(
        evaluation=toy.track.evaluations.order_by("-number").first(),
        submission=row,
        quantity="precision",
        criterion="relation",
        method="joint",
        slice="",
    )
    assert joint.low80 is not None and joint.high80 is not None
    assert (joint.high80 - joint.low80) / 2 <= 0.05
    printed = world.number(row)
    assert printed.low80 is not None and printed.high80 is not None
    assert (printed.high80 - printed.low80) / 2 <= 0.05


def test_for_a_run_that_follows_from_nothing_draws_of_who_saw_save_none(toy: Toy) -> None:
    world = Replay.of(toy, N, 0.4, design="iid")
    world.judge(world.upload("Patterns", range(300)))
    drawn = []
    for has_second in (False, True):
        with undone():
            if has_second:
                world.judge(world.upload("Patterns", range(100, N)))
            row = world.upload("Neural", range(N))
            confirm(row, toy.users["Admin"])
            tick()
            assert not LeakTest.objects.filter(submission=row, seen=True).exists()
            drawn.append(row.batches.get().size)
    assert LEAST < drawn[0] < told(row), "the first run's draws help"
    assert drawn[1] == drawn[0]


def test_what_a_team_uploads_beside_what_it_saw_is_drawn_for_as_anybody_elses(toy: Toy) -> None:
    """Of a run that predicts nothing of what its team could see, others' draws count."""
    world = Replay.of(toy, N, 0.4, design="iid")
    world.judge(world.upload("Patterns", range(100)))
    world.judge(world.upload("Neural", range(100, N)))
    row = world.judge(world.upload("Patterns", range(110, N)))
    assert LEAST <= row.batches.get().size < told(row)
