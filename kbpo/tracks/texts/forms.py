"""The contents of a declared form: payloads of questions, criteria, and the tutorial."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

from formats.forms import Form, Lesson, Question, read_form
from formats.messages import Report
from kbpo.tracks.measures import Criterion
from kbpo.tracks.registry import FORM

BETWEEN = "\n\n⁂\n\n"
"""Separator of the two texts of a pair in one text"""


@lru_cache(maxsize=256)
def parse_form(text: str) -> Form:
    """Return the form in a YAML text that was valid before."""
    form = read_form(text, Report())
    if form is None:
        raise KeyError(FORM)
    return form


def shipped_form(name: str) -> Form:
    """Return the form that is stored next to this module."""
    return parse_form(Path(__file__).with_name(f"{name}.yaml").read_text(encoding="utf-8"))


def criterion_of_question(question: Question) -> Criterion:
    """Return the criterion for the answers to a question."""
    is_share = question.kind != "rating" and (question.low, question.high) == (0.0, 1.0)
    return Criterion(
        question.name,
        question.label,
        higher_is_better=question.higher_is_better,
        low=question.low,
        high=question.high,
        unit="%" if is_share else "",
        single="mean",
    )


def field_description(question: Question) -> dict[str, Any]:
    """Return the page's description of a question, and the values of its answers in [0, 1]."""
    options = [
        {"label": answer.label, "value": question.scale_share(answer.value), "cue": answer.cue}
        for answer in question.answers
    ]
    return {
        "name": question.name,
        "label": question.label,
        "ask": question.ask,
        "kind": question.kind,
        "required": question.required,
        "options": options,
    }


def form_payload(form: Form, texts: Sequence[str], beside: Mapping[str, str]) -> dict[str, Any]:
    """Return the payload of a question with the interface `form`."""
    payload: dict[str, Any] = {
        "title": form.title,
        "text": BETWEEN.join(texts),
        "fields": [field_description(question) for question in form.questions],
        "guide": list(form.guide),
    }
    if len(texts) > 1:
        payload["texts"] = list(texts)
    shown = [
        {"label": name.capitalize(), "text": beside[name]}
        for name in form.shows
        if beside.get(name)
    ]
    return payload | ({"beside": shown} if shown else {})


def form_tutorial(form: Form) -> dict[str, Any] | None:
    """Return the tutorial of a declared form, in the format of `tutorial.json`; None if it has
    none.
    """
    if not form.lessons:
        return None
    questions = [
        {
            "payload": form_payload(form, lesson.texts, lesson.beside),
            "right": _raw_answer(form, lesson),
            "tests": lesson.tests,
            "why": lesson.why,
        }
        for lesson in form.lessons
    ]
    return {
        "interface": FORM + form.name,
        "version": 1,
        "needed": form.needed,
        "minutes": form.minutes,
        "intro": list(form.intro),
        "criteria": {question.name: question.label.lower() for question in form.questions},
        "questions": questions,
    }


def _raw_answer(form: Form, lesson: Lesson) -> dict[str, Any]:
    """Return the right answer as the form sends it: the positions of buttons, from 1."""
    raw = {
        question.name: ["–"] for question in form.questions if question.kind == "text"
    }  # anything is right
    for question in form.scored_questions:
        values = [answer.value for answer in question.answers]
        raw[question.name] = [str(values.index(float(lesson.right[question.name])) + 1)]
    return raw
