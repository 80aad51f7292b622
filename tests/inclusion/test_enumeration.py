"""Every probability is the frequency with which things happen, and every estimate is right on
average: all that may happen in some small worlds is played out through the database.

What is checked of each system and each target that it predicts: the mean of 1/π over the outcomes
in which the target counts is one, for a team that saw judgments given all that it saw. Then the
mean of every sum Σ a (f − g)/π is that of the whole, whatever f is.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

from estimators.horvitz_thompson import difference
from kbpo.evaluation.data import read
from scoring.data import Data
from scoring.default import Centred
from tests.conftest import Toy
from tests.inclusion.chance import Fate, fates
from tests.inclusion.small_world import Play, SmallWorld

pytestmark = pytest.mark.django_db
TRUE = [True, False, True, False]
SURE = 1e-12
Told = dict[str, tuple[Any, dict[int, float], float]]
"""System -> what its team had seen, 1/π of each target that counts for it and 0 of the others,
its estimate
"""


@dataclass(frozen=True)
class Story:
    """A world, and what happens in it; the play's systems and what the team of each had seen."""

    documents: int
    happens: Callable[[Play], dict[str, Any]]
    off: float = SURE
    """How far the mean may be from one for a team that saw nothing"""


def by_thresholds(play: Play) -> dict[str, Any]:
    play.numbers({0: [0.4], 1: [0.4, 0.7], 2: [0.4, 0.7], 3: [0.7]})
    play.upload("first", "Patterns", [0, 1, 2])
    play.ask("first", dict.fromkeys([0, 1, 2], 0.4))
    play.upload("second", "Neural", [1, 2, 3])
    play.ask("second", dict.fromkeys([1, 2, 3], 0.7))
    return {"first": None, "second": None}


def withdrawn_by_thresholds(play: Play) -> dict[str, Any]:
    """Nobody answers what the first run alone asked; the second has the rest asked anew."""
    play.numbers({0: [0.8], 1: [0.8], 2: [0.8], 3: [0.5]})
    play.upload("first", "Patterns", [0, 1, 2])
    play.publish("first", dict.fromkeys([0, 1, 2], 0.8))
    play.withdraw("first")
    play.upload("second", "Neural", [1, 2, 3])
    play.ask("second", {1: 0.8, 2: 0.8, 3: 0.5})
    return {"second": None}


def withdrawn_unanswered(play: Play) -> dict[str, Any]:
    """The first run would have asked more of what the second one asks."""
    play.numbers({0: [0.8], 1: [0.4, 0.8], 2: [0.4, 0.8], 3: [0.5]})
    play.upload("first", "Patterns", [0, 1, 2])
    play.publish("first", dict.fromkeys([0, 1, 2], 0.8))
    play.withdraw("first")
    play.upload("second", "Neural", [1, 2, 3])
    play.ask("second", {1: 0.4, 2: 0.4, 3: 0.5})
    return {"second": None}


def withdrawn_halfway(play: Play) -> dict[str, Any]:
    """Target 0 is never answered (u / pi = 0.5 or so); what lies before it is."""
    play.numbers({0: [], 1: [0.2, 0.4, 0.8], 2: [0.2, 0.4, 0.8], 3: [0.5]})
    gap = play.u[0]
    play.upload("first", "Patterns", [0, 1, 2])
    pub = play.publish("first", {0: 1.0, 1: 0.4 / gap, 2: 0.4 / gap})
    play.answer([k for k in pub if k and play.u[k] < 0.4])
    play.withdraw("first")
    play.upload("second", "Neural", [1, 2, 3])
    play.ask("second", {1: 0.2, 2: 0.2, 3: 0.5})
    return {"second": None}


def withdrawn_by_draws(play: Play) -> dict[str, Any]:
    play.numbers({0: []})
    play.upload("first", "Patterns", [0, 1, 2])
    play.draw("first", [0, 1, 2], 2, answered=False)
    play.withdraw("first")
    play.upload("second", "Neural", [1, 2, 3])
    play.draw("second", [1, 2, 3], 2)
    return {"second": None}


def by_draws(play: Play) -> dict[str, Any]:
    play.numbers({0: []})
    play.upload("first", "Patterns", [0, 1, 2])
    play.draw("first", [0, 1, 2], 2)
    play.upload("second", "Neural", [1, 2, 3])
    play.draw("second", [1, 2, 3], 2)
    return {"first": None, "second": None}


def by_documents(play: Play) -> dict[str, Any]:
    play.numbers({0: [0.4], 1: [0.4, 0.7], 2: [0.7], 3: [0.7]})
    play.upload("first", "Patterns", [0, 1])
    play.ask("first", dict.fromkeys([0, 1], 0.4))
    play.read(play.fate.sample(range(3), 2), closed=True)
    play.upload("second", "Neural", [1, 2, 3])
    play.ask("second", dict.fromkeys([1, 2, 3], 0.7))
    return {"first": None, "second": None}


def by_follow_up(play: Play) -> dict[str, Any]:
    return _by_follow_up(play, 3)


def by_follow_up_of_four(play: Play) -> dict[str, Any]:
    return _by_follow_up(play, 4)


def _by_follow_up(play: Play, n: int) -> dict[str, Any]:
    both = {k: [0.4, 0.7] for k in range(1, n - 1)}
    play.numbers({0: [0.4], **both, n - 1: [0.7]})
    play.upload("first", "Patterns", [0, *both])
    play.ask("first", dict.fromkeys([0, *both], 0.4))
    play.read(play.fate.sample(range(3), 2), closed=False, finds={0})
    play.follow_up()
    play.upload("second", "Neural", [*both, n - 1])
    play.ask("second", dict.fromkeys([*both, n - 1], 0.7))
    return {"first": None, "second": None}


def again_by_thresholds(play: Play) -> dict[str, Any]:
    return _again_by_thresholds(play, 3)


def again_by_thresholds_of_four(play: Play) -> dict[str, Any]:
    """Of what both teams state one target holds and one does not; else only one that does not."""
    return _again_by_thresholds(play, 4)


def _again_by_thresholds(play: Play, n: int) -> dict[str, Any]:
    both = {k: [0.4, 0.6, 0.8] for k in range(1, n - 1)}
    play.numbers({0: [0.4, 0.8], **both, n - 1: [0.6, 0.8]})
    play.upload("first", "Patterns", [0, *both])
    play.ask("first", dict.fromkeys([0, *both], 0.4))
    play.upload("other", "Neural", [*both, n - 1])
    play.ask("other", dict.fromkeys([*both, n - 1], 0.6))
    saw = play.labelled() & {0, *both}
    predicts = [k for k in range(n) if k not in saw or TRUE[k]]
    play.upload("again", "Patterns", predicts)
    play.ask("again", dict.fromkeys(predicts, 0.8))
    return {"first": None, "other": None, "again": frozenset(saw)}


def again_by_draws(play: Play) -> dict[str, Any]:
    play.numbers({0: []})
    play.upload("first", "Patterns", [0, 1])
    play.draw("first", [0, 1], 2)
    play.upload("other", "Neural", [1, 2])
    play.draw("other", [1, 2], 1)
    saw = play.labelled() & {0, 1}
    predicts = [k for k in range(3) if k not in saw or TRUE[k]]
    play.upload("again", "Patterns", predicts)
    play.draw("again", predicts, 2)
    return {"first": None, "other": None, "again": frozenset(saw)}


def leaked_by_thresholds(play: Play) -> dict[str, Any]:
    """Another team's run, made from the first one's judgments and found out."""
    play.numbers({0: [0.4, 0.8], 1: [0.4, 0.8], 2: [0.4, 0.8], 3: [0.8]})
    play.upload("first", "Patterns", [0, 1, 2])
    play.ask("first", dict.fromkeys([0, 1, 2], 0.4))
    saw = play.labelled() & {0, 1, 2}
    predicts = [k for k in range(4) if k not in saw or TRUE[k]]
    play.upload("leak", "Neural", predicts)
    play.find_out("leak", "first")
    play.ask("leak", dict.fromkeys(predicts, 0.8))
    return {"first": None, "leak": frozenset(saw)}


def leaked_by_draws(play: Play) -> dict[str, Any]:
    play.numbers({0: []})
    play.upload("first", "Patterns", [0, 1])
    play.draw("first", [0, 1], 2)
    saw = play.labelled() & {0, 1}
    predicts = [k for k in range(3) if k not in saw or TRUE[k]]
    play.upload("leak", "Neural", predicts)
    play.find_out("leak", "first")
    play.draw("leak", predicts, 2)
    return {"first": None, "leak": frozenset(saw)}


def judged_by_its_people(play: Play) -> dict[str, Any]:
    """Somebody of the second team is asked about some of what was drawn for the first, and answers
    the last of it after their team has decided.
    """
    play.numbers({0: [0.8], 1: [0.4, 0.8], 2: [0.4, 0.8]})
    play.upload("first", "Patterns", [0, 1, 2])
    drawn = set(play.publish("first", {0: 1.0, 1: 0.4, 2: 0.4}))
    play.put_before("Ada", "Neural", sorted(drawn & {0, 1}))
    play.answer(sorted(drawn & {0, 2}))
    predicts = [k for k in range(3) if k not in drawn or TRUE[k]]
    play.upload("second", "Neural", predicts)
    play.answer(sorted(drawn))
    play.ask("second", dict.fromkeys(predicts, 0.8))
    return {"first": None, "second": frozenset(drawn)}


def again_with_documents(play: Play, *, closed: bool = True) -> dict[str, Any]:
    play.numbers({0: [0.4, 0.8], 1: [0.4, 0.6, 0.8], 2: [0.6, 0.8]})
    play.upload("first", "Patterns", [0, 1])
    play.ask("first", dict.fromkeys([0, 1], 0.4))
    play.upload("other", "Neural", [1, 2])
    play.ask("other", dict.fromkeys([1, 2], 0.6))
    before = play.fate.sample(range(3), 1)
    play.read(before, closed=True)
    saw = play.labelled() & {0, 1}
    predicts = [k for k in range(3) if k not in saw or TRUE[k]]
    play.upload("again", "Patterns", predicts)
    play.ask("again", dict.fromkeys(predicts, 0.8))
    left = [at for at in range(3) if at not in before]
    play.read(play.fate.sample(left, 1), closed=True)
    return {"first": None, "other": None, "again": (frozenset(saw), tuple(before))}


def again_with_follow_ups(play: Play) -> dict[str, Any]:
    play.numbers({0: [0.4, 0.8], 1: [0.4, 0.8], 2: [0.8]})
    play.upload("first", "Patterns", [0, 1])
    play.ask("first", dict.fromkeys([0, 1], 0.4))
    before = play.fate.sample(range(4), 2)
    play.read(before, closed=False, finds={0})
    play.follow_up()
    saw = play.labelled() & {0, 1}
    predicts = [k for k in range(3) if k not in saw or TRUE[k]]
    play.upload("again", "Patterns", predicts)
    play.ask("again", dict.fromkeys(predicts, 0.8))
    left = [at for at in range(4) if at not in before]
    play.read(play.fate.sample(left, 1), closed=False, finds={0})
    play.follow_up()
    return {"first": None, "again": (frozenset(saw), tuple(before))}


def again_before_a_follow_up_of_one_document(play: Play) -> dict[str, Any]:
    """Of one document nothing comes in by itself. What the second run had asked for itself alone,
    before it was followed up, is no sample of the others.
    """
    play.numbers({0: [0.4, 0.8], 1: [0.4, 0.8]})
    play.upload("first", "Patterns", [0, 1])
    play.ask("first", dict.fromkeys([0, 1], 0.4))
    saw = play.labelled() & {0, 1}
    predicts = [k for k in range(2) if k not in saw or TRUE[k]]
    play.upload("again", "Patterns", predicts)
    play.ask("again", dict.fromkeys(predicts, 0.8))
    play.read(play.fate.sample(range(2), 1), closed=False)
    play.follow_up()
    return {"first": None, "again": frozenset(saw)}


STORIES = {
    "a run withdrawn halfway, by thresholds": Story(2, withdrawn_halfway),
    "a run withdrawn unanswered that would have asked more": Story(2, withdrawn_unanswered),
    "thresholds": Story(2, by_thresholds),
    "draws": Story(2, by_draws),
    "a run withdrawn unanswered, by thresholds": Story(2, withdrawn_by_thresholds),
    "a run withdrawn unanswered, by draws": Story(2, withdrawn_by_draws),
    "documents in which what is not marked is false": Story(3, by_documents),
    "an exhaustive follow-up": Story(3, by_follow_up),
    "an exhaustive follow-up, of four targets": Story(3, by_follow_up_of_four),
    "a second run by thresholds": Story(2, again_by_thresholds),
    "a second run, then a follow-up of one document": Story(
        2, again_before_a_follow_up_of_one_document
    ),
    "a second run by thresholds, of four targets": Story(2, again_by_thresholds_of_four),
    # How much of its draws a second run spends on what others predict depends on what its team saw,
    # and so on where the draws of others fell: of n draws that is of the order of 1/n. Here n is
    # one.
    "a second run by draws": Story(2, again_by_draws, off=0.02),
    "a run made from another team's answers, by thresholds": Story(2, leaked_by_thresholds),
    "a run made from another team's answers, by draws": Story(2, leaked_by_draws),
    "a run of somebody who judged for another team": Story(2, judged_by_its_people),
    "a second run, documents before and after": Story(3, again_with_documents),
    "a second run, follow-ups before and after": Story(4, again_with_follow_ups),
}
LONG = {
    "an exhaustive follow-up, of four targets",
    "a second run by thresholds, of four targets",
    "a second run, then a follow-up of one document",
    "a run made from another team's answers, by thresholds",
    "a second run, documents before and after",
    "a second run, follow-ups before and after",
}
"""What happens in them happens in another of these, too, or is told in `test_formula`."""


@pytest.mark.parametrize(
    "name",
    [pytest.param(name, marks=pytest.mark.soak if name in LONG else ()) for name in STORIES],
)
def test_every_probability_is_a_frequency_and_every_estimate_is_right_on_average(
    name: str, toy: Toy
) -> None:
    story = STORIES[name]
    world = SmallWorld(toy, TRUE, story.documents)

    def play(fate: Fate) -> Told:
        return world.tell(fate, lambda some: told(some, story.happens(some)))

    mass: dict[tuple[str, Any], float] = defaultdict(float)
    mean: dict[tuple[str, Any, int], float] = defaultdict(float)
    value: dict[tuple[str, Any], float] = defaultdict(float)
    total = 0.0
    for p, outcome in fates(play):
        total += p
        for system, (saw, weights, estimate) in outcome.items():
            mass[system, saw] += p
            value[system, saw] += p * estimate
            for k, weight in weights.items():
                mean[system, saw, k] += p * weight
    assert total == pytest.approx(1, abs=SURE)
    wrong = [
        f"{system}, of target {k}, having seen {saw}: {mean[system, saw, k] / mass[system, saw]!r}"
        for system, saw, k in mean
        if abs(mean[system, saw, k] / mass[system, saw] - 1) > (story.off if saw is None else SURE)
    ]
    assert not wrong, "\n".join(wrong)
    for (system, saw), some in mass.items():
        predicted = [k for one, seen, k in mean if (one, seen) == (system, saw)]
        truth = np.mean([TRUE[k] for k in predicted])
        off = story.off if saw is None else SURE
        assert value[system, saw] / some == pytest.approx(truth, abs=off), (system, saw)


def told(play: Play, seen: dict[str, Any]) -> Told:
    """What the code makes of an outcome, for each system."""
    data = read(play.world.track)
    number = {pk: k for k, pk in enumerate(play.world.target)}
    arranged, found = Centred(data), {}
    for name, saw in seen.items():
        column = data.systems.index(play.rows[name].pk)
        used, pi, f = of_system(data, arranged, column)
        p = data.pool.p["instance"][:, [column]].toarray().ravel()
        weights = {
            number[int(data.pool.target_id[t])]: 0.0 for t in np.unique(data.pool.target[p > 0])
        }
        for row, mine, chance, verdict in zip(arranged.row, used, pi, f, strict=True):
            k = number[int(data.pool.target_id[data.pool.target[row]])]
            if mine and k in weights and not np.isnan(verdict):
                weights[k] = 1 / float(chance)
        g = np.full(p.size, 0.3)
        estimate = difference(p[arranged.row] * used, pi, f, g[arranged.row], float(p @ g))
        found[name] = saw, weights, float(estimate.value)
    return found


def of_system(data: Data, arranged: Centred, column: int) -> tuple[Any, Any, Any]:
    """Which rows count for a system, with which probability, and its verdicts."""
    if column in data.disclosed:
        used, pi = arranged.own(column)
        return used, pi, arranged.verdicts_of(column)
    return arranged.counts, arranged.row_pi, arranged.verdicts[:, column]
