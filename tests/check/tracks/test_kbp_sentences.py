"""Predicates that say the same of two mentions stand on the page once."""

from formats.schema import shipped_schema
from kbpo.tracks.kbp.questions import sentence_payloads

SCHEMA = shipped_schema("tac_kbp")


def also(visible: list[str], a: str, b: str) -> dict[str, list[str]]:
    return {one["part"]: one["also"] for one in sentence_payloads(visible, {a}, {b}, SCHEMA)}


def test_a_symmetric_predicate_is_one_sentence() -> None:
    assert also(["per:spouse>", "per:spouse<"], "PER", "PER") == {"per:spouse>": ["per:spouse<"]}


def test_a_predicate_and_its_inverse_are_one_sentence_and_its_other_direction_is_another() -> None:
    visible = ["per:children>", "per:children<", "per:parents>", "per:parents<"]
    assert also(visible, "PER", "PER") == {
        "per:children>": ["per:parents<"],
        "per:children<": ["per:parents>"],
    }


def test_a_predicate_whose_inverse_is_not_asked_stands_alone() -> None:
    assert also(["per:children>"], "PER", "PER") == {"per:children>": []}


def test_directions_that_the_gold_standard_keeps_by_themselves_are_asked_by_themselves() -> None:
    schema = shipped_schema("docred")

    def alone(part: str, a: str, b: str) -> bool:
        inverse = schema.inverse(part[:-1], b)
        return [
            one["also"] for one in sentence_payloads([part, f"{inverse}<"], {a}, {b}, schema)
        ] == [
            [],
            [],
        ]

    assert alone("loc:located_in_administrative_entity>", "LOC", "LOC")
    assert alone("loc:contains_administrative_entity>", "LOC", "LOC")
    assert not alone("misc:follows>", "MISC", "MISC")
