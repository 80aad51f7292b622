"""The files of the demo: offsets that point at what they say, systems that can be read."""

import json
from pathlib import Path

from formats.corpus import read_corpus
from formats.doors import read_claims
from formats.lookup import DocumentView, MemoryCorpus
from formats.messages import Report
from formats.opening import Limits, open_text
from formats.relation import RelationClaim
from formats.schema import shipped_schema
from rehearsal.newspaper import files
from rehearsal.newspaper.knows import read_rows

LIMITS = Limits()
SYSTEMS = 10


def documents(directory: Path) -> list[dict]:
    return [
        json.loads(line)
        for line in (directory / "corpus.jsonl").read_text(encoding="utf-8").splitlines()
    ]


def claims(directory: Path, file: str) -> tuple[list[RelationClaim], Report]:
    corpus_report, report = Report(), Report()
    records = read_corpus(
        open_text(directory / "corpus.jsonl", LIMITS, corpus_report), LIMITS, corpus_report
    )
    corpus = MemoryCorpus(DocumentView.from_record(record) for record in records)
    assert not len(corpus_report)
    path = directory / "systems" / file
    return list(read_claims(path, corpus, shipped_schema("tac_kbp"), LIMITS, report)), report


def test_offsets_point_at_what_they_say(demo: Path) -> None:
    texts = {document["id"]: document for document in documents(demo)}
    seen = set()
    for row in read_rows(demo / "mentions.tsv"):
        document, begin, end = texts[row["doc_id"]], int(row["begin"]), int(row["end"])
        assert document["text"][begin:end] == row["gloss"]
        assert begin in {b for b, _ in document["tokens"]} and end in {
            e for _, e in document["tokens"]
        }
        seen.add((row["doc_id"], begin, end))
    assert all(
        (row["doc_id"], int(row["canonical_begin"]), int(row["canonical_end"])) in seen
        for row in read_rows(demo / "mentions.tsv")
    )
    for row in read_rows(demo / "gold.tsv"):
        sentence = [int(row["prov_begin"]), int(row["prov_end"])]
        assert sentence in texts[row["doc_id"]]["sentences"]
        for end in ("subj", "obj"):
            begin, stop = int(row[f"{end}_begin"]), int(row[f"{end}_end"])
            assert (row["doc_id"], begin, stop) in seen and sentence[0] <= begin < stop <= sentence[
                1
            ]


def test_every_system_file_reads_without_errors(demo: Path) -> None:
    entries = files.read_systems(demo)
    assert len(entries) == SYSTEMS and len({entry["team"] for entry in entries}) == 4
    for entry in entries:
        read, report = claims(demo, entry["file"])
        assert read and report.errors == 0 and not report.fatal


def test_the_first_documents_are_a_corpus_with_systems_of_its_own(
    demo: Path, tmp_path: Path
) -> None:
    files.write_files(tmp_path, documents=4, with_dev=False)
    first = documents(demo)[:4]
    assert documents(tmp_path) == [one | {"part": "test"} for one in first]
    keys = {one["id"] for one in first}
    for name in ("gold.tsv", "mentions.tsv", "judge.tsv"):
        kept = [row for row in read_rows(demo / name) if row["doc_id"] in keys]
        assert list(read_rows(tmp_path / name)) == kept
    for entry in files.read_systems(tmp_path):
        of_all, _ = claims(demo, entry["file"])
        kept_claims, report = claims(tmp_path, entry["file"])
        assert report.errors == 0 and not report.fatal
        assert [(c.document, c.subject, c.predicate, c.object) for c in kept_claims] == [
            (c.document, c.subject, c.predicate, c.object) for c in of_all if c.document in keys
        ]


def test_the_development_part_is_every_fifth_document(demo: Path) -> None:
    assert [one["part"] for one in documents(demo)] == (4 * ["test"] + ["dev"]) * 12
