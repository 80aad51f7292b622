"""A relation has one name: the words of the sentence that people judge."""

from typing import Any

import pytest

from formats.relation import relation_names
from formats.schema import shipped_schema

OWNS = "{subject} owns shares in {object}"


def row(name: str, template: str, *types: tuple[str, str], label: str = "") -> dict[str, Any]:
    return {"name": name, "template": template, "types": types, "label": label}


def test_a_name_is_the_template_without_its_ends() -> None:
    rows = [
        row("a", OWNS, label="holds shares in"),
        row("b", "{subject} works for, or is a member of, {object}"),
        row("c", "{subject} was founded by {object}, alone"),
        row("d", "{object} is a child of {subject}"),
        row("e", "{subject} likes {any} {object}"),
    ]
    assert list(relation_names(rows).values()) == [
        "owns shares in",
        "works for, or is a member of",
        "… was founded by …, alone",
        "object is a child of subject",
        "likes {any}",
    ]


def test_where_words_are_the_same_types_or_labels_tell_relations_apart() -> None:
    by_subject = [row("a", OWNS, ("PER", "ORG")), row("b", OWNS, ("ORG", "ORG"), ("GPE", "ORG"))]
    by_object = [row("a", OWNS, ("PER", "ORG")), row("b", OWNS, ("PER", "GPE"))]
    by_label = [row("a", OWNS, ("PER", "ORG"), label="mostly")]
    by_label.append(row("b", OWNS, ("PER", "ORG"), label="partly"))
    by_nothing = [row("a", OWNS), row("b", OWNS)]
    assert [
        list(relation_names(rows).values())
        for rows in (by_subject, by_object, by_label, by_nothing)
    ] == [
        ["owns shares in (PER)", "owns shares in (ORG/GPE)"],
        ["owns shares in (PER → ORG)", "owns shares in (PER → GPE)"],
        ["owns shares in (mostly)", "owns shares in (partly)"],
        ["owns shares in (a)", "owns shares in (b)"],
    ]


def test_without_a_template_the_label_is_the_name() -> None:
    rows = [{"name": "knows"}, {"name": "x:fears", "label": "is afraid of"}]
    assert relation_names(rows) == {"knows": "knows", "x:fears": "is afraid of"}


@pytest.mark.parametrize("schema", ["tac_kbp", "docred"])
def test_no_two_relations_of_a_shipped_schema_have_one_name(schema: str) -> None:
    predicates = shipped_schema(schema).as_dict()["predicates"]
    assert len(set(relation_names(predicates).values())) == len(predicates)
