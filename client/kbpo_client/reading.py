"""Reads a run offline with the readers and messages of the service."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from formats.corpus import read_corpus
from formats.doors import read_claims
from formats.inputs import read_inputs
from formats.limits import Limits
from formats.lookup import DocumentView, MemoryCorpus
from formats.messages import Message, Report
from formats.opening import open_text
from formats.outputs import read_outputs
from formats.schema import load_schema

DOCUMENTS = "documents.jsonl.gz"
INPUTS = "inputs.jsonl.gz"
MENTIONS = "mentions.jsonl.gz"
SCHEMA = "schema.json"
"""Names of the files that `kbpo download` writes"""


@dataclass
class Reading:
    """The result of reading a file."""

    items: str
    """What a line says: relations, or outputs"""
    usable_items: int
    errors: int
    warnings: int
    messages: list[Message] = field(default_factory=list)

    @property
    def usable(self) -> bool:
        """Return whether the service accepts the file: it has usable items and no errors."""
        return self.usable_items > 0 and not self.errors


def read_run(path: Path, folder: Path) -> Reading:
    """Return the result of reading a run with the files that `kbpo download` stored in a folder.
    Raises OSError and FormatError; FileNotFoundError without these files.
    """
    if (folder / INPUTS).exists():
        return _read_outputs(path, folder / INPUTS)
    for needed in (DOCUMENTS, SCHEMA):
        if not (folder / needed).exists():
            raise FileNotFoundError(str(folder / needed))
    return _read_relations(path, folder)


def _read_relations(path: Path, folder: Path) -> Reading:
    limits, report, mentions = Limits(), Report(), folder / MENTIONS
    types = _mention_types(mentions) if mentions.exists() else {}
    corpus = MemoryCorpus(_documents(folder / DOCUMENTS, limits, types))
    schema = load_schema(folder / SCHEMA)
    return _reading("relations", read_claims(path, corpus, schema, limits, report), report)


def _read_outputs(path: Path, inputs: Path) -> Reading:
    limits, report = Limits(), Report()
    passages_of = _inputs(inputs, limits)
    lines = open_text(path, limits.for_outputs(), report)
    return _reading("outputs", read_outputs(lines, passages_of, limits, report), report)


def _inputs(path: Path, limits: Limits) -> dict[str, int]:
    """Return the number of passages of each input. Raises OSError for an invalid file."""
    report = Report()
    inputs = read_inputs(open_text(path, limits.for_corpus(), report), limits, report)
    passages_of = {row.input_id: len(row.passages) for row in inputs}
    if report.errors:
        raise OSError(f"{path} holds no inputs: {next(iter(report)).text}")
    return passages_of


def _reading(items: str, read: Iterable[object], report: Report) -> Reading:
    """Read a file to its end and return the result."""
    usable = sum(1 for _ in read)
    return Reading(
        items=items,
        usable_items=0 if report.fatal else usable,
        errors=report.errors,
        warnings=report.by_severity["warning"],
        messages=list(report),
    )


def _mention_types(path: Path) -> dict[str, dict[tuple[int, int], str]]:
    """Return the types of the corpus's mentions by document and span."""
    types: dict[str, dict[tuple[int, int], str]] = {}
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        for line in lines:
            record = json.loads(line)
            types[record["id"]] = {(begin, end): kind for begin, end, kind in record["mentions"]}
    return types


def _documents(
    path: Path, limits: Limits, types: dict[str, dict[tuple[int, int], str]]
) -> Iterator[DocumentView]:
    """Yield the documents of a corpus file. Raises OSError for an invalid file."""
    report, large = Report(), limits.for_corpus()
    for record in read_corpus(open_text(path, large, report), large, report):
        yield DocumentView.of(record, types.get(record.id))
    if report.errors:
        raise OSError(f"{path} is no corpus: {next(iter(report)).text}")
