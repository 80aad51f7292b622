"""Worlds that many tests begin with: played once a process, kept as rows, and put back for each.

A world is what its fixture gives (copied for every test), the rows of the database, the next
primary keys and the files of uploads. Its chance follows from its name, not from that of the test
that happened to be first; its times are those at which it was played.
"""

from __future__ import annotations

import random
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from copy import deepcopy
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path
from typing import Any, TypeVar
from zlib import crc32

import numpy as np
import pytest
from certain import next_keys
from django.conf import settings
from django.db import connection, transaction
from django.db.models.signals import post_save
from emptying import filled


@dataclass(frozen=True)
class Kept:
    """What is put back."""

    value: Any
    rows: dict[str, bytes]
    keys: dict[str, int]
    files: dict[Path, bytes]


T = TypeVar("T")
_KEPT: dict[tuple[str, int, frozenset[tuple[str, int]]], Kept] = {}


@pytest.fixture
def keep(db: None) -> Callable[[str, Callable[[], Any]], Any]:
    """`keep(name, play)`: what `play` gives, in the world that it leaves."""
    return kept


def kept(name: str, play: Callable[[], T]) -> T:
    """What `play` gives, in the world that it leaves. Of all calls with one name the first plays.

    Where other rows were made before, which the next primary keys tell, it is another world; so it
    is where a fixture listens to what is saved, to teach each annotator, say.
    """
    before = next_keys()
    key = name, len(post_save.receivers), frozenset(before.items())
    if key not in _KEPT:
        there = _files()
        with _chance_of(name):
            value = play()
        keys = {table: at for table, at in next_keys().items() if before.get(table) != at}
        _KEPT[key] = Kept(deepcopy(value), _rows(), keys, _new_files(there))
    else:
        _put_back(_KEPT[key])
    with connection.cursor() as cursor:
        cursor.execute("SELECT setseed(0.5)")
    return deepcopy(_KEPT[key].value)


@contextmanager
def _chance_of(name: str) -> Iterator[None]:
    """Nothing; chance follows from this name inside, and goes on as if nothing had been drawn."""
    states = random.getstate(), np.random.get_state()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(random, "_urandom", random.Random(name).randbytes)
        random.seed(name)
        np.random.seed(crc32(name.encode()))
        yield
    random.setstate(states[0])
    np.random.set_state(states[1])


def _rows() -> dict[str, bytes]:
    """The rows of each table that has some."""
    found = {}
    with connection.cursor() as cursor:
        for table in filled():
            cursor.copy_expert(f'COPY "{table}" TO STDOUT', to := BytesIO())
            found[table] = to.getvalue()
    return found


def _put_back(world: Kept) -> None:
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute(
            "SET LOCAL session_replication_role = replica; "
            + "".join(f'DELETE FROM "{table}"; ' for table in world.rows)
        )
        for table, rows in world.rows.items():
            cursor.copy_expert(f'COPY "{table}" FROM STDIN', BytesIO(rows))
        cursor.execute(
            "SET LOCAL session_replication_role = origin; SELECT "
            + ", ".join(f"setval('{name}', {at})" for name, at in world.keys.items())
        )
    for path, content in world.files.items():
        place = _media() / path
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_bytes(content)


def _files() -> dict[Path, bytes]:
    """The files that were uploaded, where a test has a folder of its own for them."""
    if not _media().is_relative_to(tempfile.gettempdir()):
        return {}
    files = (path for path in _media().rglob("*") if path.is_file())
    return {path.relative_to(_media()): path.read_bytes() for path in files}


def _new_files(before: dict[Path, bytes]) -> dict[Path, bytes]:
    """The files that were uploaded since."""
    return {path: content for path, content in _files().items() if path not in before}


def _media() -> Path:
    return Path(settings.MEDIA_ROOT)
