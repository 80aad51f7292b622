"""Reads an uploaded knowledge base: claims, streamed, with the numbers that belong to them."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from itertools import islice
from pathlib import Path
from typing import BinaryIO, cast
from unicodedata import normalize

from django.conf import settings

from formats.compact import CompactMap
from formats.doors import SNIFFED, read_claims, sniff
from formats.limits import MB, Limits
from formats.messages import Report, printable
from formats.opening import open_text
from formats.relation import RelationClaim
from formats.schema import Schema
from formats.splitting import Span
from kbpo.corpus.lookup import DatabaseCorpus
from kbpo.corpus.models import Corpus

_LATEST = 20_000
"""Entities whose numbers are at hand; the numbers of all are kept compactly."""
Tell = Callable[[float], None]


def upload_limits() -> Limits:
    """Return the limits of uploads from the settings."""
    return Limits(
        upload_bytes=settings.UPLOAD_LIMIT_MB * MB,
        unpacked_bytes=settings.UNPACKED_LIMIT_MB * MB,
        relations=settings.RELATION_LIMIT,
    )


class Reading:
    """The claims of one file, to be iterated once, and its metadata."""

    def __init__(
        self, path: Path, corpus: Corpus, schema: Schema, report: Report, tell: Tell
    ) -> None:
        self.path = path
        self.report = report
        self.documents = DatabaseCorpus(corpus)
        self.door, self.run_id = _opening(path)
        self.entities = CompactMap()
        """Numbers of the system's own entities, by the hash of what identifies them."""
        self._latest: dict[str, int] = {}
        self._schema = schema
        self._tell = tell

    def __iter__(self) -> Iterator[RelationClaim]:
        passes = 2 if self.door == "tac_kb" else 1
        with self.path.open("rb") as file:
            source = cast(BinaryIO, _Watched(file, os.path.getsize(self.path), passes, self._tell))
            yield from read_claims(
                source, self.documents, self._schema, upload_limits(), self.report
            )

    def entity(
        self, claim: RelationClaim, name: str | None, link: str | None, canonical: Span
    ) -> int:
        """Return the number of an argument's entity: the system's own across documents, by its id
        or its link; without either, its document and the words of its canonical mention.
        """
        if name:
            known = self._latest.get(name, -1)
            if known == -1:
                if len(self._latest) >= _LATEST:
                    self._latest.clear()
                known = self._latest[name] = self._number(hash(name))
            return known
        if link:
            return self._number(hash(("link", link)))
        view = self.documents.get(claim.document)
        assert view is not None, claim.document
        words = normalize("NFC", view.text[canonical[0] : canonical[1]])
        return self._number(hash((claim.document, words)))

    def _number(self, key: int) -> int:
        number = len(self.entities)
        known = self.entities.add((key,), number)
        return number if known == -1 else known


def _opening(path: Path) -> tuple[str, str]:
    """Return the format of a file and its run id, if it has one; empty where they cannot be
    found.
    """
    lines = [line for _, line in islice(open_text(path, upload_limits(), Report(0)), SNIFFED)]
    door = sniff(iter(lines)) or ""
    first = next((line for line in lines if line.strip() and not line.startswith("#")), "")
    return door, printable(first.strip())[:200] if door == "tac_kb" and "\t" not in first else ""


class _Watched:
    """An open file that reports how far it has been read, when it is read several times over."""

    def __init__(self, file: BinaryIO, size: int, passes: int, tell: Tell) -> None:
        self._file = file
        self._size = max(1, size)
        self._passes = passes
        self._begun = -1  # the first pass only looks at the beginning
        self._tell = tell

    def read(self, size: int = -1) -> bytes:
        block = self._file.read(size)
        done = max(0, self._begun - 1) + self._file.tell() / self._size
        self._tell(0.8 * min(1.0, done / self._passes) if self._begun > 0 else 0.0)
        return block

    def seek(self, offset: int) -> int:
        self._begun += 1
        return self._file.seek(offset)

    def tell(self) -> int:
        return self._file.tell()

    def seekable(self) -> bool:
        return True
