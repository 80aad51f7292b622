"""What counts while questions are open: a sample whose probabilities are the thresholds times the
share released.
"""

from __future__ import annotations

import numpy as np
import pytest
from django.utils import timezone

from kbpo.inclusion.read import read_inclusion
from kbpo.instances.models import Target
from kbpo.pool.pool import read_pool
from kbpo.sampling.models import SampleBatch, SamplingDistribution, Threshold
from kbpo.submissions.models import Submission
from scoring.pool import Pool
from tests.conftest import Toy
from tests.test.evaluation.replay import Replay

pytestmark = pytest.mark.django_db

U = [0.20, 0.30, 0.45, 0.09, 0.70]
PI = [0.25, 0.90, 0.60, 0.10, 0.50]


@pytest.fixture
def world(toy: Toy) -> Replay:
    """Five relations with unequal random numbers, each of a target of its own, numbered as the
    targets are.
    """
    world = Replay.of(toy, len(U), 0.5)
    order = np.argsort(world.target)
    world.target, world.instance = (
        [column[at] for at in order] for column in (world.target, world.instance)
    )
    for pk, u in zip(world.target, U, strict=True):
        Target.objects.filter(pk=pk).update(u=u)
    return world


def stage(row: Submission, world: Replay, pi: list[float], number: int, *, settled: bool) -> None:
    batch = SampleBatch.objects.create(
        submission=row,
        design="poisson",
        stage=number,
        seed=0,
        size=1,
        distribution=SamplingDistribution.objects.get_or_create(
            submission=row, kind="instance", total=1, n=len(U)
        )[0],
        settled_at=timezone.now() if settled else None,
    )
    Threshold.objects.bulk_create(
        Threshold(batch=batch, target_id=target, pi=one)
        for target, one in zip(world.target, pi, strict=True)
        if one
    )


def pool_of(world: Replay, row: Submission) -> Pool:
    """The pool, whose targets are the world's in their order."""
    pool = read_pool(world.toy.track, [row.pk])
    assert pool.target_id.tolist() == sorted(world.target) == world.target
    return pool


def test_one_that_waits_scales_all_probabilities_by_its_own_depth(world: Replay) -> None:
    row = world.store("Patterns", range(len(U)), status="judging")
    stage(row, world, PI, 1, settled=False)
    found = read_inclusion(world.toy.track, pool_of(world, row), {world.target[2]})
    assert found.released == pytest.approx(0.75)
    np.testing.assert_allclose(found.asked, 0.75 * np.array(PI))
    assert found.drawn.tolist() == [False, True, False, False, False], (
        "the answered ones beyond the gap do not, yet"
    )
    np.testing.assert_allclose(found.asked[found.drawn], 0.75 * 0.90)


def test_the_least_deep_of_several_that_wait_decides_and_unasked_targets_never_do(
    world: Replay,
) -> None:
    row = world.store("Patterns", range(len(U)), status="judging")
    stage(row, world, PI, 1, settled=False)
    pool = pool_of(world, row)
    found = read_inclusion(world.toy.track, pool, {world.target[at] for at in (0, 3, 4)})
    assert found.released == pytest.approx(0.80)
    assert found.drawn.tolist() == [False, True, True, False, False]
    everything = read_inclusion(world.toy.track, pool, {world.target[4]})
    assert everything.released == 1.0
    np.testing.assert_allclose(everything.asked, PI)
    assert everything.drawn.tolist() == [True, True, True, True, False]


def test_what_was_settled_before_counts_whatever_waits_in_a_later_stage(world: Replay) -> None:
    row = world.store("Patterns", range(len(U)), status="judging")
    settled = [0.21, 0.10, 0.0, 0.0, 0.0]
    stage(row, world, settled, 1, settled=True)
    stage(row, world, PI, 2, settled=False)
    found = read_inclusion(world.toy.track, pool_of(world, row), {world.target[1]})
    assert found.released == pytest.approx(1 / 3)
    np.testing.assert_allclose(found.asked, np.maximum(settled, np.array(PI) / 3))
    assert found.drawn.tolist() == [True, False, False, False, False]


def test_what_waits_scales_the_probabilities_of_everybody(world: Replay) -> None:
    """A target that waits for a later run waits for all."""
    first = world.store("Patterns", range(len(U)), status="scored")
    stage(first, world, PI, 1, settled=True)
    second = world.store("Neural", range(len(U)), status="judging")
    stage(second, world, PI, 1, settled=False)
    pool = read_pool(world.toy.track, [first.pk, second.pk])
    found = read_inclusion(world.toy.track, pool, {world.target[2]})
    assert found.asked == pytest.approx(PI)
    assert found.drawn.tolist() == [True, True, False, True, False]
