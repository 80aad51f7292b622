"""The demo as `make demo` runs it, with its own servers (PostgreSQL, Redis, site, a Celery worker),
from nothing: on the local marketplace, and at the pool, where texts are rated, mended and checked,
too.
"""

from __future__ import annotations

import os
import re
import socket
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from django.conf import settings

from rehearsal.demonstrate import MARKET
from rehearsal.mturk.store import Store

SYSTEMS = 1
TEXTS = 9
"""Systems that write, of both studies"""
PATIENCE = 600


@dataclass(frozen=True)
class Ran:
    """A demo that has ended, and what it left."""

    told: str
    status: int
    market: Path
    books: str


@pytest.fixture(scope="module")
def ran() -> Iterator[Ran]:
    """On the marketplace."""
    yield from _demo("mturk")


@pytest.fixture(scope="module")
def at_pool() -> Iterator[Ran]:
    """On our own pages, with the studies of texts."""
    yield from _demo("pool")


def _demo(platform: str) -> Iterator[Ran]:
    """In a directory of its own with a short name: the database's socket lies in it."""
    with TemporaryDirectory(prefix="demo") as directory:
        others = ("DATABASE_URL", "REDIS_URL", "MTURK_", "DJANGO_", "SITE_URL")
        environment = {
            name: value for name, value in os.environ.items() if not name.startswith(others)
        }
        environment["KBPO_VAR"] = directory
        options = [
            "--platform",
            platform,
            "--systems",
            str(SYSTEMS),
            "--no-serve",
            "--port",
            str(_two_ports()),
        ]
        try:
            demo = _run("manage.py", "demo", *options, environment=environment)
            books = _run("manage.py", "check_books", environment=environment)
            yield Ran(
                demo.stdout,
                demo.returncode,
                Path(directory) / "demo" / "market.sqlite3",
                books.stdout,
            )
        finally:
            _run("-m", "kbpo.embedded", "stop", environment=environment)


def _run(*arguments: str, environment: dict[str, str]) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, *arguments],
        cwd=settings.BASE_DIR,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=PATIENCE,
        check=False,
    )


def _two_ports() -> int:
    """A port that nobody has, with the one that the marketplace takes."""
    for port in range(18000, 19000, 2 * MARKET):
        with socket.socket() as site, socket.socket() as market:
            try:
                site.bind(("127.0.0.1", port))
                market.bind(("127.0.0.1", port + MARKET))
            except OSError:
                continue
            return port
    raise LookupError("No two ports are free.")


def test_it_ends_with_a_score(ran: Ran) -> None:
    assert ran.status == 0 and "Done in" in ran.told, ran.told
    scores = re.findall(r"f1 [\d.]+ \([\d.]+–[\d.]+\)", ran.told)
    assert len(scores) == SYSTEMS, ran.told


def test_every_judgment_came_through_the_marketplace_and_none_was_put_up_twice(ran: Ran) -> None:
    store = Store(ran.market)
    try:
        with store.begin_call() as books:
            marks = Counter(row["annotation"] for row in books.all("SELECT annotation FROM hit"))
            states = Counter(row["status"] for row in books.all("SELECT status FROM assignment"))
    finally:
        store.close()
    assert set(marks.values()) == {1}
    assert states["Approved"] > len(marks) and states["Rejected"] == 0


def test_the_books_agree_afterwards(ran: Ran) -> None:
    assert "The books agree." in ran.books, ran.books


def test_summaries_and_answers_are_scored_through_their_pages(at_pool: Ran) -> None:
    assert at_pool.status == 0 and "Done in" in at_pool.told, at_pool.told
    scores = re.findall(r"\S.*: mean ([\d.]+) \([\d.]+–[\d.]+\)", at_pool.told)
    assert len(scores) == TEXTS
    assert max(map(float, scores)) > 90 > 60 > min(map(float, scores)), "the editor, and the worst"
    assert "The books agree." in at_pool.books, at_pool.books
