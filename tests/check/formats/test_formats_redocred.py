"""Real knowledge bases: the KB file of every system, read by our door, gives exactly its mention
pairs.
"""

from functools import cache
from pathlib import Path

import pytest

from formats.annotations import read_gold, read_mentions
from formats.corpus import read_corpus
from formats.doors import read_claims
from formats.lookup import DocumentView, MemoryCorpus
from formats.messages import Report
from formats.opening import Limits, open_text
from formats.schema import Schema, load_schema, shipped_schema

DATA = Path(__file__).parents[4] / "shared" / "data" / "redocred"
NAMES = sorted(
    path.name.removesuffix(".kb.tsv.gz") for path in (DATA / "systems").glob("*.kb.tsv.gz")
)
LIMITS = Limits()

pytestmark = pytest.mark.skipif(not NAMES, reason="the Re-DocRED data are not beside the checkout")


@cache
def corpus() -> MemoryCorpus:
    report = Report()
    lines = open_text(DATA / "corpus.jsonl.gz", LIMITS.for_corpus(), report)
    found = MemoryCorpus(
        DocumentView.from_record(record) for record in read_corpus(lines, LIMITS, report)
    )
    assert not report.messages
    assert len(found) == 500
    return found


@cache
def schema() -> Schema:
    return shipped_schema("docred")


@pytest.mark.parametrize("name", NAMES[::20] or ["none"])
def test_a_kb_file_gives_exactly_its_instances(name: str) -> None:
    report = Report()
    path = DATA / "systems" / f"{name}.kb.tsv.gz"
    found = {
        (c.document, *c.subject, c.predicate, *c.object, *c.provenance[0]): c.confidence
        for c in read_claims(path, corpus(), schema(), LIMITS, report)
    }
    assert report.errors == 0
    expected = {}
    for number, line in open_text(DATA / "systems" / f"{name}.instances.tsv.gz", LIMITS, Report()):
        if number > 1:
            row = line.split("\t")
            expected[row[0], int(row[1]), int(row[2]), row[3], *map(int, row[4:8])] = float(row[8])
    assert found == expected


def test_the_annotations_are_read_without_a_message() -> None:
    report = Report()
    mentions = list(
        read_mentions(
            open_text(DATA / "mentions.tsv.gz", LIMITS, report), corpus(), schema(), report
        )
    )
    gold = list(
        read_gold(open_text(DATA / "gold.tsv.gz", LIMITS, report), corpus(), schema(), report)
    )
    assert (len(mentions), len({(m.document, m.entity) for m in mentions}), len(gold)) == (
        12_949,
        9_778,
        17_448,
    )
    assert not report.messages


def test_the_schema_of_the_data_and_the_shipped_one_agree() -> None:
    data = load_schema(DATA / "schema.json")
    assert data.predicates.keys() == schema().predicates.keys()
    assert not data.turned
    for name, predicate in data.predicates.items():
        shipped = schema().predicates[name]
        # Ours allows for a date that is no day.
        template = shipped.template.replace(" on or in {object}", " on {object}")
        assert (predicate.label, predicate.template) == (shipped.label, template)
        assert predicate.types == shipped.types
        for kind in data.entity_types:
            assert data.inverse(name, kind) == schema().inverse(name, kind)
    assert {t.name: t.value for t in data.entity_types.values()} == {
        t.name: t.value for t in schema().entity_types.values()
    }
