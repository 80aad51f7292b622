"""The endpoint's books: one SQLite file, one writer at a time, and time that can be made to
pass.
"""

from __future__ import annotations

import secrets
import sqlite3
import string
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

DEPOSIT_CENTS = 10_000_00
DELETED = "Deleted"
"""The status of a type of qualification that was deleted: the platform shows it no more."""
KEPT = 120 * 86400
"""Seconds after its expiration for which a HIT is kept."""

SCHEMA = """
CREATE TABLE IF NOT EXISTS fact (name TEXT PRIMARY KEY, value REAL NOT NULL);
CREATE TABLE IF NOT EXISTS hit_type (id TEXT PRIMARY KEY, digest TEXT UNIQUE, title TEXT,
    description TEXT,
    keywords TEXT, reward INTEGER, duration INTEGER, approval_delay INTEGER, qualifications TEXT);
CREATE TABLE IF NOT EXISTS hit (number INTEGER PRIMARY KEY, id TEXT UNIQUE,
    type TEXT REFERENCES hit_type,
    question TEXT, annotation TEXT, most INTEGER, fee INTEGER, created REAL, expiration REAL,
    reviewing INTEGER DEFAULT 0, disposed INTEGER DEFAULT 0);
CREATE INDEX IF NOT EXISTS hit_alive ON hit (disposed, expiration);
CREATE TABLE IF NOT EXISTS assignment (number INTEGER PRIMARY KEY, id TEXT UNIQUE,
    hit TEXT REFERENCES hit (id),
    worker TEXT, status TEXT, accepted REAL, deadline REAL, submitted REAL, auto_approval REAL,
        approved REAL,
    rejected REAL, answer TEXT, feedback TEXT);
CREATE INDEX IF NOT EXISTS assignment_of_hit ON assignment (hit, status);
CREATE INDEX IF NOT EXISTS assignment_due ON assignment (status, auto_approval, deadline);
CREATE TABLE IF NOT EXISTS bonus (number INTEGER PRIMARY KEY, worker TEXT, assignment TEXT,
    hit TEXT, cents INTEGER,
    fee INTEGER, reason TEXT, at REAL);
CREATE TABLE IF NOT EXISTS token (name TEXT, operation TEXT, result TEXT, at REAL,
    PRIMARY KEY (name, operation));
CREATE TABLE IF NOT EXISTS qualification_type (id TEXT PRIMARY KEY, name TEXT UNIQUE,
    description TEXT, keywords TEXT,
    status TEXT, auto_granted INTEGER, auto_value INTEGER, created REAL);
CREATE TABLE IF NOT EXISTS qualification (type TEXT, worker TEXT, value INTEGER, at REAL,
    status TEXT,
    PRIMARY KEY (type, worker));
CREATE TABLE IF NOT EXISTS qualification_request (id TEXT PRIMARY KEY, type TEXT, worker TEXT,
    at REAL,
    UNIQUE (type, worker));
CREATE TABLE IF NOT EXISTS blocked (worker TEXT PRIMARY KEY, reason TEXT);
CREATE TABLE IF NOT EXISTS letter (number INTEGER PRIMARY KEY, worker TEXT, subject TEXT,
    text TEXT, at REAL);
CREATE TABLE IF NOT EXISTS notice (type TEXT PRIMARY KEY, destination TEXT, transport TEXT,
    events TEXT,
    active INTEGER);
CREATE TABLE IF NOT EXISTS fault (number INTEGER PRIMARY KEY, operation TEXT, kind TEXT,
    remaining INTEGER,
    seconds REAL);
CREATE TABLE IF NOT EXISTS call (number INTEGER PRIMARY KEY, operation TEXT, outcome TEXT, at REAL);
"""
TIMES = {
    "hit": ("created", "expiration"),
    "assignment": ("accepted", "deadline", "submitted", "auto_approval", "approved", "rejected"),
    "bonus": ("at",),
    "token": ("at",),
    "qualification": ("at",),
    "qualification_request": ("at",),
}


def new_id() -> str:
    """Return an identifier as the platform makes them: thirty capital letters and digits."""
    return "3" + "".join(secrets.choice(string.ascii_uppercase + string.digits) for _ in range(29))


class Store:
    """The books. Everything happens inside `begin()`: committed whole, or not at all."""

    def __init__(self, path: Path | str) -> None:
        Path(path).parent.mkdir(parents=True, exist_ok=True)
        self._lock = threading.RLock()
        self._db = sqlite3.connect(path, check_same_thread=False, isolation_level=None, timeout=30)
        self._db.row_factory = sqlite3.Row
        self._db.execute("PRAGMA journal_mode = WAL")
        self._db.execute("PRAGMA synchronous = NORMAL")
        self._db.executescript(SCHEMA)
        self._db.execute("INSERT OR IGNORE INTO fact VALUES ('deposit', ?)", [DEPOSIT_CENTS])

    def close(self) -> None:
        """Gives the file back."""
        with self._lock:
            self._db.close()

    @contextmanager
    def begin(self) -> Iterator[Books]:
        """Return the books, for one call; what time has brought about is written into them
        first.
        """
        with self._lock:
            self._db.execute("BEGIN IMMEDIATE")
            try:
                books = Books(self._db)
                _time_passes(books)
                yield books
            except BaseException:
                self._db.execute("ROLLBACK")
                raise
            self._db.execute("COMMIT")


class Books:
    """The books, open in a transaction."""

    def __init__(self, db: sqlite3.Connection) -> None:
        self._db = db
        self.now = time.time()

    def all(self, sql: str, *values: Any) -> list[sqlite3.Row]:
        """Return every row of a query."""
        return self._db.execute(sql, values).fetchall()

    def find(self, sql: str, *values: Any) -> sqlite3.Row | None:
        """Return the first row of a query, if there is one."""
        row: sqlite3.Row | None = self._db.execute(sql, values).fetchone()
        return row

    def one(self, sql: str, *values: Any) -> sqlite3.Row:
        """Return the first row of a query. Raises LookupError if there is none."""
        if (row := self.find(sql, *values)) is None:
            raise LookupError(sql)
        return row

    def run(self, sql: str, *values: Any) -> int:
        """Return how many rows a statement changed."""
        return self._db.execute(sql, values).rowcount

    def insert(self, table: str, **fields: Any) -> None:
        """A new row."""
        marks = ", ".join("?" * len(fields))
        self._db.execute(
            f"INSERT INTO {table} ({', '.join(fields)}) VALUES ({marks})", list(fields.values())
        )

    def advance(self, seconds: float) -> None:
        """Lets time pass: everything happened so much longer ago, and will happen so much
        sooner.
        """
        for table, columns in TIMES.items():
            moved = ", ".join(f"{column} = {column} - :by" for column in columns)
            self._db.execute(f"UPDATE {table} SET {moved}", {"by": seconds})


def _time_passes(books: Books) -> None:
    """Work that nobody sent in is abandoned, work that nobody judged is approved, old HITs are
    gone.
    """
    now = books.now
    books.run(
        "UPDATE assignment SET status = 'Abandoned' WHERE status = 'Accepted' AND deadline <= ?",
        now,
    )
    books.run(
        "UPDATE assignment SET status = 'Approved', approved = auto_approval"
        " WHERE status = 'Submitted' AND auto_approval <= ?",
        now,
    )
    books.run("UPDATE hit SET disposed = 1 WHERE disposed = 0 AND expiration < ?", now - KEPT)
    books.run("DELETE FROM token WHERE at < ?", now - 86400)
