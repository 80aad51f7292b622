"""Records the processes that `make demo` starts, so that `stop` also finds those whose parent was
killed before it could end them.
"""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

import psutil

from kbpo.embedded.server import end, lives

GRACE = 15.0
"""Seconds that a process has to end by itself"""


def record(var: Path, name: str, pid: int) -> None:
    """Note the process `pid` as started from `var`. The start time tells it from a later process
    with the same id.
    """
    directory = var / "processes"
    directory.mkdir(parents=True, exist_ok=True)
    (directory / name).write_text(f"{pid} {psutil.Process(pid).create_time()}")


def end_recorded(var: Path) -> None:
    """End the recorded processes that still run, with their children, and delete the records."""
    records = list((var / "processes").glob("*"))
    running = [process for path in records if (process := _process_of(path)) is not None]
    children = [child for process in running for child in process.children(recursive=True)]
    end(running, grace=GRACE)
    end([child for child in children if lives(child)], grace=0)
    for path in records:
        path.unlink(missing_ok=True)


def _process_of(path: Path) -> psutil.Process | None:
    with suppress(psutil.Error, ValueError):
        pid, started = path.read_text().split()
        process = psutil.Process(int(pid))
        if process.create_time() == float(started):
            return process
    return None
