"""Lets simulated annotators of known accuracy judge through the site's own pages, over HTTP."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.utils.module_loading import import_string

from annotation.simulate import Crowd


class Command(BaseCommand):
    help = __doc__
    requires_system_checks = []

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("url", help="Address of the site, e.g. http://127.0.0.1:8000")
        parser.add_argument(
            "--knows", nargs="+", required=True, metavar="CLASS FILE",
            help="Dotted name of a class with a method true_answer, and the files that it is made from",
        )  # fmt: skip
        parser.add_argument("--user", default="annotator", help="Logins are USER, USER2, USER3 …")
        parser.add_argument("--password", required=True)
        parser.add_argument("--workers", type=int, default=3)
        parser.add_argument("--accuracy", type=float, default=1.0, help="Share of answers that are right")
        parser.add_argument("--seconds", type=float, default=0.0, help="Time over each answer")
        parser.add_argument("--seed", type=int, default=1)
        parser.add_argument("--until-idle", action="store_true", help="Leave when there is nothing to judge")

    def handle(self, *args: Any, **options: Any) -> None:
        name, *files = options["knows"]
        if missing := [file for file in files if not Path(file).exists()]:
            raise CommandError(f"There is no {', '.join(missing)}.")
        knowledge = import_string(name)(*map(Path, files))
        numbers = ["", *map(str, range(2, options["workers"] + 1))]
        crowd = Crowd(
            options["url"],
            [(f"{options['user']}{number}", options["password"]) for number in numbers],
            knowledge.true_answer,
            accuracy=options["accuracy"],
            seconds=options["seconds"],
            seed=options["seed"],
        )
        until = None if options["until_idle"] else lambda: False
        done = crowd.work(until, at_most=float("inf"))
        self.stdout.write(f"{done.answers} answers, {done.wrong} wrong on purpose, {done.rate:.1f} a second")
        for error in done.errors:
            self.stderr.write(error)
