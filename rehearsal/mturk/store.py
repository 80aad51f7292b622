"""Stores the endpoint's data in one SQLite file, with one writer at a time and a clock that can be
advanced; computes its fees and balance; and stores the faults that are switched on.
"""

from __future__ import annotations

import re
import secrets
import sqlite3
import string
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

DEPOSIT_CENTS = 10_000_00
DELETED = "Deleted"
"""Status of a deleted type of qualification, which the platform no longer lists"""
KEPT = 120 * 86400
"""Seconds for which a HIT is kept after its expiration"""

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
MANY = 10
"""Number of assignments from which a HIT costs twice the fee"""
KINDS = {
    "throttle": "says that calls come too fast, and does nothing",
    "refuse": "says that the request makes no sense, and does nothing",
    "error": "answers 500, and does nothing",
    "error_after": "does it, and answers 500",
    "timeout": "does it, and answers only after some seconds",
    "hang": "does nothing for some seconds, and answers 500",
    "duplicate": "lists everything twice",
    "lose": "lists nothing; loses an answer that a worker sends in, without a word",
}


def new_id() -> str:
    """Return an id in the platform's format: thirty capital letters and digits."""
    return "3" + "".join(secrets.choice(string.ascii_uppercase + string.digits) for _ in range(29))


class Store:
    """The data of the simulated platform, in a file. Every change happens in `begin()`: committed
    completely, or not at all.
    """

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
        """Close the file with the data."""
        with self._lock:
            self._db.close()

    @contextmanager
    def begin_call(self) -> Iterator[Books]:
        """Yield the tables in a transaction for one call, after applying changes that are due with
        time.
        """
        with self._lock:
            self._db.execute("BEGIN IMMEDIATE")
            try:
                books = Books(self._db)
                _apply_time_limits(books)
                yield books
            except BaseException:
                self._db.execute("ROLLBACK")
                raise
            self._db.execute("COMMIT")


class Books:
    """The tables of the simulated platform, open in a transaction."""

    def __init__(self, db: sqlite3.Connection) -> None:
        self._db = db
        self.now = time.time()

    def all(self, sql: str, *values: Any) -> list[sqlite3.Row]:
        """Return every row of a query."""
        return self._db.execute(sql, values).fetchall()

    def find(self, sql: str, *values: Any) -> sqlite3.Row | None:
        """Return the first row of a query; None if there is none."""
        row: sqlite3.Row | None = self._db.execute(sql, values).fetchone()
        return row

    def one(self, sql: str, *values: Any) -> sqlite3.Row:
        """Return the first row of a query. Raises LookupError if there is none."""
        if (row := self.find(sql, *values)) is None:
            raise LookupError(sql)
        return row

    def run(self, sql: str, *values: Any) -> int:
        """Execute a statement and return the number of changed rows."""
        return self._db.execute(sql, values).rowcount

    def insert(self, table: str, **fields: Any) -> None:
        """Insert a row into a table."""
        marks = ", ".join("?" * len(fields))
        self._db.execute(
            f"INSERT INTO {table} ({', '.join(fields)}) VALUES ({marks})", list(fields.values())
        )

    def advance(self, seconds: float) -> None:
        """Advance the clock: move all stored times back by `seconds`."""
        for table, columns in TIMES.items():
            moved = ", ".join(f"{column} = {column} - :by" for column in columns)
            self._db.execute(f"UPDATE {table} SET {moved}", {"by": seconds})


def _apply_time_limits(books: Books) -> None:
    """Abandon work that was not submitted in time, approve work that was not reviewed, and delete
    old HITs.
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


class RequestError(Exception):
    """Raised for a request that is not possible in the current state; `code` as the platform spells
    it.
    """

    def __init__(self, code: str, text: str) -> None:
        super().__init__(text)
        self.code = f"AWS.MechanicalTurk.{code}"


def to_cents(amount: str) -> int:
    """Return the cents of a string with at most two decimals. Raises RequestError."""
    if not re.fullmatch(r"[0-9]{1,6}(\.[0-9]{1,2})?", amount):
        raise RequestError(
            "ParameterValidationError", f"{amount!r} is no amount with at most two decimals."
        )
    dollars, _, decimals = amount.partition(".")
    return 100 * int(dollars) + int(decimals.ljust(2, "0"))


def to_dollars(amount: int) -> str:
    """Return cents as the platform writes them."""
    sign = "-" if amount < 0 else ""
    return f"{sign}{abs(amount) // 100}.{abs(amount) % 100:02d}"


def platform_fee(amount: int, assignments: int = 1) -> int:
    """Return the platform's fee on a reward or bonus in cents, rounded up to the cent."""
    percent = 40 if assignments >= MANY else 20
    return max(1, -(-amount * percent // 100))


def held_amount(books: Books) -> int:
    """Return the maximal remaining cost of open places and undecided work."""
    row = books.one(
        """SELECT coalesce(sum((t.reward + h.fee) * (
               CASE WHEN h.disposed THEN 0
                    WHEN h.expiration > ? THEN h.most - (SELECT count(*) FROM assignment a
                        WHERE a.hit = h.id
                                                         AND a.status IN ('Approved', 'Rejected'))
                    ELSE (SELECT count(*) FROM assignment a WHERE a.hit = h.id
                          AND a.status IN ('Accepted', 'Submitted')) END)), 0) AS cents
           FROM hit h JOIN hit_type t ON t.id = h.type""",
        books.now,
    )
    return int(row["cents"])


def paid_amount(books: Books) -> int:
    """Return the sum paid so far, with fees."""
    rewards = books.one(
        "SELECT coalesce(sum(t.reward + h.fee), 0) AS cents FROM assignment a JOIN hit h ON h.id ="
        " a.hit JOIN hit_type t ON t.id = h.type WHERE a.status = 'Approved'"
    )
    bonuses = books.one("SELECT coalesce(sum(cents + fee), 0) AS cents FROM bonus")
    return int(rewards["cents"]) + int(bonuses["cents"])


def available_amount(books: Books) -> int:
    """Return the balance that is neither held nor paid."""
    deposit = books.one("SELECT value FROM fact WHERE name = 'deposit'")["value"]
    return int(deposit) - held_amount(books) - paid_amount(books)


def check_balance(books: Books, amount: int) -> None:
    """Raise RequestError if the balance is too low."""
    if amount > (left := available_amount(books)):
        raise RequestError(
            "InsufficientFunds",
            f"The account has ${to_dollars(left)}; ${to_dollars(amount)} is needed.",
        )


@dataclass(frozen=True)
class Fault:
    """A failure that the simulated platform inserts into a call: its kind and its delay in
    seconds.
    """

    kind: str
    seconds: float


def add_fault(
    books: Books, operation: str, kind: str, times: int = 1, seconds: float = 5.0
) -> None:
    """Make the next calls of an operation ("*": of any) fail in this way. Raises ValueError for an
    unknown kind of failure.
    """
    if kind not in KINDS:
        raise ValueError(f"There is no fault {kind}; there are {', '.join(KINDS)}.")
    books.insert("fault", operation=operation, kind=kind, remaining=times, seconds=seconds)


def delete_faults(books: Books) -> int:
    """Delete all failures that are still to be inserted, and return their number."""
    return books.run("DELETE FROM fault")


def next_fault(books: Books, operation: str) -> Fault | None:
    """Return the failure to insert into this call, and use it up; None without one."""
    row = books.find(
        "SELECT * FROM fault WHERE operation IN (?, '*') AND remaining > 0 ORDER BY number LIMIT 1",
        operation,
    )
    if row is None:
        return None
    books.run("UPDATE fault SET remaining = remaining - 1 WHERE number = ?", row["number"])
    return Fault(row["kind"], row["seconds"])


def apply_fault(fault: Fault | None, answer: dict[str, Any]) -> dict[str, Any]:
    """Return the answer with its lists duplicated or emptied, as a faulty endpoint would send them;
    unchanged without such a failure.
    """
    if fault is None or fault.kind not in ("duplicate", "lose"):
        return answer
    changed = dict(answer)
    for name, value in answer.items():
        if isinstance(value, list):
            changed[name] = value * 2 if fault.kind == "duplicate" else []
            changed["NumResults"] = len(changed[name])
    return changed
