"""Runs the pipeline once, or until nothing changes, without a broker."""

from __future__ import annotations

from typing import Any

from django.core.management.base import BaseCommand, CommandParser

from kbpo.celery import PIPELINE, run_step


class Command(BaseCommand):
    help = __doc__

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument(
            "steps",
            nargs="*",
            metavar="STEP",
            help=f"Which steps: {', '.join(PIPELINE)} (default: all)",
        )
        parser.add_argument(
            "--until-idle", action="store_true", help="Repeat until a round moves nothing"
        )

    def handle(self, *args: Any, **options: Any) -> None:
        steps = options["steps"] or list(PIPELINE)
        if unknown := [name for name in steps if name not in PIPELINE]:
            self.stderr.write(
                f"There is no step {', '.join(unknown)}; there are {', '.join(PIPELINE)}."
            )
            raise SystemExit(2)
        moved = True
        while moved:
            moved = sum(self._run(name) for name in steps) > 0 and options["until_idle"]

    def _run(self, name: str) -> bool:
        moved = run_step(name)
        self.stdout.write(f"{name:<9} {moved}")
        return moved > 0 and name not in ("estimate", "reap")
