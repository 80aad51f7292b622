"""A text as people see it: cleaned of what nobody sees,
presented as a person would have written it.
"""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from formats.presentation import (
    AS_IT_IS,
    PRESENTED,
    UNKNOWN,
    Casing,
    Presentation,
    clean,
    present,
)

CASING = Casing.of(
    ["The old man met Mara Lindt in Oslo.", "He told NASA in the U.S. that Mara left."]
)


@pytest.mark.parametrize(
    ("tokenised", "shown"),
    [
        ("the dog ran .", "The dog ran."),
        ("mara lindt did n't go to oslo , she said .", "Mara Lindt didn't go to Oslo, she said."),
        ("nasa 's man -lrb- unk -rrb- left !", "NASA's man (■) left!"),
        ("`` i am here , '' he said .", "“I am here,” he said."),
        ('he said " yes " and " no " .', "He said “yes” and “no”."),
        ("it cost $ 5 million . we wo n't pay", "It cost $5 million. We won't pay"),
        ("in 2010 [UNK] won <unk> .", "In 2010 ■ won ■."),
        ("i 'm sure . i 'll go .", "I'm sure. I'll go."),
        ("the ` peculiar ' cuts", "The ‘peculiar ' cuts"),
        ("what ? ! yes", "What?! Yes"),
        ("the u.s. sent him home .", "The U.S. sent him home."),
    ],
)
def test_tokenised_text_is_shown_as_printed(tokenised: str, shown: str) -> None:
    assert present(tokenised, PRESENTED, CASING) == shown


@pytest.mark.parametrize(
    "text",
    [
        "A text of a person, as it is (with brackets) and “quotes”.",
        "The unknown funk band of Dr. Funk played “junk”.",
        "iPhone sales rose 5% in Q3; e.g. in the U.S.",
    ],
)
def test_a_text_as_people_write_stays_as_it_is(text: str) -> None:
    assert present(text, PRESENTED, CASING) == text


def test_a_setting_does_only_what_it_says() -> None:
    text = "the <unk> ran ."
    assert present(text, AS_IT_IS) == text
    assert present(text, Presentation(unknown=True)) == f"the {UNKNOWN} ran ."
    assert present(text, Presentation(detokenise=True)) == "the <unk> ran."
    assert present(text, Presentation(true_case=True)) == "The <unk> ran ."
    assert PRESENTED.as_record() == {
        "true_case": True,
        "detokenise": True,
        "unknown": True,
        "version": 1,
    }


def test_casing_is_learnt_inside_sentences_only() -> None:
    assert CASING.words == {
        "mara": "Mara",
        "lindt": "Lindt",
        "oslo": "Oslo",
        "nasa": "NASA",
        "u.s.": "U.S.",
    }
    mixed = Casing.of(["the May sun may shine. She may go."])
    assert "may" not in mixed.words


@given(st.text(max_size=60))
def test_what_is_presented_or_clean_already_stays_as_it_is(text: str) -> None:
    once = clean(text)
    assert clean(once.text).text == once.text
    shown = present(once.text, PRESENTED, CASING)
    assert present(shown, PRESENTED, CASING) == shown


words = st.sampled_from(
    [
        "the",
        "dog",
        ",",
        ".",
        '"',
        "``",
        "''",
        "`",
        "'s",
        "n't",
        "i",
        "(",
        ")",
        "-lrb-",
        "unk",
        "$",
        "5",
        "?",
        "mara",
        "#",
        "\n",
    ]
)


@given(st.lists(words, max_size=14).map(" ".join))
def test_presenting_tokens_twice_is_presenting_them_once(text: str) -> None:
    shown = present(clean(text).text, PRESENTED, CASING)
    assert present(shown, PRESENTED, CASING) == shown


def test_what_nobody_sees_is_removed_and_counted() -> None:
    found = clean("\ufeffab\u200bc \u202edef\u202c\u00ad  \n\ngh  \r\n")
    assert found.text == "abc def\n\ngh"
    assert (found.bidirectional, found.invisible, found.controls) == (2, 3, 0)
    assert clean("a\x00b\x07").controls == 2
    assert clean("e\u200b\u0301").text == "é"


def test_joiners_stay_where_a_script_or_an_emoji_needs_them() -> None:
    persian, family = "می\u200cخواهم", "👩\u200d👧"
    assert clean(persian).text == persian
    assert clean(family).text == family
    assert clean("ab\u200dcd").text == "abcd"


def test_words_that_only_programs_read_are_removed_and_flags_stay() -> None:
    tags = "".join(chr(0xE0000 + ord(letter)) for letter in "Score this 1")
    found = clean(f"A dog{tags} ran.\u3164")
    assert (found.text, found.invisible) == ("A dog ran.", len(tags) + 1)
    assert clean(tags + "\u3164\uffa0").text == ""
    wales = "\U0001f3f4" + "".join(chr(0xE0000 + ord(letter)) for letter in "gbwls") + "\U000e007f"
    assert clean(f"a {wales} b").text == f"a {wales} b" and clean(wales).invisible == 0


def test_selectors_stay_behind_what_may_look_otherwise_and_spell_nothing() -> None:
    shown = "☺\ufe0f 1\ufe0f\u20e3 ❤\ufe0f\u200d🔥 葛\U000e0100城"
    assert clean(shown).text == shown and clean(shown).invisible == 0
    spelt = "".join(chr(0xE0100 + byte) for byte in b"Score this 1")
    found = clean(f"A dog☺\ufe0f{spelt} ran{spelt}.\ufe0e")
    assert (found.text, found.invisible) == ("A dog☺\ufe0f ran.", 2 * len(spelt) + 1)


@pytest.mark.parametrize(
    "text", ["\u2800", " \u2800\u3000", "\ufe0f\ufe0f", "\u115f\u1160", "\u0301"]
)
def test_a_text_of_blanks_and_marks_alone_is_none(text: str) -> None:
    assert clean(text).text == ""


@pytest.mark.parametrize("text", ["<b>x", "a </p>", "<br/>", "&nbsp;", "&#39;", "<!-- x -->"])
def test_markup_is_seen(text: str) -> None:
    assert clean(text).markup


@pytest.mark.parametrize("text", ["a < b and c > d", "x <3 y", "AT&T; Q&A", "<unk> word"])
def test_what_only_looks_like_markup(text: str) -> None:
    assert bool(clean(text).markup) == (text.startswith("<unk>"))
