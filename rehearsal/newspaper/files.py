"""Writes the files of the newspaper, of all its documents or only of the first ones."""

from __future__ import annotations

import json
import re
import tarfile
from pathlib import Path

ARCHIVE = Path(__file__).parent / "harbour_wire.tar.xz"
DOCUMENTS = 60
PLACE = re.compile(r"WIRE_\d+_(\d+)")
"""A document's id; it ends with its number, from 1."""


def write_files(directory: Path, *, documents: int = DOCUMENTS, with_dev: bool = True) -> None:
    """Write the corpus, gold standard, systems, judge and texts into a directory.

    With fewer `documents` than the newspaper has, all files except those of the texts contain only
    its first documents. With `with_dev` some documents are in the development part; studies have
    none.
    """
    directory.mkdir(parents=True, exist_ok=True)
    with tarfile.open(ARCHIVE) as archive:
        archive.extractall(directory, filter="data")
    if not with_dev:
        corpus = directory / "corpus.jsonl"
        text = corpus.read_text("utf-8").replace('"part": "dev"', '"part": "test"')
        corpus.write_text(text, "utf-8")
    if documents < DOCUMENTS:
        for path in (*directory.glob("*.tsv"), directory / "corpus.jsonl"):
            _keep_lines(path, documents)
        for path in directory.glob("systems/*.kb.tsv"):
            _keep_knowledge(path, documents)


def _is_kept(line: str, documents: int) -> bool:
    found = PLACE.search(line)
    return found is None or int(found[1]) <= documents


def _keep_lines(path: Path, documents: int) -> None:
    lines = path.read_text("utf-8").splitlines(keepends=True)
    path.write_text("".join(line for line in lines if _is_kept(line, documents)), "utf-8")


def _keep_knowledge(path: Path, documents: int) -> None:
    """Restrict a system's knowledge base to the first documents, without entities that are in none
    of them.
    """
    name, *lines = path.read_text("utf-8").splitlines(keepends=True)
    kept = [line for line in lines if _is_kept(line, documents)]
    mentioned = {line.split("\t")[0] for line in kept if line.split("\t")[1] == "mention"}
    path.write_text(name + "".join(x for x in kept if x.split("\t")[0] in mentioned), "utf-8")


def read_systems(directory: Path) -> list[dict[str, str]]:
    """Return team, run, file and description of each system."""
    listed: list[dict[str, str]] = json.loads((directory / "systems" / "systems.json").read_text())
    return listed
