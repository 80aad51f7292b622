"""Whether a container's process is alive, for its health check: `python -m kbpo.alive web`.

Docker marks a container that fails its check, and leaves it as it is. So what does not answer three
times in a row is asked to end, and `restart: unless-stopped` starts it anew. A worker that is asked
waits for what it has in hand, for ever where that hangs: so what still does not answer three times
later is killed (the container's first process, `init: true`, ends when ours does). Nothing is lost
by it: what a worker had claimed is free again by its deadline. A site that answers
that its database is away is unhealthy, as is a worker that cannot be asked since the broker is
away; both are left alone: a new start would not help. A check that Docker ends for its length
has been noted as a failure before it asked.
"""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable
from pathlib import Path

IN_A_ROW = 3
FAILURES = Path(os.environ.get("KBPO_FAILURES", "/tmp/kbpo-failures"))
SITE = os.environ.get("KBPO_HERE", "http://127.0.0.1:8000")
BEAT_WRITES = 600.0
"""Seconds within which the clock writes its schedule down: every three minutes"""
HEALTHY, ILL, DEAD = 0, 1, 2


def web() -> int:
    """Return how the site is: it is asked as the proxy asks, over TLS."""
    headers = {"Host": "localhost", "X-Forwarded-Proto": "https"}
    try:
        urllib.request.urlopen(
            urllib.request.Request(f"{SITE}/healthz", headers=headers), timeout=8
        )
    except urllib.error.HTTPError:
        return ILL
    except OSError:
        return DEAD
    return HEALTHY


def worker() -> int:
    """Return whether the worker of this container answers. It is asked over the broker: where that
    is away, nobody knows, and the worker is at what it has in hand.
    """
    from celery import Celery  # here: the site's check, which comes more often, needs none of it

    app = Celery("kbpo", config_source="kbpo.settings", namespace="CELERY")
    name = f"celery@{socket.gethostname()}"
    try:
        with app.connection_for_write() as broker:
            broker.ensure_connection(max_retries=1, timeout=4)
            answers = app.control.ping(destination=[name], timeout=8, connection=broker)
    except Exception:  # the broker's own words for it are many, and none is the worker's
        return ILL
    return HEALTHY if answers else DEAD


def beat() -> int:
    """Return whether the clock has written its schedule down of late."""
    home = Path(os.environ.get("KBPO_VAR", "/var/lib/kbpo"))
    written = [path.stat().st_mtime for path in home.glob("beat-schedule*")]
    return HEALTHY if written and time.time() - max(written) < BEAT_WRITES else DEAD


CHECKS: dict[str, Callable[[], int]] = {"web": web, "worker": worker, "beat": beat}


def judge(check: Callable[[], int], end: Callable[[bool], None]) -> int:
    """Return the exit status of a check; `end` is called whenever nothing answered three times
    more: to ask at first, and to insist afterwards, where it is still the same process.
    """
    began, failures = _began(1), 0
    told, n, *asking = FAILURES.read_text().split(" ") if FAILURES.exists() else ("", "0")
    if told == began:
        failures = int(n)
        if asking and failures % IN_A_ROW == 0:  # it was ended before it could say so
            end(failures > IN_A_ROW)
    FAILURES.write_text(f"{began} {failures + 1} asking")
    state = check()
    if state != DEAD:
        FAILURES.unlink(missing_ok=True)
        return state
    FAILURES.write_text(f"{began} {failures + 1}")
    if (failures + 1) % IN_A_ROW == 0:
        end(failures + 1 > IN_A_ROW)
    return ILL


def end(insists: bool, first: int = 1) -> None:
    """Nothing; the container's first process is asked to end, or what it started is killed: it
    cannot be killed itself from inside.
    """
    if not insists:
        os.kill(first, signal.SIGTERM)
        return
    for child in _started_by(first):
        with contextlib.suppress(ProcessLookupError):
            os.kill(child, signal.SIGKILL)


def _started_by(process: int) -> list[int]:
    found = []
    for path in Path("/proc").glob("[0-9]*"):
        if _stat(int(path.name))[1:2] == [str(process)]:
            found.append(int(path.name))
    return found


def _began(process: int) -> str:
    """When a process began, in ticks since the machine did."""
    return "".join(_stat(process)[19:20])


def _stat(process: int) -> list[str]:
    """What the kernel tells of a process behind its name, which may hold anything: its state, who
    started it, and so on. Nothing of one that has ended.
    """
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return []


if __name__ == "__main__":
    sys.exit(judge(CHECKS[sys.argv[1]], end))
