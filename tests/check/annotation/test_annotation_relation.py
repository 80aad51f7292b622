"""What answers to a relation question mean, and what several of them aggregate to. No database."""

from __future__ import annotations

from typing import Any

import pytest

from annotation.interfaces.base import AggregatedLabel, BadAnswer
from annotation.interfaces.relation.interface import Relation, page_context
from annotation.interfaces.shared.majority import most_frequent, parts_by_majority
from annotation.models import Question, Response
from annotation.quality.agreement import Row, compute_agreement

TEXT = "Ann Lee studied at Elm College in 1990."
PAYLOAD = {
    "document": {"key": "d1", "title": "News"},
    "text": TEXT,
    "begin": 0,
    "length": len(TEXT),
    "sentences": [1, 1, 1],
    "lit": [0, len(TEXT)],
    "others": [],
    "a": {
        "target": 7,
        "span": [0, 7],
        "gloss": "Ann Lee",
        "type": "PER",
        "candidates": [
            {"span": [0, 7], "gloss": "Ann Lee"},
            {"span": [19, 30], "gloss": "Elm College"},
        ],
    },
    "b": {"target": 8, "span": [34, 38], "gloss": "1990", "type": "DATE", "candidates": []},
    "predicates": [
        {"part": f"per:p{number}>", "template": "{subject} did {object}"} for number in range(12)
    ],
}
PARTS = [one["part"] for one in PAYLOAD["predicates"]]  # type: ignore[index]


def question(**changes: Any) -> Question:
    return Question(target_id=1, interface="relation", payload=PAYLOAD | changes, shown=PARTS)


def labels_of(*answers: dict[str, Any]) -> dict[int, AggregatedLabel]:
    """The labels of several raw answers, by target."""
    responses = [
        Response(target_id=parsed.target_id, criterion=parsed.criterion, value=parsed.value)
        for raw in answers
        for parsed in Relation().parse(question(), raw)
    ]
    return {label.target_id: label for label in Relation().aggregate(question(), responses)}


def answer(a: str = "0-7", *holds: str, **more: list[str]) -> dict[str, Any]:
    return {"a": [a], **({"holds": list(holds)} if holds else {"none": ["1"]}), **more}


def test_a_relation_holds_if_more_than_half_say_so() -> None:
    label = labels_of(
        answer("0-7", "per:p1>", "per:p2>"), answer("0-7", "per:p1>"), answer("0-7", "per:p3>")
    )[1]
    assert label.value["holds"] == ["per:p1>"]
    assert label.value["votes"] == {"per:p1>": 2, "per:p2>": 1, "per:p3>": 1}
    assert (label.method, label.n, label.disagreement) == ("majority", 3, pytest.approx(1 / 3))


def test_a_tie_does_not_hold() -> None:
    assert labels_of(answer("0-7", "per:p1>"), answer())[1].value["holds"] == []


def test_none_of_the_candidates_is_no_name() -> None:
    value = labels_of(answer("other"), answer("other"), answer("19-30"))[7].value
    assert value["elsewhere"] and "canonical" not in value and value["votes"]["other"] == 2
    assert value["offered"] == [[0, 7], [19, 30]]


def test_where_no_more_than_half_agree_nothing_is_settled() -> None:
    label = labels_of(answer("19-30"), answer("19-30"), answer("0-7"), answer("other"))[7]
    assert "canonical" not in label.value and label.value["undecided"]
    assert label.value["votes"] == {"19-30": 2, "0-7": 1, "other": 1}
    assert label.disagreement == 0.5
    two = labels_of(answer("19-30"), answer("19-30"), answer("0-7"))[7]
    assert two.value["canonical"] == [19, 30] and "undecided" not in two.value


def test_a_date_is_not_asked_about_and_stands_for_itself() -> None:
    assert labels_of(answer())[8].value["canonical"] == [34, 38]


def alone(*span: int) -> Question:
    """A question about a mention that may be one thing alone, whose words are its own."""
    only = {"candidates": [{"span": list(span), "gloss": "Ann Lee"}]}
    return question(a=PAYLOAD["a"] | only)  # type: ignore[operator]


def test_a_name_that_is_the_only_one_stands_picked_and_people_may_say_that_it_is_another() -> None:
    asked = alone(0, 7)
    for answer_so_far, picked in (({}, [True, False]), ({"a": ["other"]}, [False, True])):
        side = page_context(asked.payload, answer_so_far)["sides"][0]
        assert [one[3] for one in side["candidates"]] == picked and side["may_have_title"]
    _, elsewhere, _ = Relation().parse(asked, {"none": ["1"], "a": ["other"]})
    rows = [Response(target_id=7, criterion="linking", value=elsewhere.value)]
    assert "none of the names" in Relation().statements(asked, rows)[0].words
    _, linked, _ = Relation().parse(asked, {"none": ["1"], "a_title": ["Ann_Lee"]})
    assert linked.value == {"choice": "0-7", "title": "Ann Lee"}
    rows = [Response(target_id=7, criterion="linking", value=linked.value)]
    assert list(Relation().agreement_units(asked, rows[0])) == [], "there is nothing to agree on"
    assert "“Ann Lee” in Wikipedia" in Relation().statements(asked, rows)[0].words
    for other in (question(), alone(19, 26)):  # the same words elsewhere may be somebody else's
        with pytest.raises(BadAnswer, match="Step 1 is missing"):
            Relation().parse(other, {"none": ["1"]})


def test_a_title_takes_more_than_half_of_all_who_were_asked() -> None:
    given = [answer(a_title=["Ann_Lee"]), answer(a_title=["Ann Lee"]), answer(a_no_title=["1"])]
    assert labels_of(*given)[7].value["link"] == "Ann Lee"
    assert "link" not in labels_of(*given, answer())[7].value, "two of four"
    alone = labels_of(answer(a_title=["Ann Lee"]), answer(), answer())[7]
    assert "link" not in alone.value, "one of three"
    assert alone.value["titles"] == {"Ann Lee": 1}
    assert labels_of(answer(a_no_title=["1"]))[7].value["link"] == ""
    assert "link" not in labels_of(answer())[7].value


def test_flags_of_half_are_not_most() -> None:
    flag = {"problem": ["text"]}
    assert labels_of(flag, flag, answer())[1].method == "flagged"
    label = labels_of(flag, answer("0-7", "per:p1>"))[1]
    assert (label.method, label.n, label.value["holds"]) == ("majority", 1, ["per:p1>"])


def test_no_answers_make_no_label() -> None:
    assert labels_of() == {}


@pytest.mark.parametrize(
    "raw", [{"a": [1], "none": ["1"]}, {"a": [["0-7"]], "none": ["1"]}, {"a": {"x": 1}}]
)
def test_an_answer_of_the_wrong_shape_is_refused_in_a_sentence(raw: dict[str, Any]) -> None:
    with pytest.raises(BadAnswer):
        Relation().parse(question(), raw)


def test_most_and_holding_by_hand() -> None:
    assert most_frequent([]) is None
    best = most_frequent(["b", "a", "b"])
    assert best is not None
    assert (best.value, best.votes, best.disagreement) == (
        "b",
        {"b": 2, "a": 1},
        pytest.approx(1 / 3),
    )
    assert parts_by_majority([["x"], ["x", "x"], []], ["x", "y"]) == (
        ["x"],
        {"x": 2},
        pytest.approx(1 / 3),
    )


def test_kappa_by_hand() -> None:
    # Four items of two answers: agreed yes, agreed yes, agreed no, split. Observed 3/4; yes 5 of 8:
    # chance 34/64.
    said = [("yes", "yes"), ("yes", "yes"), ("no", "no"), ("yes", "no"), ("yes",)]
    rows = [
        Row(q, who, ("relation", "p>"), value)
        for q, some in enumerate(said)
        for who, value in enumerate(some)
    ]
    found = compute_agreement("relation", "relation", rows)
    assert (found.units, found.answers, found.workers, found.observed) == (4, 8, 2, 0.75)
    assert found.kappa == pytest.approx((0.75 - 34 / 64) / (1 - 34 / 64))
    # α: coincidences that differ 2 of 8; expected 2 · 5 · 3 / (8 · 7).
    assert found.alpha == pytest.approx(1 - (2 / 8) / (2 * 5 * 3 / 56))
    assert found.low95 is not None and found.low80 is not None and found.high80 is not None
    assert found.low95 <= found.low80 <= found.alpha <= found.high80
    assert compute_agreement("relation", "relation", rows[:2]).kappa is None, "everybody said yes"
    assert compute_agreement("relation", "relation", []).alpha is None


def test_one_sentence_settles_all_parts_that_say_the_same() -> None:
    married = {
        "part": "per:spouse>",
        "also": ["per:spouse<"],
        "template": "{subject} and {object} are married",
    }
    asked = question(predicates=[married])
    page = Relation().render(asked)
    assert [one["part"] for one in page["common"]] == ["per:spouse> per:spouse<"]
    parsed = Relation().parse(asked, {"a": ["0-7"], "holds": ["per:spouse> per:spouse<"]})
    assert parsed[0].value["holds"] == ["per:spouse>", "per:spouse<"]
