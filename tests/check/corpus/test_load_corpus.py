"""A corpus is loaded whole or not at all, and says in which line something is wrong."""

from __future__ import annotations

import gzip
import json
from io import StringIO
from pathlib import Path

import pytest
from django.core.management import CommandError, call_command

from formats.schema import load_schema
from kbpo.corpus.load import NOTHING, CannotLoad, find_schema, load_corpus
from kbpo.corpus.lookup import DatabaseCorpus
from kbpo.corpus.models import Corpus, Document, Mention, Predicate

pytestmark = pytest.mark.django_db
TEXT = "Mara Lindt founded Nordwerk.\tIt is “big” \\ in Ålesund.\nBack\\slash."


@pytest.fixture
def corpus_file(tmp_path: Path) -> Path:
    path = tmp_path / "corpus.jsonl"
    documents = [
        {"id": "a", "title": "A\ttab", "date": "2013-03-17", "text": TEXT},
        {"id": "b", "text": "One word."},
    ]
    path.write_text("\n".join(map(json.dumps, documents)), encoding="utf-8")
    return path


def test_documents_come_back_as_they_were(corpus_file: Path) -> None:
    schema = find_schema("tac_kbp")
    corpus = load_corpus("My corpus", corpus_file, schema)
    assert (corpus.slug, corpus.n_documents, len(corpus.digest)) == ("my-corpus", 2, 64)
    a, b = Document.objects.order_by("key")
    assert (a.text, a.title, a.date, b.title, b.date) == (TEXT, "A\ttab", "2013-03-17", "", "")
    assert next(a.gloss(*span) for span in a.sentences) == "Mara Lindt founded Nordwerk."
    assert a.text[a.token_begin[1] : a.token_end[1]] == "Lindt"
    names = list(Predicate.objects.order_by("position").values_list("name", flat=True))
    assert names == list(schema.predicates)
    assert load_schema(corpus.schema).predicates == schema.predicates


def test_documents_are_found_by_their_title_or_else_by_their_id(tmp_path: Path) -> None:
    path = tmp_path / "corpus.json"
    titles = {"a": "One", "b": "Two", "c": "Two", "d": ""}
    rows = [{"id": key, "title": title, "text": "x"} for key, title in titles.items()]
    path.write_text(json.dumps(rows, indent=1))
    lookup = DatabaseCorpus(load_corpus("One list", path, find_schema("tac_kbp")))
    asked = ("One", "Two", "d", "Three", "b")
    lookup.prefetch_titles(asked[:3])
    found = [view.id if (view := lookup.get_by_title(title)) else None for title in asked]
    assert found == ["a", None, "d", None, "b"], "two documents have the title Two"


def test_a_gzipped_file_gives_the_same(corpus_file: Path, tmp_path: Path) -> None:
    packed = tmp_path / "packed"
    packed.write_bytes(gzip.compress(corpus_file.read_bytes()))
    assert load_corpus("Packed", packed, find_schema("tac_kbp")).n_documents == 2


def test_what_is_ignored_is_told_with_its_line(corpus_file: Path) -> None:
    corpus_file.write_text(corpus_file.read_text() + '\n{"id": "c", "text": "x", "sentence": []}')
    told = StringIO()
    call_command("load_corpus", "Odd", str(corpus_file), schema="tac_kbp", stderr=told)
    assert told.getvalue().strip() == (
        "corpus.jsonl, line 3: The key “sentence” is not known. It is ignored, here and in all"
        " further lines."
    )


@pytest.mark.parametrize(
    ("line", "told"),
    [
        ('{"id": "a", "text": "x"}', "line 3: The document id “a” is that of line 1 already"),
        ("[1]", "line 3: This line is not one JSON object"),
        ('{"id": "c", "text": "x y", "tokens": [[0, 9]]}', "lies outside the text"),
        ('{"id": "c"}', "The document has no text"),
    ],
)
def test_one_bad_line_and_nothing_is_loaded(corpus_file: Path, line: str, told: str) -> None:
    corpus_file.write_text(corpus_file.read_text() + "\n" + line)
    with pytest.raises(CannotLoad) as problem:
        load_corpus("Bad", corpus_file, find_schema("tac_kbp"))
    assert told in str(problem.value) and str(problem.value).endswith(NOTHING)
    assert "dropped" not in str(problem.value), "the whole file is refused"
    assert "is kept" not in str(problem.value)
    assert not Corpus.objects.exists() and not Document.objects.exists()


def test_a_name_is_taken_once(corpus_file: Path) -> None:
    schema = find_schema("tac_kbp")
    first = load_corpus("Mine", corpus_file, schema)
    with pytest.raises(CannotLoad, match="There is a corpus Mine already"):
        load_corpus("Mine", corpus_file, schema)
    assert Corpus.objects.get() == first


def test_mentions_come_with_their_canonical_mentions(corpus_file: Path, tmp_path: Path) -> None:
    mentions = tmp_path / "mentions.tsv"
    header = "doc_id\tbegin\tend\ttype\tentity\tgloss\tcanonical_begin\tcanonical_end\tlink\n"
    mentions.write_text(
        header
        + "a\t0\t10\tPER\t0\tMara Lindt\t0\t10\tMara_Lindt\na\t5\t10\tPER\t0\tLindt\t0\t10\t\n"
    )
    corpus = load_corpus("M", corpus_file, find_schema("tac_kbp"), mentions=mentions)
    row = Mention.objects.get(begin=5)
    assert (row.end, row.type, row.canonical_begin, row.canonical_end, row.link) == (
        10,
        "PER",
        0,
        10,
        "",
    )
    view = DatabaseCorpus(corpus).get("a")
    assert view is not None and view.mention_types == {(0, 10): "PER", (5, 10): "PER"}
    mentions.write_text(header + "a\t0\t10\tPER\t0\tMara Lund\t0\t10\t\n")
    with pytest.raises(CannotLoad, match="line 2: The text at this place is “Mara Lindt”"):
        load_corpus("Other", corpus_file, find_schema("tac_kbp"), mentions=mentions)
    assert Corpus.objects.count() == 1


def test_the_command_says_what_it_did_and_what_is_wrong(corpus_file: Path, tmp_path: Path) -> None:
    out = StringIO()
    call_command(
        "load_corpus", "Mine", str(corpus_file), schema="tac_kbp", stdout=out, skip_checks=True
    )
    assert out.getvalue() == (
        "Loaded 2 documents as Mine (mine); 0 of them are its development part.\n"
    )
    for name, file, schema in (
        ("N", tmp_path / "no", "tac_kbp"),
        ("N", corpus_file, "nothing.json"),
    ):
        with pytest.raises(CommandError, match="cannot be read"):
            call_command("load_corpus", name, str(file), schema=schema, skip_checks=True)


def test_a_file_that_names_parts_is_taken_at_its_word(tmp_path: Path) -> None:
    lines = [
        {"id": f"d{at}", "text": "Mara founded Nordwerk.", "part": "test"} for at in range(120)
    ]
    path = tmp_path / "corpus.jsonl"
    path.write_text("\n".join(map(json.dumps, lines)), "utf-8")
    assert load_corpus("C", path, find_schema("tac_kbp")).n_dev == 0
