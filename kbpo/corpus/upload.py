"""Corpora that come through the browser: read as a trial first, which keeps nothing, then loaded by
a click; both in the pipeline, whatever their size.
"""

from __future__ import annotations

from pathlib import Path

from django.db import transaction

from formats.messages import FormatError
from formats.schema import SHIPPED, Schema, load_schema
from kbpo.corpus.load import CannotLoad, find_schema, load_corpus
from kbpo.corpus.models import Corpus, CorpusUpload
from kbpo.queue import OwnersFault, nudge, work


class _TakenBack(Exception):
    """Ends a trial: what it loaded is gone."""


def shipped() -> list[str]:
    """Return the names of the schemas that ship with us."""
    return sorted(path.stem for path in SHIPPED.glob("*.json"))


def tick() -> int:
    """Return how many uploads were tried or loaded."""
    tried = work(CorpusUpload, "received", _try)
    return tried + work(CorpusUpload, "wanted", _load)


def _try(row: CorpusUpload) -> None:
    """Loads the corpus and takes it back; keeps what was found."""
    found: dict[str, int] = {}
    try:
        with transaction.atomic():
            corpus = _loaded(row)
            found = {
                "documents": corpus.n_documents,
                "predicates": len(corpus.schema.get("predicates", ())),
                "entity_types": len(corpus.schema.get("entity_types", ())),
            }
            raise _TakenBack
    except _TakenBack:
        row.move("tried", found=found)


def _load(row: CorpusUpload) -> None:
    corpus = _loaded(row)
    row.move("loaded", corpus=corpus)
    transaction.on_commit(lambda: forget(row))


def _loaded(row: CorpusUpload) -> Corpus:
    """Return the corpus. Raises OwnersFault with what is wrong in which line."""
    try:
        return load_corpus(row.name, Path(row.file.path), _schema(row))
    except (CannotLoad, FormatError) as problem:
        names = {Path(row.file.name).name: row.file_name}
        if row.schema_file:
            names[Path(row.schema_file.name).name] = "the schema"
        said = str(problem).replace("or say --replace", "or remove that one on the server")
        for kept, given in names.items():
            said = said.replace(kept, given)
        raise OwnersFault(said) from None
    except OSError:
        raise OwnersFault("The file is not kept any more: send it again.") from None


def _schema(row: CorpusUpload) -> Schema:
    return load_schema(row.schema_file.path) if row.schema_file else find_schema(row.schema)


@transaction.atomic
def want(pk: int) -> CorpusUpload | None:
    """Return the upload, to be loaded now; None if its trial is not done, or somebody was quicker."""
    row = CorpusUpload.objects.select_for_update().filter(pk=pk, status="tried").first()
    if row is not None:
        row.move("wanted")
        nudge("load")
    return row


@transaction.atomic
def discard(pk: int) -> CorpusUpload | None:
    """Return the upload, which is dropped with its files; None if it is being loaded or is loaded."""
    rows = CorpusUpload.objects.select_for_update().exclude(status__in=["wanted", "loaded"])
    row = rows.filter(pk=pk).first()
    if row is not None:
        row.delete()
        transaction.on_commit(lambda: forget(row))
    return row


def forget(row: CorpusUpload) -> None:
    """Nothing; the files of an upload are deleted, which nobody needs any more."""
    for file in (row.file, row.schema_file):
        if file:
            file.storage.delete(file.name)
