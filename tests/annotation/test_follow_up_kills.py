"""`kill -9` of the process that moves follow-ups, wherever it writes; and two such processes at
once.

A lock on a table that it writes to stops it there, the database says that it waits, and after a
seeded moment it dies. Another one starts, and must end as if nothing had happened: each question,
each follow-up's end and each cent once.
"""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from decimal import Decimal
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlencode

import psycopg2
import pytest
from django.conf import settings
from django.db import connection
from follow_up_world import make_world, order
from processes import wait_for

from annotation.models import Question
from kbpo.instances.models import Target
from kbpo.money.models import Ledger
from kbpo.money.spend import balance
from kbpo.sampling.models import FollowUp
from tests.conftest import Toy
from tests.evaluation.world import World

pytestmark = [pytest.mark.kill, pytest.mark.django_db(transaction=True)]
BATCH = 4
LOOP = f"""
import django, time
django.setup()
from annotation.questions import follow_up
# So that there is time between batches
follow_up.BATCH, follow_up.nudge = {BATCH}, lambda step: time.sleep(0.1)
while True:
    follow_up.tick()
    time.sleep(0.02)
"""
LONGEST = 0.2
"""Seconds that the process may stand still before it dies"""


class Movers:
    """The processes that move follow-ups."""

    def __init__(self, directory: Path) -> None:
        where, self.log, self.running = connection.settings_dict, directory / "movers.log", []
        password = f":{quote(where['PASSWORD'], safe='')}" if where["PASSWORD"] else ""
        options = {"host": where["HOST"], "port": where["PORT"], "application_name": "mover"}
        self.environment = os.environ | {
            "DJANGO_SETTINGS_MODULE": "kbpo.settings",
            "REDIS_URL": settings.REDIS,
            "KBPO_VAR": str(directory),
            "SECRET_KEY": settings.SECRET_KEY,
            "DATABASE_URL": (
                f"postgres://{quote(where['USER'], safe='')}{password}@/{where['NAME']}?"
                + urlencode({name: value for name, value in options.items() if value})
            ),
        }

    def start(self) -> None:
        with self.log.open("ab") as log:
            process = subprocess.Popen(
                [sys.executable, "-c", LOOP],
                cwd=settings.BASE_DIR,
                env=self.environment,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
        self.running.append(process)

    def kill(self) -> None:
        for process in self.running:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
        self.running.clear()


@pytest.fixture
def movers(tmp_path: Path) -> Iterator[Movers]:
    made = Movers(tmp_path)
    yield made
    made.kill()


@pytest.fixture
def world(toy: Toy) -> World:
    return make_world(toy, read=6)


@contextmanager
def held(table: str) -> Iterator[None]:
    """A table that nobody can write to."""
    names = {"USER": "user", "PASSWORD": "password", "HOST": "host", "PORT": "port"}
    where = {
        to: connection.settings_dict[name]
        for name, to in names.items()
        if connection.settings_dict[name]
    }
    with (
        closing(psycopg2.connect(dbname=connection.settings_dict["NAME"], **where)) as holder,
        holder,
        holder.cursor() as cursor,
    ):
        cursor.execute(f"LOCK TABLE {table} IN SHARE MODE")
        yield


def waiting() -> int:
    """How many of the processes wait for a lock."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT count(DISTINCT a.pid) FROM pg_locks l JOIN pg_stat_activity a ON a.pid = l.pid"
            " WHERE a.datname = current_database() AND a.application_name = 'mover'"
            " AND NOT l.granted"
        )
        return int(cursor.fetchone()[0])


def answer(world: World, row: FollowUp) -> None:
    """Everything that was asked is judged."""
    world.answer(list(Target.objects.filter(pk__in=row.targets.values("target"))))
    Question.objects.filter(**row.purpose.at("payer")).update(status="settled")


def check(row: FollowUp, price: Decimal) -> None:
    """One question a target, one end, and all money back once."""
    row.refresh_from_db()
    assert row.settled_at is not None and row.closed_at is not None and row.stopped_at is None
    asked = Question.objects.filter(**row.purpose.at("payer")).values_list("target", flat=True)
    assert sorted(asked) == sorted(row.targets.values_list("target", flat=True))
    moved = list(
        Ledger.objects.filter(**row.purpose.at("purpose"))
        .order_by("pk")
        .values_list("kind", "amount")
    )
    assert moved == [("reserve", price), ("release", price)]
    assert balance(purpose=row.purpose).open == 0


def ended(row: FollowUp) -> bool:
    row.refresh_from_db()
    return row.closed_at is not None


@pytest.mark.soak
def test_a_kill_anywhere_loses_and_doubles_nothing(world: World, movers: Movers) -> None:
    rng = random.Random(5)
    row = order(world)
    n = row.targets.count()
    price = balance(purpose=row.purpose).reserved
    assert n > 3 * BATCH

    def die(table: str, after: Any = None) -> None:
        if after is not None:
            movers.start()
            wait_for(after, f"what comes before {table}")
        with held(table):
            if after is None:
                movers.start()
            wait_for(waiting, f"a write to {table}")
            time.sleep(rng.uniform(0, LONGEST))
            movers.kill()
        wait_for(lambda: not waiting(), "the database to notice")

    questions = Question.objects.filter(**row.purpose.at("payer"))
    die("annotation_question")
    assert not questions.exists()
    some = BATCH * rng.randint(1, 2)
    die("annotation_question", lambda: questions.count() >= some)
    assert some <= questions.count() < n and questions.count() % BATCH == 0, "whole batches"
    movers.start()
    wait_for(lambda: questions.count() == n, "all questions")
    movers.kill()
    answer(world, row)
    for table in ("sampling_followuptarget", "sampling_followup", "money_ledger"):
        die(table)
        row.refresh_from_db()
        assert row.closed_at is None
        assert (row.settled_at is not None) == (table == "money_ledger")
        assert Ledger.objects.filter(**row.purpose.at("purpose")).count() == 1
    movers.start()
    wait_for(lambda: ended(row), "its end")
    check(row, price)


@pytest.mark.soak
def test_two_that_tick_at_once_do_each_thing_once(world: World, movers: Movers) -> None:
    row = order(world)
    n, price = row.targets.count(), balance(purpose=row.purpose).reserved
    with held("annotation_question"):
        movers.start()
        movers.start()
        wait_for(waiting, "one to write questions")
        time.sleep(1)
        assert waiting() == 1, "the other asks nothing meanwhile"
    questions = Question.objects.filter(**row.purpose.at("payer"))
    wait_for(lambda: questions.count() == n, "all questions")
    with held("money_ledger"):
        answer(world, row)
        wait_for(lambda: waiting() == 2, "both to end it")
    wait_for(lambda: ended(row), "its end")
    time.sleep(0.3)  # the other one finds nothing left to be done
    check(row, price)
    assert all(process.poll() is None for process in movers.running)
    assert "Traceback" not in movers.log.read_text()
