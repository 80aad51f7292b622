"""The interval that may be watched: intervals that together miss no more often than
the level says.
"""

from __future__ import annotations

from itertools import pairwise
from statistics import NormalDist
from typing import Any

import numpy as np
import pytest

from estimators.repeated import critical_value, is_due, pace
from kbpo.evaluation.data import read
from kbpo.evaluation.live import _interval
from kbpo.evaluation.models import InterimInterval
from kbpo.evaluation.run import evaluate
from kbpo.instances.models import Label
from scoring.default import Centred
from tests.conftest import Toy
from tests.evaluation.world import World, half_asked

pytestmark = pytest.mark.django_db


@pytest.fixture
def watched(world: World) -> list[InterimInterval]:
    """The intervals at a system while its sample of 80 % is judged, a few targets at a time."""
    row = world.system("whole", lambda one: True)
    row.plan = {"chosen": "0.050", "options": {"0.050": {"targets": 80}}}
    row.save()
    asked = world.sample(row, 0.8)
    world.answer(asked[:20], hours_ago=1)  # they existed when the sample was drawn
    evaluate(world.track)
    for upto in range(28, len(asked) + 8, 8):
        world.answer(asked[upto - 8 : upto])
        evaluate(world.track)
        if upto % 3 == 1:
            evaluate(world.track)  # nothing new: the same one
    return list(InterimInterval.objects.order_by("n"))


def test_a_look_waits_for_a_fifth_more_information_and_lies_inside_the_one_before(
    world: World, watched: list[InterimInterval]
) -> None:
    assert len(watched) > 3 and {one.n_before for one in watched} == {20}
    for earlier, later in pairwise(watched[:-1]):
        assert later.variance <= earlier.variance / 1.19
    assert watched[-1].variance < watched[-2].variance
    for earlier, later in pairwise(watched):
        assert earlier.low80 <= later.low80 <= later.value <= later.high80 <= earlier.high80
    for one in watched:
        assert one.low95 <= one.low80 and one.high80 <= one.high95
        assert 1.28 < one.quantile80 < one.quantile95
    [row] = {one.submission for one in watched}
    wanted = {"quantity": "precision", "criterion": "relation", "distribution": "instance"}
    final = row.estimates.filter(**wanted, method="centred", slice="").latest("pk")
    assert final.high80 is not None and final.low80 is not None
    wider = (watched[-1].high80 - watched[-1].low80) / (final.high80 - final.low80)
    assert 1 < wider < 2, "wider than an interval for a single look"


@pytest.mark.slow
def test_from_a_hundred_judgments_on_it_is_at_most_half_wider_than_the_board_would_print(
    toy: Toy,
) -> None:
    """Each against the interval for one look that the same evaluation makes of the same labels."""
    world = World(toy, is_study=True, n_documents=20)
    row = world.system("whole", lambda one: True)
    row.plan = {"chosen": "0.040", "options": {"0.040": {"targets": 240}}}
    row.save()
    asked = world.sample(row, 0.8)
    assert len(asked) > 200
    wanted = {"quantity": "precision", "criterion": "relation", "distribution": "instance"}
    ratios: dict[int, float] = {}
    for upto in (90, 104, 140, 180, len(asked)):
        world.answer([one for one in asked[:upto] if not one.labels.exists()])
        evaluate(world.track)
        newest = InterimInterval.objects.order_by("n").last()
        board = row.estimates.filter(**wanted, method="centred", slice="").latest("pk")
        if newest is not None and newest.n not in ratios:
            assert board.low80 is not None and board.high80 is not None
            ratios[newest.n] = (newest.high80 - newest.low80) / (board.high80 - board.low80)
    late = {n: ratio for n, ratio in ratios.items() if n >= 100}
    assert len(late) >= 2 and min(late) < 120, ratios
    assert max(late.values()) <= 1.5, ratios


def test_few_answers_are_no_look(world: World) -> None:
    row = world.system("whole", lambda one: True)
    asked = world.sample(row)
    evaluate(world.track)
    assert not InterimInterval.objects.exists() and not Label.objects.exists()
    world.answer(asked[:9])
    evaluate(world.track)
    assert not InterimInterval.objects.exists()
    world.answer(asked[9:12])
    evaluate(world.track)
    assert InterimInterval.objects.get().n == 12


def test_an_order_of_more_is_watched_anew(world: World) -> None:
    row = world.system("whole", lambda one: True)
    asked = world.sample(row, 0.8)
    world.answer(asked[:40])
    evaluate(world.track)
    row.orders, row.plan = 1, {"chosen": "0.020", "options": {}}
    row.save()
    world.answer(asked[40:50])
    evaluate(world.track)
    assert [(one.order, one.n) for one in InterimInterval.objects.order_by("order")] == [
        (0, 40),
        (1, 50),
    ]


@pytest.mark.statistical
def test_a_system_that_is_watched_answer_by_answer_is_missed_no_more_often_than_it_says(
    world: World,
) -> None:
    """Many samples of one world, each watched from the twelfth answer to the last: the database has
    the rows, memory draws them.
    """
    row = world.system("whole", lambda one: True)
    world.answer(world.sample(row))
    data, rng = read(world.track), np.random.default_rng(9)
    truth = world.share_true(world.instances)
    missed, repeats = 0, 120
    for _ in range(repeats):
        counts: list[int] = []
        times: list[float] = []
        used: list[float] = []
        out = False
        u: Any = rng.random(data.pool.target_id.size)
        for released in np.linspace(0.15, 0.8, 14):
            part = half_asked(data, rng, chance=released, u=u)
            found = Centred(part).precision("instance", "relation")
            variance = max(
                float(np.asarray(found.variance)[0]), float(np.asarray(found.anticipated)[0])
            )
            now = min(1.0, 0.0016 / variance)
            n = round(float(released) * data.pool.target_id.size)
            if not is_due(counts, times, n, now):
                continue
            counts, times = [*counts, n], [*times, now]
            early, growth, continuity = pace(counts, times)
            used.append(critical_value(times[:-1], used, now, early=early, growth=growth))
            low, high = _interval(found, 0, 2 * NormalDist().cdf(used[-1]) - 1, continuity)
            out |= not low <= truth <= high
        missed += out
    assert missed <= 0.2 * repeats + 2 * (0.16 * repeats) ** 0.5
