"""The probability of a target that a team knew to be unjudged: every inclusion route by itself."""

from __future__ import annotations

import numpy as np

from scoring.inclusion import Disclosed
from tests.sampling.ways import inclusion, own

NOTHING = np.zeros(1)


def unjudged(threshold: float = 0.0, drawn: float = 0.0, beta: float = 0.0) -> Disclosed:
    """What a team could see of one target that was not judged."""
    return Disclosed(
        np.array([False]),
        np.array([True]),
        np.array([threshold]),
        np.array([drawn]),
        np.array([False]),
        np.array([beta]),
    )


def test_a_judged_target_is_certain_and_an_unknown_one_has_the_probability_of_all() -> None:
    nowhere = np.array([False, False])
    seen = Disclosed(
        np.array([True, False]), nowhere, np.zeros(2), np.zeros(2), nowhere, np.zeros(2)
    )
    assert own(seen, inclusion([0.3, 0.3], [0.0, 0.5])).tolist() == [1.0, 1 - 0.7 * 0.5]


def test_an_unjudged_target_comes_in_by_what_was_added_since() -> None:
    assert np.allclose(own(unjudged(threshold=0.2), inclusion([0.6], NOTHING)), 0.5)
    assert np.allclose(own(unjudged(drawn=0.2), inclusion(NOTHING, [0.6])), 0.5)
    assert np.allclose(own(unjudged(beta=0.2), inclusion(NOTHING, NOTHING, 0.6)), 0.5)
    both = own(unjudged(threshold=0.2, drawn=0.2), inclusion([0.6], [0.6]))
    assert np.allclose(both, 0.75)


def test_what_was_not_raised_gives_nothing_and_takes_nothing_from_the_other_ways() -> None:
    assert own(unjudged(threshold=0.4), inclusion([0.4], NOTHING)).tolist() == [0.0]
    # a threshold of another track says nothing of the draws of this one
    assert np.allclose(own(unjudged(threshold=0.9), inclusion(NOTHING, [0.3])), 0.3)


def test_the_chance_is_that_of_a_simulation() -> None:
    random = np.random.default_rng(5)
    u, first, second = random.random((3, 400_000))
    before = (u < 0.3) | (first < 0.2)
    now = (u < 0.5) | (first < 0.2) | (second < 0.4)
    share = now[~before].mean()
    found = own(unjudged(threshold=0.3, drawn=0.2), inclusion([0.5], [1 - 0.8 * 0.6]))
    assert abs(float(found[0]) - share) < 4 * np.sqrt(0.25 / (~before).sum())


def test_documents_that_were_read_by_then_are_no_chance_whatever_is_predicted_in_them() -> None:
    inside = np.array([True, False, True, False])
    seen = Disclosed(*np.zeros((2, 4), dtype=bool), *np.zeros((2, 4)), inside, np.full(4, 0.2))
    now = inclusion(np.full(4, 0.5), np.zeros(4), [0.6, 0.6, 0, 0])
    with_them = seen.with_documents(now.chances.document, np.zeros(4, dtype=np.bool_))
    assert with_them.certainty.tolist() == [
        True,
        False,
        False,
        False,
    ]
    # four in ten documents were read since; for the last two no document is an inclusion route
    assert np.allclose(
        own(with_them, now),
        [1, 1 - 0.5 * (1 - 0.4 / 0.8), 0.5, 0.5],
    )
    assert np.allclose(own(seen, now.without_documents()), 0.5)
