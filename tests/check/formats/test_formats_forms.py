"""Declared forms: every mistake is named with its line, its field and what to do."""

from __future__ import annotations

from decimal import Decimal

import pytest

from formats.forms import BYTES, Form, error_sentences, read_form
from formats.messages import Report

GOOD = """name: help
title: How helpful is it?
questions:
  - name: helpful
    kind: rating
    ask: How helpful is it?
    range: [1, 3]
    cues: {1: of no use}
  - name: kind_of
    kind: choice
    ask: What is it?
    answers:
      - {label: A fact, value: 2}
      - {label: A guess, value: 0}
tutorial:
  questions:
    - text: Nothing.
      right: {helpful: 1, kind_of: A guess}
      why: It says nothing.
"""
WRONG = [
    ("syntax.empty", 0, "", "Write what it asks"),
    ("syntax.yaml", 2, "[1\n", "Correct the line"),
    ("syntax.yaml", 0, "name: a\nname: b", "twice"),
    ("syntax.yaml", 1, "a: &b [*b]", "Write it out"),
    ("syntax.yaml", 1, "a: " + "[" * (BYTES // 2), "Correct the brackets"),
    ("syntax.yaml", 0, "a: \x08", "Correct the line"),
    ("syntax.yaml", 1, "a: !!bool maybe", "Write the value alone"),
    ("syntax.yaml", 2, "\n? !!int ''\n: 1", "Write the value alone"),
    ("syntax.yaml", 1, "!!set {a}", "Write the value alone"),
    ("limits.form", 0, "#" * (BYTES + 1), "Shorten it"),
    ("schema.form", 1, "- 1", "Expected here: keys"),
    ("schema.form", 1, GOOD.replace("name: help\n", "name: Help me\n"), "is no name"),
    ("schema.form", 2, GOOD.replace("title: How helpful is it?", "title: []"), "title"),
    ("schema.form", 5, GOOD.replace("kind: rating", "kind: stars"), "none of rating"),
    ("schema.form", 7, GOOD.replace("[1, 3]", "[3, 1]"), "the lowest first"),
    ("schema.form", 7, GOOD.replace("[1, 3]", "[1, x]"), "two whole numbers"),
    ("schema.form", 8, GOOD.replace("{1: of", "{9: of"), "no step from 1 to 3"),
    ("schema.form", 14, GOOD.replace("value: 0", "value: much"), "not a number"),
    ("schema.form", 13, GOOD.replace("value: 0", "value: 2"), "the same value"),
    ("schema.form", 3, GOOD + "price: 0\n", "no price"),
    ("schema.form", 20, GOOD + "people: 99\n", "a whole number from 1 to 15"),
    ("schema.form", 20, GOOD + "colour: red\n", "is not known"),
    ("schema.form", 4, GOOD.replace("    ask: How helpful is it?\n", ""), "ask is missing"),
    ("schema.form", 4, GOOD.replace("name: helpful", "name: flag"), "a field of every page"),
    ("schema.form", 4, GOOD.replace("name: helpful", "name: action"), "a field of every page"),
    ("syntax.yaml", 0, GOOD + "price: 0x" + "f" * 6000, "too many digits"),
    ("syntax.yaml", 2, GOOD.replace("How helpful is it?", '"\\ud800"'), "invalid Unicode"),
    ("schema.form", 2, GOOD.replace("title: How", 'title: "a\\x00b" #'), "can be printed"),
    ("consistency.form", 9, GOOD.replace("name: kind_of", "name: helpful"), "Choose another"),
    ("consistency.form", 14, GOOD.replace("A guess, value", "A fact, value"), "already"),
    ("consistency.form", 7, GOOD.replace("kind: rating", "kind: text"), "A text has no range"),
    ("consistency.form", 4, GOOD.replace("kind: choice", "kind: preference"), "two forms"),
    ("consistency.form", 18, GOOD.replace("{helpful: 1", "{helpful: 7"), "there are 1, 2, 3"),
    ("consistency.form", 18, GOOD.replace("{helpful: 1, ", "{"), "no answer to “helpful”"),
    ("consistency.form", 18, GOOD.replace("{helpful: 1", "{helpful: 1, x: 1"), "no question “x”"),
    (
        "consistency.form",
        4,
        "name: a\ntitle: A\nquestions:\n  - {name: b, kind: text, ask: B}\n",
        "Add a rating",
    ),
]


def said(text: str) -> tuple[Form | None, Report]:
    report = Report()
    return read_form(text, report), report


def test_a_good_form_has_its_scales_prices_and_lessons() -> None:
    form, report = said("\ufeff" + GOOD)
    assert form is not None and not report.messages
    rating, choice = form.scored_questions
    assert [rating.scale_share(answer.value) for answer in rating.answers] == [0.0, 0.5, 1.0]
    assert rating.answers[0].cue == "of no use"
    assert [choice.scale_share(answer.value) for answer in choice.answers] == [1.0, 0.0]
    assert (form.price, form.people, form.needed) == (Decimal("0.05"), 1, 1)
    assert form.lessons[0].right == {"helpful": 1.0, "kind_of": 0.0}
    assert not form.is_comparison


def test_marks_that_nobody_sees_are_taken_out_of_a_form() -> None:
    form, report = said(GOOD.replace("How helpful is it?", '"Of \\u202ewhat\\u200b use?"'))
    assert form is not None and form.title == "Of what use?" and not report.errors
    form, report = said(GOOD.replace("title: How helpful is it?", 'title: "\\u202e\\u200b"'))
    assert form is None and "Expected here: text" in next(iter(report)).text


def test_a_preference_has_two_texts_and_ties_unless_it_says_no() -> None:
    text = "name: a\ntitle: A\nquestions:\n  - {name: b, kind: preference, ask: Which one}\n"
    form, _ = said(text)
    assert form is not None and form.is_comparison
    assert [answer.value for answer in form.questions[0].answers] == [1.0, 0.5, 0.0]
    without, _ = said(text.replace("ask: Which one", "ask: Which one, ties: no"))
    assert without is not None and len(without.questions[0].answers) == 2


@pytest.mark.parametrize(("code", "number", "text", "sentence"), WRONG)
def test_a_mistake_is_named_with_its_line(code: str, number: int, text: str, sentence: str) -> None:
    form, report = said(text)
    assert form is None
    found = [message for message in report if message.code == code]
    assert any(sentence in message.text for message in found), list(error_sentences(report))
    if number and text != GOOD + "price: 0\n":
        assert number in {message.line for message in found}, list(error_sentences(report))
    assert all(message.text.endswith(".") for message in report)


def test_a_question_that_is_wrong_is_told_once() -> None:
    report = Report()
    read_form(GOOD.replace("kind: rating", "kind: stars"), report)
    assert [message.line for message in report] == [5]
