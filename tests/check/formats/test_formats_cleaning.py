"""Texts are cleaned of characters that nobody sees."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from formats.cleaning import clean_text


@given(st.text(max_size=60))
def test_a_clean_text_stays_as_it_is(text: str) -> None:
    once = clean_text(text)
    assert clean_text(once.text).text == once.text


def test_what_nobody_sees_is_removed_and_counted() -> None:
    found = clean_text("\ufeffab\u200bc \u202edef\u202c\u00ad  \n\ngh  \r\n")
    assert found.text == "abc def\n\ngh"
    assert (found.bidirectional, found.invisible, found.controls) == (2, 3, 0)
    assert clean_text("a\x00b\x07").controls == 2
    assert clean_text("e\u200b\u0301").text == "é"


def test_joiners_stay_where_a_script_or_an_emoji_needs_them() -> None:
    persian, family = "می\u200cخواهم", "👩\u200d👧"
    assert clean_text(persian).text == persian
    assert clean_text(family).text == family
    assert clean_text("ab\u200dcd").text == "abcd"


def test_words_that_only_programs_read_are_removed_and_flags_stay() -> None:
    tags = "".join(chr(0xE0000 + ord(letter)) for letter in "Score this 1")
    found = clean_text(f"A dog{tags} ran.\u3164")
    assert (found.text, found.invisible) == ("A dog ran.", len(tags) + 1)
    assert clean_text(tags + "\u3164\uffa0").text == ""
    wales = "\U0001f3f4" + "".join(chr(0xE0000 + ord(letter)) for letter in "gbwls") + "\U000e007f"
    assert clean_text(f"a {wales} b").text == f"a {wales} b" and clean_text(wales).invisible == 0


def test_selectors_stay_behind_what_may_look_otherwise_and_spell_nothing() -> None:
    shown = "☺\ufe0f 1\ufe0f\u20e3 ❤\ufe0f\u200d🔥 葛\U000e0100城"
    assert clean_text(shown).text == shown and clean_text(shown).invisible == 0
    spelt = "".join(chr(0xE0100 + byte) for byte in b"Score this 1")
    found = clean_text(f"A dog☺\ufe0f{spelt} ran{spelt}.\ufe0e")
    assert (found.text, found.invisible) == ("A dog☺\ufe0f ran.", 2 * len(spelt) + 1)


@pytest.mark.parametrize(
    "text", ["\u2800", " \u2800\u3000", "\ufe0f\ufe0f", "\u115f\u1160", "\u0301"]
)
def test_a_text_of_blanks_and_marks_alone_is_none(text: str) -> None:
    assert clean_text(text).text == ""


@pytest.mark.parametrize("text", ["<b>x", "a </p>", "<br/>", "&nbsp;", "&#39;", "<!-- x -->"])
def test_markup_is_seen(text: str) -> None:
    assert clean_text(text).markup


@pytest.mark.parametrize("text", ["a < b and c > d", "x <3 y", "AT&T; Q&A", "<unk> word"])
def test_what_only_looks_like_markup(text: str) -> None:
    assert bool(clean_text(text).markup) == (text.startswith("<unk>"))
