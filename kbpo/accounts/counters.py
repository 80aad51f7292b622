"""Counters that all processes of one machine share, in a file, for as long as Redis is away. Where
the file cannot be written, or is locked for too long, a process counts in memory meanwhile; a
damaged one is made anew.
"""

from __future__ import annotations

import contextlib
import logging
import os
import sqlite3
import threading
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TypeVar

T = TypeVar("T")
Row = tuple[int, float]
"""How often a key was counted, and how many seconds are left"""
NEVER: Row = (0, 0.0)
MEMORY = ":memory:"
DAMAGED = (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB)
GONE = (sqlite3.SQLITE_READONLY, sqlite3.SQLITE_ERROR)
"""What is said of a file that was deleted, or emptied, while it was open"""
log = logging.getLogger(__name__)

MOST_KEPT = 20_000
"""Counters that are kept at most of each limit"""
PATIENCE = 1.0
"""Seconds for which a process waits for another one that counts"""
TABLE = """
    PRAGMA synchronous = OFF;
    CREATE TABLE IF NOT EXISTS counter (key TEXT PRIMARY KEY, what TEXT, n INTEGER, ends REAL);
    CREATE INDEX IF NOT EXISTS counter_by_end ON counter (what, ends);
"""
ADD = """
    INSERT INTO counter (key, what, n, ends) VALUES (:key, :what, 1, :now + :seconds)
    ON CONFLICT (key) DO UPDATE SET
        n = CASE WHEN ends > :now AND ends <= :now + :seconds THEN n + 1 ELSE 1 END,
        ends = CASE WHEN ends > :now AND ends <= :now + :seconds THEN ends ELSE :now + :seconds END
    RETURNING n
"""
"""An end that lies too far ahead is from before the machine was started anew."""
IS_FULL = """
    SELECT count(*) >= :most AND NOT EXISTS (SELECT 1 FROM counter WHERE key = :key)
    FROM counter WHERE what = :what
"""
MAKE_ROOM = """
    DELETE FROM counter WHERE what = :what AND (ends <= :now OR key IN (
        SELECT key FROM counter WHERE what = :what ORDER BY ends DESC LIMIT -1 OFFSET :kept))
"""
"""Forgets the counters of one limit that ran out, and where that leaves more than half of what is
kept those that would run out first. A flood of one limit costs no other its count."""


class Counters:
    """How often each key was counted until its end, on the clock of the machine since its start."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._lock = threading.Lock()
        self._kept: dict[Path | str, sqlite3.Connection] = {}
        self._process = 0
        """Whose connections they are: a process that was forked needs its own"""

    def add(self, what: str, key: str, seconds: float) -> int:
        """Return how often a key was counted, this time included. While the file is of no use this
        is counted in memory, beside what the file says then.
        """

        def one_more(rows: sqlite3.Connection) -> int:
            said = {"what": what, "key": key, "now": time.monotonic(), "seconds": seconds}
            rows.execute("BEGIN IMMEDIATE")
            with rows:
                if rows.execute(IS_FULL, said | {"most": MOST_KEPT}).fetchone()[0]:
                    rows.execute(MAKE_ROOM, said | {"kept": MOST_KEPT // 2})
                return int(rows.execute(ADD, said).fetchone()[0])

        with self._lock:
            if (counted := self._in_file(one_more)) is not None:
                return counted + self._besides(key, seconds)[0]
            return one_more(self._connected(MEMORY)) + self._kept_of(key, seconds)[0]

    def read(self, key: str, seconds: float) -> int:
        """Return how often a key was counted that is counted for so many seconds."""
        with self._lock:
            return self._kept_of(key, seconds)[0] + self._besides(key, seconds)[0]

    def seconds_left(self, key: str, seconds: float) -> float:
        """Return after how many of them its count begins anew; 0 if there is none."""
        with self._lock:
            return max(self._kept_of(key, seconds)[1], self._besides(key, seconds)[1])

    def forget(self, key: str) -> None:
        """Nothing; what was counted is forgotten."""

        def without(rows: sqlite3.Connection) -> None:
            rows.execute("DELETE FROM counter WHERE key = ?", [key])

        with self._lock:
            if self.path.exists():
                self._in_file(without)
            if MEMORY in self._kept:
                without(self._connected(MEMORY))

    def _kept_of(self, key: str, seconds: float) -> Row:
        """What the file says of a key: with Redis there is none."""
        asked = partial(_row, key=key, seconds=seconds)
        return (self._in_file(asked) if self.path.exists() else None) or NEVER

    def _besides(self, key: str, seconds: float) -> Row:
        """What was counted in memory of a key."""
        return _row(self._connected(MEMORY), key, seconds) if MEMORY in self._kept else NEVER

    def _in_file(self, work: Callable[[sqlite3.Connection], T]) -> T | None:
        """What comes of some work on the file; None while it is of no use. One that was deleted or
        emptied since is opened again; a damaged one is made anew, unless another process did so
        since it was opened.
        """
        for _ in range(3):
            was_open = self.path in self._kept and self._process == os.getpid()
            try:
                return work(self._connected(self.path))
            except sqlite3.Error as problem:
                log.warning("%s is of no use now: %s", self.path, problem)
                code = getattr(problem, "sqlite_errorcode", 0) & 0xFF
            if code not in DAMAGED and not (code in GONE and was_open):
                return None
            if was_open:
                self._kept.pop(self.path).close()
            else:
                _unlink(self.path)
        return None

    def _connected(self, path: Path | str) -> sqlite3.Connection:
        """This process's own connection to the file, or to what is in memory."""
        if self._process != os.getpid():
            self._kept, self._process = {}, os.getpid()
        if path not in self._kept:
            self._kept[path] = _connected(path)
        return self._kept[path]


def _connected(path: Path | str) -> sqlite3.Connection:
    rows = sqlite3.connect(path, timeout=PATIENCE, isolation_level=None, check_same_thread=False)
    rows.executescript(TABLE)
    return rows


def _row(rows: sqlite3.Connection, key: str, seconds: float) -> Row:
    row = rows.execute("SELECT n, ends FROM counter WHERE key = ?", [key]).fetchone()
    left = row[1] - time.monotonic() if row is not None else 0.0
    return (row[0], left) if 0 < left <= seconds else NEVER


def _unlink(path: Path) -> None:
    """Nothing; the file is gone, with what was begun in it, if it can be."""
    with contextlib.suppress(OSError):
        path.unlink(missing_ok=True)
        path.with_name(f"{path.name}-journal").unlink(missing_ok=True)
