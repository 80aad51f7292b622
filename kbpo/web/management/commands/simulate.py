"""Answers questions with simulated workers over HTTP until it is stopped."""

from __future__ import annotations

import signal
import threading
from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.utils.module_loading import import_string

from rehearsal.annotators import ANY_KIND, Crowd, MarketCrowd
from rehearsal.demonstrate import CROWD
from rehearsal.newspaper.texts import Written


class Command(BaseCommand):
    help = __doc__
    requires_system_checks = []

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("url", help="Address of the site")
        parser.add_argument(
            "--knows",
            nargs="+",
            default=[],
            metavar=("CLASS", "FILE"),
            help="Dotted name of a class with true_answer and mentions_of, and its files",
        )
        parser.add_argument(
            "--user",
            default=CROWD,
            help=f"Login of the first (default: {CROWD}); the others are NAME2, NAME3 …",
        )
        parser.add_argument(
            "--password", default="", help="Of all of them; on a marketplace nobody logs in"
        )
        parser.add_argument(
            "--market", default="", help="Address of a marketplace: they find HITs and answer there"
        )
        parser.add_argument("--workers", type=int, default=3)
        parser.add_argument(
            "--accuracy", type=float, default=1.0, help="Probability that an answer is right"
        )
        parser.add_argument(
            "--mention-recall",
            type=float,
            default=0.8,
            help="Share of a document's mentions that a worker finds",
        )
        parser.add_argument(
            "--seconds",
            type=float,
            default=0.0,
            help="Mean seconds that a worker takes for an answer",
        )
        parser.add_argument(
            "--thinks",
            type=Path,
            metavar="FILE",
            help="What is true of texts, as the demo writes it",
        )
        parser.add_argument(
            "--kind",
            nargs="+",
            default=[ANY_KIND],
            help="The interface that they want questions of (any); of several, they take turns",
        )
        parser.add_argument("--seed", type=int, default=1)
        parser.add_argument(
            "--until-empty", action="store_true", help="Stop when nobody finds anything to judge"
        )

    def handle(self, *args: Any, **options: Any) -> None:
        if not 0 <= options["accuracy"] <= 1:
            raise CommandError(f"--accuracy {options['accuracy']} is not a probability.")
        if not options["knows"] and not options["thinks"]:
            raise CommandError("They know nothing: say --knows for relations, --thinks for texts.")
        knowledge = None
        if options["knows"]:
            knowledge = _knowledge(*options["knows"])
        knows = getattr(knowledge, "true_answer", None)
        names = [
            options["user"],
            *(f"{options['user']}{number}" for number in range(2, options["workers"] + 1)),
        ]
        how = {name: options[name] for name in ("mention_recall", "accuracy", "seconds", "seed")}
        how["finds"] = getattr(knowledge, "mentions_of", None)
        how["tell"] = self.stderr.write
        how["opinions"] = Written(_existing_file(options["thinks"])) if options["thinks"] else None
        if not (options["market"] or options["password"]):
            raise CommandError(
                "Annotators log in: say --password, or --market for workers of a marketplace."
            )
        try:
            if options["market"]:
                crowd: Crowd = MarketCrowd(options["market"], options["url"], names, knows, **how)
            else:
                logins = [(name, options["password"]) for name in names]
                crowd = Crowd(options["url"], logins, knows, kinds=options["kind"], **how)
        except ValueError as strange:
            raise CommandError(
                f"{strange} --knows tells them of relations, --thinks of texts."
            ) from strange
        stop = threading.Event()
        signal.signal(signal.SIGTERM, lambda *_: stop.set())
        signal.signal(signal.SIGINT, lambda *_: stop.set())
        done = crowd.work(
            None if options["until_empty"] else stop.is_set, poll=1.0, at_most=float("inf")
        )
        self.stdout.write(
            f"{done.answers} answers, {done.wrong} of them wrong,"
            f" {done.answers_per_second:.1f} a second."
        )
        if done.errors:
            self.stderr.write(f"{len(done.errors)} errors, the last: {done.errors[-1]}")
        if done.refused:
            raise CommandError(
                f"Not logged in: {', '.join(sorted(done.refused))}. Check --workers and --password."
            )


def _knowledge(dotted: str, *files: str) -> Any:
    """Return an object of the class with the true answers. Raises CommandError with a sentence."""
    try:
        knows = import_string(dotted)(*map(_existing_file, files))
    except (ImportError, TypeError, ValueError, LookupError, OSError) as problem:
        raise CommandError(f"--knows {dotted} {' '.join(files)}: {problem}") from problem
    if not hasattr(knows, "true_answer"):
        raise CommandError(f"--knows {dotted} is no class with true_answer(document, a, b).")
    return knows


def _existing_file(file: str | Path) -> Path:
    """Return the file. Raises CommandError if it does not exist."""
    if not Path(file).is_file():
        raise CommandError(
            f"There is no file {file}. The demo writes them to {settings.VAR / 'demo' / 'files'}."
        )
    return Path(file)
