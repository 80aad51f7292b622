"""Runs the whole journey on demo data, from upload to leaderboard, and then serves the site."""

from __future__ import annotations

import signal
import time
from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.management import call_command
from django.core.management.base import BaseCommand, CommandParser

from kbpo import embedded
from rehearsal.demonstrate import ANNOTATORS, PASSWORD, Demo, DemoFailed, demo_study
from rehearsal.resume import DEFAULTS, delete_demo, resume_options

ON_A_SERVER = "KBPO_LOCAL is false, but the demo has a public password. Use a machine of its own."


class Command(BaseCommand):
    help = __doc__
    requires_migrations_checks = False
    requires_system_checks = []

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument(
            "--reset", action="store_true", help="Forget everything and start afresh"
        )
        parser.add_argument("--no-serve", action="store_true", help="End after the journey")
        parser.add_argument("--port", type=int, default=8000)
        parser.add_argument(
            "--systems",
            type=int,
            metavar="N",
            help="Submit only the first N systems (5; 0 submits all)",
        )
        parser.add_argument(
            "--platform",
            choices=["pool", "mturk"],
            help="Our own pages (pool), or a local marketplace",
        )
        parser.add_argument(
            "--annotators",
            type=int,
            default=ANNOTATORS,
            metavar="N",
            help=f"Simulated annotators ({ANNOTATORS}); 0 leaves every question to people",
        )
        parser.add_argument(
            "--design", choices=["iid", "poisson"], help="How the sample is drawn (iid)"
        )

    def handle(self, *args: Any, **options: Any) -> None:
        self.began = time.monotonic()
        if not settings.LOCAL:
            self.stderr.write(self.style.ERROR(ON_A_SERVER))
            raise SystemExit(1)
        signal.signal(signal.SIGTERM, signal.default_int_handler)
        try:
            self._run(options)
        except KeyboardInterrupt:
            self.say("Stopped. `make demo` goes on from here.")
        except DemoFailed as failure:
            self.stderr.write(self.style.ERROR(str(failure)))
            raise SystemExit(1) from failure
        finally:
            if not settings.DATABASE_URL:
                embedded.stop_server()

    def _run(self, options: dict[str, Any]) -> None:
        files = Path(settings.VAR) / "demo"
        if options["reset"]:
            self.say("Forgetting the last demo")
            delete_demo(files)
        self.say("Preparing the database")
        call_command("migrate", verbosity=0)
        chosen = resume_options(
            {name: options[name] for name in DEFAULTS if options[name] is not None}
        )
        if options["annotators"] < 0:
            raise DemoFailed("--annotators is a number of people: 0 or more.")
        study = demo_study(files / "files", **chosen, annotators=options["annotators"])
        demo = Demo(self.say, study, port=options["port"])
        self.say("Starting the site and a worker")
        with demo.running():
            demo.prepare()
            demo.wait_for_web()
            self.say("Submitting the systems, one after the other")
            demo.judge_all()
            self.say(f"Done in {time.monotonic() - self.began:.0f} s.")
            if not options["no_serve"]:
                self._serve(demo)

    def _serve(self, demo: Demo) -> None:
        self.stdout.write(
            f"\n  The site is up:  {demo.url}/\n\n"
            f"  researcher   password {PASSWORD}   uploads and watches\n"
            f"  annotator    password {PASSWORD}   judges what is left to people:"
            f" {demo.url}/annotate/\n"
            f"  admin        password {PASSWORD}   runs the service: {demo.url}/desk/\n\n"
            "  Ctrl-C stops everything that was started.\n"
        )
        self.stdout.flush()
        demo.watch()

    def say(self, text: str) -> None:
        """Print a line of progress with the seconds since the start."""
        self.stdout.write(f"[{time.monotonic() - self.began:5.0f} s] {text}")
        self.stdout.flush()
