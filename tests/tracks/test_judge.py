"""Right, wrong or missing: what labels say of a prediction under each criterion."""

from __future__ import annotations

from math import isnan, nan
from typing import Any

import pytest

from kbpo.tracks.kbp.judge import Clusters, JudgedRow, judge

#       0123456789012345678901234567890123456789
TEXT = "Mara Lindt met Ola Berg. Lindt and Berg; Mara Lindt."
MARA, LINDT, OLA, BERG, AGAIN = (0, 10), (25, 30), (15, 23), (35, 39), (41, 51)
SETTLED = {LINDT: {"canonical": list(MARA)}, BERG: {"canonical": list(OLA)}}


def row(**changed: Any) -> JudgedRow:
    """“Lindt … Berg”: a parent, as labels settled it, with both links right."""
    parts: dict[str, Any] = {
        "predicate": "per:parents",
        "forward": True,
        "value": {"shown": ["per:parents>"], "holds": ["per:parents>"]},
        "subject": LINDT,
        "object": BERG,
        "subject_canonical": MARA,
        "object_canonical": OLA,
        "clusters": Clusters(TEXT, SETTLED),
    }
    return JudgedRow(**parts | changed)


def verdict(**changed: Any) -> tuple[float, float, float]:
    found = judge([row(**changed)])
    return found["relation"][0], found["linking"][0], found["correct"][0]


def same(found: tuple[float, ...], expected: tuple[float, ...]) -> bool:
    return all(isnan(a) if isnan(b) else a == b for a, b in zip(found, expected, strict=True))


@pytest.mark.parametrize(
    ("changed", "expected"),
    [
        ({}, (1, 1, 1)),
        ({"forward": False}, (nan, 1, nan)),  # the other direction was not shown
        ({"predicate": "per:spouse"}, (nan, 1, nan)),
        ({"predicate": "per:spouse", "closed": True}, (0, 1, 0)),
        ({"value": {"shown": ["per:parents>"], "holds": []}}, (0, 1, 0)),
        ({"value": {}}, (nan, 1, nan)),
        ({"subject_canonical": OLA}, (1, 0, 0)),
        ({"object_canonical": MARA}, (1, 0, 0)),
        ({"subject_canonical": LINDT}, (1, 1, 1)),  # a mention always refers to what it says itself
        (
            {"subject_canonical": AGAIN},
            (1, 1, 1),
        ),  # reads exactly like the settled canonical mention
        ({"clusters": Clusters(TEXT, {LINDT: SETTLED[LINDT]})}, (1, nan, nan)),
        (
            {"clusters": Clusters(TEXT, {LINDT: SETTLED[LINDT]}), "subject_canonical": OLA},
            (1, nan, nan),
        ),
    ],
)
def test_each_verdict(changed: dict[str, Any], expected: tuple[float, ...]) -> None:
    assert same(verdict(**changed), expected), verdict(**changed)


def test_labels_of_labels_lead_to_one_cluster_and_circles_end() -> None:
    chain = Clusters(TEXT, {LINDT: {"canonical": list(AGAIN)}, AGAIN: {"canonical": list(MARA)}})
    assert chain.root(LINDT) == MARA
    circle = Clusters(TEXT, {LINDT: {"canonical": list(AGAIN)}, AGAIN: {"canonical": list(LINDT)}})
    assert circle.root(LINDT) == circle.root(AGAIN) == min(LINDT, AGAIN)
    assert Clusters(TEXT, {}).root(MARA) is None


def test_no_rows_give_no_verdicts() -> None:
    assert [values.size for values in judge([]).values()] == [0, 0, 0]
