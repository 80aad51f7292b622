"""The entities interface: what the server accepts, and what three readers aggregate to, by hand."""

from __future__ import annotations

import json
from types import SimpleNamespace
from typing import Any

import pytest

from annotation.interfaces.base import BadAnswer
from annotation.interfaces.entities.interface import Entities, _mention_label, majority_mentions
from annotation.interfaces.registry import interface_by_name
from annotation.interfaces.shared.reading import CheckedMention, Reading

TEXT = "Mara Lindt founded Nordwerk in March 1990. Lindt lives in Oslo. 😀 Oslo grew."
TOKENS = [
    (0, 4),
    (5, 10),
    (11, 18),
    (19, 27),
    (28, 30),
    (31, 36),
    (37, 41),
    (41, 42),
    (43, 48),
    (49, 54),
    (55, 57),
    (58, 62),
    (62, 63),
    (64, 65),
    (66, 70),
    (71, 75),
    (75, 76),
]
TYPES = [
    {"name": "PER", "description": "person", "value": None},
    {"name": "ORG", "description": "organisation", "value": None},
    {"name": "GPE", "description": "place", "value": None},
    {"name": "DATE", "description": "date", "value": "date"},
    {"name": "TITLE", "description": "title", "value": "string"},
]
PAYLOAD: dict[str, Any] = {
    "document": {"key": "d1", "title": "Story"},
    "text": TEXT,
    "tokens": [list(one) for one in TOKENS],
    "sentences": [[0, 42], [43, 63], [64, 76]],
    "types": TYPES,
}
MARA, LINDT, NORDWERK, MARCH = (0, 10), (43, 48), (19, 27), (31, 41)
OSLO, OSLO2 = (58, 62), (66, 70)


def mark(
    span: tuple[int, int], kind: str, same: tuple[int, int] | None = None, **more: str
) -> dict[str, Any]:
    return {"span": list(span), "type": kind, "canonical": list(same or span), **more}


OSLO_MARK = mark(OSLO, "GPE")


def parse(*mentions: dict[str, Any], **more: Any) -> list[dict[str, Any]]:
    question = SimpleNamespace(payload=PAYLOAD, target_id=7)
    found, links = interface_by_name("entities").parse(
        question, {"mentions": [json.dumps(list(mentions))], **more}
    )  # type: ignore[arg-type]
    assert found.target_id == 7 and found.criterion == "mentions"
    given = dict(links.value)
    return [
        one
        | ({"link": given[key]} if (key := f"{one['span'][0]}-{one['span'][1]}") in given else {})
        for one in found.value["mentions"]
    ]


def test_marks_are_kept_in_the_order_of_the_text_with_the_title_of_their_entity() -> None:
    found = parse(
        mark(LINDT, "PER", MARA),
        mark(MARA, "PER", link="Mara_Lindt"),
        mark(MARCH, "DATE", value="1990-03"),
    )
    assert found == [
        {"span": [0, 10], "type": "PER", "canonical": [0, 10], "link": "Mara Lindt"},
        {"span": [31, 41], "type": "DATE", "canonical": [31, 41], "value": "1990-03"},
        {"span": [43, 48], "type": "PER", "canonical": [0, 10], "link": "Mara Lindt"},
    ]


def test_a_title_of_a_person_is_a_string_without_entity_or_link() -> None:
    found = parse(
        mark(MARA, "PER", link="Mara Lindt"),
        mark(LINDT, "TITLE", MARA, link="Mara Lindt", value="chief"),
    )
    assert found[1] == {"span": [43, 48], "type": "TITLE", "canonical": [43, 48]}, (
        "it is the same as nothing but itself"
    )
    _, links = Entities().parse(
        SimpleNamespace(payload=PAYLOAD, target_id=7),  # type: ignore[arg-type]
        {"mentions": [json.dumps([mark(LINDT, "TITLE", link="Chief")])]},
    )
    assert links.value == {}


def test_spans_count_characters_not_halves_of_them() -> None:
    assert TEXT[slice(*OSLO2)] == "Oslo"
    assert parse(mark(OSLO2, "GPE"))[0]["span"] == [66, 70]


@pytest.mark.parametrize(
    ("mentions", "sentence"),
    [
        ([mark((0, 3), "PER")], "does not begin and end with words"),
        ([mark((0, 4000), "PER")], "does not begin and end with words"),
        ([mark((10, 5), "PER")], "does not begin and end with words"),
        ([mark((-4, 10), "PER")], "does not begin and end with words"),
        ([mark(MARA, "")], "Say what “Mara Lindt” is"),
        ([mark(MARA, "DOG")], "not one of this page"),
        ([mark(MARA, "PER"), mark((5, 10), "PER")], "overlap"),
        ([mark(MARA, "PER"), mark(MARA, "PER")], "overlap"),
        ([mark(LINDT, "PER", MARA)], "same as something that is not marked"),
        (
            [mark(LINDT, "PER", MARA), mark(MARA, "PER", LINDT)],
            "same as something that is not marked",
        ),
        ([mark(LINDT, "ORG", MARA), mark(MARA, "PER")], "is marked ORG"),
        ([mark(MARCH, "DATE")], "Write the date of “March 1990”"),
        ([mark(MARCH, "DATE", value="last March")], "is not a date"),
        ([mark(MARCH, "DATE", value="1990-13")], "is not a date"),
        ([mark(MARA, "PER", link="Mara [[Lindt]]")], "cannot be the title"),
        ([mark(MARA, "PER", link="x" * 300)], "cannot be the title"),
        ([], "Nothing is marked yet"),
    ],
)
def test_what_is_wrong_is_refused_with_a_sentence(
    mentions: list[dict[str, Any]], sentence: str
) -> None:
    with pytest.raises(BadAnswer, match=sentence.replace("[", r"\[")):
        parse(*mentions)


@pytest.mark.parametrize(
    "sent",
    [
        "{",
        "7",
        "[7]",
        "[[]]",
        '[{"span": [0, "4"], "type": "PER"}]',
        '[{"span": [true, 4], "type": "PER"}]',
        '[{"span": [0, 4], "type": ["PER"]}]',
        '[{"span": [0, 4], "type": "PER", "canonical": 3}]',
        '[{"span": [0, 4], "type": "PER", "link": 3}]',
        '[{"span": [0, 4], "type": "PER", "link": "\\ud800"}]',
        "[" * 100_000,
        '[{"span": [31, 41], "type": "DATE", "value": {}}]',
    ],
)
def test_garbled_answers_are_refused_with_a_sentence(sent: str) -> None:
    question = SimpleNamespace(payload=PAYLOAD, target_id=7)
    with pytest.raises(BadAnswer):
        Entities().parse(question, {"mentions": [sent]})  # type: ignore[arg-type]


def test_a_document_without_names_and_a_flag_are_answers_too() -> None:
    assert parse(nothing=["1"]) == []
    question = SimpleNamespace(payload=PAYLOAD, target_id=7)
    (flag,) = Entities().parse(question, {"problem": ["text"]})  # type: ignore[arg-type]
    assert flag.criterion == "flag"
    with pytest.raises(BadAnswer):
        Entities().parse(question, {"problem": ["boring"]})  # type: ignore[arg-type]


def readers(*of: list[dict[str, Any]]) -> list[list[CheckedMention]]:
    """Readers; the title of a mention is taken out of it, as the interface does."""
    return [
        [
            CheckedMention.from_json(
                one, {f"{one['span'][0]}-{one['span'][1]}": one.get("link", "")}
            )
            for one in marks
        ]
        for marks in of
    ]


def test_a_token_is_in_a_mention_if_more_than_half_marked_it() -> None:
    found = majority_mentions(
        Reading(PAYLOAD),
        readers(
            [mark(MARA, "PER"), mark(NORDWERK, "ORG")],
            [mark(MARA, "PER"), mark(NORDWERK, "GPE"), mark(OSLO, "GPE")],
            [mark((5, 10), "PER"), mark(NORDWERK, "ORG")],
        ),
    )
    assert [(one.span, one.type, one.n) for one in found] == [
        (MARA, "PER", 3),
        (NORDWERK, "ORG", 3),
    ]
    assert [round(one.disagreement, 2) for one in found] == [
        0.33,
        0.33,
    ]  # one marked less; one said GPE


def settled_types(*of: list[dict[str, Any]]) -> list[tuple[tuple[int, int], str]]:
    return [(one.span, one.type) for one in majority_mentions(Reading(PAYLOAD), readers(*of))]


def test_a_mention_is_what_most_say_of_its_tokens() -> None:
    person, firm, first, last = (
        mark(MARA, "PER"),
        mark(MARA, "ORG"),
        mark((0, 4), "GPE"),
        mark((5, 10), "PER"),
    )
    assert settled_types([firm], [person], [last]) == [(MARA, "PER")], (
        "three votes of tokens for PER, two for ORG"
    )
    assert settled_types([firm], [person], [firm, OSLO_MARK]) == [(MARA, "ORG")]
    assert settled_types([first], [first], [last], [last], [person]) == [
        ((0, 4), "GPE"),
        ((5, 10), "PER"),
    ], "more than half of those who marked the first word say GPE, more than half at the second PER"


def test_a_tie_of_types_goes_to_the_exact_span_and_then_to_the_order_of_the_schema() -> None:
    firm, person, place = mark(NORDWERK, "ORG"), mark(NORDWERK, "PER"), mark(NORDWERK, "GPE")
    assert (
        settled_types([firm], [place], [])
        == settled_types([place], [firm], [])
        == [(NORDWERK, "ORG")]
    )
    assert settled_types([place], [firm], [person]) == [(NORDWERK, "PER")], (
        "the first of the schema’s three"
    )
    # Two votes of tokens each; only the ORG has exactly this span.
    wide = mark((0, 18), "PER")
    assert settled_types([mark(MARA, "ORG")], [wide]) == [(MARA, "ORG")]


def test_what_is_the_same_is_what_more_than_half_of_its_finders_say() -> None:
    found = majority_mentions(
        Reading(PAYLOAD),
        readers(
            [
                mark(MARA, "PER"),
                mark(LINDT, "PER", MARA),
                mark(OSLO, "GPE"),
                mark(OSLO2, "GPE", OSLO),
            ],
            [mark(MARA, "PER"), mark(LINDT, "PER", MARA), mark(OSLO, "GPE"), mark(OSLO2, "GPE")],
            [mark(LINDT, "PER"), mark(OSLO, "GPE"), mark(OSLO2, "GPE")],
        ),
    )
    # Two of the three who found Lindt say that she is Mara Lindt; two of three say that there are
    # two Oslos.
    assert [(one.span, one.cluster, one.undecided) for one in found] == [
        (MARA, MARA, False),
        (LINDT, MARA, False),
        (OSLO, OSLO, False),
        (OSLO2, OSLO2, False),
    ]
    assert found[1].votes == {"0-10": 2, "43-48": 1}


def test_one_reader_of_several_does_not_say_what_is_the_same() -> None:
    both = [mark(MARA, "PER"), mark(LINDT, "PER", MARA)]
    only_one, only_other = [mark(MARA, "PER")], [mark(LINDT, "PER")]
    found = majority_mentions(Reading(PAYLOAD), readers(both, only_one, only_other))
    assert [(one.cluster, one.undecided) for one in found] == [(MARA, False), (LINDT, True)], (
        "who marked one of them did not say that it is the other; of Lindt one says that it is"
    )
    found = majority_mentions(Reading(PAYLOAD), readers(both, both, only_other))
    assert [(one.cluster, one.undecided) for one in found] == [(MARA, False), (MARA, False)]
    found = majority_mentions(Reading(PAYLOAD), readers(both))
    assert [(one.cluster, one.undecided) for one in found] == [(MARA, False), (MARA, False)], (
        "where there is one reader, that one is more than half"
    )
    split = [mark(MARA, "PER"), mark(LINDT, "PER")]
    found = majority_mentions(Reading(PAYLOAD), readers(both, both, split, split))
    assert [(one.cluster, one.undecided) for one in found] == [(MARA, False), (LINDT, True)], (
        "a tie leaves apart what is counted, and tells nobody what it refers to"
    )


def test_what_as_many_name_as_not_is_no_canonical_mention() -> None:
    """Neither where readers name different ones, nor where they agree on all but who stands for
    it.
    """
    marks = [mark(MARA, "PER"), mark(NORDWERK, "PER")]
    of_mara, of_other = [*marks, mark(LINDT, "PER", MARA)], [*marks, mark(LINDT, "PER", NORDWERK)]
    own = [*marks, mark(LINDT, "PER")]
    for given in ([of_mara, of_other], [of_mara, of_other, own]):
        *names, lindt = majority_mentions(Reading(PAYLOAD), readers(*given))
        assert [(one.cluster, one.undecided) for one in names] == [(MARA, False), (NORDWERK, False)]
        value = _mention_label(1, lindt).value
        assert "canonical" not in value and value["undecided"] and value["cluster"] == list(LINDT)
        assert value["votes"]["0-10"] == value["votes"]["19-27"] == 1
    by_full = [mark(MARA, "PER"), mark(LINDT, "PER", MARA)]
    by_short = [mark(LINDT, "PER"), mark(MARA, "PER", LINDT)]
    found = majority_mentions(Reading(PAYLOAD), readers(by_full, by_short))
    assert [(one.cluster, one.undecided) for one in found] == [(MARA, True), (MARA, True)]
    dates = majority_mentions(
        Reading(PAYLOAD), readers([mark(MARCH, "DATE", value="1990")], [mark(MARCH, "ORG", MARA)])
    )
    assert not any(one.undecided for one in dates if one.type == "DATE"), "it refers to nothing"


def test_what_stands_for_a_cluster_is_what_more_than_half_of_all_say() -> None:
    """Three times each of two names stands for both: the longer one stood for the one of which two
    of three said so.
    """
    full, short, apart = (
        [mark(MARA, "PER", a), mark(LINDT, "PER", b)]
        for a, b in ((MARA, MARA), (LINDT, LINDT), (MARA, LINDT))
    )
    found = majority_mentions(Reading(PAYLOAD), readers(full, short, apart))
    assert [(one.cluster, one.undecided) for one in found] == [(MARA, True), (MARA, True)]
    found = majority_mentions(Reading(PAYLOAD), readers(full, short, full))
    assert [(one.cluster, one.undecided) for one in found] == [(MARA, False), (MARA, False)]


def test_titles_and_dates_are_those_that_more_than_half_of_the_finders_gave() -> None:
    title = [mark(MARA, "PER", link="Mara Lindt"), mark(MARCH, "DATE", value="1990-03")]
    other = [mark(MARA, "PER", link="none"), mark(MARCH, "DATE", value="1990")]
    silent = [mark(MARA, "PER"), mark(MARCH, "DATE", value="none")]

    def settled(*of: list[dict[str, Any]]) -> list[tuple[str | None, str]]:
        return [(one.link, one.value) for one in majority_mentions(Reading(PAYLOAD), readers(*of))]

    assert settled(title, title, other) == [("Mara Lindt", ""), (None, "1990-03")]
    assert settled(other, other, silent) == [("", ""), (None, "1990")], (
        "two of three say that there is no page"
    )
    assert settled(title, silent, silent) == [(None, ""), (None, "none")], (
        "one person's word is not enough"
    )
    assert settled(title, other, silent) == [(None, ""), (None, "none")]
    assert settled(title, title, other, other) == [(None, ""), (None, "none")], (
        "a tie gives neither"
    )
    assert settled(title) == [("Mara Lindt", ""), (None, "1990-03")]


@pytest.mark.parametrize(("title", "votes"), [("Oslo", {"Rome": 2, "Oslo": 1}), ("", {"Rome": 2})])
def test_who_takes_a_mention_for_another_entity_gives_it_that_ones_title(
    title: str, votes: dict[str, int]
) -> None:
    rest = [mark(MARCH, "DATE")]
    one = [mark(MARA, "PER", link="Rome"), mark(LINDT, "PER", MARA), *rest]
    apart = [mark(MARA, "PER", link="Rome"), mark(LINDT, "PER", link=title), *rest]
    found = majority_mentions(Reading(PAYLOAD), readers(one, one, apart))
    [value] = [_mention_label(1, one).value for one in found if one.span == LINDT]
    assert value["titled"] == votes


def test_a_title_is_asked_of_those_who_found_the_entity_not_of_all_readers() -> None:
    title = [mark(MARA, "PER", link="Mara Lindt"), mark(LINDT, "PER", MARA)]
    nobody = [mark(NORDWERK, "ORG")]
    found = majority_mentions(
        Reading(PAYLOAD), readers(title, title, [*title[1:], mark(MARA, "PER")], nobody, nobody)
    )
    assert {one.link for one in found if one.type == "PER"} == {"Mara Lindt"}


def test_people_agree_or_not_on_words_and_on_what_is_the_same() -> None:
    question = SimpleNamespace(payload=PAYLOAD, target_id=7)
    said = {"mentions": [mark(MARA, "PER"), mark(LINDT, "PER", MARA)]}
    response = SimpleNamespace(criterion="mentions", value=said, target_id=7)
    units = dict(Entities().agreement_units(question, response))  # type: ignore[arg-type]
    assert [units["mention", str(at)] for at in range(10)] == [
        "PER",
        "PER",
        "",
        "",
        "",
        "",
        "",
        "",
        "PER",
        "",
    ]
    assert units["canonical", "43-48"] == "0-10"
    links = SimpleNamespace(criterion="links", value={"0-10": "none"}, target_id=7)
    assert dict(Entities().agreement_units(question, links)) == {("link", "0-10"): "none"}  # type: ignore[arg-type]
    flag = SimpleNamespace(criterion="flag", value={"problem": "text"}, target_id=7)
    assert dict(Entities().agreement_units(question, flag)) == {("flag", ""): "yes"}  # type: ignore[arg-type]


def test_nobody_found_anything() -> None:
    assert majority_mentions(Reading(PAYLOAD), readers([], [mark(MARA, "PER")], [])) == []
