"""Rating a text and mending it: what is refused, what is counted, and what it pays."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest

from annotation.budget.accrue import extra_pay
from annotation.interfaces.base import BadAnswer, ParsedResponse
from annotation.interfaces.registry import interface_by_name
from annotation.models import Question
from annotation.workers import teach
from kbpo.money.models import Price
from kbpo.tracks.texts import edits
from kbpo.tracks.texts.forms import field_description
from kbpo.tracks.texts.shipped import GenerationTrack

TEXT = "The team have win three matches."
MENDED = "The team has won three matches."
PAGE = interface_by_name("language_quality")


def question(text: str = TEXT) -> Question:
    fields = [field_description(one) for one in GenerationTrack.form.questions]
    return Question(
        interface="language_quality",
        payload={"title": "A text", "text": text, "fields": fields},
        target_id=7,
        reward=Decimal("0.15"),
        extra=Decimal("0.25"),
    )


def said(fluency: str = "3", redundancy: str = "3", overall: str = "3", **more: Any) -> dict:
    return {"fluency": [fluency], "redundancy": [redundancy], "overall": [overall], **more}


def values(raw: dict[str, Any], text: str = TEXT) -> dict[str, dict[str, Any]]:
    return {one.criterion: one.value for one in PAGE.parse(question(text), raw)}


def extra(raw: dict[str, Any], text: str = TEXT) -> Decimal:
    asked = question(text)
    return extra_pay(asked, PAGE.parse(asked, raw))


def test_a_text_that_is_best_everywhere_needs_no_mending_and_pays_the_reward_alone() -> None:
    found = values(said(edit=["Something that was written before every facet was set to best"]))
    assert [found[name]["value"] for name in ("fluency", "redundancy", "overall")] == [1, 1, 1]
    assert (found["edit"]["value"], found["edit"]["changed"]) == (0.0, 0)
    assert extra(said()) == 0


def test_what_was_changed_is_counted_here_whatever_the_browser_says() -> None:
    found = values(said("2", edit=[MENDED], changed=["9999"], value=["1"]))
    assert found["fluency"]["value"] == 0.5
    assert found["edit"]["changed"] == 3, "ve → s, i → o"
    assert found["edit"]["value"] == pytest.approx(3 / len(TEXT))
    assert found["edit"]["words"] == pytest.approx(2 / 6)
    assert found["edit"]["text"] == MENDED
    assert extra(said("2", edit=[MENDED])) == Decimal("0.25")


@pytest.mark.parametrize(
    ("raw", "sentence"),
    [
        ({}, "Step 1 is missing"),
        (said("3", ""), "Step 2 is missing"),
        (said("4"), "not one of the answers"),
        (said("2"), "corrected nothing"),
        (said("2", edit=[TEXT]), "corrected nothing"),
        (said("2", edit=["  \n "]), "corrected nothing"),
        (said("2", edit=[TEXT + " \r\n"]), "corrected nothing"),
        (said("2", edit=["\u200b\u202e" + TEXT]), "corrected nothing"),
        (said("2", edit=[TEXT + "\u3164\u115f\ufe0f"]), "corrected nothing"),
        (said("2", edit=["\u200b"]), "is empty"),
        (said("2", edit=["x" * 5000]), "5,000 characters"),
        (said("2", edit=[3]), "did not arrive"),
        (said(problem=["nonsense"]), "what is wrong"),
    ],
)
def test_an_answer_that_cannot_be_used_is_refused_with_a_sentence(
    raw: dict[str, Any], sentence: str
) -> None:
    with pytest.raises(BadAnswer, match=sentence):
        PAGE.parse(question(), raw)


def test_two_hundred_thousand_characters_are_rated_mended_and_shown() -> None:
    text = "word " * 40_000
    found = values(said("1", edit=[text.replace("word", "work", 3)]), text.strip())
    assert found["edit"]["changed"] == 3
    shown = PAGE.render(question(text), None)
    assert shown["mended"] == text and shown["most"] > len(text)


def test_ratings_and_edits_of_several_people_are_kept_one_by_one() -> None:
    asked = question()
    answers = [said(), said("1", edit=[MENDED])]
    responses: Any = [one for raw in answers for one in PAGE.parse(asked, raw)]
    (label,) = PAGE.aggregate(asked, responses)
    ratings = label.value["ratings"]
    assert ratings["fluency"] == [1.0, 0.0]
    assert ratings["edit"] == [0.0, pytest.approx(3 / len(TEXT))]
    assert ratings["hter"] == [0.0, pytest.approx(edits.word_edit_rate(TEXT, MENDED))]
    assert label.value["people"]["hter"] == label.value["people"]["edit"]
    assert label.n == 2 and set(ratings) == set(GenerationTrack.measures.criterion_names())


def test_the_tutorial_shows_the_texts_as_a_track_does_and_tests_finding_and_mending() -> None:
    lesson = teach.builtin_tutorials()["language_quality"]
    assert len(lesson.questions) == 10
    assert lesson.payload["fields"] == question().payload["fields"]
    tested = [facet for one in lesson.questions for facet in one["tests"]]
    assert {facet: tested.count(facet) >= 2 for facet in set(tested)} == dict.fromkeys(
        set(GenerationTrack.measures.criterion_names()) - {"hter"}, True
    )
    mending = next(at for at, one in enumerate(lesson.questions, 1) if one["tests"] == ["edit"])
    asked = lesson.question(mending)
    text = asked.payload["text"]

    def missed(mended: str) -> list[str]:
        given: list[ParsedResponse] = PAGE.parse(asked, said("2", edit=[mended]))
        return teach.missed_criteria(lesson, mending, given)

    assert missed(text.replace("have win", "has won")) == [], "nearer to the right text"
    assert missed(text + " And more.") == ["edit"], "further from it"
    mended = "The team have won three matches in a row and its captain is happy with"
    assert missed(f"{mended} the performance of the young goalkeeper.") == [], "no slip is left"
    assert missed(f"{mended} what it’s young goalkeeper did in those games.") == ["edit"]
    assert missed("They are winners, and he plays well at his age.") == ["edit"], "another text"
    assert teach.missed_criteria(lesson, mending, PAGE.parse(asked, said())) == ["edit"]


def test_a_price_with_more_for_more_work_is_promised_whole() -> None:
    price = Price(
        reward=Decimal("0.15"), extra=Decimal("0.25"), fee_rate=Decimal("0.2"), seconds=60
    )
    assert (price.per_answer, price.extra_price) == (Decimal("0.48"), Decimal("0.30"))
    odd = Price(reward=Decimal("0.03"), extra=Decimal("0.03"), fee_rate=Decimal("0.2"))
    assert odd.per_answer == Decimal("0.08"), "each is rounded up: a marketplace takes two fees"
    assert Price(reward=Decimal("0.15")).per_answer == Decimal("0.15")
