"""Writes the demo: corpus, gold standard, systems' knowledge bases and their true scores.

python -m rehearsal.newspaper.write DIRECTORY --documents 60 --seed 1 --scale 1
"""

import argparse
import json
from collections.abc import Iterable, Iterator
from pathlib import Path

import numpy as np

from formats.schema import SHIPPED
from rehearsal.newspaper.annotate import Annotated, Span, annotate
from rehearsal.newspaper.compose import Newsroom
from rehearsal.newspaper.extract import Run, extract
from rehearsal.newspaper.invent import World, invent
from rehearsal.newspaper.judge import COLUMNS as JUDGE_COLUMNS
from rehearsal.newspaper.judge import opinions
from rehearsal.newspaper.score import Gold, score

SCHEMA = "tac_kbp"
DEV_EACH = 5
"""Every fifth document belongs to the development part, if there is one"""
MENTION_COLUMNS = (
    "doc_id",
    "begin",
    "end",
    "type",
    "entity",
    "gloss",
    "canonical_begin",
    "canonical_end",
    "link",
)
GOLD_COLUMNS = (
    "doc_id",
    "subj_begin",
    "subj_end",
    "predicate",
    "obj_begin",
    "obj_end",
    "prov_begin",
    "prov_end",
)


def write(
    directory: Path,
    *,
    documents: int = 60,
    seed: int = 1,
    scale: float = 1.0,
    with_dev: bool = True,
) -> dict[str, object]:
    """The true scores; everything is in the directory afterwards. The world grows with `scale`, at
    equal documents. `with_dev`: the corpus has a development part, which no study accepts.
    """
    world, corpus = imagine(documents, seed, scale)
    runs = extract(corpus, world, seed)
    directory.mkdir(parents=True, exist_ok=True)
    (directory / "systems").mkdir(exist_ok=True)
    write_corpus(directory / "corpus.jsonl", corpus, with_dev=with_dev)
    (directory / "schema.json").write_bytes((SHIPPED / f"{SCHEMA}.json").read_bytes())
    _lines(
        directory / "mentions.tsv",
        _table(MENTION_COLUMNS, (row for d in corpus for row in _mentions(d))),
    )
    _lines(directory / "gold.tsv", _table(GOLD_COLUMNS, (row for d in corpus for row in _gold(d))))
    gold = Gold(corpus)
    truth: dict[str, object] = {
        "documents": len(corpus),
        "gold_instances": len(gold.relations),
        "gold_facts": len(gold.facts),
        "gold_predicates": len({name for _, _, name, _ in gold.relations}),
        "systems": {run.profile.name: score(run, gold) for run in runs},
    }
    _lines(directory / "truth.json", [json.dumps(truth, indent=1)])
    judged = ((*relation, value) for relation, value in opinions(runs, gold, seed).items())
    _lines(directory / "judge.tsv", _table(JUDGE_COLUMNS, judged))
    texts = {document.id: document.text for document in corpus}
    for run in runs:
        _lines(directory / "systems" / f"{run.profile.name}.kb.tsv", knowledge_base(run, texts))
    _lines(
        directory / "systems" / "systems.json",
        [json.dumps([_entry(run) for run in runs], indent=1)],
    )
    return truth


def imagine(documents: int, seed: int, scale: float = 1.0) -> tuple[World, list[Annotated]]:
    """A world, and the documents about it."""
    rng = np.random.default_rng(seed)
    world = invent(max(1, round(documents * scale)), rng)
    return world, [annotate(story) for story in Newsroom(world, rng).stories(documents)]


def write_corpus(path: Path, corpus: Iterable[Annotated], *, with_dev: bool = True) -> None:
    """Write the corpus as JSON Lines."""
    _lines(path, (_corpus_line(document, with_dev) for document in corpus))


def _entry(run: Run) -> dict[str, str]:
    profile = run.profile
    return {
        "team": profile.team,
        "run": profile.name,
        "file": f"{profile.name}.kb.tsv",
        "description": profile.description,
    }


def _lines(path: Path, lines: Iterable[str]) -> None:
    with path.open("w", encoding="utf-8", newline="\n") as file:
        file.writelines(line + "\n" for line in lines)


def _table(columns: tuple[str, ...], rows: Iterable[Iterable[object]]) -> Iterator[str]:
    yield "\t".join(columns)
    for row in rows:
        yield "\t".join(str(value) for value in row)


def _corpus_line(document: Annotated, with_dev: bool) -> str:
    is_dev = with_dev and int(document.id.rpartition("_")[2]) % DEV_EACH == 0
    return json.dumps(
        {
            "id": document.id,
            "title": document.title,
            "date": document.date,
            "part": "dev" if is_dev else "test",
            "text": document.text,
            "tokens": document.tokens,
            "sentences": [sentence.span for sentence in document.sentences],
        },
        ensure_ascii=False,
    )


def _mentions(document: Annotated) -> Iterator[tuple[object, ...]]:
    for (begin, end), cluster in document.mentions():
        gloss = document.text[begin:end]
        yield (
            document.id,
            begin,
            end,
            cluster.filler.type,
            cluster.index,
            gloss,
            *cluster.canonical(),
            cluster.link,
        )


def _gold(document: Annotated) -> Iterator[tuple[object, ...]]:
    for subject, predicate, object_, sentence in document.gold():
        yield (document.id, *subject, predicate, *object_, *sentence)


def knowledge_base(run: Run, texts: dict[str, str]) -> Iterator[str]:
    """The lines of the run as a TAC KBP ColdStart knowledge base."""
    yield run.profile.name
    used = {
        name
        for p in run.predictions
        for name in (p.subject_entity, p.object_entity)
        if name in run.types
    }
    ids = {name: f":E{number}" for number, name in enumerate(sorted(used), start=1)}
    for name, identifier in ids.items():
        yield f"{identifier}\ttype\t{run.types[name]}"
        for document, (begin, end), canonical in run.mentions[name]:
            tail = f"{quote(texts[document][begin:end])}\t{place(document, (begin, end))}"
            yield f"{identifier}\tmention\t{tail}"
            if canonical:
                yield f"{identifier}\tcanonical_mention\t{tail}"
        if name in run.links:
            yield f"{identifier}\tlink\t{quote(run.links[name])}"
    for p in run.predictions:
        object_ = ids.get(p.object_entity) or quote(p.object_entity)
        provenance = ",".join(place(p.document, span) for span in p.provenance)
        yield f"{ids[p.subject_entity]}\t{p.predicate}\t{object_}\t{provenance}\t{p.confidence}"


def quote(text: str) -> str:
    """The string in quotation marks, escaped."""
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


def place(document: str, span: Span) -> str:
    return f"{document}:{span[0]}-{span[1] - 1}"  # inclusive at both ends, in this format alone


def main() -> None:
    """Nothing; the files are written and summed up on the screen."""
    parser = argparse.ArgumentParser(
        description="Write a fictional newswire corpus, systems, and their scores."
    )
    parser.add_argument("directory", type=Path)
    parser.add_argument("--documents", type=int, default=60)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument(
        "--scale", type=float, default=1.0, help="size of the world, relative to the documents"
    )
    options = parser.parse_args()
    if options.documents < 1 or options.scale <= 0:
        parser.error("--documents and --scale must be positive")
    truth = write(
        options.directory, documents=options.documents, seed=options.seed, scale=options.scale
    )
    print(
        f"{truth['documents']} documents, {truth['gold_facts']} facts of {truth['gold_predicates']}"
        " predicates"
    )
    systems = truth["systems"]
    assert isinstance(systems, dict)
    for name, scores in systems.items():
        precision, recall = scores["precision"]["instance"], scores["recall"]
        print(
            f"{name:16} {scores['predictions']:6} predictions   precision"
            f" {precision['correct']:.3f} (relation {precision['relation']:.3f}, linking"
            f" {precision['linking']:.3f})   recall {recall['correct']:.3f} (relation"
            f" {recall['relation']:.3f})"
        )


if __name__ == "__main__":
    main()
