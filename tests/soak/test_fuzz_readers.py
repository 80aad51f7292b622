"""Two hundred thousand damaged files: a reader gives messages or its own error,
and nothing else.
"""

from __future__ import annotations

import gzip
import json
import os
import random
import resource
import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import yaml

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "check" / "formats"))
from test_formats_forms import GOOD as FORM
from test_formats_fuzz import GOOD, JSON, check
from test_formats_generation import JUDGMENTS, SCORES
from test_formats_generation import read as read_generated
from toy import corpus_lines, read, read_documents, read_table

from formats.annotations import GOLD_COLUMNS, MENTION_COLUMNS
from formats.forms import error_sentences, read_form
from formats.messages import FormatError, Report
from formats.schema import load_schema, shipped_schema

pytestmark = pytest.mark.soak
CASES = int(os.environ.get("FUZZ_CASES", "200000"))
PARTS = 8
PATIENCE = 60.0
ROOM = 512 * 1024
"""Kilobytes that a part may grow by"""
NAMES = ("name", "types", "inverse", "exclusive", "turned", "mapped", "ignored")
JUNK: list[Any] = [
    None,
    True,
    0,
    -1,
    1e400,
    float("nan"),
    10**400,
    "",
    "\x00",
    "\ud800",
    "=1",
    "x" * 5000,
    [],
    [[]],
    [None],
    ["a", "a"],
    [["PER"]],
    [["PER", "GPE", "X"]],
    {},
    {"a": 1},
    {"name": None},
    {"a": []},
]
BYTES = [
    b"\x00",
    b"\xff",
    b"\t",
    b"\n",
    b"\r",
    b'"',
    b"\\",
    b"{",
    b"}",
    b"[",
    b"-",
    b"1e999",
    b"[" * 100_000,
    b"\x1f\x8b",
    b"\xed\xa0\x80",
    b"\xef\xbb\xbf",
    b"\xe2\x80\xa8",
    b"99999999999999999999",
    b"nan",
]


def mutated(value: Any, dice: random.Random) -> Any:
    """The value, with junk in the place of some of its parts."""
    if dice.random() < 0.03:
        return dice.choice(JUNK)
    if isinstance(value, dict):
        found = {key: mutated(one, dice) for key, one in value.items() if dice.random() > 0.01}
        if dice.random() < 0.03:
            found[dice.choice(NAMES)] = dice.choice(JUNK)
        return found
    if isinstance(value, list):
        return [mutated(one, dice) for one in value]
    return value


def damaged(data: bytes, dice: random.Random) -> bytes:
    """The bytes, with pieces cut out, doubled, and put in."""
    for _ in range(dice.randint(1, 4)):
        at, end = sorted(dice.randrange(len(data) + 1) for _ in range(2))
        end = min(end, at + dice.choice([0, 1, 3, 20]))
        piece = dice.choice([dice.choice(BYTES), data[at:end] * 2, dice.randbytes(3)])
        data = data[:at] + piece + data[end:]
    return data


def in_a_schema(dice: random.Random) -> None:
    source = mutated(SCHEMA, dice)
    if isinstance(source, dict):
        try:
            json.dumps(load_schema(source).as_dict()).encode()
        except FormatError as error:
            assert str(error)


def packed(data: bytes, dice: random.Random) -> bytes:
    """The bytes as they are, or now and then packed: whole, cut off, broken, twice, or a bomb."""
    if dice.random() > 0.1:
        return data
    zipped = gzip.compress(data * dice.choice([1, 1, 1, 200]), 1)
    how = dice.random()
    if how < 0.2:
        return zipped[: dice.randrange(len(zipped) + 1)]
    if how < 0.4:
        return damaged(zipped, dice)
    return gzip.compress(zipped) if how < 0.5 else zipped


def in_a_knowledge_base(dice: random.Random) -> None:
    check(read(packed(damaged(GOOD, dice), dice))[0])


def in_json_lines(dice: random.Random) -> None:
    line = json.loads(JSON)
    said = json.dumps(mutated(line, dice)).encode()
    check(read(packed(damaged(said, dice) if dice.random() < 0.3 else said, dice))[0])


def in_a_corpus(dice: random.Random) -> None:
    document = json.loads(corpus_lines().splitlines()[0])
    said = json.dumps(mutated(document, dice)).encode()
    read_documents(packed(damaged(said, dice) if dice.random() < 0.3 else said, dice))


def in_annotations(dice: random.Random) -> None:
    kind, columns = dice.choice([("gold", GOLD_COLUMNS), ("mentions", MENTION_COLUMNS)])
    cells = ["D1:0-12", "per:parents", '"Fisher"', "1", "", "PER", "D9:5-1", "NIL", "m.1"]
    rows = ["\t".join(dice.choices(cells, k=len(columns))) for _ in range(dice.randint(1, 4))]
    read_table(kind, damaged("\n".join(["\t".join(columns), *rows]).encode(), dice))


INPUT = {
    "input_id": "one",
    "question": "Who?",
    "passages": ["Ann ran.", "Bo sat."],
    "source": "Ann ran.",
    "title": "A run",
    "references": ["Ann."],
}
OUTPUT = {"input_id": "one", "output": "A dog ran.", "passage": 1}
SCORE = {"input_id": "one", "system": "Neural", "metric": "bleu", "value": 0.5}
JUDGMENT = SCORE | {"worker": "Ada", "prompt": "overall", "value": 2, "seconds": 1.5}
CELLS = ["one", "two", "four", "Neural", "Twin", "bleu", "overall", "2", "0.5", "NaN", "", '"', "x"]


def in_generated(kind: str, row: dict[str, Any], header: bytes, dice: random.Random) -> None:
    """Inputs, outputs, scores or judgments of generated texts, as JSON Lines or as a table."""
    if dice.random() < 0.5:
        rows = [mutated(row, dice) for _ in range(dice.randint(1, 3))]
        data = b"".join(json.dumps(one).encode() + b"\n" for one in rows)
    else:
        width = len(header.split(b"\t"))
        lines = ["\t".join(dice.choices(CELLS, k=width)) for _ in range(dice.randint(1, 4))]
        data = header + "\n".join(lines).encode()
    data = damaged(data, dice) if dice.random() < 0.5 else data
    _, report = read_generated(kind, packed(data, dice))
    assert all(message.text.endswith(".") for message in report)


def in_inputs(dice: random.Random) -> None:
    in_generated("inputs", INPUT, b"input_id\tsource\n", dice)


def in_outputs(dice: random.Random) -> None:
    in_generated("outputs", OUTPUT, b"input_id\toutput\n", dice)


def in_scores(dice: random.Random) -> None:
    in_generated("scores", SCORE, SCORES, dice)


def in_judgments(dice: random.Random) -> None:
    in_generated("judgments", JUDGMENT, JUDGMENTS, dice)


def in_a_form(dice: random.Random) -> None:
    """A declared form as its author wrote it, or with other values, and damaged."""
    text = FORM if dice.random() < 0.5 else json.dumps(mutated(AS_JSON, dice))
    data = damaged(text.encode(), dice) if dice.random() < 0.8 else text.encode()
    if dice.random() < 0.3:
        at = dice.randrange(len(data) + 1)
        data = data[:at] + dice.choice(YAML) + data[at:]
    report = Report()
    if read_form(data.decode(errors="replace"), report) is None:
        assert report.errors
    for line in error_sentences(report):
        assert line.endswith(".")


KINDS: dict[str, Callable[[random.Random], None]] = {
    "schema": in_a_schema,
    "knowledge base": in_a_knowledge_base,
    "json lines": in_json_lines,
    "corpus": in_a_corpus,
    "annotations": in_annotations,
    "inputs": in_inputs,
    "outputs": in_outputs,
    "scores": in_scores,
    "judgments": in_judgments,
    "form": in_a_form,
}
AS_JSON = yaml.safe_load(FORM)
YAML = [
    b": ",
    b"- ",
    b"? ",
    b"!!int ",
    b"!!bool ",
    b"!x ",
    b"&a ",
    b"*a ",
    b"<<: ",
    b"| ",
    b"> ",
    b"'",
    b"---\n",
    b"...\n",
    b"%YAML 1",
    b"2026-02-30",
    b"1:60:60",
    b"0b_",
    b".inf",
    b".nan",
    b"~",
    b"#",
    b"  ",
]
_shipped = shipped_schema("tac_kbp").as_dict()
SCHEMA = _shipped | {"predicates": _shipped["predicates"][:4]}


@pytest.mark.parametrize("part", range(PARTS))
@pytest.mark.parametrize("kind", KINDS)
def test_a_damaged_file_gives_messages(
    kind: str, part: int, request: pytest.FixtureRequest
) -> None:
    first = f"{request.config.getoption('--seed', '')}/{kind}/{part}"
    room = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    for number in range(-(-CASES // (PARTS * len(KINDS)))):
        dice = random.Random(f"{first}/{number}")
        with at_most(PATIENCE):
            try:
                KINDS[kind](dice)
            except Exception as error:
                raise AssertionError(f"case {first}/{number} of {kind}") from error
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - room < ROOM, f"memory of {first}"


@contextmanager
def at_most(seconds: float) -> Iterator[None]:
    """Ends whatever takes longer: a small file that keeps a reader for ever."""

    def end(*_: object) -> None:
        raise TimeoutError(f"a small file took more than {seconds:.0f} s")

    before = signal.signal(signal.SIGALRM, end)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
