"""The very large knowledge base: as many relations as asked for, all of them usable."""

from pathlib import Path

import pytest

from formats.corpus import read_corpus
from formats.doors import read_claims
from formats.limits import Limits
from formats.lookup import DocumentView, MemoryCorpus
from formats.messages import Report
from formats.opening import open_text
from formats.schema import shipped_schema
from rehearsal.newspaper.large import large


def test_every_relation_is_readable_and_predicted_once(tmp_path: Path) -> None:
    path = large(tmp_path, 5000, seed=2)
    limits, report = Limits(), Report()
    records = read_corpus(open_text(tmp_path / "corpus.jsonl", limits, report), limits, report)
    corpus = MemoryCorpus(DocumentView.of(record) for record in records)
    claims = list(read_claims(path, corpus, shipped_schema("tac_kbp"), limits, report))
    assert report.errors == 0
    assert (
        len({(c.document, c.subject, c.predicate, c.object) for c in claims}) == len(claims) == 5000
    )


def test_it_says_when_the_documents_are_too_few(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="ask for more documents"):
        large(tmp_path, 100_000, documents=2)
    with pytest.raises(ValueError, match="positive"):
        large(tmp_path, 0)
