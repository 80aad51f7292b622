"""A corpus is uploaded in the browser: tried with nothing kept, its errors named by line,
loaded once.
"""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.db import connection
from django.test import Client
from django.urls import reverse

from kbpo.accounts.models import Audit
from kbpo.corpus import upload
from kbpo.corpus.models import Corpus, CorpusUpload, Document
from kbpo.tracks.models import Track
from kbpo.tracks.texts import store
from kbpo.tracks.texts.models import Input
from kbpo.web.desk.tracks import track_checklist
from tests.conftest import Toy

As = Callable[[str], Client]
pytestmark = pytest.mark.django_db(transaction=True)
LINES = [
    {"id": "n1", "text": "Mara Lindt lives in Oslo."},
    {"id": "n2", "text": "Ola Berg works for Nordwerk."},
]
SCHEMA = {
    "entity_types": [{"name": "PER", "description": "person"}],
    "predicates": [
        {
            "name": "per:parents",
            "label": "is a child of",
            "template": "{subject} is a child of {object}",
            "types": [["PER", "PER"]],
            "inverse": None,
        }
    ],
}


@pytest.fixture(autouse=True)
def own_files(settings: Any, tmp_path: Path) -> None:
    settings.MEDIA_ROOT = str(tmp_path)


def packed(lines: list[dict[str, Any]]) -> bytes:
    return gzip.compress("".join(json.dumps(line) + "\n" for line in lines).encode(), mtime=0)


def send(client: Client, body: bytes, name: str = "News", **more: Any) -> int:
    said = {"name": name, "what": "documents", "schema": "tac_kbp"}
    said |= {"file": SimpleUploadedFile("my news.gz", body)}
    return client.post(reverse("desk-corpora"), said | more).status_code


def files(tmp_path: Path) -> list[Path]:
    return [path for path in tmp_path.rglob("*") if path.is_file()]


def test_a_corpus_is_tried_then_loaded_with_its_own_schema(
    toy: Toy, as_user: As, tmp_path: Path
) -> None:
    admin = as_user("Admin")
    schema = SimpleUploadedFile("own.json", json.dumps(SCHEMA).encode())
    assert send(admin, packed(LINES), schema_file=schema) == 302
    row = CorpusUpload.objects.get()
    change = reverse("desk-corpora")
    form = {"pk": row.pk}
    admin.post(change, form | {"verb": "load"})
    assert CorpusUpload.objects.get().status == "received", "not before it was tried"
    assert upload.tick() == 1
    assert not Corpus.objects.filter(name="News").exists(), "a trial keeps nothing"
    assert not Document.objects.filter(key="n1").exists()
    page = admin.get(reverse("desk-corpora")).content.decode()
    assert "documents: 2, relations: 1, entity types: 1" in page and "Load it" in page
    assert '"HW-0002"' in page and f"{reverse('help')}#corpus" in page
    said = admin.post(change, form | {"verb": "load"}, follow=True).content.decode()
    assert "News: loading now." in said
    admin.post(change, form | {"verb": "load"})  # a second click
    assert upload.tick() == 1 and upload.tick() == 0
    corpus = Corpus.objects.get(name="News")
    assert corpus.n_documents == 2 and corpus.predicates.get().name == "per:parents"
    assert not files(tmp_path), "what is loaded needs no file any more"
    page = admin.get(reverse("desk-corpora")).content.decode()
    assert f"?corpus={corpus.slug}" in page
    assert Audit.objects.filter(what="load corpus").count() == 1


MENTIONS = """doc_id\tbegin\tend\ttype\tentity\tgloss\tcanonical_begin\tcanonical_end
n1\t0\t10\tPER\tMara\tMara Lindt\t0\t10
n2\t0\t8\tPER\tOla\tOla Berg\t0\t8
"""


def load(admin: Client) -> CorpusUpload:
    """The newest upload, after an admin clicked and the pipeline came round."""
    row = CorpusUpload.objects.latest("pk")
    admin.post(reverse("desk-corpora"), {"pk": row.pk, "verb": "load"})
    upload.tick()
    store.tick()
    row.refresh_from_db()
    return row


def test_mentions_come_with_their_documents_and_can_be_downloaded(
    toy: Toy, as_user: As, tmp_path: Path
) -> None:
    admin = as_user("Admin")
    mentions = SimpleUploadedFile("my names.tsv", MENTIONS.encode())
    assert send(admin, packed(LINES), mentions=mentions) == 302
    assert upload.tick() == 1
    row = CorpusUpload.objects.get()
    assert row.status == "tried" and row.found["mentions"] == 2
    row = load(admin)
    assert row.status == "loaded" and row.corpus is not None and row.corpus.has_mentions
    assert not files(tmp_path)
    Track.objects.create(corpus=row.corpus, name="Names", slug="names", status="open")
    page = admin.get(reverse("track", args=["names"])).content.decode()
    assert "Mentions" in page
    wrong = MENTIONS.replace("n2\t0\t8", "n2\t0\t800")
    again = SimpleUploadedFile("my names.tsv", wrong.encode())
    assert send(admin, packed(LINES), "Other news", mentions=again) == 302
    upload.tick()
    row = CorpusUpload.objects.latest("pk")
    assert row.status == "failed" and "my names.tsv, line 3" in row.reason


INPUTS = [
    {"input_id": "a1", "source": "Nordwerk opened a yard.", "references": ["A yard opened."]},
    {"input_id": "a2", "source": "Mara Lindt lives in Oslo."},
]


def test_inputs_are_tried_and_loaded_from_the_page_that_the_checklist_leads_to(
    toy: Toy, as_user: As, tmp_path: Path
) -> None:
    admin = as_user("Admin")
    assert send(admin, packed(INPUTS), "Articles", what="inputs") == 302
    assert upload.tick() == 0, "these are no documents"
    assert store.tick() == 1
    assert not Corpus.objects.filter(name="Articles").exists(), "a trial keeps nothing"
    page = admin.get(reverse("desk-corpora")).content.decode()
    assert "inputs: 2, with a reference: 1" in page
    row = load(admin)
    assert row.status == "loaded" and row.corpus is not None
    assert Input.objects.filter(corpus=row.corpus).count() == 2 and not files(tmp_path)
    form = admin.get(f"{reverse('desk-track-new')}?corpus={row.corpus.slug}")
    assert form.context["kind"] == "generation" and "2 inputs" in form.content.decode()
    track = Track.objects.create(
        corpus=row.corpus, name="Summaries", slug="summaries", kind="generation"
    )
    (first, *_) = track_checklist(track)
    assert first.done and first.url == reverse("desk-corpora")


@pytest.mark.parametrize(
    ("body", "says"),
    [
        (packed([*LINES, {"id": "n1", "text": "Twice."}]), "my news.gz, line 3"),
        (b"no line of ours\n", "my news.gz, line 1"),
        (packed([]), "The file is empty"),
    ],
)
def test_what_is_wrong_is_named_by_the_name_and_line_of_ones_own_file(
    toy: Toy, as_user: As, body: bytes, says: str, tmp_path: Path
) -> None:
    admin = as_user("Admin")
    assert send(admin, body) == 302
    upload.tick()
    row = CorpusUpload.objects.get()
    assert row.status == "failed" and says in row.reason
    assert says in admin.get(reverse("desk-corpora")).content.decode()
    assert not Corpus.objects.filter(name="News").exists()
    admin.post(reverse("desk-corpora"), {"pk": row.pk, "verb": "drop"})
    assert not CorpusUpload.objects.exists() and not files(tmp_path)


def test_a_bad_schema_or_name_is_refused(toy: Toy, as_user: As) -> None:
    admin = as_user("Admin")
    for name, more in (
        ("???", {}),
        (toy.track.corpus.name.upper(), {}),
        ("News", {"schema_file": SimpleUploadedFile("own.exe", b"{}")}),
        ("News", {"schema": "no_such", "schema_file": ""}),
    ):
        assert send(admin, packed(LINES), name, **more) == 422, name
    assert not CorpusUpload.objects.exists()
    send(admin, packed(LINES), schema_file=SimpleUploadedFile("own.json", b"[1]"))
    upload.tick()
    row = CorpusUpload.objects.get()
    assert row.status == "failed" and "entity_types" in row.reason


def test_what_is_being_tried_is_neither_loaded_nor_dropped_and_no_page_waits_for_it(
    toy: Toy, as_user: As
) -> None:
    admin = as_user("Admin")
    send(admin, packed(LINES))
    row = CorpusUpload.objects.get()
    pipeline = connection.copy()
    with pipeline.cursor() as cursor:
        cursor.execute("BEGIN")
        cursor.execute("SELECT id FROM corpus_corpusupload FOR NO KEY UPDATE")
        for verb in ("load", "drop"):
            change = reverse("desk-corpora")
            form = {"pk": row.pk}
            page = admin.post(change, form | {"verb": verb}, follow=True)
            assert page.status_code == 200 and "being checked" in page.content.decode()
    pipeline.close()
    assert CorpusUpload.objects.get().status == "received"
