"""Answers of simulated annotators about texts and answers, as fields of our pages."""

from __future__ import annotations

import json
import random
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

from rehearsal.browser import Form, Page

Fields = dict[str, list[str]]


@dataclass(frozen=True)
class TrueRating:
    """The true rating of a text: the position of the option for each facet, from 1, and the
    corrected text.
    """

    facets: Mapping[str, int]
    mended: str


@dataclass(frozen=True)
class PassageVerdict:
    """What a passage says about an answer (correct, incorrect or neither), and the words that show
    it.
    """

    says: str
    words: str = ""


class Opinions(Protocol):
    """Protocol for an annotator who always answers correctly."""

    def rate(self, text: str) -> TrueRating: ...

    def check(self, question: str, answer: str, passage: str) -> PassageVerdict: ...

    def is_plausible(self, question: str, answer: str) -> bool: ...


def rating_answer_fields(
    page: Page, form: Form, opinions: Opinions, answer_wrongly: bool, rng: random.Random
) -> Fields:
    """Return the form fields of a rating. A wrong rating has one facet off by a step. A text below
    the best option is corrected.
    """
    text = form.form_values()["edit"][0]
    right = opinions.rate(text)
    places = dict(right.facets)
    if answer_wrongly:
        facet = rng.choice(sorted(places))
        steps = [
            step for step in (places[facet] - 1, places[facet] + 1) if form.offers(facet, step)
        ]
        places[facet] = rng.choice(steps)
    fields = {facet: [str(place)] for facet, place in places.items()}
    if any(place < len(form.options(facet)) for facet, place in places.items()):
        fields["edit"] = [right.mended if right.mended != text else f"{text} Or so."]
    return fields


def correctness_answer_fields(
    page: Page, form: Form, opinions: Opinions, answer_wrongly: bool, rng: random.Random
) -> Fields:
    """Return the form fields of a check of an answer. A wrong check reverses the verdict on one
    passage.
    """
    shown = json.loads(page.data["document-data"])
    question, answer = shown["question"], shown["text"]
    if not opinions.is_plausible(question, answer):
        return {"plausible": ["no"]}
    parts = [opinions.check(question, answer, passage) for passage in shown["passages"]]
    says = [shown_part.says for shown_part in parts]
    telling = [number for number, shown_part in enumerate(parts) if shown_part.words]
    if answer_wrongly and telling:
        number = rng.choice(telling)
        says[number] = {"correct": "incorrect", "incorrect": "correct"}[says[number]]
    fields = {"plausible": ["yes"]}
    for number, part in enumerate(parts):
        fields[f"passage-{number}"] = [says[number]]
        if part.words:
            begin = shown["passages"][number].index(part.words)
            fields[f"marks-{number}"] = [json.dumps([[begin, begin + len(part.words)]])]
            fields[f"confirmed-{number}"] = ["1"]
    return fields


FIELDS_BY_INTERFACE = {
    "language_quality": rating_answer_fields,
    "answer_correctness": correctness_answer_fields,
}
"""Interface -> function that returns the fields of a simulated answer"""
