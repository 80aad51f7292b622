"""The interval that may be watched: at all looks at once it misses no more often than it says."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
import pytest

from kbpo.evaluation.data import read
from kbpo.evaluation.leaderboard import figures
from kbpo.evaluation.live import of_draws, of_targets, stream
from kbpo.evaluation.models import Look
from kbpo.evaluation.run import evaluate
from kbpo.instances.models import Label
from kbpo.sampling.models import Sample, SampleBatch
from tests.evaluation.world import World

LOOKS = 12


def population(rng: np.random.Generator, n: int = 700) -> tuple[Any, Any, Any]:
    """Weights of a skewed population, thresholds for about 150 answers, and answers that go with
    the weights.
    """
    p = rng.lognormal(0, 1, n)
    p /= p.sum()
    f = (rng.random(n) < np.where(p > np.median(p), 0.8, 0.3)).astype(float)
    return p, np.minimum(1, 160 * p), f


def test_a_target_asked_for_certain_is_no_chance() -> None:
    p, pi, u = np.array([0.5, 0.3, 0.2]), np.array([1.0, 0.6, 0.6]), np.array([0.9, 0.1, 0.8])
    known, terms = stream(
        p, pi, u, np.array([1.0, 1.0, np.nan]), certain=np.array([True, False, False])
    )
    assert (known.right, known.open) == (0.5, 0.0)
    assert terms.weight == pytest.approx(0.5) and terms.x.size == 1
    known, _ = stream(
        p, pi, u, np.array([np.nan, 1.0, np.nan]), certain=np.array([True, False, False])
    )
    assert (known.right, known.open) == (0.0, 0.5)


def test_an_unanswered_certain_target_may_be_anything() -> None:
    p, pi, u = np.array([0.9, 0.1]), np.array([1.0, 0.5]), np.array([0.5, 0.1])
    known, terms = stream(p, pi, u, np.array([np.nan, 1.0]), certain=np.array([True, False]))
    low, high = terms.interval(known, 0.8)
    assert high - low >= 0.9 and low >= 0 and high <= 1 + 1e-9


def test_a_term_has_the_precision_as_its_mean_whatever_came_before() -> None:
    """By enumeration: each of the unseen targets may be next, with its own probability."""
    p, pi, f = (
        np.array([0.4, 0.3, 0.2, 0.1]),
        np.array([0.5, 0.4, 0.3, 0.6]),
        np.array([1.0, 0.0, 1.0, 0.0]),
    )
    time = 0.55  # the first came at 0.1; now one of the others comes
    hazard = pi[1:] / (1 - time * pi[1:])
    mean = 0.0
    for at, chance in enumerate(hazard / hazard.sum(), 1):
        u = np.full(4, 0.99)
        u[0], u[at] = 0.1 * pi[0], time * pi[at]
        answered = np.where(u < pi, f, np.nan)
        _, terms = stream(p, pi, u, answered, certain=np.zeros(4, dtype=bool))
        mean += chance * terms.x[1]
    assert mean == pytest.approx(float((p * f).sum()), abs=1e-3)


@pytest.mark.statistical
def test_a_first_stage_that_is_watched_throughout_covers() -> None:
    rng = np.random.default_rng(5)
    p, pi, f = population(rng)
    truth, missed, widths = float((p * f).sum()), 0, []
    for _ in range(120):
        u = rng.random(p.size)
        known, terms = stream(p, pi, u, np.where(u < pi, f, np.nan), certain=pi >= 0.999)
        low, high = terms.interval(
            known, 0.8
        )  # the running intersection: outside it once is outside for good
        missed += not low <= truth <= high
        widths.append(high - low)
    assert missed <= 0.2 * 120
    assert np.mean(widths) < 0.2


@pytest.mark.statistical
def test_looks_over_labels_that_existed_cover_too() -> None:
    rng = np.random.default_rng(6)
    p, goal, f = population(rng, 400)
    old = np.where(
        rng.random(p.size) < 0.5, np.minimum(1, 0.3 * rng.lognormal(0, 0.5, p.size)), 0.0
    )
    threshold, truth, missed = np.maximum(old, goal), float((p * f).sum()), 0
    for _ in range(40):
        u, out = rng.random(p.size), False
        for released in np.linspace(0, 1, LOOKS):
            pi = np.maximum(old, released * threshold)
            known, terms = stream(p, pi, u, np.where(u < pi, f, np.nan), certain=threshold >= 0.999)
            low, high = terms.interval(known, 0.8)
            out |= not low <= truth <= high
        missed += out
    assert missed <= 0.2 * 40 + 4


@pytest.mark.django_db
def test_looks_are_kept_while_judging_and_each_lies_inside_the_one_before(world: World) -> None:
    row = world.system("whole", lambda one: True)
    asked = world.sample(row, 0.8)
    world.answer(asked[:20], hours_ago=1)  # they existed when the sample was drawn
    evaluate(world.track)
    for upto in (40, 60):
        world.answer(asked[20:upto])
        evaluate(world.track)
        evaluate(world.track)  # nothing new: the same look
    looks = list(Look.objects.order_by("n"))
    assert [one.n for one in looks] == [20, 40, 60] and {one.n_before for one in looks} == {20}
    for earlier, later in pairwise(looks):
        assert earlier.low80 <= later.low80 <= later.value <= later.high80 <= earlier.high80
    for one in looks:
        assert one.low95 <= one.low80 and one.high80 <= one.high95
    final = figures(row)["precision", "relation", "instance", "centred"]
    assert (
        final.high80 - final.low80 < looks[-1].high80 - looks[-1].low80
    )  # looking at any time has its price


@pytest.mark.django_db
def test_nothing_answered_is_no_look(world: World) -> None:
    row = world.system("whole", lambda one: True)
    world.sample(row)
    evaluate(world.track)
    assert not Look.objects.exists() and not Label.objects.exists()
    known, terms = of_targets(read(world.track), 0, "instance", "relation")
    assert terms.interval(known, 0.8) == (0.0, pytest.approx(1.0))


@pytest.mark.django_db
def test_draws_count_in_the_order_of_u_up_to_the_first_that_waits(world: World) -> None:
    world.track.design = "iid"
    world.track.save()
    row = world.system("whole", lambda one: True)
    batch = SampleBatch.objects.create(
        submission=row, distribution=row.distributions.get(), design="iid", seed=1, size=12, stage=1
    )
    drawn = sorted(world.instances, key=lambda one: one.target.u)[5:65:5]
    Sample.objects.bulk_create(
        Sample(batch=batch, target=one.target, instance=one, probability=1 / len(world.instances))
        for one in drawn
    )
    world.answer([one.target for one in (*drawn[:6], *drawn[7:9])])  # the seventh waits
    _, terms = of_draws(read(world.track), 0, "instance", "relation")
    assert terms.x.tolist() == [float(world.truth[one.pk]) for one in drawn[:6]]
    assert (terms.bounds, terms.planned_n, terms.weight) == ((0.0, 1.0), 12, pytest.approx(1.0))
    evaluate(world.track)
    assert Look.objects.get(submission=row).n >= 6
