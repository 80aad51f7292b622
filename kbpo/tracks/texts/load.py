"""Loads inputs as a corpus of their own: whole, or not at all."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from django.db import IntegrityError, transaction

from formats.inputs import InputRecord, read_inputs
from formats.limits import Limits
from formats.messages import Report
from formats.opening import open_text
from kbpo.corpus.load import CannotLoad, refuse_errors, warnings_in
from kbpo.corpus.models import Corpus, CorpusUpload, Part
from kbpo.corpus.parts import development_part
from kbpo.corpus.slugs import slug_of
from kbpo.corpus.upload import Found, note_corpus, process_uploads
from kbpo.tracks.texts.models import Input

DEV_SHARE, MOST_DEV = 0.1, 50
"""The share of inputs that become the development part, and how many at most"""


def tick() -> int:
    """Return how many uploads of inputs were tried or loaded."""
    return process_uploads(CorpusUpload, _load, where={"what": CorpusUpload.What.INPUTS})


def _load(row: CorpusUpload) -> Found:
    share = DEV_SHARE if row.dev_share is None else row.dev_share
    corpus = load_inputs(row.name, Path(row.file.path), row.notes, dev_share=share)
    note_corpus(row, corpus)
    inputs = Input.objects.filter(corpus=corpus)
    return {
        "inputs": inputs.count(),
        "of the development part": inputs.filter(part=Part.DEV).count(),
        "with a reference": inputs.exclude(references=[]).count(),
    }


def load_inputs(
    name: str, path: Path, notes: list[str] | None = None, *, dev_share: float = DEV_SHARE
) -> Corpus:
    """Return the new corpus; `notes` takes what is ignored, with its line. Where no input names its
    part, `dev_share` of them become the development part. Raises CannotLoad with the lines that are
    wrong; then nothing is stored.
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
            dev = {record.input_id for record in inputs if record.part == Part.DEV}
            if not any(record.part for record in inputs):
                dev = _draw_development_keys(inputs, corpus.hash_key, dev_share)
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
                        part=Part.DEV if input_record.input_id in dev else Part.TEST,
                    )
                    for input_record in inputs
                ),
                batch_size=1000,
            )
    except IntegrityError as problem:
        raise CannotLoad(f"There is a corpus {name} already. Choose another name.") from problem
    return corpus


def _draw_development_keys(inputs: Sequence[InputRecord], key: str, share: float) -> set[str]:
    """Return the keys of the development part: inputs with one source, passage or cluster lie
    together.
    """
    group_of: dict[object, list[str]] = {}
    for record in inputs:
        shared = record.cluster or record.source or tuple(record.passages) or record.input_id
        group_of.setdefault(shared, []).append(record.input_id)
    return development_part(list(group_of.values()), key, share=share, least=1, most=MOST_DEV)
