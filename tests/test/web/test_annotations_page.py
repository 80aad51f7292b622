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
from kbpo.sampling.documents import import_annotations
from kbpo.sampling.documents.draw import draw_documents
from kbpo.sampling.models import AnnotationUpload, DocumentSample
from tests.conftest import Toy
from tests.test.sampling.test_annotations import files

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
    assert import_annotations.tick() == 1
    row = AnnotationUpload.objects.get()
    assert row.status == "tried" and row.found["documents"] == 2
    assert not Label.objects.exists() and not DocumentSample.objects.exists()
    change = reverse("desk-annotations", args=["toy"])
    form = {"pk": row.pk}
    assert as_user("Rosa").post(change, form | {"verb": "load"}).status_code == 403
    for _ in range(2):
        admin.post(change, form | {"verb": "load"})
    assert import_annotations.tick() == 1 and import_annotations.tick() == 0
    drawn = DocumentSample.objects.values_list("document_id", flat=True)
    assert set(drawn) == set(draw_documents(toy.track, 2, row.seed))
    row.refresh_from_db()
    assert (row.status, row.found["annotated in all"]) == ("loaded", 2)
    assert not [path for path in (tmp_path / "media").rglob("*") if path.is_file()]
    page = admin.get(reverse("desk-annotations", args=["toy"])).content.decode()
    assert "annotated in all: 2" in page


def test_what_can_work_is_chosen_first_and_wrong_lines_are_named_whatever_is_chosen(
    toy: Toy, as_user: As, files: Files
) -> None:
    admin, page = as_user("Admin"), reverse("desk-annotations", args=["toy"])
    assert '<option value="all" selected' in admin.get(page).content.decode()
    files[0].write_text(files[0].read_text() + "d1\t0\t4\tper:parents\t5\t999\t0\t9\n")
    send(admin, files, which="drawn", size="")
    import_annotations.tick()
    assert "my gold.tsv, line 6: The span 5-999" in AnnotationUpload.objects.get().reason
    DocumentSample.objects.create(
        track=toy.track, document=toy.corpus.documents.first(), position=1, probability=1.0
    )
    assert '<option value="drawn" selected' in admin.get(page).content.decode()
