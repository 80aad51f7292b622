"""Reads exhaustive annotation of a corpus's documents from tables: mentions, and the relations that
hold.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from formats.annotations import GoldRecord, MentionRecord, read_gold, read_mentions
from formats.limits import Limits
from formats.messages import Report
from formats.opening import open_text
from formats.schema import load_schema
from kbpo.corpus.load import CannotLoad, refuse_errors
from kbpo.corpus.lookup import DatabaseCorpus
from kbpo.corpus.models import Corpus

__all__ = ["CannotLoad", "GoldRecord", "MentionRecord", "gold_in", "mentions_in"]


def mentions_in(path: Path, corpus: Corpus, documents: DatabaseCorpus) -> Iterator[MentionRecord]:
    """Return the mentions of a file, streamed. Raises CannotLoad at its end if it has errors: then
    none may be kept.
    """
    report = Report()
    _readable(path)
    yield from read_mentions(
        open_text(path, Limits(), report), documents, load_schema(corpus.schema), report
    )
    refuse_errors(report, path)


def gold_in(path: Path, corpus: Corpus, documents: DatabaseCorpus) -> Iterator[GoldRecord]:
    """Return the relations of a file, streamed, in canonical direction. Raises CannotLoad at its
    end if it has errors.
    """
    report = Report()
    _readable(path)
    yield from read_gold(
        open_text(path, Limits(), report), documents, load_schema(corpus.schema), report
    )
    refuse_errors(report, path)


def _readable(path: Path) -> None:
    try:
        path.open("rb").close()
    except OSError as error:
        raise CannotLoad(f"{path} cannot be read: {error.strerror}.") from error
