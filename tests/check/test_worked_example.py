"""The worked example of kbpo/README.md, computed with the code that the board uses."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path

import numpy as np
import pytest

from estimators.poisson import is_selected
from kbpo.money.models import Price
from scoring.arrays import Floats
from scoring.inclusion import union_probability

README = (Path(__file__).parents[2] / "kbpo/README.md").read_text()
EXAMPLE = README.partition("## One worked example")[2].partition("\n## ")[0]


def says(number: float | Decimal) -> bool:
    return f"**{number}**" in EXAMPLE


def precision(holds: Floats, weight: Floats, pi: Floats) -> float:
    return float((holds * weight / pi).sum() / (weight / pi).sum())


def test_what_the_questions_cost() -> None:
    price = Price(reward=Decimal("0.05"), fee_rate=Decimal("0.2"))
    assert f"${price.per_answer}" in EXAMPLE and f"at most ${2 * 3 * price.per_answer}" in EXAMPLE


def test_who_is_drawn_and_the_precision_of_the_first_run() -> None:
    assert is_selected(np.array([0.31, 0.31]), np.array([0.5, 0.8])).all()
    found = precision(np.array([1.0, 0.0]), np.array([0.25, 0.25]), np.repeat(0.5, 2))
    assert says(found)


@pytest.mark.parametrize(("threshold", "answered", "pi"), [(0.8, 1.0, 0.8), (0.8, 0.9, 0.72)])
def test_the_probability_that_the_target_has_a_label(
    threshold: float, answered: float, pi: float
) -> None:
    assert float(union_probability(np.array(threshold))) * answered == pytest.approx(pi, abs=1e-12)
    assert says(pi)
