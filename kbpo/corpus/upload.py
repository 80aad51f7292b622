"""Processes files that admins upload by browser: first a trial that stores nothing, then loading
after a click. Both run in the pipeline, whatever the size of the files. This module loads corpora
of documents; `kbpo.tracks.texts.store` loads inputs of systems that write texts, and
`kbpo.sampling.documents.import_annotations` annotations of documents.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from pathlib import Path
from typing import Any, TypeVar, cast

from django.db import transaction

from formats.messages import FormatError
from formats.schema import SHIPPED, Schema, load_schema
from kbpo.corpus.load import DEV_SHARE, CannotLoad, find_schema, load_corpus
from kbpo.corpus.models import Corpus, CorpusUpload, Mention, Upload
from kbpo.queue import OwnersFault, handle_rows, wake_step

Found = dict[str, int]
Row = TypeVar("Row", bound=Upload)


class _TakenBack(Exception):
    """Raised to end a trial, so that its transaction is rolled back."""


def shipped_schemas() -> list[str]:
    """Return the names of the schemas that ship with the service."""
    return sorted(path.stem for path in SHIPPED.glob("*.json"))


def tick() -> int:
    """Check uploaded corpora of documents by a trial load, or load those that an admin confirmed;
    return how many.
    """
    return process_uploads(
        CorpusUpload, _load_upload, filters={"what": CorpusUpload.What.DOCUMENTS}
    )


def process_uploads(
    model: type[Row], load: Callable[[Row], Found], *, filters: dict[str, Any] | None = None
) -> int:
    """Check the pending uploads by a trial load, or load the confirmed ones, and return how many.
    `load` loads one and returns its counts; `filters` selects the uploads of the caller.
    """

    def validate_upload(row: Row) -> None:
        counts: Found = {}
        try:
            with transaction.atomic():
                counts = _load_or_explain(row, load)
                raise _TakenBack
        except _TakenBack:
            row.move("tried", _with_original_names(row, "\n".join(row.notes)), found=counts)

    def load_upload(row: Row) -> None:
        counts = _load_or_explain(row, load)
        row.move("loaded", _with_original_names(row, "\n".join(row.notes)), found=counts)
        transaction.on_commit(lambda: delete_upload_files(row))

    return handle_rows(model, "received", validate_upload, filters=filters) + handle_rows(
        model, "wanted", load_upload, filters=filters
    )


def _load_or_explain(row: Row, load: Callable[[Row], Found]) -> Found:
    """Load an upload and return its counts. Raises OwnersFault with the error, its line and its
    file, under the file's original name.
    """
    try:
        return load(row)
    except (CannotLoad, FormatError) as problem:
        sentence = str(problem).replace("or say --replace", "or remove that one on the server")
        raise OwnersFault(_with_original_names(row, sentence)) from None
    except OSError:
        raise OwnersFault("The file is not kept any more: send it again.") from None


def _with_original_names(upload: Upload, sentence: str) -> str:
    """Return a sentence with the original names of files."""
    for field, name in upload.FILES:
        if getattr(upload, field):
            sentence = sentence.replace(
                Path(getattr(upload, field).name).name, getattr(upload, name)
            )
    return sentence


def _load_upload(upload: CorpusUpload) -> Found:
    schema: Schema = (
        load_schema(upload.schema_file.path) if upload.schema_file else find_schema(upload.schema)
    )
    mentions = Path(upload.mentions.path) if upload.mentions else None
    corpus = load_corpus(
        upload.name,
        Path(upload.file.path),
        schema,
        mentions=mentions,
        dev_share=DEV_SHARE if upload.dev_share is None else upload.dev_share,
        notes=upload.notes,
    )
    store_corpus_of_upload(upload, corpus)
    counts = {
        "documents": corpus.n_documents,
        "of the development part": corpus.n_dev,
        "relations": len(schema.predicates),
        "entity types": len(schema.as_dict()["entity_types"]),
    }
    if mentions is not None:
        counts["mentions"] = Mention.objects.filter(document__corpus=corpus).count()
    return counts


def store_corpus_of_upload(upload: CorpusUpload, corpus: Corpus) -> None:
    """Store the loaded corpus in the row of its upload."""
    if upload.status == "wanted":
        upload.corpus = corpus
        upload.save(update_fields=["corpus"])


@transaction.atomic
def request_load(model: type[Row], pk: int) -> Row | None:
    """Mark an upload to be loaded, and return it; None if its trial is not finished, or somebody
    else was faster.
    """
    row = _lock_idle(model, pk, ["tried"])
    if row is not None:
        row.move("wanted")
        wake_step(row.step)
    return row


@transaction.atomic
def discard_upload(model: type[Row], pk: int) -> Row | None:
    """Discard an upload with its files, and return it; None if it is being processed or is loaded
    already.
    """
    row = _lock_idle(model, pk, ["received", "tried", "failed"])
    if row is not None:
        row.delete()
        transaction.on_commit(lambda: delete_upload_files(row))
    return row


def _lock_idle(model: type[Row], pk: int, statuses: Collection[str]) -> Row | None:
    """Lock an upload and return it; None in another status, or while the pipeline handles it, since
    that takes longer than a page can wait.
    """
    uploads = model._default_manager.select_for_update(skip_locked=True, of=("self",))
    return cast("Row | None", uploads.filter(pk=pk, status__in=statuses).first())


def delete_upload_files(upload: Upload) -> None:
    """Delete the files of an upload."""
    for field, _ in upload.FILES:
        file = getattr(upload, field)
        if file:
            file.storage.delete(file.name)
