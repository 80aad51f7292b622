"""Simulated workers err as their bias says: the confusion differs in the direction that is
predicted.
"""

from __future__ import annotations

import random

import pytest

from rehearsal.bias import mistaken

OFFERED = ["a>", "b>", "c>", "d>"]


def confusion(bias: str, holds: tuple[str, ...], n: int = 400) -> tuple[float, float]:
    """The mean number of relations that are claimed though they do not hold, and that are not
    though they do.
    """
    rng, claimed, dropped = random.Random(5), 0, 0
    for _ in range(n):
        said = set(mistaken(OFFERED, holds, bias, rng))
        assert said != set(holds), "a mistake is one"
        claimed += len(said - set(holds))
        dropped += len(set(holds) - said)
    return claimed / n, dropped / n


def test_without_bias_a_relation_is_too_many_or_too_few_as_it_comes() -> None:
    claimed, dropped = confusion("none", ("a>", "b>"))
    assert claimed == pytest.approx(0.5, abs=0.08) and dropped == pytest.approx(0.5, abs=0.08)


def test_who_says_yes_too_often_claims_and_never_drops() -> None:
    assert confusion("yes", ("a>", "b>")) == (1.0, 0.0)
    assert confusion("yes", ()) == (1.0, 0.0)
    assert confusion("yes", tuple(OFFERED)) == (0.0, 1.0), (
        "where all holds there is only one way to err"
    )
