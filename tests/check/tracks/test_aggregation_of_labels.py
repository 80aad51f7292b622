"""All answers about one target add up, whichever question they were given to."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from itertools import product
from typing import Any

import pytest

from kbpo.instances.merge import Rule, Statement, Value, merge_latest_parts, merged_value
from kbpo.instances.models import Label
from kbpo.tracks.kbp.merge import (
    aggregate_statements,
    may_refer_to_unseen_name,
    mention_value,
    merge_labels,
    needs_no_question,
)

SPANS = ("0-4", "10-14", "20-24")
PART = "per:parents>"


def mention(question: int, *votes: str, title: str | None = None) -> Statement:
    """What so many people say of a mention in one question."""
    titles = Counter() if title is None else Counter({title: len(votes)})
    value = {"type": "PER", **mention_value(Counter(votes), titles, len(votes))}
    return Statement(value, "crowd", len(votes), question)


def pair(question: int, yes: int, n: int, **more: Any) -> Statement:
    """What n people say of a pair in one question, `yes` of them that the relation holds."""
    value = {"shown": [PART], "holds": [PART] if 2 * yes > n else [], "votes": {PART: yes}}
    return Statement(value | more, "crowd", n, question)


def test_a_later_question_joins_the_earlier_answers_and_never_overrides_them() -> None:
    first, anew = mention(1, "0-4", "0-4", "0-4"), mention(2, "10-14", "10-14", "0-4")
    assert anew.value["canonical"] == [10, 14], "three people by themselves say so"
    assert aggregate_statements([first, anew])["canonical"] == [0, 4], (
        "but four of six say otherwise"
    )
    assert aggregate_statements([first, anew])["votes"] == {"0-4": 4, "10-14": 2}
    assert aggregate_statements([pair(1, 3, 3), pair(2, 1, 3)])["holds"] == [PART]
    assert aggregate_statements([pair(1, 3, 3), pair(2, 0, 3)])["holds"] == [], (
        "a tie does not hold"
    )


def test_the_value_is_the_strict_majority_of_all_answers_however_they_were_asked() -> None:
    """Every way in which two questions of three people each can be answered."""
    for votes in product(SPANS, repeat=6):
        value = aggregate_statements([mention(1, *votes[:3]), mention(2, *votes[3:])])
        best, n = Counter(votes).most_common(1)[0]
        if n > 3:
            assert value["canonical"] == [int(end) for end in best.split("-")]
            assert "undecided" not in value
        else:
            assert value["undecided"] and "canonical" not in value, votes
    for first, second in product(range(4), repeat=2):
        held = aggregate_statements([pair(1, first, 3), pair(2, second, 3)])["holds"] == [PART]
        assert held == (first + second > 3)


def test_the_order_of_the_questions_does_not_matter() -> None:
    said = [mention(1, "0-4", "0-4", "10-14"), mention(2, "10-14", "10-14"), mention(3, "0-4")]
    values = [
        aggregate_statements([said[at] for at in order])["votes"]
        for order in ((0, 1, 2), (2, 1, 0))
    ]
    assert values[0] == values[1] == {"0-4": 3, "10-14": 3}


def test_a_question_counts_once_with_its_newest_label() -> None:
    first, second = pair(1, 3, 3), pair(2, 1, 3)
    again = Statement(pair(2, 3, 3).value, "crowd", 3, 2)
    value = aggregate_statements([first, second, again])
    assert (value["votes"], value["asked"]) == ({PART: 6}, {PART: 6})


def test_what_a_model_says_against_the_votes_counts_with_all_who_answered() -> None:
    value = aggregate_statements([pair(1, 2, 3), pair(2, 2, 3, holds=[])])
    assert (value["votes"], value["holds"]) == ({PART: 2}, [])


def test_a_title_takes_more_than_half_of_all_who_were_asked() -> None:
    typed, silent = mention(1, "0-4", title="Ann Lee"), mention(2, "0-4", "0-4", "0-4")
    assert typed.value["link"] == "Ann Lee"
    assert "link" not in aggregate_statements([typed, silent]), "one of four"
    also = mention(3, "0-4", "0-4", "0-4", "0-4", title="Ann Lee")
    assert aggregate_statements([typed, silent, also])["link"] == "Ann Lee", "five of eight"


def test_readers_who_gave_no_title_are_no_votes_against_one() -> None:
    """Three divided readers of a document, and three or more who are asked about the mention."""
    value = {"undecided": True, "cluster": [10, 14], "votes": dict.fromkeys(SPANS, 1)}
    silent = Statement(value, "document", 3, 8)
    asked = mention(1, "0-4", "0-4", "0-4", title="Paris")
    told = merge_labels([silent, asked])
    assert (told["titles"], told["link"]) == ({"Paris": 3}, "Paris")
    assert told["votes"] == {"0-4": 4, "10-14": 1, "20-24": 1}, "what it refers to adds up"
    quiet = mention(2, "0-4", "0-4", "0-4")
    assert "link" not in merge_labels([silent, asked, quiet]), "three of six who were asked"
    for title, link in (("Rome", None), ("Paris", "Paris")):
        named = Statement(value | {"link": title}, "document", 3, 8)
        assert merge_labels([named, asked]).get("link") == link, "readers who gave one have votes"


def test_readers_who_were_divided_about_a_title_have_votes_about_it() -> None:
    """Three readers of a document, and three or four who are asked about the mention."""
    value = {"undecided": True, "cluster": [10, 14], "votes": dict.fromkeys(SPANS, 1)}
    asked = mention(1, "0-4", "0-4", "0-4", title="Paris")
    also = mention(2, "0-4", title="Paris")
    for given, link, more in (
        ({"titled": {"Rome": 1, "Oslo": 1}}, None, "Paris"),  # the third gave none
        ({"titled": {"Paris": 1}}, "Paris", "Paris"),
        ({"titled": {"Rome": 2}, "link": "Rome"}, None, "Paris"),
        ({"titled": {"": 2, "Rome": 1}, "link": ""}, None, "Paris"),
    ):
        readers = Statement(value | given, "document", 3, 8)
        told = merge_labels([readers, asked])
        assert told.get("link") == link, "three of six, or four"
        assert told["titles"] == Counter(given["titled"]) + Counter({"Paris": 3})
        assert "titled" not in told
        assert merge_labels([readers, asked, also]).get("link") == more, "four of seven"
        assert not needs_no_question(merge_labels([readers])), (
            "readers’ ties are for those who are asked"
        )


@pytest.mark.django_db
def test_experts_stand_above_the_crowd_and_a_reading_tells_what_the_crowd_was_divided_about() -> (
    None
):
    def label(source: str, origin: str, value: dict[str, Any], n: int = 3) -> Label:
        return Label(pk=len(labels) + 1, value=value, source=source, origin=origin, n=n)

    labels: list[Label] = []
    divided = mention(1, *SPANS)
    labels.append(label("crowd", "question:1", divided.value))
    assert merged_value(labels, merge_labels)["undecided"]
    by_readers = {"undecided": True, "cluster": [10, 14], "type": "PER", "votes": {"0-4": 1}}
    assert not needs_no_question(by_readers), (
        "readers’ ties are for those who are asked about a pair"
    )
    labels.append(label("document", "question:8", by_readers))
    read = merged_value(labels, merge_labels)
    assert read["undecided"] and "canonical" not in read and read["cluster"] == [10, 14]
    assert needs_no_question(read)
    labels.append(label("document", "question:9", {"canonical": [10, 14], "type": "PER"}))
    read = merged_value(labels, merge_labels)
    assert read["canonical"] == [10, 14] and "undecided" not in read
    labels.append(label("expert", "adjudication:1", {"canonical": [20, 24], "type": "PER"}, 1))
    assert merged_value(labels, merge_labels)["canonical"] == [20, 24]


ALONE = {"canonical": [9, 14], "votes": {"9-14": 3}, "titles": {"Anna": 2}, "offered": [[9, 14]]}
"""What three say who see a mention's own name alone"""
NONE = {
    "elsewhere": True,
    "votes": {"other": 2, "0-4": 1},
    "titles": {},
    "offered": [[0, 4], [9, 14]],
}
"""What three say who find none of two names right"""


def test_those_who_saw_one_name_have_no_vote_once_others_saw_more() -> None:
    """Three who saw no other are no votes for it against the two of three who did."""
    value = {"canonical": [0, 4], "votes": {"0-4": 2, "9-14": 1}, "titles": {}}
    both = [[0, 4], [9, 14]]
    few, more = Statement(ALONE, "crowd", 3, 1), Statement(value | {"offered": both}, "crowd", 3, 2)
    for labels in ([few, more], [more, few]):
        told = aggregate_statements(labels)
        assert told["canonical"] == [0, 4] and told["votes"] == {"0-4": 2, "9-14": 1}
        assert told["offered"] == both and not may_refer_to_unseen_name(told)
        assert told["titles"] == {"Anna": 2} and "link" not in told
    six = aggregate_statements([few, Statement(ALONE, "crowd", 3, 3)])
    assert (
        six["canonical"] == [9, 14]
        and six["votes"] == {"9-14": 6}
        and may_refer_to_unseen_name(six)
    )
    assert six["link"] == "Anna", "four of six were asked for that"


def test_who_found_no_name_right_has_no_vote_against_one_that_others_saw() -> None:
    three = [[0, 4], [9, 14], [20, 24]]
    wider = {
        "canonical": [20, 24],
        "votes": {"20-24": 3},
        "titles": {},
        "offered": three,
    }
    none, more = Statement(NONE, "crowd", 3, 1), Statement(wider, "crowd", 3, 2)
    assert may_refer_to_unseen_name(NONE)
    for labels in ([none, more], [more, none]):
        told = aggregate_statements(labels)
        assert told["canonical"] == [20, 24] and told["votes"] == {"0-4": 1, "20-24": 3}
        assert told["offered"] == three and not may_refer_to_unseen_name(told)
    again = aggregate_statements([none, Statement(NONE, "crowd", 3, 3)])
    assert again["elsewhere"] and "canonical" not in again and again["votes"]["other"] == 4


@pytest.mark.django_db
def test_those_who_saw_too_few_names_hide_nothing_that_others_said() -> None:
    alone = {"type": "PER", **ALONE}
    told = {"type": "PER", "canonical": [0, 4]}
    crowd = Label(pk=2, value=alone, source="crowd", origin="question:1", n=3)
    assert may_refer_to_unseen_name(merged_value([crowd], merge_labels))
    for source in ("document", "expert"):
        other = Label(pk=1, value=told, source=source, origin="question:9", n=3)
        value = merged_value([other, crowd], merge_labels)
        assert value["canonical"] == [0, 4] and "offered" not in value, source
    none = Label(pk=3, value=NONE, source="crowd", origin="question:2", n=3)
    for canonical, left in (([30, 34], True), ([0, 4], False)):
        read = Label(pk=1, value={"canonical": canonical}, source="document", origin="9", n=3)
        value = merged_value([read, none], merge_labels)
        assert (value.get("canonical") == canonical) is left is not ("elsewhere" in value), (
            canonical
        )
    knows = Label(pk=4, value=told, source="expert", origin="adjudication:1", n=1)
    assert "elsewhere" not in merged_value([none, knows], merge_labels)


@pytest.mark.parametrize("rule", [merge_latest_parts, merge_labels])
def test_single_ratings_join_those_that_there_are_whatever_a_kind_says_of_the_rest(
    rule: Rule,
) -> None:
    told = {"ratings": {"fluency": [1.0, 0.5]}, "people": {"fluency": ["ann", "bob"]}}
    rows = [
        Label(pk=1, value={"ratings": {"fluency": [0.0]}, "topic": "war"}, source="import"),
        Label(pk=2, value=told | {"topic": "peace"}, source="crowd", n=2, question=1),
        Label(pk=3, value={}, source="crowd", n=2, question=2),
    ]
    value = merged_value(rows, rule)
    assert value["ratings"] == {"fluency": [1.0, 0.5, 0.0]}, "from the weakest source on"
    assert value["people"] == {"fluency": ["ann", "bob", ""]}
    assert value["topic"] == "war", "what an import says replaces what the crowd said"
    anew = {"ratings": {"fluency": [0.5]}, "people": {"fluency": ["bob"]}}
    rows.append(Label(pk=4, value=anew, source="crowd", n=1, question=1, again=1))
    assert merged_value(rows, rule)["ratings"] == {"fluency": [0.5, 0.0]}, "in the place of both"


def test_what_else_labels_say_is_for_the_rule_of_their_kind() -> None:
    """A rule of which the spine knows nothing: how often something was said."""

    def counted(said: Sequence[Statement]) -> Value:
        return {"times": len(said), "last": said[-1].value.get("word")}

    words = [("document", "a"), ("expert", "c"), ("crowd", "b")]
    rows = [
        Label(pk=pk, value={"word": word}, source=source) for pk, (source, word) in enumerate(words)
    ]
    assert merged_value(rows, counted) == {"times": 3, "last": "c"}
