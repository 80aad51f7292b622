"""Caches arrays on disk that are computed from immutable data, so that millions of predictions are
read from the database once; and caches values read from the database while one page is rendered.

Lost arrays are computed again. Arrays are mapped into memory, not read.
"""

from __future__ import annotations

import hashlib
import logging
import os
import shutil
import uuid
from collections.abc import Callable, Collection, Hashable, Iterator, Mapping
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
from django.conf import settings
from numpy.typing import NDArray

log = logging.getLogger(__name__)

Arrays = Mapping[str, NDArray[Any]]
VERSION = 3
"""Increase this number when the same state yields other arrays"""
NEWEST = 4
"""Number of versions that are kept of a name, since other processes may still use the previous one
while a new one is written.
"""


def cached_arrays(name: str, state: object, make: Callable[[], Arrays]) -> Arrays:
    """Return the read-only arrays that `make` computes from a state alone. They are stored, and
    arrays that an earlier call stored are reused.

    `name` is a folder: arrays of other states in it are deleted, except the `NEWEST`. Without a
    state or a folder they are always computed.
    """
    if state is None or settings.ARRAYS_ROOT is None:
        return make()
    digest = hashlib.sha256(repr((VERSION, state)).encode()).hexdigest()
    place = Path(settings.ARRAYS_ROOT) / name / digest
    mapped = _read_mapped(place)
    if mapped is not None:
        return mapped
    made = make()
    try:
        _write_arrays(place, made)
    except OSError as problem:  # a full disk must not keep scores from being made
        log.warning("What is read of predictions could not be kept: %s", problem)
        return made
    del made
    reread = _read_mapped(place)
    return reread if reread is not None else make()


def _temporary_path(path: Path) -> Path:
    """Return a unique temporary path next to a path, for incomplete files."""
    return path.with_name(f"{uuid.uuid4().hex}.part")


def _read_mapped(folder: Path) -> Arrays | None:
    """Return the arrays in a folder; None if the folder is missing or is being deleted."""
    try:
        arrays = {
            path.stem: np.load(path, mmap_mode="r", allow_pickle=False) for path in folder.iterdir()
        }
        with suppress(OSError):
            os.utime(folder)
    except FileNotFoundError:
        return None
    except (OSError, ValueError, EOFError):  # a damaged file is of no use to anybody
        _delete_folder(folder)
        return None
    return arrays


def _delete_folder(folder: Path) -> None:
    """Delete a folder, renaming it first so that no process reads a part of it."""
    gone = _temporary_path(folder)
    with suppress(OSError):
        folder.rename(gone)
    shutil.rmtree(gone, ignore_errors=True)


def _write_arrays(folder: Path, arrays: Arrays) -> None:
    """Write the arrays to the folder, or leave no folder."""
    part = _temporary_path(folder)
    part.mkdir(parents=True, mode=0o700)
    try:
        for name, values in arrays.items():
            np.save(part / f"{name}.npy", values, allow_pickle=False)
        part.rename(folder)
        folders = sorted(folder.parent.iterdir(), key=lambda folder: folder.stat().st_mtime)
        for old in folders[:-NEWEST]:
            _delete_folder(old)
    except OSError:
        shutil.rmtree(part, ignore_errors=True)
        if not folder.is_dir():  # else somebody else has just made the same
            raise


K = TypeVar("K", bound=Hashable)
V = TypeVar("V")
_READ: ContextVar[dict[Hashable, dict[Any, Any]] | None] = ContextVar("_READ", default=None)
"""What is read -> its key -> the cached value; None outside of `cache_reads`"""


@contextmanager
def cache_reads() -> Iterator[None]:
    """Cache what `read_cached` reads inside this context. For callers that do not write and need
    not see changes by others meanwhile.
    """
    token = _READ.set({})
    try:
        yield
    finally:
        _READ.reset(token)


def read_cached(
    cache_name: Hashable, keys: Collection[K], read: Callable[[list[K]], Mapping[K, V]]
) -> dict[K, V]:
    """Return the values that `read` finds for some keys, in key order and without missing ones.
    `cache_name` identifies the query. The values must not be changed.
    """
    memory = _READ.get()
    known = {} if memory is None else memory.setdefault(cache_name, {})
    missing = [key for key in dict.fromkeys(keys) if key not in known]
    if missing:
        fresh = read(missing)
        known.update({key: fresh.get(key) for key in missing})
    return {key: known[key] for key in keys if known[key] is not None}
