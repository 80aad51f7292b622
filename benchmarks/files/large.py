"""Writes a large corpus and one very large knowledge base over it, to measure how fast submissions
are read.

python -m benchmarks.files.large DIRECTORY --relations 1000000
"""

from __future__ import annotations

import argparse
import json
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

from formats.schema import shipped_schema
from rehearsal.newspaper.files import DOCUMENTS, write_files
from rehearsal.newspaper.knows import read_rows

RELATIONS_A_DOCUMENT = 800
STRINGS = ("TITLE", "DATE")
"""Types whose mentions are not entities"""
Mention = dict[str, str]


def write_large_file(
    directory: Path, relations: int, *, documents: int | None = None, seed: int = 1
) -> Path:
    """Write the knowledge base with exactly so many relations, none twice, next to its corpus.

    The corpus repeats the newspaper's documents under new ids, and its entities under new names.
    Raises Raises ValueError if the documents cannot hold so many relations.
    """
    if relations < 1:
        raise ValueError(f"relations must be positive, not {relations}")
    wanted = documents or max(20, -(-relations // RELATIONS_A_DOCUMENT))
    rng = np.random.default_rng([seed, relations])
    directory.mkdir(parents=True, exist_ok=True)
    path = directory / f"large_{relations}.kb.tsv"
    unfinished = path.with_suffix(".part")
    with TemporaryDirectory() as folder:
        write_files(Path(folder))
        corpus = [
            json.loads(line)
            for line in (Path(folder) / "corpus.jsonl").read_text("utf-8").splitlines()
        ]
        mentions: dict[str, list[Mention]] = defaultdict(list)
        for row in read_rows(Path(folder) / "mentions.tsv"):
            mentions[row["doc_id"]].append(row)
    pairs = {document: _allowed_relations(mentions[document]) for document in mentions}
    left, typed = relations, set[str]()
    with (
        (directory / "corpus.jsonl").open("w", encoding="utf-8", newline="\n") as texts,
        unfinished.open("w", encoding="utf-8", newline="\n") as file,
    ):
        file.write(f"large_{relations}\n")
        for number in range(wanted):
            copy, place = divmod(number, DOCUMENTS)
            document = corpus[place]["id"]
            name = f"{document}_{copy}"
            texts.write(json.dumps(corpus[place] | {"id": name}, ensure_ascii=False) + "\n")
            file.writelines(_entity_lines(mentions[document], name, copy, typed))
            # A third more than its share, while it lasts: short documents cannot hold theirs.
            share = min(left, -(-4 * left // (3 * (wanted - number))))
            take = min(share, len(pairs[document]))
            left -= take
            for index in np.sort(rng.choice(len(pairs[document]), size=take, replace=False)):
                subject, predicate, object_ = pairs[document][index]
                target = (
                    _quoted(object_["gloss"])
                    if object_["type"] in STRINGS
                    else _entity_name(object_, copy)
                )
                provenance = f"{_place_text(name, subject)},{_place_text(name, object_)}"
                confidence = rng.integers(1, 100) / 100
                file.write(
                    f"{_entity_name(subject, copy)}\t{predicate}\t{target}\t{provenance}"
                    f"\t{confidence}\n"
                )
    if left:
        raise ValueError(
            f"{wanted} documents hold {relations - left} relations, not {relations}: ask for more"
            " documents"
        )
    unfinished.replace(path)
    return path


def _entity_lines(
    mentions: list[Mention], document: str, copy: int, typed: set[str]
) -> Iterator[str]:
    """Return the lines of a document's entities; `typed` are the entities whose types were written
    already.
    """
    for mention in mentions:
        if mention["type"] in STRINGS:
            continue
        name = _entity_name(mention, copy)
        if name not in typed:
            typed.add(name)
            yield f"{name}\ttype\t{mention['type']}\n"
            if mention["link"]:
                yield f"{name}\tlink\t{_quoted(mention['link'])}\n"
        where = f"{_quoted(mention['gloss'])}\t{_place_text(document, mention)}\n"
        yield f"{name}\tmention\t{where}"
        if mention["begin"] == mention["canonical_begin"]:
            yield f"{name}\tcanonical_mention\t{where}"


def _allowed_relations(mentions: list[Mention]) -> list[tuple[Mention, str, Mention]]:
    """Return all relations that the schema allows between mentions of different entities."""
    allowed = defaultdict(list)
    for predicate in shipped_schema("tac_kbp").predicates.values():
        for types in predicate.types:
            allowed[types].append(predicate.name)
    return [
        (one, predicate, two)
        for one in mentions
        for two in mentions
        if one["entity"] != two["entity"]
        for predicate in allowed[one["type"], two["type"]]
    ]


def _entity_name(mention: Mention, copy: int) -> str:
    """Return the name of an entity; an entity with a link may be in several documents of a copy."""
    return f":E{copy}_{mention['link'] or mention['doc_id'] + '_' + mention['entity']}"


def _place_text(document: str, mention: Mention) -> str:
    return f"{document}:{mention['begin']}-{int(mention['end']) - 1}"  # inclusive at both ends


def _quoted(text: str) -> str:
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'


def main() -> None:
    """Write the files and print the knowledge base's path."""
    parser = argparse.ArgumentParser(
        description="Write a large corpus and one very large knowledge base over it."
    )
    parser.add_argument("directory", type=Path)
    parser.add_argument("--relations", type=int, default=100_000)
    parser.add_argument("--documents", type=int, default=None)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    try:
        path = write_large_file(
            options.directory, options.relations, documents=options.documents, seed=options.seed
        )
    except ValueError as problem:
        parser.error(str(problem))
    print(path)


if __name__ == "__main__":
    main()
