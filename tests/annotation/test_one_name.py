"""One name, one choice: what two candidates stand for never overlaps. Every sentence says what it
means.
"""

from __future__ import annotations

from typing import Any

import pytest

from annotation.interfaces.registry import interface_of
from annotation.interfaces.shared.payload import Side
from annotation.models import Question
from annotation.workers import teach
from formats.schema import shipped_schema
from kbpo.tracks.kbp.questions import meanings_of, sentences_of


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
    assert [one.called(value) for value in one.candidates] == called


def test_the_page_says_so_and_asks_for_the_fullest_name() -> None:
    lesson = teach.shipped()["relation"]
    page = interface_of("relation").render(lesson.question(2))
    assert [one[1:3] for one in page["sides"][0]["candidates"]] == [
        ("Ruben Hale", ""),
        ("Hale", "Ruben Hale"),
        ("Another name, not listed", ""),
    ]
    assert page["sides"][0]["has_parts"] and not page["sides"][1]["has_parts"]
    assert any("fullest name" in line for line in lesson.intro)
    assert "fullest name" in lesson.questions[1]["why"], "it is taught"


@pytest.mark.parametrize("direction", [">", "<"])
def test_every_sentence_of_the_tac_schema_comes_with_its_meaning(direction: str) -> None:
    schema = shipped_schema("tac_kbp")
    names = {kind for one in schema.predicates.values() for pair in one.types for kind in pair}
    visible = [f"{name}{direction}" for name in schema.predicates]
    sentences = sentences_of(visible, names, names, schema)
    meanings = meanings_of(sentences, schema)
    for sentence in sentences:
        told = meanings[sentence["part"][:-1]]
        assert told["definition"] and told["example"] and told["counter_example"]


def test_tutorials_tell_what_the_schema_tells() -> None:
    schema = shipped_schema("tac_kbp")
    told = 0
    for name in ("relation", "relations_exhaustive"):
        lesson = teach.shipped()[name]
        for question in [*lesson.questions, *lesson.again]:
            payload = question["payload"]
            for sentence in [one for some in lists_of(payload) for one in some]:
                meaning = payload["meanings"][sentence["part"][:-1]]
                predicate = schema.predicates.get(sentence["part"][:-1])
                if predicate is not None:
                    assert meaning["definition"] == predicate.definition
                    told += 1
    assert told > 20


def lists_of(payload: dict[str, Any]) -> list[Any]:
    return payload.get("options") or [payload["predicates"]]


def test_a_question_from_before_has_no_meanings_and_is_shown_as_ever() -> None:
    payload = dict(teach.shipped()["relation"].questions[0]["payload"])
    asked = Question(interface="relation", payload=payload, target_id=0)
    assert len(interface_of("relation").render(asked)["explains"]) == len(payload["predicates"])
    del payload["meanings"]
    assert interface_of("relation").render(asked)["explains"] == []


def test_the_marked_words_are_not_the_same_as_none_of_the_names() -> None:
    lesson = teach.shipped()["relation"]
    asked, relation = lesson.question(2), interface_of("relation")
    own = "-".join(str(end) for end in asked.payload["a"]["span"])
    said = []
    for choice in (own, "other", lesson.questions[1]["right"]["a"][0]):
        answer = relation.parse(asked, lesson.questions[1]["right"] | {"a": [choice]})
        said.append([pair for one in answer for pair in relation.units(asked, one)])
    assert said[0] != said[1] != said[2] != said[0]
