"""Inputs, outputs, scores and judgments of generated texts:
what is good comes in, all else is told.
"""

import gzip
import io
import json
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from formats.inputs import InputRecord, read_inputs
from formats.judgments import JudgmentRecord, read_judgments, write_judgments
from formats.messages import Report
from formats.opening import Limits, open_text
from formats.outputs import OutputRecord, read_outputs
from formats.scores import ScoreRecord, read_scores
from formats.tables import first_names_text, parse_identifier, parse_number

NLG = Path(__file__).resolve().parents[4] / "shared" / "data" / "nlg"
LIMITS = Limits(output_characters=1000, passages=3, document_characters=5000)
INPUTS = {"one": 2, "two": 0, "three": 0}
OUTPUTS = {"Patterns": ["one", "two"], "Neural": ["one", "two", "three"]}
CRITERIA = {"overall": (1.0, 3.0), "edit": (0.0, 1.0)}


def lines_of(*rows: object) -> bytes:
    return b"".join(
        (row if isinstance(row, bytes) else json.dumps(row).encode()) + b"\n" for row in rows
    )


def read(kind: str, data: bytes, **options: object) -> tuple[list[object], Report]:
    """What a reader makes of these bytes."""
    report = Report()
    lines = open_text(io.BytesIO(data), LIMITS.for_outputs(), report)
    if kind == "inputs":
        found = read_inputs(lines, LIMITS, report)
    elif kind == "outputs":
        found = read_outputs(lines, INPUTS, LIMITS, report, **options)
    elif kind == "scores":
        found = read_scores(lines, OUTPUTS, report, **options)
    else:
        found = read_judgments(lines, OUTPUTS, CRITERIA, report)
    return list(found), report


def output(**changes: object) -> dict[str, object]:
    data: dict[str, object] = {"input_id": "one", "output": "A dog ran."} | changes
    return {key: value for key, value in data.items() if value is not ...}


SCORES = b"input_id\tsystem\tmetric\tvalue\n"
WHOLE = SCORES + b"".join(
    f"{name}\t{system}\tbleu\t0.5\n".encode() for system, own in OUTPUTS.items() for name in own
)
JUDGMENTS = b"input_id\tsystem\tworker\tprompt\tvalue\tseconds\n"
ADA = JUDGMENTS + b"one\tNeural\tAda\toverall\t2\t12.5\n"

# kind, code, number of the line, the file
CASES = [
    ("inputs", "syntax.json", 1, b"not json\n"),
    ("inputs", "syntax.key_missing", 1, lines_of({"source": "Text."})),
    ("inputs", "syntax.value", 1, lines_of({"input_id": "", "source": "Text."})),
    ("inputs", "syntax.value", 1, lines_of({"input_id": "a\tb", "source": "Text."})),
    ("inputs", "syntax.value", 1, lines_of({"input_id": "x" * 201, "source": "Text."})),
    ("inputs", "syntax.value", 1, lines_of({"input_id": "a", "source": ["Text."]})),
    ("inputs", "syntax.value", 1, lines_of({"input_id": "a", "question": "Q?", "passages": {}})),
    (
        "inputs",
        "syntax.value",
        1,
        lines_of({"input_id": "a", "question": "Q?", "passages": [None]}),
    ),
    ("inputs", "syntax.key_unknown", 1, lines_of({"input_id": "a", "source": "T", "titel": "x"})),
    ("inputs", "syntax.control", 1, lines_of({"input_id": "a", "source": "a\u0000b"})),
    ("inputs", "syntax.control", 1, b'{"input_id": "a", "source": "a\\ud800b"}\n'),
    ("inputs", "consistency.input_id", 2, lines_of(*[{"input_id": "a", "source": "T"}] * 2)),
    ("inputs", "limits.document", 1, lines_of({"input_id": "a", "source": "x" * 5001})),
    (
        "inputs",
        "limits.passages",
        1,
        lines_of({"input_id": "a", "question": "Q?", "passages": ["p"] * 4}),
    ),
    ("outputs", "syntax.empty", 0, b"\n\n"),
    ("outputs", "syntax.json", 1, lines_of(b'{"input_id": "one"', output())),
    ("outputs", "syntax.header", 1, b"once upon a time\n"),
    ("outputs", "syntax.key_missing", 1, lines_of(output(output=...))),
    ("outputs", "syntax.key_unknown", 1, lines_of(output(ouput="x"))),
    ("outputs", "syntax.value", 1, lines_of(output(output=7))),
    ("outputs", "syntax.control", 1, lines_of(output(output="a\u0007b"))),
    ("outputs", "syntax.output_empty", 1, lines_of(output(output=" \u200b\n"))),
    ("outputs", "syntax.bidirectional", 1, lines_of(output(output="abc \u202edef"))),
    ("outputs", "syntax.invisible", 1, lines_of(output(output="a\u200bb"))),
    ("outputs", "syntax.markup", 1, lines_of(output(output="a <script>alert(1)</script>"))),
    ("outputs", "reference.input", 1, lines_of(output(input_id="four"), output())),
    ("outputs", "reference.input", 1, lines_of(output(input_id=["one"]), output())),
    ("outputs", "reference.other_inputs", 0, lines_of(output(input_id="four"))),
    ("outputs", "reference.passage", 1, lines_of(output(passage=2))),
    ("outputs", "reference.passage", 1, lines_of(output(passage="first"))),
    ("outputs", "reference.passage", 1, lines_of(output(input_id="two", passage=0))),
    ("outputs", "consistency.input_twice", 2, lines_of(output(), output(output="Another."))),
    ("outputs", "consistency.input_missing", 0, lines_of(output())),
    ("outputs", "limits.output", 1, lines_of(output(output="x" * 1001))),
    ("outputs", "syntax.columns", 2, b"input_id\toutput\none\tA dog\tran.\n"),
    ("scores", "syntax.header", 1, b"input_id\tsystem\tvalue\n"),
    ("scores", "syntax.header", 1, b"input_id,value,value,metric,system\n"),
    ("scores", "syntax.columns", 2, SCORES + b"one\tNeural\t0.5\n"),
    ("scores", "syntax.columns", 2, b'input_id,system,metric,value\none,Neural,"b"l,0.5\n'),
    ("scores", "syntax.quote", 2, b'input_id,system,metric,value\none,Neural,"bleu,0.5\n'),
    ("scores", "syntax.number", 2, SCORES + b"one\tNeural\tbleu\tNaN\n"),
    ("scores", "syntax.number", 2, SCORES + b"one\tNeural\tbleu\t-inf\n"),
    ("scores", "syntax.number", 2, SCORES + b"one\tNeural\tbleu\t\n"),
    ("scores", "syntax.nan", 1, b'{"input_id": "one", "metric": "b", "value": NaN}\n'),
    ("scores", "syntax.value", 2, SCORES + b"one\tNeural\t\t0.5\n"),
    ("scores", "reference.system", 2, SCORES + b"one\tTwin\tbleu\t0.5\n"),
    ("scores", "reference.input", 2, SCORES + b"four\tNeural\tbleu\t0.5\n"),
    ("scores", "reference.output", 2, SCORES + b"three\tPatterns\tbleu\t0.5\n"),
    ("scores", "reference.other_inputs", 0, SCORES + b"four\tNeural\tbleu\t0.5\n"),
    ("scores", "syntax.empty", 0, SCORES),
    ("scores", "consistency.score_twice", 7, WHOLE + b"one\tNeural\tbleu\t0.6\n"),
    ("scores", "consistency.scores_missing", 0, WHOLE.replace(b"two\tNeural\tbleu\t0.5\n", b"")),
    ("scores", "consistency.one_system", 0, SCORES + b"one\tNeural\tjudge\t0.5\n"),
    ("judgments", "syntax.header", 1, b"input_id\tsystem\tprompt\tvalue\tn_workers\n"),
    ("judgments", "syntax.empty", 0, JUDGMENTS),
    ("judgments", "syntax.number", 2, JUDGMENTS + b"one\tNeural\tAda\toverall\tgood\t\n"),
    ("judgments", "syntax.value", 2, JUDGMENTS + b"one\tNeural\t\toverall\t2\t\n"),
    ("judgments", "syntax.seconds", 2, JUDGMENTS + b"one\tNeural\tAda\toverall\t2\t-3\n"),
    ("judgments", "schema.range", 2, JUDGMENTS + b"one\tNeural\tAda\toverall\t4\t\n"),
    ("judgments", "reference.criterion", 2, JUDGMENTS + b"one\tNeural\tAda\tgrace\t2\t\n"),
    ("judgments", "reference.system", 2, JUDGMENTS + b"one\tTwin\tAda\toverall\t2\t\n"),
    ("judgments", "reference.input", 2, JUDGMENTS + b"four\tNeural\tAda\toverall\t2\t\n"),
    ("judgments", "reference.output", 2, JUDGMENTS + b"three\tPatterns\tAda\toverall\t2\t\n"),
    ("judgments", "consistency.judgment_twice", 3, ADA + b"one\tNeural\tAda\toverall\t3\t\n"),
]


@pytest.mark.parametrize(
    ("kind", "code", "number", "data"), CASES, ids=[f"{kind} {code}" for kind, code, *_ in CASES]
)
def test_a_bad_file_gets_its_message(kind: str, code: str, number: int, data: bytes) -> None:
    _, report = read(kind, data)
    told = [message for message in report if message.code == code]
    assert told, f"no {code} in {[(m.code, m.line, m.text) for m in report]}"
    assert told[0].line == number
    assert all(message.text.endswith(".") for message in report)
    json.dumps([[m.text, m.line_text] for m in report]).encode()


def test_good_files_come_in_whole_gzipped_or_not() -> None:
    inputs = lines_of(
        {"input_id": 7, "source": "A text.", "references": ["Short.", ""], "split": "test"},
        {"input_id": "q", "question": "Who?", "passages": ["First.", "Second."]},
    )
    for data in (inputs, gzip.compress(inputs), b"\xef\xbb\xbf" + inputs):
        records, report = read("inputs", data)
        assert len(report) == 0
        assert records == [
            InputRecord("7", "A text.", "", (), ("Short.",), "", "test", 1),
            InputRecord("q", "", "Who?", ("First.", "Second."), (), "", "", 2),
        ]
    outputs = lines_of(
        output(passage=1), output(input_id="two"), output(input_id="three", output="Ends.\r\n")
    )
    records, report = read("outputs", outputs)
    assert len(report) == 0
    assert records[0] == OutputRecord("one", "A dog ran.", 1, 1)
    assert records[2].output == "Ends."
    records, report = read("scores", WHOLE)
    assert len(report) == 0 and len(records) == 5
    assert records[0] == ScoreRecord("one", "Patterns", "bleu", 0.5, "", "", 2)
    records, report = read("judgments", ADA)
    assert len(report) == 0
    assert records == [JudgmentRecord("one", "Neural", "Ada", "overall", 2.0, 12.5, 2)]


def test_an_output_as_long_as_allowed_comes_in_even_if_it_is_all_escapes() -> None:
    long = "\\ud83d\\ude00" * 500  # a thousand code units, five hundred characters
    data = b'{"input_id": "one", "output": "' + long.encode() + b'"}\n'
    records, report = read("outputs", data)
    assert records[0].output == "😀" * 500
    assert report.by_code["limits.output"] == 0
    huge = Limits()
    assert huge.for_outputs().line_bytes > 12 * huge.output_characters


def test_scores_come_in_many_shapes() -> None:
    csv = WHOLE.replace(b"\t", b",").replace(b"bleu", b'"bleu, smoothed"').upper()
    csv = csv.replace(b"PATTERNS", b"Patterns").replace(b"NEURAL", b"Neural")
    for name in (b"ONE", b"TWO", b"THREE"):
        csv = csv.replace(name, name.lower())
    records, report = read("scores", csv)
    assert len(report) == 0 and records[0].metric == "BLEU, SMOOTHED"
    judge = {"metric": "judge", "value": 1, "version": "v2", "prompt": "strict"}
    rows = [
        {"input_id": name, "system": system, **judge}
        for system, own in OUTPUTS.items()
        for name in own
    ]
    records, report = read("scores", lines_of(*rows))
    assert len(report) == 0
    assert (records[0].version, records[0].prompt, records[0].value) == ("v2", "strict", 1.0)
    plain = b"input_id;value\none;0.5\ntwo;0.25\n"
    records, report = read("scores", plain, system="Patterns", metric="mine")
    assert len(report) == 0
    assert [(r.system, r.metric, r.value) for r in records] == [
        ("Patterns", "mine", 0.5),
        ("Patterns", "mine", 0.25),
    ]


def test_two_prompts_of_a_judge_are_two_judges() -> None:
    header = b"input_id\tsystem\tmetric\tprompt\tvalue\n"
    rows = [
        f"{name}\t{system}\tjudge\t{prompt}\t1\n".encode()
        for prompt in ("strict", "kind")
        for system, own in OUTPUTS.items()
        for name in own
    ]
    _, report = read("scores", header + b"".join(rows))
    assert len(report) == 0
    _, report = read("scores", header + b"".join(rows[:-1]))
    assert report.by_code["consistency.scores_missing"] == 1


def test_relations_in_place_of_outputs_are_told_so_once() -> None:
    row = {"doc": "D1", "subject": [0, 1], "predicate": "p", "object": [2, 3]}
    (told,) = (one.text for one in read("outputs", lines_of(*[row] * 30))[1] if not one.line)
    assert told.startswith("The file seems to hold relations: its first 20 lines all fail")
    assert told.endswith("Expected is one output an input, with input_id and output.")


def test_what_is_missing_is_named() -> None:
    _, report = read("outputs", lines_of(output()))
    [message] = report.messages
    assert "“three”, “two”" in message.text and "2 of 3" in message.text
    assert first_names_text([str(i) for i in range(8)]).endswith("and 3 more")


def test_judgments_that_are_written_are_read_again() -> None:
    records = [
        JudgmentRecord("one", "Neural", "Ada", "overall", 2.0, None, 2),
        JudgmentRecord("two", "Patterns", 'Bo "B"', "edit", 1 / 3, 0.1, 3),
    ]
    data = "".join(write_judgments(records)).encode()
    again, report = read("judgments", data)
    assert len(report) == 0
    assert again == records
    assert "".join(write_judgments([])).encode() == JUDGMENTS


@pytest.mark.parametrize("name", ["=1+1", "-x", "@a", "'=1", "''+1", "'quoted'", "＝1"])
def test_no_name_of_a_judgment_begins_a_formula_and_it_comes_back_as_it_was(name: str) -> None:
    records = [JudgmentRecord("one", "Neural", name, "overall", 2.0, None, 2)]
    data = "".join(write_judgments(records))
    assert not data.splitlines()[1].split("\t")[2].startswith(("=", "-", "@", "+", "＝"))
    assert read("judgments", data.encode())[0] == records


def test_an_empty_cell_is_no_judgment() -> None:
    records, report = read("judgments", JUDGMENTS + b"one\tNeural\tAda\toverall\t\t\n")
    assert records == [] and len(report) == 0


@pytest.mark.parametrize("value", [None, True, "", " ", "a\nb", "x" * 201, 1.5, ["a"]])
def test_what_is_no_id_is_none(value: object) -> None:
    assert parse_identifier(value) is None


def test_ids_are_compared_in_composed_unicode() -> None:
    assert parse_identifier("Jose\u0301") == "José"
    assert parse_identifier(12) == "12"


@pytest.mark.parametrize("value", [True, None, "nan", "inf", "1e999", [], 10**400])
def test_what_is_no_finite_number_is_none(value: object) -> None:
    assert parse_number(value) is None


cells = st.sampled_from(
    [
        "one",
        "two",
        "four",
        "Neural",
        "Twin",
        "bleu",
        "overall",
        "2",
        "NaN",
        "",
        '"',
        "\u202e",
        "\x07",
    ]
)
keys = st.sampled_from(
    ["input_id", "output", "system", "metric", "value", "worker", "prompt", "passage", "source"]
)
values = st.one_of(cells, st.none(), st.integers(), st.floats(), st.lists(cells, max_size=2))
objects = st.dictionaries(keys, values, max_size=7).map(lambda data: json.dumps(data).encode())
tables = st.lists(cells, min_size=1, max_size=7).map(lambda row: "\t".join(row).encode())
heads = st.sampled_from([SCORES, JUDGMENTS, b"input_id,output\n", b""])


@settings(deadline=None, max_examples=200)
@given(
    kind=st.sampled_from(["inputs", "outputs", "scores", "judgments"]),
    head=heads,
    body=st.lists(st.one_of(objects, tables, st.binary(max_size=20)), max_size=6),
)
def test_whatever_comes_in_there_are_messages_and_nothing_that_cannot_be_stored(
    kind: str, head: bytes, body: list[bytes]
) -> None:
    records, report = read(kind, head + b"\n".join(body))
    for record in records:
        for name in record.__slots__:
            assert "\x00" not in str(getattr(record, name))
            str(getattr(record, name)).encode()
    assert all(message.text for message in report)


@pytest.mark.skipif(not NLG.exists(), reason="the shared data sets of judged texts are not here")
@pytest.mark.parametrize("name", ["realsumm", "xsum_faithfulness", "frank", "novikova2017"])
def test_the_published_sets_are_read_without_a_message(name: str) -> None:
    outputs: dict[str, set[str]] = {}
    with gzip.open(NLG / name / "outputs.jsonl.gz", "rt", encoding="utf-8") as file:
        for line in file:
            data = json.loads(line)
            outputs.setdefault(data["system"], set()).add(data["input_id"])
    report = Report()
    lines = open_text(NLG / name / "metrics.tsv.gz", Limits(), report)
    scores = list(read_scores(lines, outputs, report, is_complete=False))
    assert len(report) == 0 and len(scores) > 4000
    single = NLG / name / "judgments.tsv.gz"
    if single.exists():
        criteria = dict.fromkeys(
            ("litepyramid_recall", "faithful_words", "faithful", "factual"), (0.0, 1.0)
        )
        lines = open_text(single, Limits(), report)
        judgments = list(read_judgments(lines, outputs, criteria, report))
        assert len(report) == 0 and len(judgments) > 3000
