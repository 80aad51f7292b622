"""The probability of a target that a team knew to be unjudged: every way in by itself."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from kbpo.sampling.seen import Seen
from tests.sampling.ways import inclusion

NOTHING = np.zeros(1)


def unjudged(threshold: float = 0.0, drawn: float = 0.0, beta: float = 0.0) -> Seen:
    """What a team could see of one target that was not judged."""
    return Seen(
        np.array([False]),
        np.array([True]),
        np.array([threshold]),
        np.array([drawn]),
        np.array([False]),
        beta,
    )


def test_a_judged_target_is_certain_and_an_unknown_one_has_the_probability_of_all() -> None:
    nowhere = np.array([False, False])
    seen = Seen(np.array([True, False]), nowhere, np.zeros(2), np.zeros(2), nowhere, 0.0)
    assert seen.own(inclusion([0.3, 0.3], [0.0, 0.5])).tolist() == [1.0, 1 - 0.7 * 0.5]


def test_an_unjudged_target_comes_in_by_what_was_added_since() -> None:
    assert np.allclose(unjudged(threshold=0.2).own(inclusion([0.6], NOTHING)), 0.5)
    assert np.allclose(unjudged(drawn=0.2).own(inclusion(NOTHING, [0.6])), 0.5)
    assert np.allclose(unjudged(beta=0.2).own(inclusion(NOTHING, NOTHING, 0.6)), 0.5)
    both = unjudged(threshold=0.2, drawn=0.2).own(inclusion([0.6], [0.6]))
    assert np.allclose(both, 0.75)


def test_what_was_not_raised_gives_nothing_and_takes_nothing_from_the_other_ways() -> None:
    assert unjudged(threshold=0.4).own(inclusion([0.4], NOTHING)).tolist() == [0.0]
    # a threshold of another track says nothing of the draws of this one
    assert np.allclose(unjudged(threshold=0.9).own(inclusion(NOTHING, [0.3])), 0.3)


def test_the_chance_is_that_of_a_simulation() -> None:
    random = np.random.default_rng(5)
    u, first, second = random.random((3, 400_000))
    before = (u < 0.3) | (first < 0.2)
    now = (u < 0.5) | (first < 0.2) | (second < 0.4)
    share = now[~before].mean()
    own = unjudged(threshold=0.3, drawn=0.2).own(inclusion([0.5], [1 - 0.8 * 0.6]))
    assert abs(float(own[0]) - share) < 4 * np.sqrt(0.25 / (~before).sum())


def test_documents_that_were_read_by_then_are_no_chance_whatever_is_stated_in_them() -> None:
    inside = np.array([True, False, True, False])
    seen = Seen(*np.zeros((2, 4), dtype=bool), *np.zeros((2, 4)), inside, 0.2)
    now = replace(inclusion(np.full(4, 0.5), np.zeros(4), 0.6), beta=np.array([0.6, 0.6, 0, 0]))
    assert seen.folded(now, np.zeros(4, dtype=np.bool_)).exact.tolist() == [
        True,
        False,
        False,
        False,
    ]
    # four in ten documents were read since; for the last two no document is a way in
    assert np.allclose(
        seen.folded(now, np.zeros(4, dtype=np.bool_)).own(now),
        [1, 1 - 0.5 * (1 - 0.4 / 0.8), 0.5, 0.5],
    )
    assert np.allclose(seen.own(now.without_documents()), 0.5)
