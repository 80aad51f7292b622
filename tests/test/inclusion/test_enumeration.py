"""Every probability is the frequency with which things happen, and every estimate is right on
average: all that may happen in some small worlds is played out through the database.

What is checked of each system and each target that it predicts: the mean of 1/π over the outcomes
in which the target counts is one. Then the mean of every sum Σ a (f − g)/π is that of the whole,
whatever f is.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pytest

from estimators.horvitz_thompson import difference_estimate
from kbpo.evaluation.data import load_data
from scoring.default import Centred
from tests.conftest import Toy
from tests.test.inclusion.chance import Fate, fates
from tests.test.inclusion.small_world import Play, SmallWorld

pytestmark = pytest.mark.django_db
TRUE = [True, False, True, False]
EXACT = 1e-12
Scored = dict[str, tuple[dict[int, float], float]]
"""System -> 1/π of each target that counts for it and 0 of the others, its estimate"""


@dataclass(frozen=True)
class Story:
    """A world, and what happens in it; returns the systems that have a score."""

    documents: int
    happens: Callable[[Play], list[str]]


def by_thresholds(play: Play) -> list[str]:
    play.numbers({0: [0.4], 1: [0.4, 0.7], 2: [0.4, 0.7], 3: [0.7]})
    play.upload("first", "Patterns", [0, 1, 2])
    play.ask("first", dict.fromkeys([0, 1, 2], 0.4))
    play.upload("second", "Neural", [1, 2, 3])
    play.ask("second", dict.fromkeys([1, 2, 3], 0.7))
    return ["first", "second"]


def withdrawn_by_thresholds(play: Play) -> list[str]:
    """Nobody answers what the first run alone asked; the second has the rest asked anew."""
    play.numbers({0: [0.8], 1: [0.8], 2: [0.8], 3: [0.5]})
    play.upload("first", "Patterns", [0, 1, 2])
    play.publish("first", dict.fromkeys([0, 1, 2], 0.8))
    play.withdraw("first")
    play.upload("second", "Neural", [1, 2, 3])
    play.ask("second", {1: 0.8, 2: 0.8, 3: 0.5})
    return ["second"]


def withdrawn_unanswered(play: Play) -> list[str]:
    """The first run would have asked more of what the second one asks."""
    play.numbers({0: [0.8], 1: [0.4, 0.8], 2: [0.4, 0.8], 3: [0.5]})
    play.upload("first", "Patterns", [0, 1, 2])
    play.publish("first", dict.fromkeys([0, 1, 2], 0.8))
    play.withdraw("first")
    play.upload("second", "Neural", [1, 2, 3])
    play.ask("second", {1: 0.4, 2: 0.4, 3: 0.5})
    return ["second"]


def withdrawn_halfway(play: Play) -> list[str]:
    """Target 0 is never answered (u / pi = 0.5 or so); what lies before it is."""
    play.numbers({0: [], 1: [0.2, 0.4, 0.8], 2: [0.2, 0.4, 0.8], 3: [0.5]})
    gap = play.u[0]
    play.upload("first", "Patterns", [0, 1, 2])
    pub = play.publish("first", {0: 1.0, 1: 0.4 / gap, 2: 0.4 / gap})
    play.answer([k for k in pub if k and play.u[k] < 0.4])
    play.withdraw("first")
    play.upload("second", "Neural", [1, 2, 3])
    play.ask("second", {1: 0.2, 2: 0.2, 3: 0.5})
    return ["second"]


def withdrawn_by_draws(play: Play) -> list[str]:
    play.numbers({0: []})
    play.upload("first", "Patterns", [0, 1, 2])
    play.draw("first", [0, 1, 2], 2, answered=False)
    play.withdraw("first")
    play.upload("second", "Neural", [1, 2, 3])
    play.draw("second", [1, 2, 3], 2)
    return ["second"]


def by_draws(play: Play) -> list[str]:
    play.numbers({0: []})
    play.upload("first", "Patterns", [0, 1, 2])
    play.draw("first", [0, 1, 2], 2)
    play.upload("second", "Neural", [1, 2, 3])
    play.draw("second", [1, 2, 3], 2)
    return ["first", "second"]


def by_documents(play: Play) -> list[str]:
    """Documents that are read whole are no further route: what they label counts where it was
    drawn.
    """
    play.numbers({0: [0.4], 1: [0.4, 0.7], 2: [0.7], 3: [0.7]})
    play.upload("first", "Patterns", [0, 1])
    play.ask("first", dict.fromkeys([0, 1], 0.4))
    play.read(play.fate.sample(range(3), 2))
    play.upload("second", "Neural", [1, 2, 3])
    play.ask("second", dict.fromkeys([1, 2, 3], 0.7))
    return ["first", "second"]


STORIES = {
    "a run withdrawn halfway, by thresholds": Story(2, withdrawn_halfway),
    "a run withdrawn unanswered that would have asked more": Story(2, withdrawn_unanswered),
    "thresholds": Story(2, by_thresholds),
    "draws": Story(2, by_draws),
    "a run withdrawn unanswered, by thresholds": Story(2, withdrawn_by_thresholds),
    "a run withdrawn unanswered, by draws": Story(2, withdrawn_by_draws),
    "documents that are read whole": Story(3, by_documents),
}


@pytest.mark.parametrize("name", STORIES)
def test_every_probability_is_a_frequency_and_every_estimate_is_right_on_average(
    name: str, toy: Toy
) -> None:
    story = STORIES[name]
    world = SmallWorld(toy, TRUE, story.documents)

    def play(fate: Fate) -> Scored:
        return world.tell(fate, lambda some: scored(some, story.happens(some)))

    mass: dict[str, float] = defaultdict(float)
    mean: dict[tuple[str, int], float] = defaultdict(float)
    value: dict[str, float] = defaultdict(float)
    total = 0.0
    for p, outcome in fates(play):
        total += p
        for system, (weights, estimate) in outcome.items():
            mass[system] += p
            value[system] += p * estimate
            for k, weight in weights.items():
                mean[system, k] += p * weight
    assert total == pytest.approx(1, abs=EXACT)
    wrong = [
        f"{system}, target {k}: {mean[system, k] / mass[system]!r}"
        for system, k in mean
        if abs(mean[system, k] / mass[system] - 1) > EXACT
    ]
    assert not wrong, "\n".join(wrong)
    for system in mass:
        truth = np.mean([TRUE[k] for one, k in mean if one == system])
        assert value[system] / mass[system] == pytest.approx(truth, abs=EXACT), system


def scored(play: Play, systems: list[str]) -> Scored:
    """Return what the code makes of an outcome, for each system."""
    data = load_data(play.world.track)
    number = {pk: k for k, pk in enumerate(play.world.target)}
    arranged, found = Centred(data), {}
    for name in systems:
        column = data.systems.index(play.rows[name].pk)
        p = data.pool.p["instance"][:, [column]].toarray().ravel()
        weights = {
            number[int(data.pool.target_id[t])]: 0.0 for t in np.unique(data.pool.target[p > 0])
        }
        pi, verdict = arranged.row_pi, arranged.verdicts[:, column]
        for row, chance, one in zip(arranged.row, pi, verdict, strict=True):
            k = number[int(data.pool.target_id[data.pool.target[row]])]
            if k in weights and not np.isnan(one):
                weights[k] = 1 / float(chance)
        g = np.full(p.size, 0.3)
        estimate = difference_estimate(p[arranged.row], pi, verdict, g[arranged.row], float(p @ g))
        found[name] = weights, float(estimate.value)
    return found
