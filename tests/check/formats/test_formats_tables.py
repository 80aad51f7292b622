"""Tables and lists as other tools write them, and packed files."""

import io
import json
import zipfile
from collections.abc import Iterable

import pytest
from toy import LIMITS, TAC, TOY

from formats.corpus import read_corpus
from formats.doors import read_claims
from formats.inputs import read_inputs
from formats.messages import Report
from formats.opening import open_text
from formats.outputs import read_outputs
from formats.scores import ScoreRecord, read_scores
from formats.tables import parse_number

SYSTEMS = {"my run": ["a1", "a2"], "b": ["a1", "a2"]}


def scores(text: str | bytes) -> tuple[list[ScoreRecord], Report]:
    report = Report()
    data = text.encode() if isinstance(text, str) else text
    lines = open_text(io.BytesIO(data), LIMITS, report)
    return list(read_scores(lines, SYSTEMS, report, metric="m")), report


def values(records: Iterable[ScoreRecord]) -> list[tuple[str, str, float]]:
    return [(record.system, record.input_id, record.value) for record in records]


ALL = [("my run", "a1", 1.0), ("my run", "a2", 2.0), ("b", "a1", 3.0), ("b", "a2", 4.0)]


def test_a_cell_may_hold_line_breaks_separators_and_quotation_marks() -> None:
    text = (
        "input_id,system,output,value\r\n"
        'a1,my run,"first line\r\n\r\nthird, ""quoted"" line",1\r\n'
        "a2,my run,one line,2\r\n\r\n"
        'a1,b,"",3\r\n'
        "a2,b,one line,4\r\n"
    )
    records, report = scores(text)
    assert values(records) == ALL and report.errors == 0
    assert [record.line for record in records] == [2, 5, 7, 8], "where a row begins"


def test_a_quotation_mark_that_is_not_closed_is_named_with_its_line() -> None:
    rows = "".join(f"a1,b,{n}\n" for n in range(1000))
    records, report = scores(f'input_id,system,value\na1,my run,"1\n{rows}')
    [message] = report.messages
    assert (message.code, message.line, report.fatal) == ("syntax.quote", 2, True)
    assert not records and message.culprit == (10, 11)


def test_r_writes_tab_tables_with_quotation_marks_and_names_of_rows() -> None:
    head, names = '"input_id"\t"system"\t"value"\n', ("1", "2", "3", "4")
    rows = ['"a1"\t"my run"\t1', '"a2"\t"my run"\t2', '"a1"\t"b"\t3', '"a2"\t"b"\t4']
    records, report = scores(head + "\n".join(rows) + "\n")
    assert values(records) == ALL and not report.messages
    numbered = "".join(f'"{name}"\t{row}\n' for name, row in zip(names, rows, strict=True))
    records, report = scores(head + numbered)
    assert values(records) == ALL and not report.messages
    by_csv = numbered.replace("\t", ",")
    records, report = scores('"","input_id","system","value"\n' + by_csv)
    assert values(records) == ALL and not report.messages


def test_a_plain_tab_table_keeps_its_quotation_marks() -> None:
    report = Report()
    text = 'input_id\toutput\na1\t"5 inches is 5"\na2\tsay "hi\n'
    lines = open_text(io.BytesIO(text.encode()), LIMITS, report)
    found = [record.output for record in read_outputs(lines, {"a1": 0, "a2": 0}, LIMITS, report)]
    assert found == ['"5 inches is 5"', 'say "hi'] and report.errors == 0


@pytest.mark.parametrize(
    "text", ["1_5", "２", "٢", "1,5", "0x10", "1e", "nan", "inf", "1 5", "", "1e999"]
)
def test_what_is_written_unlike_a_number_is_none(text: str) -> None:
    assert parse_number(text) is None
    records, report = scores(f"input_id\tsystem\tvalue\na1\tb\t{text or ' '}\n")
    assert not records and report.by_code == {"syntax.number": 1}


@pytest.mark.parametrize(
    ("text", "value"), [("1", 1), (" -1.5 ", -1.5), ("+.5", 0.5), ("1.", 1), ("2E-3", 0.002)]
)
def test_numbers_are_read_as_they_are_written(text: str, value: float) -> None:
    assert parse_number(text) == value


def test_a_decimal_comma_is_read_where_semicolons_separate() -> None:
    text = "input_id;system;value\na1;my run;0,5\na2;my run;0.25\na1;b;1\na2;b;2\n"
    records, report = scores(text)
    assert [record.value for record in records] == [0.5, 0.25, 1, 2] and not report.messages
    _, report = scores(text.replace("0,5", "1.234,5"))
    assert [(message.code, message.line) for message in report] == [("syntax.number", 2)], (
        "what cannot be read is not also reported as missing"
    )


def test_nan_is_reported_once_with_the_number_of_lines() -> None:
    good = [{"input_id": "a1", "system": "b", "value": 1}]
    bad = [{"input_id": "a2", "system": "b", "value": float("nan")}] * 3
    records, report = scores("".join(json.dumps(row) + "\n" for row in [*good, *bad]))
    [message] = report.messages
    assert len(records) == 1 and (message.code, message.line) == ("syntax.nan", 2)
    assert message.text.startswith("3 lines hold NaN, which is no JSON; write null")
    for reader in (read_corpus, read_inputs):
        report = Report()
        rows = b'{"id": "D1", "input_id": "D1", "text": NaN}\n' * 2
        assert not list(reader(open_text(io.BytesIO(rows), LIMITS, report), LIMITS, report))
        assert report.by_code == {"syntax.nan": 1} and "2 lines" in report.messages[0].text


def test_every_reader_of_json_lines_reads_one_list() -> None:
    rows = [
        {"input_id": key, "system": name, "value": 1} for name in SYSTEMS for key in ("a1", "a2")
    ]
    for text in (json.dumps(rows), json.dumps(rows, indent=1), "\ufeff \n" + json.dumps(rows)):
        records, report = scores(text)
        assert len(records) == 4 and not report.messages
    row = {"id": "D1", "input_id": "D1", "text": "Ann Lee\nfounded it.", "source": "Ann Lee"}
    for reader in (read_corpus, read_inputs):
        report = Report()
        lines = open_text(io.BytesIO(json.dumps([row], indent=1).encode()), LIMITS, report)
        [record] = reader(lines, LIMITS, report)
        assert record.line == 2 and report.errors == 0
    report = Report()
    relation = {"doc": "D1", "subject": [0, 13], "predicate": "per:parents"}
    types = {"subject_type": "PER", "object_type": "PER"}
    many = json.dumps([relation | types | {"object": [41, 50 + n]} for n in range(5)]).encode()
    assert len(list(read_claims(io.BytesIO(many), TOY, TAC, LIMITS, report))) == 5
    assert report.errors == 0


@pytest.mark.parametrize(
    "text",
    ['[{"a": 1}', '[{"a": 1},', '[{"a": 1} {"a": 2}]', '[{"a": 1},]', '[{"a": }]', '[{"a": 1}] x',
     '[{"a": "\n"}]'],
)  # fmt: skip
def test_a_list_that_is_none_is_refused(text: str) -> None:
    report = Report()
    list(open_text(io.BytesIO(text.encode()), LIMITS, report))
    assert report.by_code == {"syntax.json_list": 1} and report.fatal


def packed(*files: tuple[str, bytes], method: int = zipfile.ZIP_DEFLATED) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", method) as archive:
        for name, data in files:
            archive.writestr(zipfile.ZipInfo(name), data, method)
    return buffer.getvalue()


class Stream(io.RawIOBase):
    """What cannot be read from its end: archives that are written to it describe files after
    them.
    """

    def __init__(self) -> None:
        self.data = bytearray()

    def writable(self) -> bool:
        return True

    def write(self, data: bytes) -> int:  # type: ignore[override]
        self.data += data
        return len(data)


TABLE = b"input_id,system,value\na1,my run,1\na2,my run,2\na1,b,3\na2,b,4\n"


def streamed() -> bytes:
    stream = Stream()
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("scores.csv", TABLE)
    return bytes(stream.data)


@pytest.mark.parametrize(
    "data",
    [
        packed(("scores.csv", TABLE)),
        packed(("scores.csv", TABLE), method=zipfile.ZIP_STORED),
        packed(("study/", b""), ("study/scores.csv", TABLE), ("__MACOSX/._scores.csv", b"\0\1")),
        streamed(),
    ],
)
def test_one_file_in_a_zip_archive_is_read(data: bytes) -> None:
    records, report = scores(data)
    assert values(records) == ALL and not report.messages


@pytest.mark.parametrize(
    ("data", "sentence"),
    [
        (packed(("a.csv", TABLE), ("b.csv", TABLE)), "holds several files"),
        (packed(("a.csv", TABLE))[:60], "ends too early"),
        (packed(("a/", b"")), "holds no file"),
        (packed(("a.csv", TABLE)).replace(b"\x08\x00", b"\x0c\x00", 1), "unusual way"),
        (packed(("[Content_Types].xml", b""), ("xl/workbook.xml", b"")), "an Excel workbook"),
        (packed(("docProps/app.xml", b""), ("xl/workbook.xml", b"")), "Export the table as CSV"),
        (packed(("word/document.xml", b"")), "an Office document"),
        (b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + b"\0" * 600, "old Excel"),
    ],
)
def test_other_archives_are_called_what_they_are(data: bytes, sentence: str) -> None:
    _, report = scores(data)
    [message] = report.messages
    assert sentence in message.text and report.fatal


def test_a_zip_bomb_is_found_before_it_is_unpacked() -> None:
    data = packed(("zeros.csv", b"0\n" * 20_000_000))
    report = Report()
    read = sum(len(text) for _, text in open_text(io.BytesIO(data), LIMITS, report))
    assert report.by_code == {"limits.ratio": 1} and read < 20_000_000
