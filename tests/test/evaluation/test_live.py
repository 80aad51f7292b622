"""The interval that may be watched while a run is judged."""

from __future__ import annotations

from statistics import NormalDist

import pytest

from estimators.intervals import interim_width_factor
from kbpo.evaluation.models import InterimInterval
from kbpo.evaluation.run import score_track
from kbpo.evaluation.stages import FIRST
from kbpo.instances.models import Label
from kbpo.sampling.designs.base import target_variance_of_submission
from tests.test.evaluation.world import World

pytestmark = pytest.mark.django_db


@pytest.fixture
def watched(world: World) -> list[InterimInterval]:
    """The intervals at a system while its sample of 80 % is judged, a few targets at a time."""
    row = world.system("whole", lambda one: True)
    row.plan = {"chosen": "0.050", "options": {"0.050": {"targets": 80}}}
    row.save()
    asked = world.sample(row, 0.8)
    for upto in range(8, len(asked) + 8, 8):
        world.answer(asked[upto - 8 : upto])
        score_track(world.track)
        if upto % 3 == 1:
            score_track(world.track)  # nothing new: no other one
    return list(InterimInterval.objects.order_by("n"))


def test_each_is_wider_than_one_look_and_rests_on_at_least_the_planned_variance(
    watched: list[InterimInterval],
) -> None:
    assert len(watched) > 3
    [row] = {one.submission for one in watched}
    planned = target_variance_of_submission(row, "0.050")
    assert watched[0].variance <= FIRST * planned
    assert min(one.variance for one in watched) >= planned
    for one in watched:
        assert one.low95 < one.low80 <= one.value <= one.high80 < one.high95
        half = interim_width_factor(FIRST) * NormalDist().inv_cdf(0.9) * one.variance**0.5
        if 0.3 < one.value < 0.7:
            assert (one.high80 - one.low80) / 2 == pytest.approx(half, rel=0.1)


def test_few_answers_are_no_look(world: World) -> None:
    row = world.system("whole", lambda one: True)
    row.plan = {"chosen": "0.100", "options": {}}
    row.save()
    asked = world.sample(row)
    score_track(world.track)
    assert not InterimInterval.objects.exists() and not Label.objects.exists()
    world.answer(asked[:9])
    score_track(world.track)
    assert not InterimInterval.objects.exists()
    world.answer(asked[9:12])
    score_track(world.track)
    assert InterimInterval.objects.get().n == 12


def test_an_order_of_more_is_watched_anew(world: World) -> None:
    row = world.system("whole", lambda one: True)
    row.plan = {"chosen": "0.050", "options": {}}
    row.save()
    asked = world.sample(row, 0.8)
    world.answer(asked[:40])
    score_track(world.track)
    row.orders, row.plan = 1, {"chosen": "0.020", "options": {}}
    row.save()
    world.answer(asked[40:50])
    score_track(world.track)
    assert [(one.order, one.n) for one in InterimInterval.objects.order_by("order")] == [
        (0, 40),
        (1, 50),
    ]
