"""Loads inputs as a corpus of their own: whole, or not at all."""

from __future__ import annotations

from pathlib import Path

from django.db import IntegrityError, transaction

from formats.inputs import read_inputs
from formats.limits import Limits
from formats.messages import Report
from formats.opening import open_text
from kbpo.corpus.load import CannotLoad, refuse_errors, warnings_in
from kbpo.corpus.models import Corpus, CorpusUpload
from kbpo.corpus.slugs import slug_of
from kbpo.corpus.upload import Found, move_on, note_corpus
from kbpo.tracks.generation.models import Input


def tick() -> int:
    """Return how many uploads of inputs were tried or loaded."""
    return move_on(CorpusUpload, _load, where={"what": CorpusUpload.What.INPUTS})


def _load(row: CorpusUpload) -> Found:
    corpus = load_inputs(row.name, Path(row.file.path), row.notes)
    note_corpus(row, corpus)
    inputs = Input.objects.filter(corpus=corpus)
    return {
        "inputs": inputs.count(),
        "with a reference": inputs.exclude(references=[]).count(),
    }


def load_inputs(name: str, path: Path, notes: list[str] | None = None) -> Corpus:
    """The new corpus; `notes` takes what is ignored, with its line. Raises CannotLoad with the
    lines that are wrong; then nothing is stored.
    """
    slug = slug_of(name, Corpus.objects.all(), "corpus")
    if not slug:
        raise CannotLoad("A corpus needs a name with letters or digits.")
    report, limits = Report(), Limits()
    try:
        lines = open_text(path, limits.for_corpus(), report)
        inputs = list(read_inputs(lines, limits, report))
    except OSError as problem:
        raise CannotLoad(f"{path} cannot be read: {problem.strerror}.") from problem
    refuse_errors(report, path)
    if notes is not None:
        notes += warnings_in(report, path)
    if not inputs:
        raise CannotLoad(f"Nothing was loaded: {path.name} has no input.")
    try:
        with transaction.atomic():
            corpus = Corpus.objects.create(name=name, slug=slug, schema={})
            Input.objects.bulk_create(
                (
                    Input(
                        corpus=corpus,
                        key=input_record.input_id,
                        source=input_record.source,
                        question=input_record.question,
                        passages=list(input_record.passages),
                        references=list(input_record.references),
                        prompt=input_record.prompt,
                        split=input_record.split,
                    )
                    for input_record in inputs
                ),
                batch_size=1000,
            )
    except IntegrityError as problem:
        raise CannotLoad(f"There is a corpus {name} already. Choose another name.") from problem
    return corpus
