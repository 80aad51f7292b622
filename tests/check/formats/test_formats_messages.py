"""Every message code is produced by a bad input, and says something about the right line."""

import gzip
import io
import json
import re
from pathlib import Path

import pytest
from test_formats_forms import WRONG
from test_formats_generation import CASES
from toy import (
    CARRIE,
    DEBBIE,
    LIMITS,
    PARENTS,
    corpus_lines,
    entity,
    kb,
    read,
    read_documents,
    read_table,
    small,
    span,
    tac,
    whole,
)

from formats.messages import (
    EXCERPT,
    SEVERITY,
    Report,
    column_position,
    excerpt_around,
    family_of_code,
)
from formats.opening import open_text

GOOD = kb(CARRIE, DEBBIE, PARENTS)
D1, D2 = whole("D1"), whole("D2")


def line(**changes: object) -> bytes:
    """A line of JSON about Carrie and her mother."""
    data: dict[str, object] = {
        "doc": "D1",
        "subject": span("D1", "Carrie Fisher"),
        "predicate": "per:parents",
        "object": span("D1", "Debbie Reynolds"),
        "confidence": 0.8,
    }
    data |= changes
    return (
        json.dumps({key: value for key, value in data.items() if value is not ...}).encode() + b"\n"
    )


def document(**changes: object) -> bytes:
    """A line of a corpus."""
    return json.dumps({"id": "X", "text": "One two. Three."} | changes).encode() + b"\n"


MENTIONS = "doc_id\tbegin\tend\ttype\tentity\tgloss\tcanonical_begin\tcanonical_end\n"
GOLD = "doc_id\tsubj_begin\tsubj_end\tpredicate\tobj_begin\tobj_end\tprov_begin\tprov_end\n"

# code, number of the line, the file
SUBMISSIONS = [
    ("syntax.empty", 0, b""),
    ("syntax.empty", 0, gzip.compress(b"")),
    ("syntax.zip", 0, b"PK\x03\x04 and so on"),
    ("syntax.binary", 0, b"run\x00\x01\x02"),
    ("syntax.binary", 0, "run\n:E1\ttype\tPER\n".encode("utf-16")),
    ("syntax.binary", 0, gzip.compress(gzip.compress(GOOD))),
    ("syntax.encoding", 2, b'run\n:E1\tmention\t"Jos\xe9"\tD3:0-3\n' + GOOD),
    ("syntax.control", 5001, b"run\n" + b"#\n" * 4999 + b":E1\ttype\tP\x00R\n" + GOOD),
    ("syntax.gzip_truncated", 0, gzip.compress(GOOD)[:-12]),
    ("syntax.gzip_corrupt", 0, gzip.compress(GOOD)[:40] + b"\xff" * 40 + gzip.compress(GOOD)[80:]),
    ("syntax.gzip_trailing", 0, gzip.compress(GOOD) + b"more"),
    ("syntax.format", 1, b"<html>\n<body>\n"),
    ("syntax.format", 1, b"once upon a time\n"),
    ("syntax.format", 1, b"[1, 2]\n"),
    ("syntax.json_list", 2, b'[{"doc": "D1"},\n'),
    ("syntax.format", 1, b"D1:0-5\tper:parents\tD1:6-9\tD1:0-9\t1\n"),
    ("syntax.run_id", 1, GOOD.removeprefix(b"toy_run\n")),
    ("syntax.columns", 2, kb(":E1\tper:parents", CARRIE)),
    ("syntax.columns", 2, kb(":E1 type PER", CARRIE)),
    ("syntax.columns", 2, kb(":E1\ttype\tPER\tmore", CARRIE)),
    ("syntax.columns", 2, kb(':E1\tmention\t"Carrie"', CARRIE)),
    ("syntax.columns", 2, kb(":E1\tlink", CARRIE)),
    ("syntax.entity_id", 2, kb("E1\ttype\tPER", CARRIE)),
    ("syntax.entity_id", 2, kb(f"E1\tper:parents\t:E2\t{D1}", CARRIE)),
    ("syntax.string", 2, kb(":E1\tmention\tCarrie Fisher\tD1:0-12", CARRIE)),
    ("syntax.string", 2, kb(':E1\tmention\t""\tD1:0-12', CARRIE)),
    ("syntax.string", 2, kb(':E1\tlink\t"a"b"', CARRIE)),
    ("syntax.offsets", 2, kb(':E1\tmention\t"Carrie Fisher"\tD1:0', CARRIE)),
    ("syntax.offsets", 2, kb(":E1\tper:parents\t:E2\tD1:0-12,D1:x-y", CARRIE, DEBBIE)),
    ("syntax.offsets", 1, line(subject=[1])),
    ("syntax.offsets", 1, line(subject=[True, 5])),
    ("syntax.offsets", 1, line(provenance=[0, 5])),
    ("syntax.confidence", 2, kb(f":E1\tper:parents\t:E2\t{D1}\t1.5", CARRIE, DEBBIE)),
    ("syntax.confidence", 2, kb(f":E1\tper:parents\t:E2\t{D1}\tnan", CARRIE, DEBBIE)),
    ("syntax.confidence", 1, line(confidence="high")),
    ("syntax.json", 1, b'{"doc": "D1"\n'),
    ("syntax.json", 2, line() + b"[1, 2]\n"),
    ("syntax.json", 2, line() + b"[" * 20_000 + b"\n"),
    ("syntax.nan", 1, b'{"doc": "D1", "confidence": NaN}\n'),
    ("syntax.key_missing", 1, line(object=...)),
    ("reference.entity_order", 1, b'{"title": "D1", "h_idx": 0, "t_idx": 1, "r": "P17"}\n'),
    ("syntax.key_unknown", 1, line(confidance=0.5)),
    ("syntax.value", 1, line(predicate=7)),
    ("syntax.value", 1, line(subject_link="\x00")),
    (
        "syntax.value",
        1,
        b'{"doc": "\\ud800", "subject": [0, 1], "predicate": "p", "object": [2, 3]}\n',
    ),
    ("syntax.nothing_usable", 0, kb(CARRIE)),
    ("reference.document", 2, kb(f":E1\tper:parents\t:E2\tD9:0-9,{D1}", CARRIE, DEBBIE)),
    ("reference.document", 1, line(doc="D9")),
    ("reference.document", 2, kb(':E1\tmention\t"Carrie"\tD9:0-5', CARRIE)),
    (
        "reference.other_corpus",
        0,
        kb(CARRIE, DEBBIE, PARENTS).replace(b"D1", b"X1").replace(b"D2", b"X2"),
    ),
    ("reference.entity", 2, kb(f":E7\tper:parents\t:E2\t{D1}", CARRIE, DEBBIE)),
    ("reference.untyped", 2, kb(f":E1\tper:parents\t:E2\t{D1}", CARRIE.partition("\n")[2], DEBBIE)),
    ("reference.untyped", 1, line(predicate="org:founded_by")),
    ("reference.offsets", 2, kb(':E1\tmention\t"Carrie"\tD1:5-9999', CARRIE)),
    ("reference.offsets", 2, kb(":E1\tper:parents\t:E2\tD1:9-5", CARRIE, DEBBIE)),
    ("reference.offsets", 1, line(subject=[-5, 3])),
    ("reference.offsets", 1, line(provenance=[[0, 9999]])),
    ("reference.gloss", 2, kb(':E1\tmention\t"Carrie Fisher"\tD1:0-13', CARRIE)),
    ("reference.provenance", 2, kb(":E1\tper:parents\t:E2\tD1:0-28", CARRIE, DEBBIE)),
    ("reference.provenance", 1, line(provenance=[[0, 20]])),
    ("reference.string", 2, kb(f':E1\tper:title\t"queen"\t{D1}', CARRIE)),
    (
        "reference.canonical",
        6,
        kb(
            entity(":E1", "PER", ("D1", "Carrie Fisher"), ("D1", "Fisher", 1), canonical=False),
            ":E2\ttype\tPER",
            PARENTS,
            DEBBIE,
        ),
    ),
    ("consistency.two_types", 9, kb(CARRIE, entity(":E4", "ORG", ("D1", "Carrie Fisher")))),
    ("consistency.two_types", 2, line(subject_type="PER") + line(subject_type="ORG")),
    ("consistency.entity_types", 3, kb(":E1\ttype\tPER", ":E1\ttype\tORG", CARRIE)),
    ("consistency.links", 3, kb(':E1\tlink\t"m.1"', ':E1\tlink\t"m.2"', CARRIE)),
    (
        "consistency.links",
        11,
        kb(
            CARRIE,
            ':E1\tlink\t"m.1"',
            ':E4\tlink\t"m.2"',
            entity(":E4", "PER", ("D1", "Carrie Fisher")),
        ),
    ),
    ("consistency.links", 2, line(subject_link="m.1") + line(subject_link="m.2")),
    (
        "consistency.canonicals",
        8,
        kb(CARRIE, f':E1\tcanonical_mention\t"Fisher"\t{tac("D1", "Fisher", 1)}'),
    ),
    ("consistency.canonicals", 2, line(subject_canonical=[0, 13]) + line(subject_canonical=[0, 6])),
    (
        "consistency.predicates",
        3,
        kb(f":E1\tper:parents\t:E2\t{D1}", f":E1\tper:spouse\t:E2\t{D1}", CARRIE, DEBBIE),
    ),
    (
        "consistency.inverse",
        3,
        kb(f":E1\tper:parents\t:E2\t{D1}", f":E2\tper:parents\t:E1\t{D1}", CARRIE, DEBBIE),
    ),
    ("consistency.missing_inverse", 2, kb(f":E1\tper:parents\t:E2\t{D1}", CARRIE, DEBBIE)),
    (
        "consistency.duplicate",
        3,
        kb(
            f":E1\tper:parents\t:E2\t{D1}\t0.5", f":E1\tper:parents\t:E2\t{D1}\t0.6", CARRIE, DEBBIE
        ),
    ),
    (
        "consistency.duplicate_turned",
        3,
        kb(
            f":E6\tper:schools_attended\t:E5\t{whole('D3')}",
            f":E5\torg:students\t:E6\t{whole('D3')}",
            entity(":E5", "ORG", ("D3", "Acme “Labs”")),
            entity(":E6", "PER", ("D3", "José Núñez")),
        ),
    ),
    ("schema.unknown_predicate", 2, kb(f":E1\tper:Parents\t:E2\t{D1}", CARRIE, DEBBIE)),
    ("schema.ignored_predicate", 2, kb(f':E1\tper:age\t"60"\t{D1}', CARRIE, DEBBIE)),
    ("schema.ignored_predicate", 1, line(predicate="no_relation")),
    ("schema.unknown_type", 2, kb(":E9\ttype\tperson", CARRIE)),
    ("schema.unknown_type", 1, line(subject_type="person")),
    ("schema.arguments", 2, kb(f":E1\torg:parents\t:E2\t{D1}", CARRIE, DEBBIE)),
    ("schema.string", 2, kb(f':E1\tper:parents\t"Debbie Reynolds"\t{D1}', CARRIE)),
    ("schema.string", 2, kb(f':E1\torg:students\t"Debbie Reynolds"\t{D1}', CARRIE)),
    ("schema.itself", 2, kb(f":E1\tper:spouse\t:E1\t{D1}", CARRIE)),
    ("schema.itself", 1, line(object=span("D1", "Carrie Fisher"))),
    ("limits.line", 2, b"run\n:E1\tmention\t" + b"a" * 100_000 + b"\n" + GOOD),
    ("limits.ratio", 0, gzip.compress(b"a" * 20_000_000)),
]

CORPORA = [
    ("syntax.json", 1, b"not json\n"),
    ("syntax.key_missing", 2, document() + b'{"id": "Y"}\n'),
    ("syntax.key_unknown", 1, document(author="Ada")),
    ("syntax.value", 1, document(id="with blank")),
    ("syntax.value", 1, document(text="   ")),
    ("syntax.value", 1, document(tokens="none")),
    ("syntax.control", 1, document(text="a\x00b")),
    ("syntax.control", 1, document(text="a\ud800b")),
    ("syntax.date", 1, document(date="28 December")),
    ("syntax.offsets", 1, document(tokens=[[0]])),
    ("reference.offsets", 1, document(tokens=[[0, 3], [4, 99]])),
    ("consistency.document_twice", 2, document() + document(text="Another.")),
    ("consistency.order", 1, document(tokens=[[4, 7], [0, 3]])),
    ("consistency.straddle", 1, document(tokens=[[0, 3], [4, 14]], sentences=[[0, 8], [9, 15]])),
]

TABLES = [
    ("mentions", "syntax.header", 1, "doc\tbegin\n"),
    ("mentions", "syntax.columns", 2, MENTIONS + "D1\t0\t13\n"),
    ("mentions", "syntax.offsets", 2, MENTIONS + "D1\tzero\t13\tPER\t0\tCarrie Fisher\t0\t13\n"),
    ("mentions", "reference.document", 2, MENTIONS + "D9\t0\t13\tPER\t0\tCarrie Fisher\t0\t13\n"),
    ("mentions", "reference.offsets", 2, MENTIONS + "D1\t13\t13\tPER\t0\t\t0\t13\n"),
    ("mentions", "reference.gloss", 2, MENTIONS + "D1\t0\t12\tPER\t0\tCarrie Fisher\t0\t13\n"),
    (
        "mentions",
        "schema.unknown_type",
        2,
        MENTIONS + "D1\t0\t13\tHUMAN\t0\tCarrie Fisher\t0\t13\n",
    ),
    (
        "mentions",
        "consistency.mention_twice",
        3,
        MENTIONS + 2 * "D1\t0\t13\tPER\t0\tCarrie Fisher\t0\t13\n",
    ),
    ("gold", "syntax.header", 1, MENTIONS),
    ("gold", "schema.unknown_predicate", 2, GOLD + "D1\t0\t13\tper:foo\t41\t56\t0\t76\n"),
    ("gold", "schema.ignored_predicate", 2, GOLD + "D1\t0\t13\tper:age\t41\t56\t0\t76\n"),
    ("gold", "schema.itself", 2, GOLD + "D1\t0\t13\tper:spouse\t0\t13\t0\t76\n"),
    ("gold", "consistency.duplicate", 3, GOLD + 2 * "D1\t0\t13\tper:parents\t41\t56\t0\t76\n"),
]

LIMITED = [
    ("limits.upload", small(upload_bytes=10)),
    ("limits.unpacked", small(unpacked_bytes=10)),
    ("limits.lines", small(lines=3)),
    ("limits.relations", small(relations=0)),
]


def assert_said(report: Report, code: str, number: int) -> None:
    found = [message for message in report if message.code == code]
    assert found, f"no {code} in {[(message.code, message.line) for message in report]}"
    assert found[0].line == number
    for message in report:
        assert message.text.endswith(".")
        assert len(message.line_text) <= EXCERPT + 2
        if message.culprit is not None:
            assert 0 <= message.culprit[0] <= message.culprit[1] <= len(message.line_text)
        json.dumps([message.text, message.line_text]).encode()
        assert "\x00" not in message.text + message.line_text


@pytest.mark.parametrize(
    ("code", "number", "data"), SUBMISSIONS, ids=[code for code, _, _ in SUBMISSIONS]
)
def test_a_bad_submission_gets_its_message(code: str, number: int, data: bytes) -> None:
    _, report = read(data)
    assert_said(report, code, number)


@pytest.mark.parametrize(("code", "number", "data"), CORPORA, ids=[code for code, _, _ in CORPORA])
def test_a_bad_corpus_gets_its_message(code: str, number: int, data: bytes) -> None:
    assert_said(read_documents(data), code, number)


@pytest.mark.parametrize(("kind", "code", "number", "data"), TABLES)
def test_a_bad_table_gets_its_message(kind: str, code: str, number: int, data: str) -> None:
    assert_said(read_table(kind, data.encode())[1], code, number)


@pytest.mark.parametrize(("code", "limits"), LIMITED)
def test_a_file_over_a_limit_gets_its_message_and_is_fatal(code: str, limits) -> None:
    claims, report = read(GOOD, limits=limits)
    assert report.by_code[code] == 1
    assert report.fatal
    assert not claims


def test_a_document_over_the_limit_is_dropped() -> None:
    assert_said(read_documents(document(), small(document_characters=5)), "limits.document", 1)


def test_every_code_is_in_the_tables_above() -> None:
    tested = {code for code, *_ in (*SUBMISSIONS, *CORPORA, *LIMITED, *WRONG)} | {
        code for _, code, *_ in (*TABLES, *CASES)
    }
    assert set(SEVERITY) - tested == set()


def test_every_code_has_a_family() -> None:
    families = {"syntax", "reference", "consistency", "schema", "limits"}
    assert set(map(family_of_code, SEVERITY)) == families


def test_the_readme_explains_every_code() -> None:
    readme = (Path(__file__).parents[3] / "formats" / "README.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| `(\w+\.\w+)` \| (\w+) \| [^|]+\. \|$", readme, re.MULTILINE)
    assert dict(rows) == SEVERITY and len(rows) == len(SEVERITY)


def test_the_report_keeps_the_first_messages_and_counts_all() -> None:
    report = Report(keep=3)
    for number in range(5):
        report.add("syntax.columns", number, "Wrong.", "a\tb")
    report.add("schema.ignored_predicate", 9, "Ignored.")
    assert [message.line for message in report] == [0, 1, 2]
    assert report.by_severity == {"error": 5, "info": 1}
    assert (report.errors, len(report), report.fatal) == (5, 6, False)


def test_an_excerpt_shows_the_culprit_of_a_long_line() -> None:
    long = "x" * 1000 + "CULPRIT" + "y" * 1000
    shown, columns = excerpt_around(long, (1000, 1007))
    assert columns is not None and shown[slice(*columns)] == "CULPRIT"
    assert excerpt_around("a\x1bb", None) == ("a\ufffdb", None)
    assert column_position("a\tbc\td", 1) == (2, 4)
    assert column_position("a\tbc", 5) == (4, 4)


def test_one_endless_line_is_never_held() -> None:
    class Endless(io.RawIOBase):
        left = 400

        def read(self, size: int = -1) -> bytes:
            self.left -= 1
            return b"a" * size if self.left > 0 else b""

    report = Report()
    assert list(open_text(Endless(), LIMITS, report)) == []
    assert_said(report, "limits.line", 1)


def test_a_fine_file_has_no_errors() -> None:
    for data in (
        GOOD,
        gzip.compress(GOOD),
        b"\xef\xbb\xbf" + GOOD,
        GOOD.replace(b"\n", b"\r\n"),
        GOOD.rstrip(),
    ):
        claims, report = read(data)
        assert len(claims) == 1
        assert set(report.by_code) == {"consistency.missing_inverse"}
    assert read_documents(corpus_lines()).messages == []
