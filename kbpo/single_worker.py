"""The worker of a single machine, which has no Redis: one process, with a thread for each queue.

usage: python -m kbpo.single_worker

A server has Celery's processes instead, see docker-compose.yml.
"""

from __future__ import annotations

import logging
import signal
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from threading import Event

import django
from django.conf import settings
from django.db import close_old_connections
from django.utils.module_loading import import_string

from kbpo.celery import QUEUES, run_queue_round

log = logging.getLogger(__name__)


def main() -> None:
    """Run the steps of every queue whenever rows may be due, until the process is asked to end."""
    django.setup()
    is_due = import_string("kbpo.clock.look.is_due")
    stop = Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stop.set())
    looks: dict[str, Future[int]] = {}
    with ThreadPoolExecutor(len(QUEUES)) as threads:
        while not stop.wait(float(settings.TICK_SECONDS)):
            try:
                close_old_connections()
                has_news = is_due()
            except Exception:  # the database may be down; the next tick retries
                log.exception("Could not look for work that is due")
                continue
            if has_news:
                start_idle_queues(threads, looks)


def start_idle_queues(threads: Executor, running_rounds: dict[str, Future[int]]) -> None:
    """Start running the steps of each queue that is idle. A long run, for a large file, takes no
    thread from the other queues.
    """
    for queue in QUEUES:
        if queue not in running_rounds or running_rounds[queue].done():
            running_rounds[queue] = threads.submit(_run_queue_round, queue)


def _run_queue_round(queue: str) -> int:
    """Run the steps of a queue once, after closing connections that are old or broken."""
    close_old_connections()
    moved: int = run_queue_round(queue)
    return moved


if __name__ == "__main__":
    main()
