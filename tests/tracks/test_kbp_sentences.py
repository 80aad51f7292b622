"""Predicates that say the same of two mentions stand on the page once."""

from formats.schema import shipped_schema
from kbpo.tracks.kbp.questions import sentences_of

SCHEMA = shipped_schema("tac_kbp")


def also(visible: list[str], a: str, b: str) -> dict[str, list[str]]:
    return {one["part"]: one["also"] for one in sentences_of(visible, {a}, {b}, SCHEMA)}


def test_a_symmetric_predicate_is_one_sentence() -> None:
    assert also(["per:spouse>", "per:spouse<"], "PER", "PER") == {"per:spouse>": ["per:spouse<"]}


def test_a_predicate_and_its_inverse_are_one_sentence_and_its_other_direction_is_another() -> None:
    visible = ["per:children>", "per:children<", "per:parents>", "per:parents<"]
    assert also(visible, "PER", "PER") == {"per:children>": ["per:parents<"], "per:children<": ["per:parents>"]}


def test_a_predicate_whose_inverse_is_not_asked_stands_alone() -> None:
    assert also(["per:children>"], "PER", "PER") == {"per:children>": []}
