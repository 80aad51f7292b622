"""One name, one choice: what two candidates stand for never overlaps. Every sentence says what it
means.
"""

from __future__ import annotations

from typing import Any

import pytest

from annotation.interfaces.shared.payload import Side


def side(*glosses: str) -> Side:
    candidates = [
        {"span": [10 * at, 10 * at + len(gloss)], "gloss": gloss}
        for at, gloss in enumerate(glosses)
    ]
    data: Any = {"target": 1, "span": [0, 1], "gloss": "x", "type": "PER", "candidates": candidates}
    return Side("a", data)


@pytest.mark.parametrize(
    ("glosses", "called"),
    [
        (("Ruben Hale", "Hale"), ["Ruben Hale", "Hale, not Ruben Hale"]),
        (
            ("Nell Brandt", "Ada Brandt", "brandt"),
            ["Nell Brandt", "Ada Brandt", "brandt, not Nell Brandt or Ada Brandt"],
        ),
        (("Virginia", "West Virginia"), ["Virginia, not West Virginia", "West Virginia"]),
        (("Ann Lee", "Ann B. Lee"), ["Ann Lee", "Ann B. Lee"]),
        (("Hale", "Haley Court"), ["Hale", "Haley Court"]),
        (("Hale", "Hale"), ["Hale", "Hale"]),
        (
            ("WCI", "World Council of Insurers"),
            ["WCI, not World Council of Insurers", "World Council of Insurers"],
        ),
        (("U.S.", "United States"), ["U.S., not United States", "United States"]),
        (("WHO", "World Council"), ["WHO", "World Council"]),
    ],
)
def test_a_part_of_a_name_stands_for_another_thing(
    glosses: tuple[str, ...], called: list[str]
) -> None:
    one = side(*glosses)
    assert [one.candidate_words(value) for value in one.candidates] == called
