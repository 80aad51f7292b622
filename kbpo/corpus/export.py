"""Writes a corpus as a file from which it could be loaded again."""

from __future__ import annotations

import json
import zlib
from collections.abc import Iterator
from itertools import groupby, islice
from typing import Any, TypeVar

from django.db.models import Model, QuerySet

from kbpo.corpus.models import Corpus, Document, Mention

M = TypeVar("M", bound=Model)
CHUNK = 200
"""Number of documents that are in memory at a time"""


def corpus_lines(corpus: Corpus) -> Iterator[str]:
    """Yield one line of JSON for each document, in the order in which the documents were loaded."""
    for document in iterate_in_pages(Document.objects.filter(corpus=corpus)):
        yield json.dumps(_document_record(document), ensure_ascii=False) + "\n"


def mention_lines(corpus: Corpus) -> Iterator[str]:
    """Yield one line of JSON for each document with mentions: their spans and types, without their
    referents.
    """
    documents = iterate_in_pages(Document.objects.filter(corpus=corpus).only("pk"))
    while chunk := list(islice(documents, CHUNK)):
        mentions = (
            Mention.objects.filter(document__in=chunk)
            .order_by("document_id", "begin", "end")
            .values_list("document__key", "begin", "end", "type")
        )
        for key, group in groupby(mentions, key=lambda row: row[0]):
            spans = [[begin, end, kind] for _, begin, end, kind in group]
            yield json.dumps({"id": key, "mentions": spans}, ensure_ascii=False) + "\n"


def gzip_lines(lines: Iterator[str]) -> Iterator[bytes]:
    """Yield the lines as one gzip member, in blocks; nothing is kept on disk."""
    packer = zlib.compressobj(6, zlib.DEFLATED, 31)
    for line in lines:
        if block := packer.compress(line.encode()):
            yield block
    yield packer.flush()


def iterate_in_pages(rows: QuerySet[M]) -> Iterator[M]:
    """Yield the rows in primary-key order, queried a page at a time. With a cursor, the server
    would materialise the whole table before the first row.
    """
    page = list(rows.order_by("pk")[:CHUNK])
    while page:
        yield from page
        page = list(rows.filter(pk__gt=page[-1].pk).order_by("pk")[:CHUNK])


def _document_record(document: Document) -> dict[str, Any]:
    tokens = zip(document.token_begin, document.token_end, strict=True)
    record: dict[str, Any] = {"id": document.key, "title": document.title}
    if document.date:
        record["date"] = document.date
    record["text"] = document.text
    record["tokens"] = [list(span) for span in tokens]
    record["sentences"] = [list(span) for span in document.sentences]
    return record
