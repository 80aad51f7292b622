"""Loads a corpus: its documents, the predicates of its schema and its mentions if there are any;
all or nothing.
"""

from __future__ import annotations

import hashlib
import hmac
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from django.db import models, transaction

from formats.annotations import MentionRecord, read_mentions
from formats.corpus import DocumentRecord, read_corpus
from formats.messages import Message, Report
from formats.opening import Limits, open_text
from formats.schema import SHIPPED, Schema, load_schema
from kbpo.corpus.lookup import DatabaseCorpus
from kbpo.corpus.models import Corpus, Document, Part, Predicate, unique_slug
from kbpo.corpus.sql import copy_rows

DEV_SHARE, LEAST_DEV, MOST_DEV = 0.2, 5, 100
"""Share of documents in the development part, and its least and greatest number of documents"""
DOCUMENT_COLUMNS = (
    "corpus_id",
    "key",
    "title",
    "date",
    "part",
    "text",
    "token_begin",
    "token_end",
    "sentence_begin",
    "sentence_end",
)
MENTION_COLUMNS = (
    "document_id",
    "begin",
    '"end"',
    "type",
    "canonical_begin",
    "canonical_end",
    "link",
    "entity",
)
CHUNK_OF_DOCUMENTS = 200
SHOWN = 20
DROPPED = re.compile(
    r" (?:(?:It|The line|The relation|The document) is dropped|The first document is kept)\.$"
)
"""The end of a reader's sentence about a dropped line of a run"""
NOTHING = "Nothing was loaded. Correct or remove these lines, and send the file again."


class CannotLoad(Exception):
    """Raised for a corpus that was not loaded; the text explains why, with line numbers."""


def find_schema(name: str) -> Schema:
    """Return the shipped schema with this name (tac_kbp, docred), otherwise the schema in that
    file. Raises FormatError.
    """
    shipped = SHIPPED / f"{name}.json"
    return load_schema(shipped if name.isidentifier() and shipped.exists() else Path(name))


@transaction.atomic
def load_corpus(
    name: str,
    path: Path,
    schema: Schema,
    *,
    mentions: Path | None = None,
    dev_share: float = DEV_SHARE,
    notes: list[str] | None = None,
) -> Corpus:
    """Load a corpus completely and return it; sentences about ignored parts are added to `notes`.
    If no document states its part, `dev_share` of them become the development part. Raises
    CannotLoad, in which case nothing has changed.
    """
    notes = [] if notes is None else notes
    notes += schema.notes
    name = name.strip()
    slug = unique_slug(name, Corpus.objects.exclude(name=name), "corpus")
    if not slug:
        raise CannotLoad("A corpus needs a name with letters or digits.")
    same = Corpus.objects.filter(models.Q(name=name) | models.Q(slug=slug)).first()
    if same is not None:
        raise CannotLoad(f"There is a corpus {same.name} already. Choose another name.")
    corpus = Corpus.objects.create(
        name=name, slug=slug, schema=schema.as_dict(), digest=_file_digest(path)
    )
    Predicate.objects.bulk_create(
        Predicate(corpus=corpus, name=predicate, position=position)
        for position, predicate in enumerate(schema.predicates)
    )
    report, limits = Report(), Limits().for_corpus()
    names_parts = False

    def document_rows() -> Iterator[tuple[Any, ...]]:
        nonlocal names_parts
        for record in read_corpus(open_text(path, limits, report), limits, report):
            names_parts |= bool(record.part)
            yield _document_row(corpus, record)

    corpus.n_documents = copy_rows(
        "corpus_document", DOCUMENT_COLUMNS, document_rows(), chunk=CHUNK_OF_DOCUMENTS
    )
    refuse_errors(report, path)
    notes += first_warnings(report, path)
    if not corpus.n_documents:
        raise CannotLoad(f"{path.name} holds no document.")
    if not names_parts:
        _draw_development_part(corpus, dev_share)
    corpus.n_dev = Document.objects.filter(corpus=corpus, part=Part.DEV).count()
    corpus.save(update_fields=["n_documents", "n_dev"])
    if mentions is not None:
        load_mentions(corpus, mentions, schema, notes)
    return corpus


@transaction.atomic
def load_mentions(corpus: Corpus, path: Path, schema: Schema, notes: list[str]) -> int:
    """Load mentions of a corpus and return their number; sentences about ignored parts are added to
    `notes`. Raises CannotLoad, in which case nothing has changed.
    """
    report, lookup = Report(), DatabaseCorpus(corpus)
    records = read_mentions(open_text(path, Limits(), report), lookup, schema, report)
    number = copy_rows(
        "corpus_mention", MENTION_COLUMNS, (_mention_row(lookup, record) for record in records)
    )
    refuse_errors(report, path)
    notes += first_warnings(report, path)
    return number


def refuse_errors(report: Report, path: Path) -> None:
    """Raise CannotLoad with the first errors of a file, if it has any."""
    if not report.errors:
        return
    raise CannotLoad("\n".join([*_first_messages(report, path, "error"), NOTHING]))


def first_warnings(report: Report, path: Path) -> list[str]:
    """Return the first warnings of a file, worded for corpora."""
    return _first_messages(report, path, "warning")


def _first_messages(report: Report, path: Path, severity: str) -> list[str]:
    messages = [message for message in report if message.severity == severity]
    lines = [_message_sentence(message, path) for message in messages[:SHOWN]]
    if report.by_severity[severity] > len(lines):
        lines.append(f"… and {report.by_severity[severity] - len(lines):,} more {severity}s.")
    return lines


def _message_sentence(message: Message, path: Path) -> str:
    """Return a message worded for corpora: a corpus, unlike a run, is not used without its bad
    lines.
    """
    where = f"{path.name}, line {message.line}" if message.line else path.name
    return f"{where}: {DROPPED.sub('', message.text)}"


def _document_row(corpus: Corpus, record: DocumentRecord) -> tuple[Any, ...]:
    tokens, sentences = record.tokens, record.sentences
    return (
        corpus.pk,
        record.id,
        record.title,
        record.date or "",
        record.part or Part.TEST,
        record.text,
        [begin for begin, _ in tokens],
        [end for _, end in tokens],
        [begin for begin, _ in sentences],
        [end for _, end in sentences],
    )


def _draw_development_part(corpus: Corpus, share: float) -> None:
    documents = Document.objects.filter(corpus=corpus)
    keys = list(documents.order_by("key").values_list("key", flat=True))
    dev = draw_development_part(
        [[key] for key in keys], corpus.hash_key, share=share, minimum=LEAST_DEV, maximum=MOST_DEV
    )
    documents.filter(key__in=dev).update(part=Part.DEV)


def _mention_row(lookup: DatabaseCorpus, record: MentionRecord) -> tuple[Any, ...]:
    is_number = record.entity.isascii() and record.entity.isdecimal() and len(record.entity) < 10
    entity = int(record.entity) if is_number else None
    document = lookup.pk(record.document)
    return (document, *record.span, record.type, *record.canonical, record.link, entity)


def _file_digest(path: Path) -> str:
    digest = hashlib.sha256()
    try:
        with path.open("rb") as file:
            for block in _file_blocks(file):
                digest.update(block)
    except OSError as error:
        raise CannotLoad(f"{path} cannot be read: {error.strerror}.") from error
    return digest.hexdigest()


def _file_blocks(file: Any) -> Iterator[bytes]:
    while block := file.read(1 << 20):
        yield block


FEWEST = 100
"""Number of documents or inputs below which a corpus has no development part, unless its file
states one.
"""


def draw_development_part(
    groups: Sequence[Sequence[str]], key: str, *, share: float, minimum: int, maximum: int
) -> set[str]:
    """Return the keys of the documents or inputs that become the development part.

    Parameters
    ----------
    groups : sequence of sequences of str
        Keys of documents or inputs. Those of one group have the same source
        and are put into one part.
    key : str
        The secret of the corpus. The draw uses another key that is derived from
        it, so that the parts do not reveal the random numbers of targets.
    share : float
        The wanted share, in [0, 1); 0 for no development part.
    minimum, maximum : int
        Bounds of the number of documents or inputs.
    """
    n = sum(map(len, groups))
    if n < FEWEST or share <= 0:
        return set()
    wanted = min(max(round(share * n), minimum), maximum)
    own_key = hmac.digest(key.encode(), b"parts", "sha256")

    def hash_of_group(group: Sequence[str]) -> bytes:
        return hmac.digest(own_key, min(group).encode(), "sha256")

    chosen: set[str] = set()
    for group in sorted(groups, key=hash_of_group):
        if len(chosen) + len(group) <= wanted:
            chosen.update(group)
    return chosen
