"""Loads inputs as a corpus of their own: whole, or not at all."""

from __future__ import annotations

from pathlib import Path

from django.db import IntegrityError, transaction
from django.utils.text import slugify

from formats.generation import read_inputs
from formats.limits import Limits
from kbpo.corpus.models import Corpus
from kbpo.tracks.generation.models import Input


class CannotLoad(Exception):
    """Inputs that were not loaded; the text is a sentence."""


def load_inputs(name: str, path: Path) -> Corpus:
    """The new corpus. Raises CannotLoad, or FormatError with the line that is wrong; then nothing
    is stored.
    """
    slug = slugify(name)
    if not slug:
        raise CannotLoad("A corpus needs a name with letters or digits.")
    try:
        inputs = read_inputs(path, Limits())
    except OSError as problem:
        raise CannotLoad(f"{path} cannot be read: {problem.strerror}.") from problem
    try:
        with transaction.atomic():
            corpus = Corpus.objects.create(name=name, slug=slug, schema={})
            Input.objects.bulk_create(
                (
                    Input(
                        corpus=corpus,
                        key=one.key,
                        source=one.source,
                        question=one.question,
                        passages=list(one.passages),
                        references=list(one.references),
                    )
                    for one in inputs
                ),
                batch_size=1000,
            )
    except IntegrityError as problem:
        raise CannotLoad(f"There is a corpus {name} already. Choose another name.") from problem
    return corpus
