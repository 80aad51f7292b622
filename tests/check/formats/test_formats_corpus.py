"""Documents, their tokens and sentences; strings and dates in them; the lines of a file."""

import gzip
import io
import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from toy import LIMITS, TOY, small, span

from formats.corpus import DocumentRecord, read_corpus
from formats.mentions import CompactMap
from formats.messages import Report
from formats.occurrences import find_occurrences, is_same_text
from formats.opening import open_text
from formats.splitting import sentence_spans, token_spans


def documents(*data: dict[str, object]) -> list[DocumentRecord]:
    report = Report()
    lines = enumerate((json.dumps(document) for document in data), 1)
    found = list(read_corpus(lines, LIMITS, report))
    assert not report.messages
    return found


def sentences(text: str) -> list[str]:
    return [text[begin:end] for begin, end in sentence_spans(text)]


def tokens(text: str) -> list[str]:
    return [text[begin:end] for begin, end in token_spans(text)]


def test_given_tokens_and_sentences_are_kept() -> None:
    (document,) = documents(
        {"id": "A", "text": "ab cd", "tokens": [[0, 2], [3, 5]], "sentences": [[0, 5]]}
    )
    assert (document.tokens, document.sentences) == ([(0, 2), (3, 5)], [(0, 5)])
    assert (document.title, document.date) == ("", None)


def test_missing_tokens_and_sentences_are_found() -> None:
    (document,) = documents(
        {"id": "A", "title": "T", "date": "2013-03-17", "text": "Ann left. Bob stayed."}
    )
    assert document.sentences == [(0, 9), (10, 21)]
    assert [document.text[b:e] for b, e in document.tokens] == [
        "Ann",
        "left",
        ".",
        "Bob",
        "stayed",
        ".",
    ]
    assert (document.title, document.date) == ("T", "2013-03-17")


def test_our_sentences_never_break_a_given_token() -> None:
    (document,) = documents(
        {"id": "A", "text": "Ann left. Bob stayed.", "tokens": [[0, 3], [4, 13], [14, 21]]}
    )
    assert document.sentences == [(0, 21)]


@pytest.mark.parametrize(
    "expected",
    [
        ["Mr. J. Smith of the U.S. Army met Dr. Lee.", "They talked."],
        ["He works at Acme Inc. in Oslo.", "She left Acme Inc.", "The firm closed."],
        ['"Why?" he asked.', '"I do not know."', "She left!"],
        ["It rose 1.5 percent to $3.20.", "In 2013 it fell."],
        ["See No. 5 on Jan. 3.", "Is it open… or not?", "No.", "It is closed."],
        ["他来了。", "他走了。"],
    ],
)
def test_sentences_end_where_a_reader_ends_them(expected: list[str]) -> None:
    joiner = "" if expected[0].endswith("。") else " "
    assert sentences(joiner.join(expected)) == expected


def test_a_blank_line_ends_a_sentence() -> None:
    assert sentences("A headline\n\nThe story begins") == ["A headline", "The story begins"]


def test_tokens_are_words_numbers_clitics_and_marks() -> None:
    assert tokens("Ann's U.S. firm didn't pay $1,200.50 (5%) -- twenty-one.") == [
        "Ann",
        "'s",
        "U.S.",
        "firm",
        "did",
        "n't",
        "pay",
        "$1,200.50",
        "(",
        "5%",
        ")",
        "--",
        "twenty-one",
        ".",
    ]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("नमस्ते दुनिया", ["नमस्ते", "दुनिया"]),
        (
            "Jose\u0301 Nu\u0301n\u0303ez founded it.",
            ["Jose\u0301", "Nu\u0301n\u0303ez", "founded", "it", "."],
        ),
        ("مُحَمَّد", ["مُحَمَّد"]),
        ("می\u200cخواهم", ["می\u200cخواهم"]),
        ("在2019年。", ["在", "2019", "年", "。"]),
        ("👍\ufe0f ok", ["👍\ufe0f", "ok"]),
    ],
)
def test_marks_belong_to_the_letter_before_them(text: str, expected: list[str]) -> None:
    assert tokens(text) == expected


@settings(max_examples=200, deadline=None)
@given(st.text(alphabet="aB.?!”\"' \n\t1,-é。\u2028", max_size=60))
def test_tokens_and_sentences_cover_all_that_is_not_white_space(text: str) -> None:
    for found in (token_spans(text), sentence_spans(text)):
        at = 0
        for begin, end in found:
            assert at <= begin < end
            assert not text[at:begin].strip()
            at = end
        assert not text[at:].strip()


@pytest.mark.parametrize(
    ("text", "value", "expected"),
    [
        ("He was born on March 17, 2013.", "2013-03-17", "March 17, 2013"),
        ("He was born on 17 March 2013.", "2013-03-17", "17 March 2013"),
        ("He was born on the 17th of March, 2013.", "2013-03-17", "17th of March, 2013"),
        ("Born Mar. 17, 2013, in Oslo", "2013-03-17", "Mar. 17, 2013"),
        ("Born 17.03.2013 in Oslo", "2013-03-17", "17.03.2013"),
        ("Born 3/17/2013 in Oslo", "2013-03-17", "3/17/2013"),
        ("Born March 17.", "2013-03-17", "March 17"),
        ("Founded in March 2013.", "2013-03", "March 2013"),
        ("Founded in Sept. 2013.", "2013-09-XX", "Sept. 2013"),
        ("Founded in 2013.", "2013-03-17", "2013"),
        ("Founded in 2013.", "2013", "2013"),
        ("In 12013 and 20133.", "2013", None),
        ("Born March 18, 2014.", "2013-03-17", "March"),
    ],
)
def test_a_date_is_found_by_its_written_forms(text: str, value: str, expected: str | None) -> None:
    found = [
        text[begin:end]
        for begin, end in find_occurrences(text, value, [(0, len(text))], is_date=True)
    ]
    assert found == ([] if expected is None else [expected])


def test_a_string_is_found_in_another_case_only_if_not_in_its_own() -> None:
    text = "Actress and actress"
    assert find_occurrences(text, "actress", [(0, 19)], False) == [(12, 19)]
    assert find_occurrences(text, "ACTRESS", [(0, 19)], False) == [(0, 7), (12, 19)]
    assert find_occurrences(text, "actress", [(0, 10)], False) == [(0, 7)]
    assert find_occurrences("vice\n president", "vice president", [(0, 15)], False) == [(0, 15)]


def test_texts_agree_in_white_space_and_unicode_forms_only() -> None:
    assert is_same_text("José\nNúñez", "Jose\u0301 Nu\u0301n\u0303ez")
    assert not is_same_text("José", "Jose")


def test_sentences_over_two_spans() -> None:
    view = TOY.get("D1")
    assert view is not None
    covered = view.sentence_span_over(span("D1", "Debbie"), span("D1", "Fisher"))
    assert view.text[slice(*covered)].startswith("Carrie") and view.text[slice(*covered)].endswith(
        "too."
    )


def lines(data: bytes, **limits: int) -> tuple[list[tuple[int, str]], Report]:
    report = Report()
    return list(open_text(io.BytesIO(data), small(**limits), report)), report


def test_lines_are_numbered_and_end_at_newlines_only() -> None:
    assert lines("a\u2028b\x85\r\n\nc\rd\n".encode())[0] == [
        (1, "a\u2028b\x85"),
        (2, ""),
        (3, "c\rd"),
    ]
    assert lines(b"\xef\xbb\xbfa")[0] == [(1, "a")]


def test_gzip_of_several_members_with_padding_is_one_text() -> None:
    found, report = lines(gzip.compress(b"a\nb") + gzip.compress(b"c\n") + bytes(512))
    assert found == [(1, "a"), (2, "bc")]
    assert not report.messages


def test_a_bad_line_does_not_hide_the_others() -> None:
    found, report = lines(b"a\n\xff\nb\x00\n" + b"c" * 70_000 + b"\nd\n")
    assert [number for number, _ in found] == [1, 5] or report.by_code["syntax.binary"]
    found, report = lines(b"a\n" * 5000 + b"\xff\nb\x00\n" + b"c" * 70_000 + b"\nd\n")
    assert [number for number, _ in found][-2:] == [5000, 5004]
    assert [(m.code, m.line) for m in report] == [
        ("syntax.encoding", 5001),
        ("syntax.control", 5002),
        ("limits.line", 5003),
    ]


@settings(max_examples=60, deadline=None)
@given(st.lists(st.integers(0, 300), max_size=60), st.integers(1, 40))
def test_lines_are_the_same_however_the_bytes_arrive(sizes: list[int], step: int) -> None:
    class Dribble(io.BytesIO):
        def read(self, size: int | None = -1) -> bytes:
            return super().read(step)

    data = b"\n".join(b"x" * size for size in sizes)
    for source in (Dribble(data), Dribble(gzip.compress(data))):
        report = Report()
        found = list(open_text(source, small(line_bytes=200), report))
        assert [n for n, _ in found if len(_) > 200] == []
        short = [(n, size) for n, size in enumerate(sizes, 1) if size <= 200]
        if short and short[-1] == (len(sizes), 0):
            short.pop()  # nothing after the last line end
        assert [(n, len(line)) for n, line in found] == short
        assert report.by_code["limits.line"] == sum(size > 200 for size in sizes)


@settings(max_examples=50, deadline=None)
@given(st.lists(st.tuples(st.integers(0, 5), st.integers(0, 5)), max_size=60))
def test_the_compact_map_is_a_dict_that_keeps_first_values(keys: list[tuple[int, int]]) -> None:
    expected: dict[tuple[int, int], int] = {}
    compact = CompactMap()
    for value, key in enumerate(keys):
        assert compact.add(key, value) == expected.get(key, -1)
        expected.setdefault(key, value)
    assert all(compact.get(key) == value for key, value in expected.items())
    assert (len(compact), compact.get((9, 9))) == (len(expected), -1)
