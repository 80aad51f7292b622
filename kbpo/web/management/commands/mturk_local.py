"""Serves a local copy of Mechanical Turk: the requester's API, the worker's pages, and faults that
can be switched on.
"""

from __future__ import annotations

import signal
import threading
from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError, CommandParser

from rehearsal.mturk.app import serve_endpoint
from rehearsal.mturk.store import KINDS, add_fault


class Command(BaseCommand):
    help = __doc__
    requires_system_checks = []

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--port", type=int, default=8010)
        parser.add_argument(
            "--store", type=Path, help="File of its books (mturk_local.sqlite3 in KBPO_VAR)"
        )
        parser.add_argument(
            "--fault",
            action="append",
            default=[],
            metavar="OPERATION:KIND:TIMES",
            help=f"What goes wrong, e.g. CreateHITWithHITType:timeout:1; kinds: {', '.join(KINDS)}",
        )

    def handle(self, *args: Any, **options: Any) -> None:
        stop = threading.Event()
        for sign in (signal.SIGTERM, signal.SIGINT):
            signal.signal(sign, lambda *_: stop.set())
        path = options["store"] or settings.VAR / "mturk_local.sqlite3"
        try:
            with serve_endpoint(path, options["port"]) as (url, store):
                for fault in options["fault"]:
                    operation, kind, times = [*fault.split(":"), "1"][:3]
                    with store.begin_call() as books:
                        add_fault(books, operation, kind, int(times))
                self.stdout.write(f"A local marketplace at {url}: set MTURK_ENDPOINT_URL={url}")
                stop.wait()
        except (OSError, ValueError) as problem:
            raise CommandError(
                f"The endpoint cannot run on port {options['port']}: {problem}"
            ) from problem
