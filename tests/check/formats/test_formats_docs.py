"""The product reads every example of the documentation of files."""

import io
import json
import re
from collections.abc import Callable
from pathlib import Path

import pytest

from formats.annotations import read_gold, read_mentions
from formats.corpus import read_corpus
from formats.doors import read_claims
from formats.forms import read_form
from formats.inputs import read_inputs
from formats.judgments import read_judgments
from formats.lookup import DocumentView, MemoryCorpus
from formats.messages import Report
from formats.opening import Limits, open_text
from formats.outputs import read_outputs
from formats.schema import load_schema, shipped_schema
from formats.scores import read_scores

ROOT = Path(__file__).resolve().parents[3]
TEXT = (ROOT / "docs" / "formats.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"^```\w*\n(.*?)^```$", TEXT, re.MULTILINE | re.DOTALL)
INLINE = re.findall(r'`(\{"[^`]*\})`', TEXT)
LIMITS = Limits()


def lines(text: str, report: Report) -> object:
    return open_text(io.BytesIO(text.encode()), LIMITS, report)


def block(beginning: str) -> str:
    [found] = [text for text in BLOCKS if text.startswith(beginning)]
    return found


def corpus() -> MemoryCorpus:
    """The documents of the examples, with the mentions that are marked in another one."""
    report = Report()
    records = list(read_corpus(lines(block('{"id"'), report), LIMITS, report))
    bare = MemoryCorpus(DocumentView.from_record(record) for record in records)
    types, entities = {}, {}
    for mention in read_mentions(lines(block("doc_id\tbegin"), report), bare, TAC, report):
        types[mention.span] = mention.type
        entities.setdefault(int(mention.entity), []).append(mention.span)
    assert not report.messages
    return MemoryCorpus([DocumentView.from_record(records[0], types, entities)])


TAC = shipped_schema("tac_kbp")


def claims(schema: str) -> Callable[[str, Report], object]:
    def read(text: str, report: Report) -> object:
        file = io.BytesIO(text.encode())
        return list(read_claims(file, corpus(), shipped_schema(schema), LIMITS, report))

    return read


def schema(text: str, report: Report) -> object:
    return [load_schema(json.loads(text))]


OUTPUTS = {"my_run_1": ["a17"], "our run 1": ["a-001", "a-002"]}
READERS: dict[str, tuple[Callable[[str, Report], object], int]] = {
    '{"id"': (lambda text, r: read_corpus(lines(text, r), LIMITS, r), 2),
    '{\n  "entity_types"': (schema, 1),
    "my_run_1": (claims("tac_kbp"), 1),
    '{"doc"': (claims("tac_kbp"), 5),
    '[{"title"': (claims("docred"), 1),
    '{"input_id"': (lambda text, r: read_inputs(lines(text, r), LIMITS, r), 1),
    "input_id\t": (
        lambda text, r: read_judgments(lines(text, r), OUTPUTS, {"overall": (1.0, 3.0)}, r),
        1,
    ),
    "input_id,": (
        lambda text, r: read_scores(lines(text, r), OUTPUTS, r, metric="m", needed=["our run 1"]),
        2,
    ),
    "name: ": (lambda text, r: filter(None, [read_form(text, r)]), 1),
    "doc_id\tbegin": (lambda text, r: read_mentions(lines(text, r), corpus(), TAC, r), 4),
    "doc_id\tsubj_begin": (lambda text, r: read_gold(lines(text, r), corpus(), TAC, r), 3),
}
"""How an example begins: what reads it, and how many records it has"""


@pytest.mark.parametrize("text", BLOCKS)
def test_every_example_is_read_without_an_error(text: str) -> None:
    [(read, n)] = [reader for start, reader in READERS.items() if text.startswith(start)]
    report = Report()
    found = list(read(text, report))  # type: ignore[call-overload]
    serious = [message for message in report if message.severity != "info"]
    assert len(found) == n and not serious, serious


def test_each_kind_of_example_is_there_and_lines_within_sentences_are_read() -> None:
    assert len(BLOCKS) == len(READERS)
    for text in INLINE:
        report = Report()
        assert len(list(read_outputs(lines(text, report), {"a17": 0}, LIMITS, report))) == 1
        assert not report.messages
    assert INLINE


def test_the_form_that_the_desk_begins_with_is_read() -> None:
    report = Report()
    example = (ROOT / "kbpo" / "web" / "desk" / "example_form.yaml").read_text(encoding="utf-8")
    assert read_form(example, report) is not None and not report.messages


def test_a_question_mark_needs_no_quotation_marks_in_yaml() -> None:
    report = Report()
    form = "name: use\ntitle: How useful?\nprice: 0.05\nquestions:\n"
    question = "  - {name: useful, kind: rating, ask: How useful is it?, range: [1, 4]}\n"
    found = read_form(form + question, report)
    assert found is not None and found.questions[0].ask == "How useful is it?"
