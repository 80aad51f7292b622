"""Counters that all processes of one machine share, in a file, for as long as Redis is away. Where
the file cannot be written each process has its own.
"""

from __future__ import annotations

import logging
import os
import sqlite3
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

T = TypeVar("T")
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
        self._kept: sqlite3.Connection | None = None
        self._process = 0
        """Whose connection it is: a process that was forked needs its own"""

    def add(self, what: str, key: str, seconds: float) -> int:
        """Return how often a key was counted, this time included."""

        def one_more(rows: sqlite3.Connection) -> int:
            said = {"what": what, "key": key, "now": time.monotonic(), "seconds": seconds}
            if rows.execute(IS_FULL, said | {"most": MOST_KEPT}).fetchone()[0]:
                rows.execute(MAKE_ROOM, said | {"kept": MOST_KEPT // 2})
            return int(rows.execute(ADD, said).fetchone()[0])

        return self._run(one_more)

    def read(self, key: str, seconds: float) -> int:
        """Return how often a key was counted that is counted for so many seconds."""
        return self._row(key, seconds)[0]

    def seconds_left(self, key: str, seconds: float) -> float:
        """Return after how many of them its count begins anew; 0 if there is none."""
        return self._row(key, seconds)[1]

    def forget(self, key: str) -> None:
        """Nothing; what was counted is forgotten."""
        if self._is_used():
            self._run(lambda rows: rows.execute("DELETE FROM counter WHERE key = ?", [key]))

    def _row(self, key: str, seconds: float) -> tuple[int, float]:
        """How often a key was counted, and how many seconds are left."""
        if not self._is_used():
            return 0, 0.0
        asked = "SELECT n, ends FROM counter WHERE key = ?"
        row = self._run(lambda rows: rows.execute(asked, [key]).fetchone())
        left = row[1] - time.monotonic() if row is not None else 0.0
        return (row[0], left) if 0 < left <= seconds else (0, 0.0)

    def _is_used(self) -> bool:
        """Whether anything was ever counted: with Redis there is no file."""
        return self._kept is not None or self.path.exists()

    def _run(self, work: Callable[[sqlite3.Connection], T]) -> T:
        """What comes of some work on the table, which no other process interrupts. What stands in
        the way ends the file, not the count.
        """
        with self._lock:
            try:
                if self._kept is None or self._process != os.getpid():
                    self._kept, self._process = _connected(self.path), os.getpid()
                return _transaction(self._kept, work)
            except sqlite3.Error as problem:
                log.warning("%s is of no use, so each process counts: %s", self.path, problem)
                self._kept, self._process = _connected(":memory:"), os.getpid()
                return _transaction(self._kept, work)


def _connected(path: Path | str) -> sqlite3.Connection:
    rows = sqlite3.connect(path, timeout=PATIENCE, isolation_level=None, check_same_thread=False)
    rows.executescript(TABLE)
    return rows


def _transaction(rows: sqlite3.Connection, work: Callable[[sqlite3.Connection], T]) -> T:
    rows.execute("BEGIN IMMEDIATE")
    with rows:
        return work(rows)
