"""Annotations of whole documents are uploaded in the browser: tried with nothing kept, then loaded
as they were tried.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import Client
from django.urls import reverse

from kbpo.instances.models import Label
from kbpo.sampling.documents import upload
from kbpo.sampling.documents.draw import draw_documents
from kbpo.sampling.models import AnnotationUpload, DocumentSample
from tests.conftest import Toy
from tests.sampling.test_annotations import files

As = Callable[[str], Client]
Files = tuple[Path, Path]
pytestmark = pytest.mark.django_db(transaction=True)
__all__ = ["files"]


@pytest.fixture(autouse=True)
def own_files(settings: Any, tmp_path: Path) -> None:
    settings.MEDIA_ROOT = str(tmp_path / "media")


def send(client: Client, files: Files, **said: Any) -> int:
    gold, mentions = (SimpleUploadedFile(f"my {path.name}", path.read_bytes()) for path in files)
    sent = {"which": "sample", "size": "2", "file": gold, "mentions": mentions} | said
    return client.post(reverse("desk-annotations", args=["toy"]), sent).status_code


def test_what_was_tried_is_loaded_the_same_documents_and_once(
    toy: Toy, as_user: As, files: Files, tmp_path: Path
) -> None:
    admin = as_user("Admin")
    assert send(admin, files) == 302
    assert upload.tick() == 1
    row = AnnotationUpload.objects.get()
    assert row.status == "tried" and row.found["documents"] == 2
    assert not Label.objects.exists() and not DocumentSample.objects.exists()
    change = reverse("desk-annotations", args=["toy"])
    form = {"pk": row.pk}
    assert as_user("Rosa").post(change, form | {"verb": "load"}).status_code == 403
    for _ in range(2):
        admin.post(change, form | {"verb": "load"})
    assert upload.tick() == 1 and upload.tick() == 0
    drawn = DocumentSample.objects.values_list("document_id", flat=True)
    assert set(drawn) == set(draw_documents(toy.track, 2, row.seed))
    row.refresh_from_db()
    assert (row.status, row.found["annotated in all"]) == ("loaded", 2)
    assert not [path for path in (tmp_path / "media").rglob("*") if path.is_file()]
    page = admin.get(reverse("desk-annotations", args=["toy"])).content.decode()
    assert "annotated in all: 2" in page


def test_a_bad_line_is_named_by_its_own_file(toy: Toy, as_user: As, files: Files) -> None:
    files[0].write_text(files[0].read_text() + "d1\t0\t4\tper:parents\t5\t999\t0\t9\n")
    send(as_user("Admin"), files, which="all", size="")
    upload.tick()
    row = AnnotationUpload.objects.get()
    assert row.status == "failed" and "my gold.tsv, line 6: The span 5-999" in row.reason
    assert not Label.objects.exists() and not DocumentSample.objects.exists()


def test_what_can_work_is_chosen_first_and_wrong_lines_are_named_whatever_is_chosen(
    toy: Toy, as_user: As, files: Files
) -> None:
    admin, page = as_user("Admin"), reverse("desk-annotations", args=["toy"])
    assert '<option value="all" selected' in admin.get(page).content.decode()
    files[0].write_text(files[0].read_text() + "d1\t0\t4\tper:parents\t5\t999\t0\t9\n")
    send(admin, files, which="drawn", size="")
    upload.tick()
    assert "my gold.tsv, line 6: The span 5-999" in AnnotationUpload.objects.get().reason
    DocumentSample.objects.create(
        track=toy.track, document=toy.corpus.documents.first(), position=1, probability=1.0
    )
    assert '<option value="drawn" selected' in admin.get(page).content.decode()


def test_documents_that_cannot_be_meant_are_refused_in_words(
    toy: Toy, as_user: As, files: Files
) -> None:
    admin = as_user("Admin")
    assert send(admin, files, size="") == 422
    send(admin, files, size="99")
    send(admin, files, which="drawn")
    upload.tick()
    said = " ".join(AnnotationUpload.objects.values_list("reason", flat=True))
    assert "99 cannot be drawn" in said and "No document was drawn and waits" in said
    assert set(AnnotationUpload.objects.values_list("status", flat=True)) == {"failed"}


def test_a_document_that_the_files_leave_out_is_told_before_it_is_loaded(
    toy: Toy, as_user: As, files: Files
) -> None:
    admin, address = as_user("Admin"), reverse("desk-annotations", args=["toy"])
    for path in files:
        lines = path.read_text().splitlines(keepends=True)
        path.write_text("".join([lines[0], *(line for line in lines if line.startswith("d1"))]))
    send(admin, files, which="all", size="", closed="on")
    upload.tick()
    page = admin.get(address).content.decode()
    left_out = toy.track.corpus.n_documents - 1
    assert f"documents in which nothing is marked: {left_out}" in page
    assert "Do the files cover all of these documents?" in page
    assert "my gold.tsv, my mentions.tsv" in page
    assert "of every document of the corpus; what is not marked is false" in page


def test_mentions_of_relations_that_are_not_in_the_other_file_are_told_before_it_is_loaded(
    toy: Toy, as_user: As, files: Files
) -> None:
    admin, address = as_user("Admin"), reverse("desk-annotations", args=["toy"])
    send(admin, files, which="all", size="")
    upload.tick()
    page = admin.get(address).content.decode()
    assert "mentions of relations that the file of mentions lacks: 5" in page
    assert "first line of a relation with such a mention: 2" in page
    assert "Is the file of mentions whole?" in page


def test_the_checklist_leads_to_it(toy: Toy, as_user: As) -> None:
    page = as_user("Admin").get(reverse("desk-track", args=["toy"])).content.decode()
    assert f'href="{reverse("desk-annotations", args=["toy"])}"' in page
