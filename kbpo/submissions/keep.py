"""Stores uploaded files: hashed while they are streamed to disk, never partially."""

from __future__ import annotations

import hashlib
import os
import uuid
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from django.conf import settings

from kbpo import clock

BLOCK = 1 << 20
FOLDER = "uploads"


class Readable(Protocol):
    """The protocol of an upload: an open file, or Django's UploadedFile."""

    def read(self, size: int = -1, /) -> bytes: ...


class TooLarge(Exception):
    """Raised for a file over the limit; the text is a sentence for its owner."""


@dataclass(frozen=True)
class StoredFile:
    """A stored file: its name under MEDIA_ROOT, its size and its SHA-256."""

    name: str
    size: int
    digest: str


def store_file(file: Readable) -> StoredFile:
    """Store a file under a generated name, safe against a power cut, and return it. Raises
    TooLarge, in which case nothing is stored.
    """
    name = f"{FOLDER}/{clock.now():%Y/%m}/{uuid.uuid4().hex}"
    path = Path(settings.MEDIA_ROOT) / name
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_suffix(".part")
    try:
        with open(os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as out:
            size, digest = _copy_with_digest(file, out.write)
            out.flush()
            os.fsync(out.fileno())
        part.replace(path)
    finally:
        part.unlink(missing_ok=True)
    handle = os.open(path.parent, os.O_RDONLY)  # the folder's entry must reach the disk, too
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
    return StoredFile(name, size, digest)


def file_digest(file: Readable) -> str:
    """Return the SHA-256 of the file; nothing is stored. Raises TooLarge."""
    return _copy_with_digest(file, lambda _: None)[1]


def delete_file(stored_file: StoredFile) -> None:
    """Delete the file."""
    (Path(settings.MEDIA_ROOT) / stored_file.name).unlink(missing_ok=True)


def _copy_with_digest(file: Readable, write: Callable[[bytes], object]) -> tuple[int, str]:
    limit, size, digest = settings.UPLOAD_LIMIT_MB * BLOCK, 0, hashlib.sha256()
    while block := file.read(BLOCK):
        size += len(block)
        if size > limit:
            raise TooLarge(
                f"The file is larger than {settings.UPLOAD_LIMIT_MB:,} MB. Pack it with gzip, or"
                " split it."
            )
        digest.update(block)
        write(block)
    return size, digest.hexdigest()
