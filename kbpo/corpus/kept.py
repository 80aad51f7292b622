"""Keeps arrays on disk that follow from what never changes, so that they are made once: rows of
millions of predictions are read again as fast as memory.

A copy, and nothing else: what is lost is made anew. Files are mapped, not read, so that a process
holds what it looks at.
"""

from __future__ import annotations

import hashlib
import logging
import os
import shutil
import uuid
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
from django.conf import settings
from numpy.typing import NDArray

log = logging.getLogger(__name__)

Arrays = Mapping[str, NDArray[Any]]
VERSION = 3
"""To be raised when other arrays are made of the same"""
NEWEST = 4
"""So many of a name stay: while a new one is made, others may still look at the last."""


def kept(name: str, state: object, make: Callable[[], Arrays], *, newest: int = NEWEST) -> Arrays:
    """Return the arrays that `make` makes, which follow from a state alone; those of an earlier
    call where they are still there, which nobody can write to.

    `name` is a folder: those of other states in it are forgotten, but for the `newest`. Without a
    state, or a place to keep them, they are made.
    """
    if state is None or settings.ARRAYS_ROOT is None:
        return make()
    digest = hashlib.sha256(repr((VERSION, state)).encode()).hexdigest()
    place = Path(settings.ARRAYS_ROOT) / name / digest
    mapped = _mapped(place)
    if mapped is not None:
        return mapped
    made = make()
    try:
        _write(place, made, newest)
    except OSError as problem:  # a full disk must not keep scores from being made
        log.warning("What is read of predictions could not be kept: %s", problem)
        return made
    del made
    again = _mapped(place)
    return again if again is not None else make()


def _mapped(place: Path) -> Arrays | None:
    """The arrays in a folder; None if it is not there, or is just being forgotten."""
    try:
        arrays = {
            path.stem: np.load(path, mmap_mode="r", allow_pickle=False) for path in place.iterdir()
        }
        with suppress(OSError):
            os.utime(place)
    except FileNotFoundError:
        return None
    except (OSError, ValueError, EOFError):  # a damaged file is of no use to anybody
        _forget(place)
        return None
    return arrays


def _forget(place: Path) -> None:
    """Nothing; the folder is gone at once: nobody ever finds half of it."""
    gone = place.with_name(f"{uuid.uuid4().hex}.part")
    with suppress(OSError):
        place.rename(gone)
    shutil.rmtree(gone, ignore_errors=True)


def _write(place: Path, arrays: Arrays, newest: int) -> None:
    """Nothing; the folder holds the arrays, or is not there."""
    part = place.with_name(f"{uuid.uuid4().hex}.part")
    part.mkdir(parents=True, mode=0o700)
    try:
        for name, values in arrays.items():
            np.save(part / f"{name}.npy", values, allow_pickle=False)
        part.rename(place)
    except OSError:
        shutil.rmtree(part, ignore_errors=True)
        if not place.is_dir():  # else somebody else has just made the same
            raise
    folders = sorted(place.parent.iterdir(), key=lambda one: one.stat().st_mtime, reverse=True)
    for old in folders[newest:]:
        _forget(old)
