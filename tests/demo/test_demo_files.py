"""The files of the demo: the same every time, sound in every offset, and with the truth that they
say.
"""

import json
import os
import re
import subprocess
import sys
from collections import Counter, defaultdict
from pathlib import Path
from typing import Any

import pytest

from formats.corpus import read_corpus
from formats.doors import read_claims
from formats.limits import Limits
from formats.lookup import DocumentView, MemoryCorpus
from formats.messages import Report
from formats.opening import open_text
from formats.relation import RelationClaim
from formats.schema import shipped_schema
from kbpo.tracks.kbp.judge import Clusters
from rehearsal.newspaper.knows import rows
from rehearsal.newspaper.write import imagine

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
    corpus = MemoryCorpus(DocumentView.of(record) for record in records)
    assert not len(corpus_report)
    path = directory / "systems" / file
    return list(read_claims(path, corpus, shipped_schema("tac_kbp"), LIMITS, report)), report


def test_the_same_seed_writes_the_same_bytes(tmp_path: Path) -> None:
    for name, hash_seed in (("one", "1"), ("two", "2")):
        command = [
            sys.executable,
            "-m",
            "rehearsal.newspaper.write",
            str(tmp_path / name),
            "--documents",
            "10",
            "--seed",
            "5",
        ]
        subprocess.run(
            command, check=True, env=os.environ | {"PYTHONHASHSEED": hash_seed}, capture_output=True
        )
    files = sorted(
        path.relative_to(tmp_path / "one")
        for path in (tmp_path / "one").rglob("*")
        if path.is_file()
    )
    assert len(files) == 6 + SYSTEMS + 1
    for file in files:
        assert (tmp_path / "one" / file).read_bytes() == (tmp_path / "two" / file).read_bytes(), (
            file
        )


def test_another_seed_writes_other_news() -> None:
    assert imagine(5, 1)[1][0].text != imagine(5, 2)[1][0].text


def test_offsets_point_at_what_they_say(demo: Path) -> None:
    texts = {document["id"]: document for document in documents(demo)}
    seen = set()
    for row in rows(demo / "mentions.tsv"):
        document, begin, end = texts[row["doc_id"]], int(row["begin"]), int(row["end"])
        assert document["text"][begin:end] == row["gloss"]
        assert begin in {b for b, _ in document["tokens"]} and end in {
            e for _, e in document["tokens"]
        }
        seen.add((row["doc_id"], begin, end))
    assert all(
        (row["doc_id"], int(row["canonical_begin"]), int(row["canonical_end"])) in seen
        for row in rows(demo / "mentions.tsv")
    )
    for row in rows(demo / "gold.tsv"):
        sentence = [int(row["prov_begin"]), int(row["prov_end"])]
        assert sentence in texts[row["doc_id"]]["sentences"]
        for end in ("subj", "obj"):
            begin, stop = int(row[f"{end}_begin"]), int(row[f"{end}_end"])
            assert (row["doc_id"], begin, stop) in seen and sentence[0] <= begin < stop <= sentence[
                1
            ]


def test_documents_are_of_a_readable_length_and_dated(demo: Path) -> None:
    for document in documents(demo):
        assert 8 <= len(document["sentences"]) <= 25
        assert re.fullmatch(r"201[234]-\d\d-\d\d", document["date"]) and document["title"]


def test_the_language_is_sound(demo: Path) -> None:
    for document in documents(demo):
        sentences = [document["text"][begin:end] for begin, end in document["sentences"]]
        assert len(set(sentences)) == len(sentences)
        for sentence in sentences:
            assert re.match(r"[“A-Z]", sentence) and sentence.endswith((".", ".”")), sentence
            assert not re.search(
                r"[{}]|  |\bthe the\b|’s’s|\.\.|,,|s’s\b", sentence, re.IGNORECASE
            ), sentence
            assert not re.search(
                r"\b[Aa] (?!un|use|one|Uni)[aeiou]|\b[Aa]n [^aeiouAEIOUhe]", sentence
            ), sentence
            assert not re.search(r"[a-z] \d{4} [A-Z]", sentence), sentence


def test_most_predicates_of_the_schema_occur(demo: Path) -> None:
    predicates = {row["predicate"] for row in rows(demo / "gold.tsv")}
    assert len(predicates) >= 18
    assert predicates <= set(shipped_schema("tac_kbp").predicates)


def test_the_types_of_every_true_relation_are_allowed(demo: Path) -> None:
    schema = shipped_schema("tac_kbp")
    types = {
        (row["doc_id"], row["begin"], row["end"]): row["type"]
        for row in rows(demo / "mentions.tsv")
    }
    for row in rows(demo / "gold.tsv"):
        pair = (
            types[row["doc_id"], row["subj_begin"], row["subj_end"]],
            types[row["doc_id"], row["obj_begin"], row["obj_end"]],
        )
        assert pair in schema.predicates[row["predicate"]].types


def test_both_directions_of_a_fact_are_true(demo: Path) -> None:
    schema = shipped_schema("tac_kbp")
    gold = {
        (row["doc_id"], row["subj_begin"], row["predicate"], row["obj_begin"])
        for row in rows(demo / "gold.tsv")
    }
    types = {(row["doc_id"], row["begin"]): row["type"] for row in rows(demo / "mentions.tsv")}
    for document, subject, name, object_ in gold:
        predicate = schema.predicates[name]
        inverse = predicate.inverse_by_object_type.get(types[document, object_], predicate.inverse)
        assert inverse is None or (document, object_, inverse, subject) in gold


def test_what_is_denied_is_not_true(demo: Path) -> None:
    denials = (
        "denied being married",
        "denied holding shares",
        "denied reports that",
        "proved false",
    )
    texts = {document["id"]: document for document in documents(demo)}
    denied = {
        (key, begin)
        for key, document in texts.items()
        for begin, end in document["sentences"]
        if any(words in document["text"][begin:end] for words in denials)
    }
    assert denied
    assert not denied & {(row["doc_id"], int(row["prov_begin"])) for row in rows(demo / "gold.tsv")}


def test_few_entities_are_in_many_documents() -> None:
    corpus = imagine(200, 4)[1]
    assert len(corpus) == 200
    frequency = Counter(
        cluster.filler.key
        for document in corpus
        for cluster in document.clusters
        if cluster.filler.type in ("PER", "ORG") and hasattr(cluster.filler, "key")
    )
    counts = sorted(frequency.values(), reverse=True)
    assert sum(counts[: len(counts) // 10]) > 0.3 * sum(counts)
    assert sum(count <= 3 for count in counts) > 0.4 * len(counts)
    assert counts[0] > 20


def test_entities_have_several_names(demo: Path) -> None:
    names = defaultdict(set)
    for row in rows(demo / "mentions.tsv"):
        if row["type"] in ("PER", "ORG"):
            names[row["doc_id"], row["entity"]].add(row["gloss"])
    assert sum(len(forms) > 1 for forms in names.values()) > 0.3 * len(names)


def test_every_system_file_reads_without_errors_or_losses(demo: Path) -> None:
    truth = json.loads((demo / "truth.json").read_text())["systems"]
    entries = json.loads((demo / "systems" / "systems.json").read_text())
    assert len(entries) == SYSTEMS and len({entry["team"] for entry in entries}) == 4
    for entry in entries:
        found, report = claims(demo, entry["file"])
        assert report.errors == 0 and not report.fatal
        assert len(found) == truth[entry["run"]]["predictions"] > 0
        assert (
            (demo / "systems" / entry["file"])
            .read_text(encoding="utf-8")
            .startswith(entry["run"] + "\n")
        )


@pytest.mark.parametrize("number", range(SYSTEMS))
def test_the_truth_is_what_counting_the_files_gives(demo: Path, number: int) -> None:
    """Counts again from the written files alone, with the readers of the service instead of the
    generator's objects.
    """
    truth = json.loads((demo / "truth.json").read_text())
    entry = json.loads((demo / "systems" / "systems.json").read_text())[number]
    found, _ = claims(demo, entry["file"])
    expected = truth["systems"][entry["run"]]
    cluster = {
        (r["doc_id"], int(r["begin"]), int(r["end"])): r["entity"]
        for r in rows(demo / "mentions.tsv")
    }
    gold = {
        (
            r["doc_id"],
            (int(r["subj_begin"]), int(r["subj_end"])),
            r["predicate"],
            (int(r["obj_begin"]), int(r["obj_end"])),
        )
        for r in rows(demo / "gold.tsv")
    }
    settled: dict[str, dict[tuple[int, int], Any]] = defaultdict(dict)
    for r in rows(demo / "mentions.tsv"):
        canonical = {"canonical": [int(r["canonical_begin"]), int(r["canonical_end"])]}
        settled[r["doc_id"]][int(r["begin"]), int(r["end"])] = canonical
    texts = {one["id"]: one["text"] for one in documents(demo)}
    clusters = {name: Clusters(texts[name], values) for name, values in settled.items()}
    facts = {(d, cluster[d, *s], p, cluster[d, *o]) for d, s, p, o in gold}
    assert (len(gold), len(facts)) == (truth["gold_instances"], truth["gold_facts"])

    def verdict(c: RelationClaim) -> dict[str, bool]:
        relation = (c.document, c.subject, c.predicate, c.object) in gold
        settled = clusters[c.document]
        linking = bool(
            settled.refers(c.subject, c.subject_canonical)
            and settled.refers(c.object, c.object_canonical)
        )
        return {"relation": relation, "linking": linking, "correct": relation and linking}

    strings = _strings(demo / "systems" / entry["file"])
    verdicts = [verdict(c) for c in found]
    relation = Counter(c.predicate for c in found)
    subject = Counter(c.subject_entity for c in found)
    pairs = {(c.subject_entity, c.predicate, c.object_entity or strings[c.line]) for c in found}
    told = Counter(entity for entity, _, _ in pairs)
    weight = {
        "instance": [1.0] * len(found),
        "relation": [1 / relation[c.predicate] for c in found],
        "entity": [1 / subject[c.subject_entity] for c in found],
        "entity_relation": [
            told[c.subject_entity] / subject[c.subject_entity] / relation[c.predicate]
            for c in found
        ],
    }
    for kind, values in weight.items():
        for criterion in ("relation", "linking", "correct"):
            right = sum(w for w, v in zip(values, verdicts, strict=True) if v[criterion])
            assert expected["precision"][kind][criterion] == pytest.approx(
                right / sum(values), abs=1e-9
            )
    for criterion in ("relation", "correct"):
        hit = {
            (
                c.document,
                cluster[c.document, *c.subject],
                c.predicate,
                cluster[c.document, *c.object],
            )
            for c, v in zip(found, verdicts, strict=True)
            if v[criterion]
        }
        assert expected["recall"][criterion] == pytest.approx(len(hit) / len(facts))


def _strings(path: Path) -> dict[int, str]:
    lines = enumerate(path.read_text(encoding="utf-8").splitlines(), start=1)
    return {number: line.split("\t")[2] for number, line in lines if line.count("\t") >= 3}


def test_the_systems_spread_over_the_plane(demo: Path) -> None:
    systems = json.loads((demo / "truth.json").read_text())["systems"].values()
    precision = [s["precision"]["instance"]["correct"] for s in systems]
    recall = [s["recall"]["correct"] for s in systems]
    assert 0.15 < min(precision) < 0.4 and 0.65 < max(precision) < 0.95
    assert 0.05 < min(recall) < 0.2 and 0.4 < max(recall) < 0.65
    assert all(s["precision"]["instance"]["linking"] < 1 for s in systems)


def test_a_lower_threshold_only_adds_predictions(demo: Path) -> None:
    def predicted(run: str) -> set[tuple]:
        return {
            (c.document, c.subject, c.predicate, c.object) for c in claims(demo, f"{run}.kb.tsv")[0]
        }

    careful, bold = predicted("LindqvistLab_1"), predicted("LindqvistLab_2")
    assert careful < bold and len(bold) > 1.2 * len(careful)


def test_namesakes_of_different_documents_are_sometimes_merged(demo: Path) -> None:
    true_link = {
        (r["doc_id"], int(r["begin"]), int(r["end"])): (r["link"], r["gloss"])
        for r in rows(demo / "mentions.tsv")
    }
    wrong = [
        c
        for c in claims(demo, "Harbor_2.kb.tsv")[0]
        if c.subject_link and true_link[c.document, *c.subject_canonical][0] != c.subject_link
    ]
    assert wrong


def test_the_command_refuses_no_documents(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "rehearsal.newspaper.write", str(tmp_path), "--documents", "0"]
    result = subprocess.run(command, capture_output=True, text=True)
    assert result.returncode == 2 and "must be positive" in result.stderr
