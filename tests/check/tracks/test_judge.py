"""Right, wrong or missing: what labels say of a prediction under each criterion."""

from __future__ import annotations

from math import isnan, nan
from typing import Any

import pytest

from kbpo.tracks.kbp.judge import Clusters, JudgedRow, mention_specificity, verdicts_of_rows

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
    found = verdicts_of_rows([row(**changed)])
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
        ({"subject_canonical": LINDT}, (1, 0, 0)),  # its own name only where people say so
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


def test_a_system_that_links_nothing_earns_nothing_where_people_linked() -> None:
    assert same(verdict(subject_canonical=LINDT, object_canonical=BERG), (1, 0, 0))
    settled = Clusters(TEXT, {LINDT: {"canonical": list(LINDT)}, BERG: {"canonical": list(OLA)}})
    assert settled.reference_verdict(LINDT, LINDT) == 1.0, (
        "people say that it is its own canonical mention"
    )
    assert settled.reference_verdict(LINDT, MARA) == 0.0, "and then another one is not"


NOUNS = "Mara Lindt, the founder, left. She sold it. The founder said: Lindt keeps the rest."
FULL, FOUNDER, SHE, SHORT = (0, 10), (12, 23), (31, 34), (62, 67)


@pytest.mark.parametrize(
    ("claimed", "right"), [(FULL, 1.0), (SHORT, 1.0), (FOUNDER, 0.0), (SHE, 0.0)]
)
def test_another_mention_of_the_same_thing_is_right_if_it_names_it_as_well(
    claimed: tuple[int, int], right: float
) -> None:
    again = (44, 55)
    assert [NOUNS[a:b] for a, b in (FULL, FOUNDER, SHE, again, SHORT)] == [
        "Mara Lindt",
        "the founder",
        "She",
        "The founder",
        "Lindt",
    ]
    settled = {span: {"canonical": list(FULL)} for span in (FULL, FOUNDER, SHE, again, SHORT)}
    assert Clusters(NOUNS, settled).reference_verdict(again, claimed) == right
    apart = settled | {claimed: {"canonical": list(claimed)}}
    expected = 1.0 if claimed == FULL else 0.0
    assert Clusters(NOUNS, apart).reference_verdict(again, claimed) == expected, (
        "another thing is wrong"
    )


def test_where_nothing_is_named_a_nominal_is_as_good_as_another_but_no_pronoun() -> None:
    settled = {span: {"canonical": list(FOUNDER)} for span in (FOUNDER, SHE, (44, 55))}
    of = Clusters(NOUNS, settled)
    assert of.reference_verdict(SHE, (44, 55)) == 1.0
    assert of.reference_verdict((44, 55), SHE) == of.reference_verdict(SHE, SHE) == 0.0


@pytest.mark.parametrize(
    ("gloss", "expected"),
    [
        ("She", 0),
        ("their", 0),
        ("the actress", 1),
        ("The company", 1),
        ("his father", 1),
        ("the United Nations", 2),
        ("eBay", 2),
        ("1990", 2),
        ("王菲", 2),
    ],
)
def test_a_name_stands_over_a_nominal_over_a_pronoun(gloss: str, expected: int) -> None:
    assert mention_specificity(gloss) == expected


def test_labels_of_labels_lead_to_one_cluster_and_circles_end() -> None:
    chain = Clusters(TEXT, {LINDT: {"canonical": list(AGAIN)}, AGAIN: {"canonical": list(MARA)}})
    assert chain.canonical_mention(LINDT) == MARA
    circle = Clusters(TEXT, {LINDT: {"canonical": list(AGAIN)}, AGAIN: {"canonical": list(LINDT)}})
    assert circle.canonical_mention(LINDT) == circle.canonical_mention(AGAIN) == min(LINDT, AGAIN)
    assert Clusters(TEXT, {}).canonical_mention(MARA) is None


def test_what_readers_leave_undecided_is_known_of_no_claim_but_keeps_its_cluster() -> None:
    divided = {"undecided": True, "cluster": list(LINDT), "votes": {"0-10": 1, "15-23": 1}}
    of = Clusters(TEXT, {MARA: {"canonical": list(MARA)}, LINDT: divided, BERG: SETTLED[BERG]})
    assert all(isnan(of.reference_verdict(LINDT, claimed)) for claimed in (LINDT, MARA, OLA))
    assert isnan(of.reference_verdict(BERG, LINDT)), "nobody knows whether that is Ola Berg"
    assert of.reference_verdict(BERG, MARA) == 0.0
    assert of.canonical_mention(LINDT) is None and of.cluster_of(LINDT) == LINDT
    member = Clusters(TEXT, {AGAIN: {"canonical": list(MARA)}, LINDT: divided | {"cluster": MARA}})
    assert member.cluster_of(LINDT) == member.canonical_mention(AGAIN) == MARA
    assert member.reference_verdict(AGAIN, LINDT) == 1.0, "the same thing, by a name"
    decided = Clusters(TEXT, {LINDT: divided | {"canonical": list(MARA)}})
    assert decided.reference_verdict(LINDT, MARA) == 1.0, "where others settle it"
    assert not decided.cluster


def test_no_rows_give_no_verdicts() -> None:
    assert [values.size for values in verdicts_of_rows([]).values()] == [0, 0, 0]
