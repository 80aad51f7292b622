"""The worker of a single machine: one process, with a thread for each queue and one for the clock.

usage: python -m kbpo.single_worker SCHEDULE

The clock keeps its schedule in that file. A server has a process for each instead, see
docker-compose.yml.
"""

from __future__ import annotations

import sys
from typing import Any

from celery.beat import EmbeddedService
from celery.bootsteps import StartStopStep

from kbpo.celery import QUEUES, app


class Clock(StartStopStep):  # type: ignore[misc]
    """Celery's own `--beat` is a process more, which takes a hundred megabytes."""

    def start(self, worker: Any) -> None:
        schedule = sys.argv[1]
        self.service = EmbeddedService(worker.app, thread=True, schedule_filename=schedule)
        self.service.start()

    def stop(self, worker: Any) -> None:
        self.service.stop()


def main() -> None:
    app.steps["worker"].add(Clock)
    threads = ["--pool=threads", f"--concurrency={len(QUEUES) + 1}"]  # one turns away: `BUSY`
    quiet = ["--without-heartbeat", "--without-gossip", "--without-mingle", "--loglevel=WARNING"]
    app.worker_main(["worker", f"--queues={','.join(QUEUES)}", *threads, *quiet])


if __name__ == "__main__":
    main()
