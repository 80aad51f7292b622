"""Checking an answer against passages: what is refused, what it comes to."""

from __future__ import annotations

import json
from typing import Any

import pytest

from annotation.interfaces.base import BadAnswer
from annotation.interfaces.registry import interface_by_name
from annotation.interfaces.shared.statements import side_by_side
from annotation.models import Question
from annotation.workers import teach

PAGE = interface_by_name("answer_correctness")
PASSAGES = ["Ida Marsk built it in 1884.", "Tom built it. 🚢 He was rich.", "It is tall."]


def question(passages: list[str] | None = None) -> Question:
    payload = {
        "title": "An answer",
        "question": "who built it",
        "text": "Ida Marsk",
        "passages": PASSAGES if passages is None else passages,
    }
    return Question(interface="answer_correctness", payload=payload, target_id=7)


def says(at: int, verdict: str, *marks: tuple[int, int], confirmed: str = "1") -> dict[str, Any]:
    return {
        f"passage-{at}": [verdict],
        f"marks-{at}": [json.dumps(marks)],
        f"confirmed-{at}": [confirmed],
    }


ALL = {
    "plausible": ["yes"],
    **says(0, "correct", (0, 9), (5, 15)),
    **says(1, "incorrect", (0, 12), (14, 15)),
    **says(2, "neither"),
}


def values(raw: dict[str, Any]) -> dict[str, Any]:
    return {one.criterion: one.value for one in PAGE.parse(question(), raw)}


def test_what_passages_show_comes_to_any_and_to_a_share() -> None:
    found = values(ALL)
    assert (found["any_correct"]["value"], found["avg_correct"]["value"]) == (1.0, 0.5)
    first, second, third = found["any_correct"]["passages"]
    assert first == {"says": "correct", "marks": [(0, 15)], "words": ["Ida Marsk built"]}
    assert second["words"] == ["Tom built it", "🚢"], "places are counted in characters"
    assert third == {"says": "neither", "marks": []}


def test_nothing_shown_is_nought_and_so_is_what_is_not_plausible() -> None:
    neither = {
        "plausible": ["yes"],
        **says(0, "neither"),
        **says(1, "neither"),
        **says(2, "neither"),
    }
    for raw in (neither, {"plausible": ["no"]}, {**ALL, "plausible": ["no"]}):
        found = values(raw)
        assert (found["any_correct"]["value"], found["avg_correct"]["value"]) == (0.0, 0.0)
    assert values({"plausible": ["no"]})["any_correct"]["passages"] == []


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"plausible": [""]}, "Step 1 is missing"),
        ({"plausible": ["maybe"]}, "Step 1 is missing"),
        ({"passage-2": [""]}, "Paragraph c is missing"),
        ({"passage-2": ["perhaps"]}, "Paragraph c is missing"),
        (says(0, "correct"), "mark the words that show that it is correct"),
        (says(0, "correct", (0, 9), confirmed=""), "read the marked words again"),
        (says(0, "correct", (0, 99)), "not within its words"),
        (says(0, "correct", (-3, 4)), "not within its words"),
        (says(0, "correct", (5, 5)), "not within its words"),
        (says(0, "correct", (3, 4)), "not within its words"),
        ({"marks-0": ["nonsense"]}, "did not arrive"),
        ({"marks-0": ['{"a": 1}']}, "did not arrive"),
        ({"marks-0": [json.dumps([[0, 1]] * 51)]}, "did not arrive"),
        ({"marks-0": ["[[true, 4]]"]}, "not within its words"),
        ({"marks-0": ["[" * 100_000]}, "did not arrive"),
        ({"problem": ["nonsense"]}, "what is wrong"),
    ],
)
def test_an_answer_that_cannot_be_used_is_refused_with_a_sentence(
    change: dict[str, Any], sentence: str
) -> None:
    with pytest.raises(BadAnswer, match=sentence):
        PAGE.parse(question(), ALL | change)


def test_the_tutorial_has_what_is_not_plausible_and_what_is_answered_otherwise() -> None:
    lesson = teach.builtin_tutorials()["answer_correctness"]
    assert len(lesson.questions) == 8
    right = [one["right"] for one in lesson.questions]
    assert any(one["plausible"] == ["no"] for one in right)
    assert any(one.get("passage-0") == ["incorrect"] for one in right)
    asked, ours = lesson.question(1), right[0]

    def missed(raw: dict[str, Any]) -> list[str]:
        return teach.missed_criteria(lesson, 1, PAGE.parse(asked, raw))

    assert missed(ours | {"marks-0": ["[[40, 60]]"]}) == [], "other words around the right ones"
    assert missed(ours | {"marks-0": ["[[0, 3]]"]}) == ["any_correct"], "the wrong words"
    assert missed(ours | {"passage-0": ["incorrect"]}) == ["any_correct"]
    assert missed({"plausible": ["no"]}) == ["any_correct"]


def test_an_answer_in_words_names_its_paragraphs_and_what_was_marked_in_them() -> None:
    ours = PAGE.parse(question(), ALL)
    yours = PAGE.parse(question(), ALL | says(0, "correct", (0, 26)) | says(2, "correct", (0, 2)))
    beside = side_by_side(PAGE, question(), yours, ours)
    assert [(one.words, one.yours, one.right) for one in beside.lines] == [
        ("Plausible: yes", True, True),
        (
            "Paragraph a: it shows the answer is correct, “Ida Marsk built it in 1884”",
            True,
            True,
        ),
        ("Paragraph b: it shows the answer is incorrect, “Tom built it”, “🚢”", True, True),
        ("Paragraph c: it does not say", False, True),
        ("Paragraph c: it shows the answer is correct, “It”", True, False),
    ]
    flagged = PAGE.parse(question(), {"problem": ["text"]})
    assert [one.words for one in PAGE.statements(question(), flagged)] == ["Flagged"]
