"""The service as it runs on a single machine: gunicorn and a worker with its clock, on a database
of their own.

Processes can be killed (`kill -9`, with all their children) and started again. This process's
Django speaks to their database inside `speaking()`, and to the ordinary test database outside.
"""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlencode

import psycopg2
import pytest
from django.conf import settings
from django.db import connections
from migrated import copy_to, speaking_to

DATABASE = f"kbpo_processes{os.environ.get('PYTEST_XDIST_WORKER', '')}"
TESTS = Path(__file__).resolve().parent
PATIENCE = float(os.environ.get("PATIENCE", "300"))
"""Seconds that anything may take; a machine that is busy with other things needs more"""
STARTED: list[Service] = []
"""The service of this process, once a test has asked for it"""


@dataclass
class Service:
    """A web server and a worker, with what they need."""

    directory: Path
    unblock: Callable[[], Any]
    port: int
    database: dict[str, Any]
    running: dict[str, subprocess.Popen[bytes]] = field(default_factory=dict)
    settings: dict[str, str] = field(default_factory=dict)
    """Settings of its own, besides those that all services of the tests have"""

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def start(self, *names: str) -> None:
        """Starts processes that do not run; the web server answers afterwards."""
        for name in names:
            with (self.directory / f"{name}.log").open("ab") as log:
                self.running[name] = subprocess.Popen(
                    self._commands()[name],
                    stdout=log,
                    stderr=log,
                    cwd=settings.BASE_DIR,
                    env=self.environment(name),
                    start_new_session=True,
                )
        if "web" in names:
            wait_for(self._answers, f"the web server to answer ({self.directory / 'web.log'})")

    def kill(self, *names: str) -> None:
        """Kills processes and all their children at once: they get no chance to tidy up."""
        for name in names:
            os.killpg(self.running[name].pid, signal.SIGKILL)
        for name in names:
            self.running.pop(name).wait()

    def pause(self) -> None:
        """Stops the clock of every process: it takes no processor until `go_on`."""
        self._signal(signal.SIGSTOP)

    def go_on(self) -> None:
        """Lets what was paused run again."""
        self._signal(signal.SIGCONT)

    def _signal(self, number: signal.Signals) -> None:
        for process in self.running.values():
            with suppress(ProcessLookupError):
                os.killpg(process.pid, number)

    def stop(self) -> None:
        """Stops everything in order."""
        self.go_on()
        for process in self.running.values():
            process.terminate()
        for process in self.running.values():
            with suppress(subprocess.TimeoutExpired):
                process.wait(timeout=15)
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
        self.running.clear()

    @contextmanager
    def speaking(self) -> Iterator[None]:
        """This process's Django, connected to the service's database."""
        where = {name: self.database[name] for name in ("HOST", "PORT", "USER", "PASSWORD")}
        with self.unblock(), speaking_to(DATABASE, **where):
            yield

    def connect(self) -> Any:
        """A connection of its own to the service's database."""
        names = {"USER": "user", "PASSWORD": "password", "HOST": "host", "PORT": "port"}
        where = {to: self.database[name] for name, to in names.items() if self.database[name]}
        return psycopg2.connect(dbname=DATABASE, application_name="test", **where)

    def fetch(self, sql: str, *parameters: Any) -> list[tuple[Any, ...]]:
        """The rows of a query, seen from outside: what is committed now."""
        with closing(self.connect()) as connection, connection.cursor() as cursor:
            cursor.execute(sql, parameters)
            return list(cursor.fetchall())

    def _commands(self) -> dict[str, list[str]]:
        return {
            "web": [
                sys.executable,
                "-m",
                "gunicorn",
                "kbpo.wsgi",
                "--preload",  # two processes, and what they import is imported once
                "-b",
                f"127.0.0.1:{self.port}",
                "--config",
                "python:kbpo.serving",
                "--workers",
                "2",
                "--threads",
                "4",
            ],
            "worker": [sys.executable, "-m", "kbpo.single_worker"],
        }

    def beside(self, **settings: str) -> Service:
        """Another service on the same database, at a port of its own, with other settings."""
        return Service(self.directory, self.unblock, free_port(), self.database, settings=settings)

    def environment(self, name: str) -> dict[str, str]:
        database = self.database
        password = f":{quote(database['PASSWORD'], safe='')}" if database["PASSWORD"] else ""
        options = {"host": database["HOST"], "port": database["PORT"], "application_name": name}
        where = urlencode({option: value for option, value in options.items() if value})
        return os.environ | {
            "DJANGO_SETTINGS_MODULE": "cheap_passwords",
            "PYTHONPATH": str(TESTS),
            "DATABASE_URL": (
                f"postgres://{quote(database['USER'], safe='')}{password}@/{DATABASE}?{where}"
            ),
            "REDIS_URL": "",
            "KBPO_VAR": str(self.directory),
            "SITE_URL": self.url,
            "TICK_SECONDS": "0.3",
            "OPENBLAS_NUM_THREADS": "1",  # the machine is shared: threads that spin help nobody
            "DEBOUNCE_SECONDS": "0.2",
            "FEWEST_PREDICTIONS": "1",
            **self.settings,
        }

    def _answers(self) -> bool:
        if self.running["web"].poll() is not None:
            raise AssertionError(f"The web server ended at once; see {self.directory / 'web.log'}.")
        with socket.socket() as probe:
            probe.settimeout(1)
            return probe.connect_ex(("127.0.0.1", self.port)) == 0


@pytest.fixture(scope="session")
def service(django_db_blocker: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    """The running service, with an empty database; started once, for all tests that need it."""
    port = free_port()
    directory = tmp_path_factory.mktemp("service")
    database = connections["default"].settings_dict
    made = Service(directory, django_db_blocker.unblock, port, database)
    with django_db_blocker.unblock():
        copy_to(DATABASE)
    try:
        made.start("web", "worker")
        STARTED.append(made)
        yield made
    finally:
        STARTED.clear()
        made.stop()


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    """Pauses the service during tests that do not ask for it: its clock would take a good part of
    a core from them. It has a database of its own, so it holds up nobody by a lock.
    """
    for each in STARTED:
        if "service" in getattr(item, "fixturenames", ()):
            each.go_on()
        else:
            each.pause()


def free_port() -> int:
    """A port that nobody has and no connection that goes out is given: we use it only later, and
    again after a kill.
    """
    first = os.getpid() * 13 % 10_000
    for port in (20_000 + (first + at) % 10_000 for at in range(10_000)):
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                continue
        with socket.socket() as probe, suppress(OSError):
            probe.bind(("127.0.0.1", port))
            return port
    raise LookupError("No port is free.")


def wait_for(
    ready: Callable[[], Any], what: str, *, patience: float = PATIENCE, every: float = 0.05
) -> Any:
    """What `ready()` says once it is true. Fails if that takes longer than our patience."""
    deadline = time.monotonic() + patience
    while not (found := ready()):
        assert time.monotonic() < deadline, f"Waited {patience:.0f} s for {what}."
        time.sleep(every)
    return found
