"""Reads a run as the service would: the same readers, the same messages, without a connection."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from formats.corpus import read_corpus
from formats.doors import read_claims
from formats.limits import Limits
from formats.lookup import DocumentView, MemoryCorpus
from formats.messages import Message, Report
from formats.opening import open_text
from formats.schema import load_schema

DOCUMENTS = "documents.jsonl.gz"
MENTIONS = "mentions.jsonl.gz"
SCHEMA = "schema.json"
"""Names of the files that `kbpo download` writes"""


@dataclass
class Reading:
    """What a reader made of a file."""

    relations: int
    errors: int
    warnings: int
    messages: list[Message] = field(default_factory=list)

    @property
    def usable(self) -> bool:
        """Whether the service would take the file without a question."""
        return self.relations > 0 and not self.errors


def read_run(path: Path, documents: Path, schema: Path, mentions: Path | None = None) -> Reading:
    """What the service would make of a run. Raises OSError and FormatError."""
    limits = Limits()
    types = {} if mentions is None else _mention_types(mentions)
    corpus = MemoryCorpus(_documents(documents, limits, types))
    report = Report()
    claims = read_claims(path, corpus, load_schema(schema), limits, report)
    relations = sum(1 for _ in claims)
    return Reading(
        relations=0 if report.fatal else relations,
        errors=report.errors,
        warnings=report.by_severity["warning"],
        messages=list(report),
    )


def _mention_types(path: Path) -> dict[str, dict[tuple[int, int], str]]:
    """Document -> span -> type of the mention that came with the corpus."""
    types: dict[str, dict[tuple[int, int], str]] = {}
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        for line in lines:
            record = json.loads(line)
            types[record["id"]] = {(begin, end): kind for begin, end, kind in record["mentions"]}
    return types


def _documents(
    path: Path, limits: Limits, types: dict[str, dict[tuple[int, int], str]]
) -> Iterator[DocumentView]:
    """Yields the documents of a corpus file. Raises OSError where it is not one."""
    report, large = Report(), limits.for_corpus()
    for record in read_corpus(open_text(path, large, report), large, report):
        yield DocumentView.of(record, types.get(record.id))
    if report.errors:
        raise OSError(f"{path} is no corpus: {next(iter(report)).text}")
