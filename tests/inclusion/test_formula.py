"""The formula is the frequency with which a target comes to be known: everything that may happen to
it is played out, without a database.

A target is sampled, its document is read or not, a follow-up asks what nobody marked or labelled,
and more is sampled. People answer a share ρ of what samples ask and ρ′ of what follow-ups ask; a
mark of readers counts as often as a question beside it was answered.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, replace

import numpy as np
import pytest

from scoring.combine import Chances, Response, any_of, besides, combine, raised, since
from scoring.inclusion import Disclosed
from tests.inclusion.chance import Fate, fates

SURE = 1e-12
RATES = [(1.0, 1.0), (0.7, 1.0), (1.0, 0.7), (0.9, 0.6), (0.6, 0.9)]
MARKED = 0.7
"""Share of what is true that readers mark"""


@dataclass(frozen=True)
class Target:
    true: bool
    first: float
    """Thresholds of three samples: before any document was read, between two, and after"""
    second: float
    third: float
    drawn: float = 0.0
    """Chance of a draw with replacement together with the third sample"""


TARGETS = [
    Target(true, *some)
    for true in (True, False)
    for some in ((0.5, 0.6, 0.8), (0.0, 0.3, 0.3, 0.4), (0.4, 0.4, 0.4, 0.2))
]
"""Six targets, each in a document that is read first, second, or never"""
READ_FIRST, READ_SECOND = 0.3, 0.2


@dataclass
class Known:
    """What became of a target: whether it counts now, and what of it was known in between."""

    counts: bool = False
    asked: bool = False
    unanswered: bool = False
    marked: bool = False
    mark: float = 0.0


def play(fate: Fate, target: Target, rates: tuple[float, float]) -> tuple[str, bool]:
    """What a team that predicted the target could see when the second sample began (judged,
    unjudged, or that its document was read), and whether the target counts at the end.
    """
    rho, follow_up = rates
    u = fate.number([target.first, target.second, target.third])
    read = fate.one_of([(1, READ_FIRST), (2, READ_SECOND), (0, 1 - READ_FIRST - READ_SECOND)])
    state = Known()
    _sample(fate, state, u < target.first, rho)
    judged = state.asked
    if read == 1:
        _read(fate, state, target, follow_up)
    saw = "its document was read" if read == 1 else "judged" if judged else "unjudged"
    followed = read == 1
    _sample(fate, state, u < target.second and not followed, rho)
    if read == 2:
        _read(fate, state, target, follow_up)
        followed = True
    drawn = fate.happens(target.drawn)
    _sample(fate, state, (u < target.third or drawn) and not followed, rho)
    share = follow_up if followed else rho
    if state.marked and not state.counts and not state.unanswered:
        state.counts = fate.happens(share)  # the mark's own number lies below the share
    return saw, state.counts


def _sample(fate: Fate, state: Known, below: bool, rho: float) -> None:
    """Whoever is below the threshold is asked, once, unless readers marked it."""
    if below and not state.asked and not state.marked:
        state.asked = True
        state.counts = fate.happens(rho)
        state.unanswered = not state.counts


def _read(fate: Fate, state: Known, target: Target, rate: float) -> None:
    """The document is read, and what nobody marked or was asked about is followed up."""
    state.marked = target.true and fate.happens(MARKED)
    if not state.marked and not state.asked:
        state.asked = True
        state.counts = fate.happens(rate)


def _chances(target: Target) -> Chances:
    read = READ_FIRST + READ_SECOND
    before = (READ_FIRST * target.first + READ_SECOND * target.second) / read
    values = (target.third, target.drawn, read, before)
    return Chances(*(np.array([value]) for value in values))


def _response(rates: tuple[float, float]) -> Response:
    return Response(np.array([rates[0]]), np.array([rates[1]]))


@pytest.mark.parametrize("rates", RATES)
@pytest.mark.parametrize("target", TARGETS)
def test_pi_is_how_often_a_target_comes_to_be_known(
    target: Target, rates: tuple[float, float]
) -> None:
    happened = sum(p for p, (_, known) in fates(lambda fate: play(fate, target, rates)) if known)
    pi = combine(_chances(target), _response(rates))
    assert float(pi[0]) == pytest.approx(happened, abs=SURE)


@pytest.mark.parametrize("rates", RATES)
@pytest.mark.parametrize("target", TARGETS)
def test_for_a_team_that_saw_it_unjudged_pi_is_how_often_it_comes_to_be_known_since(
    target: Target, rates: tuple[float, float]
) -> None:
    mass: dict[str, float] = defaultdict(float)
    known: dict[str, float] = defaultdict(float)
    for p, (saw, counts) in fates(lambda fate: play(fate, target, rates)):
        mass[saw] += p
        known[saw] += p * counts
    disclosed = Disclosed(
        certainty=np.array([False]),
        unjudged=np.array([True]),
        threshold=np.array([target.first]),
        drawn=np.zeros(1),
        inside=np.array([False]),
        document=np.array([READ_FIRST]),
    )
    now = _chances(target)
    since_then = Chances(now.threshold, now.draw, now.document, np.array([target.second]))
    pi = combine(disclosed.given(since_then), _response(rates))
    assert float(pi[0]) == pytest.approx(known["unjudged"] / mass["unjudged"], abs=SURE)


def test_what_was_asked_for_another_run_alone_before_a_follow_up_makes_no_sample_likelier() -> None:
    """A second run had what it saw unjudged asked up to 0.8, and another sample holds it up to 0.4;
    its document, which was followed up, is no route.
    """
    nothing = np.zeros(1)
    chances = Chances(np.array([0.4]), nothing, nothing, np.array([0.8]))
    for rho in (1.0, 0.7):
        response = replace(_response((rho, 0.9)), covered=np.array([True]))
        assert combine(chances, response) == pytest.approx([0.4 * rho])


def test_what_was_disclosed_is_certain() -> None:
    pi = combine(_chances(TARGETS[0]), _response((0.5, 0.5)), np.array([True]))
    assert pi.tolist() == [1.0]


def test_each_piece_of_the_algebra_undoes_another() -> None:
    some, other = np.array([0.0, 0.2, 0.9, 0.5]), np.array([0.3, 0.0, 0.5, 1.0])
    together = any_of(some, other)
    np.testing.assert_allclose(together, [0.3, 0.2, 0.95, 1.0])
    np.testing.assert_allclose(besides(together, other)[:3], some[:3], atol=SURE)
    assert besides(together, other)[3] == 1.0
    then = np.array([0.3, 0.1, 0.5, 0.0])
    np.testing.assert_allclose(since(raised(some, then), then), some, atol=SURE)
    assert since(np.array([0.4]), np.array([0.4])).tolist() == [0.0], "nothing was added since"
    assert since(np.array([0.4]), np.array([0.9])).tolist() == [0.0], "another track had more"
