"""The schemas: the shipped ones, other people's, and what is wrong with bad ones."""

import json
from pathlib import Path

import pytest

from formats.messages import FormatError
from formats.schema import load_schema, shipped_schema

TAC = shipped_schema("tac_kbp")
CANONICAL = """
    per:place_of_birth per:place_of_residence per:place_of_death per:date_of_birth per:date_of_death
    per:organizations_founded per:holds_shares_in per:schools_attended per:employee_or_member_of
    per:parents
    per:children per:spouse per:siblings per:other_family per:title org:place_of_headquarters
    org:date_founded
    org:date_dissolved org:founded_by org:member_of org:members org:subsidiaries org:parents
    org:shareholders
    org:holds_shares_in
"""
SMALL = {
    "entity_types": [{"name": "PER"}, {"name": "DATE"}],
    "predicates": [{"name": "knows", "types": [["PER", "PER"]], "inverse": "knows"},
                   {"name": "born", "types": [["PER", "DATE"]],
                   "template": "{subject} was born on {object}"}],
}  # fmt: skip


def test_tac_has_the_25_canonical_predicates() -> None:
    assert set(TAC.predicates) == set(CANONICAL.split())
    assert not set(TAC.predicates) & (set(TAC.turned) | set(TAC.mapped) | TAC.ignored)


@pytest.mark.parametrize(
    ("name", "reading"),
    [
        ("per:parents", ("per:parents", 1, 2)),
        ("org:employees_or_members", ("per:employee_or_member_of", 2, 1)),
        ("org:top_members_employees", ("per:employee_or_member_of", 2, 1)),
        ("gpe:employees_or_members", ("per:employee_or_member_of", 2, 1)),
        ("org:students", ("per:schools_attended", 2, 1)),
        ("gpe:births_in_place", ("per:place_of_birth", 2, 1)),
        ("gpe:births_in_city", ("per:place_of_birth", 2, 1)),
        ("gpe:residents_in_place", ("per:place_of_residence", 2, 1)),
        ("gpe:deaths_in_country", ("per:place_of_death", 2, 1)),
        ("gpe:headquarters_in_place", ("org:place_of_headquarters", 2, 1)),
        ("per:city_of_birth", ("per:place_of_birth", 1, 2)),
        ("per:countries_of_residence", ("per:place_of_residence", 1, 2)),
        ("org:stateorprovince_of_headquarters", ("org:place_of_headquarters", 1, 2)),
        ("org:organizations_founded", ("org:founded_by", 2, 1)),
        ("gpe:holds_shares_in", ("org:shareholders", 2, 1)),
        ("per:age", None),
        ("PER:PARENTS", None),
    ],
)
def test_names_are_read_in_their_canonical_direction(name: str, reading: object) -> None:
    assert TAC.canonical_statement(name, 1, 2) == reading


def test_turning_a_name_round_turns_its_types_round() -> None:
    for name, target in TAC.turned.items():
        prefix = name.partition(":")[0].upper()
        assert prefix in TAC.object_types(target), name


def test_known_and_ignored_names_are_told_from_unknown_ones() -> None:
    assert (
        TAC.knows_predicate("per:cause_of_death")
        and TAC.knows_predicate("org:students")
        and TAC.knows_predicate("no_relation")
    )
    assert not TAC.knows_predicate("per:favourite_colour")


def test_string_valued_types_are_not_linkable() -> None:
    assert [name for name in TAC.entity_types if not TAC.linkable(name)] == [
        "DATE",
        "TITLE",
        "STRING",
    ]
    docred = shipped_schema("docred")
    assert [name for name in docred.entity_types if not docred.linkable(name)] == ["TIME", "NUM"]


def test_inverses_are_mutual_where_types_allow() -> None:
    for schema in (TAC, shipped_schema("docred")):
        for predicate in schema.predicates.values():
            for subject, object_ in predicate.types:
                inverse = schema.inverse(predicate.name, object_)
                assert inverse is None or inverse in schema.predicates
                if schema is TAC and inverse is not None:
                    assert schema.is_allowed(inverse, object_, subject)
                    assert schema.inverse(inverse, subject) == predicate.name


def test_the_predicates_between_two_types() -> None:
    assert [p.name for p in TAC.predicates_between(["PER"], ["TITLE"])] == ["per:title"]
    assert "per:spouse" in [p.name for p in TAC.predicates_between(["PER", "ORG"], ["PER"])]
    assert TAC.predicates_between(["DATE"], ["PER"]) == []


def test_a_template_becomes_the_sentence_that_a_worker_reads() -> None:
    assert (
        TAC.predicates["per:place_of_birth"].sentence("Ada", "London") == "Ada was born in London"
    )
    for schema in (TAC, shipped_schema("docred")):
        assert all("{" not in p.sentence("a", "b") for p in schema.predicates.values())


def test_a_schema_survives_being_stored() -> None:
    for schema in (TAC, shipped_schema("docred"), load_schema(SMALL)):
        assert load_schema(json.loads(json.dumps(schema.as_dict()))) == schema


def test_a_small_schema_in_yaml_or_json_is_enough(tmp_path: Path) -> None:
    (tmp_path / "small.json").write_text("\ufeff" + json.dumps(SMALL))
    yaml = "entity_types: [{name: PER}]\npredicates: [{name: knows, types: [[PER, PER]]}]\n"
    (tmp_path / "small.yaml").write_text(yaml)
    schema = load_schema(tmp_path / "small.json")
    assert schema.name == "small"
    assert schema.predicates["knows"].symmetric
    assert schema.entity_types["DATE"].value == "date"
    assert (
        load_schema(tmp_path / "small.yaml").predicates["knows"].template
        == "{subject}: knows: {object}"
    )


def test_a_number_of_relations_may_stand_behind_a_pair_of_types() -> None:
    counted = {"name": "knows", "types": [["PER", "PER", 2920]]}
    schema = load_schema(SMALL | {"predicates": [counted]})
    assert schema.predicates["knows"].types == (("PER", "PER"),)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (
            {"predicates": [{"name": "p", "types": [["PER", "PER", "PER"]]}]},
            "entry 1 of predicates",
        ),
        ({"entity_types": []}, "no entity types"),
        ({"predicates": [{"name": "p", "types": [["PER", "GPE"]]}]}, "unknown type"),
        (
            {"predicates": [{"name": "p", "types": [["PER", "PER"]], "inverse": "q"}]},
            "unknown inverse",
        ),
        (
            {"predicates": [{"name": "p", "types": [["PER", "PER"]], "template": "no arguments"}]},
            "lacks",
        ),
        ({"predicates": [{"types": []}]}, "lacks the key 'name'"),
        ({"predicates": 5}, "wrong kind: predicates is 5. Expected is a list of objects as"),
        ({"predicates": ["knows"]}, 'wrong kind: entry 1 of predicates is "knows". Expected is'),
        ({"entity_types": SMALL["entity_types"] + ["X"]}, 'entry 3 of entity_types is "X"'),
        ({"predicates": [{"name": "p", "types": ["PER", "GPE"]}]}, "entry 1 of predicates is"),
        ({"turned": ["x"]}, "turned is ..x...  *Expected is an object"),
        ({"exclusive": ["knows"]}, "entry 1 of exclusive is"),
        (
            {"predicates": SMALL["predicates"] * 2},
            r"names “knows” twice: in the entries 1 and \d of predicates",
        ),
        (
            {"entity_types": [{"name": "PER"}, {"name": "DATE"}, {"name": "PER"}]},
            "names “PER” twice: in the entries 1 and 3 of entity_types",
        ),
        ({"turned": {"x": "y"}}, "unknown predicate"),
        ({"exclusive": [["x"]]}, "exclusive"),
        ({"entity_types": [{"name": "PER", "value": "colour"}]}, "date, number, string"),
    ],
)
def test_a_bad_schema_is_refused_with_the_reason(change: dict[str, object], words: str) -> None:
    with pytest.raises(FormatError, match=words):
        load_schema(SMALL | change)


def test_keys_that_no_schema_has_are_told_once_with_their_first_place() -> None:
    people = [{"name": "PER", "colour": 1}, {"name": "ORG", "colour": 2}, {"name": "DATE"}]
    notes = load_schema(SMALL | {"entity_types": people, "predicate": []}).notes
    assert notes == (
        "The key “predicate” of the schema is not known. It is ignored.",
        "The key “colour” in the entry 1 of entity_types in the schema (PER) is not known."
        " It is ignored, here and further on.",
    )
    assert not any(shipped_schema(name).notes for name in ("tac_kbp", "docred"))


def test_a_file_that_is_no_schema_is_refused_with_the_reason(tmp_path: Path) -> None:
    for name, content in (
        ("a.json", b"{"),
        ("b.yaml", b"a: ["),
        ("c.json", b"[]"),
        ("d.json", b"\xff"),
    ):
        (tmp_path / name).write_bytes(content)
        with pytest.raises(FormatError, match=name):
            load_schema(tmp_path / name)
    with pytest.raises(FormatError, match="cannot be read"):
        load_schema(tmp_path / "missing.json")


def test_what_annotators_are_told_is_kept_when_a_schema_is_stored() -> None:
    stored = load_schema(TAC.as_dict())
    assert stored == TAC
    title = stored.entity_types["TITLE"]
    assert "mayor" in title.cues and "[" in title.example


@pytest.mark.parametrize("name", ["tac_kbp", "docred"])
def test_every_relation_that_ships_says_what_it_means(name: str) -> None:
    for predicate in shipped_schema(name).predicates.values():
        told = [predicate.definition, predicate.example, predicate.counter_example]
        assert all(told) and len(set(told)) == 3, predicate.name
