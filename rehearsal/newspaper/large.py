"""Writes a corpus and one very large knowledge base over it, to measure how fast submissions are
read.

python -m rehearsal.newspaper.large DIRECTORY --relations 1000000
"""

import argparse
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np

from rehearsal.newspaper.annotate import Annotated, Cluster, Span
from rehearsal.newspaper.invent import Entity
from rehearsal.newspaper.lexicon import PREDICATE_TYPES
from rehearsal.newspaper.write import imagine, place, quote, write_corpus

RELATIONS_A_DOCUMENT = 800
ALLOWED: dict[tuple[str, str], list[str]] = {}
for _predicate, _types in PREDICATE_TYPES.items():
    for _pair in _types:
        ALLOWED.setdefault(_pair, []).append(_predicate)


def large(directory: Path, relations: int, *, documents: int | None = None, seed: int = 1) -> Path:
    """The knowledge base with exactly that many relations, none twice, next to its corpus.

    ValueError if the documents cannot hold so many.
    """
    if relations < 1:
        raise ValueError(f"relations must be positive, not {relations}")
    wanted = documents or max(20, -(-relations // RELATIONS_A_DOCUMENT))
    _, corpus = imagine(wanted, seed)
    directory.mkdir(parents=True, exist_ok=True)
    write_corpus(directory / "corpus.jsonl", corpus)
    path = directory / f"large_{relations}.kb.tsv"
    unfinished = path.with_suffix(".part")
    with unfinished.open("w", encoding="utf-8", newline="\n") as file:
        file.write(f"large_{relations}\n")
        file.writelines(line + "\n" for line in _entities(corpus))
        file.writelines(
            line + "\n"
            for line in _relations(corpus, relations, np.random.default_rng([seed, relations]))
        )
    unfinished.replace(path)
    return path


def _entities(corpus: Sequence[Annotated]) -> Iterator[str]:
    seen: set[int] = set()
    for document in corpus:
        for cluster in document.clusters:
            if not isinstance(cluster.filler, Entity):
                continue
            name = f":E{cluster.filler.key}"
            if cluster.filler.key not in seen:
                seen.add(cluster.filler.key)
                yield f"{name}\ttype\t{cluster.filler.type}"
                if cluster.link:
                    yield f"{name}\tlink\t{quote(cluster.link)}"
            for span in cluster.spans:
                gloss = quote(document.text[slice(*span)])
                yield f"{name}\tmention\t{gloss}\t{place(document.id, span)}"
                if span == cluster.canonical():
                    yield f"{name}\tcanonical_mention\t{gloss}\t{place(document.id, span)}"


def _relations(
    corpus: Sequence[Annotated], relations: int, rng: np.random.Generator
) -> Iterator[str]:
    left = relations
    for number, document in enumerate(corpus):
        # A third more than its share, while it lasts: short documents cannot hold theirs.
        share = min(left, -(-4 * left // (3 * (len(corpus) - number))))
        pairs = _pairs(document)
        take = min(share, len(pairs))
        left -= take
        for index in np.sort(rng.choice(len(pairs), size=take, replace=False)):
            (subject, subject_cluster), predicate, (object_, object_cluster) = pairs[index]
            target = (
                f":E{object_cluster.filler.key}"
                if isinstance(object_cluster.filler, Entity)
                else quote(document.text[slice(*object_)])
            )
            provenance = f"{place(document.id, subject)},{place(document.id, object_)}"
            assert isinstance(subject_cluster.filler, Entity)
            yield (
                f":E{subject_cluster.filler.key}\t{predicate}\t{target}\t{provenance}"
                f"\t{rng.integers(1, 100) / 100}"
            )
    if left:
        held = relations - left
        raise ValueError(
            f"{len(corpus)} documents hold {held} relations, not {relations}: ask"
            " for more documents"
        )


def _pairs(document: Annotated) -> list[tuple[tuple[Span, Cluster], str, tuple[Span, Cluster]]]:
    mentions = document.mentions()
    pairs: list[tuple[tuple[Span, Cluster], str, tuple[Span, Cluster]]] = []
    for mention in mentions:
        for two in mentions:
            if mention[1] is not two[1]:
                for predicate in ALLOWED.get((mention[1].filler.type, two[1].filler.type), ()):
                    pairs.append((mention, predicate, two))
    return pairs


def main() -> None:
    """Nothing; the files are written."""
    parser = argparse.ArgumentParser(
        description="Write a corpus and one very large knowledge base over it."
    )
    parser.add_argument("directory", type=Path)
    parser.add_argument("--relations", type=int, default=100_000)
    parser.add_argument("--documents", type=int, default=None)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    try:
        path = large(
            options.directory, options.relations, documents=options.documents, seed=options.seed
        )
    except ValueError as problem:
        parser.error(str(problem))
    print(path)


if __name__ == "__main__":
    main()
