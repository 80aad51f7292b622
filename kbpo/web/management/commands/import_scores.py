"""Takes in a file of scores that a metric or a judge gave elsewhere: whole, or not at all."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from kbpo.accounts.models import User
from kbpo.scores.bring import BadFile, CannotTake, Name, take_file
from kbpo.tracks.models import Track

SHOWN = 10


class Command(BaseCommand):
    help = __doc__

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("track", help="Slug of the track")
        parser.add_argument("file", type=Path, help="CSV or JSON Lines, may be gzipped")
        parser.add_argument("--name", default="", help="Of the judge, if no column says it")
        parser.add_argument("--judge-version", default="", help="Its version")
        parser.add_argument("--prompt", default="", help="Which prompt it was given")
        parser.add_argument(
            "--not-tuned",
            action="store_true",
            help="State that it was not tuned on judgments of this track",
        )
        parser.add_argument("--user", required=True, help="The admin who brings it")

    def handle(self, *args: Any, **options: Any) -> None:
        track = Track.objects.filter(slug=options["track"]).first()
        admin = User.objects.filter(username=options["user"], is_staff=True).first()
        if track is None:
            raise CommandError(f"There is no track {options['track']}.")
        if admin is None:
            raise CommandError(f"There is no admin {options['user']}.")
        named = Name(options["name"], options["judge_version"], options["prompt"])
        try:
            taken = take_file(
                track,
                options["file"],
                named if named.name else None,
                admin,
                not_tuned=options["not_tuned"],
            )
        except BadFile as refusal:
            wrong = [message for message in refusal.report if message.severity == "error"][:SHOWN]
            lines = [
                f"line {message.line}: {message.text}" if message.line else message.text
                for message in wrong
            ]
            raise CommandError("\n".join(["Nothing was stored.", *lines])) from refusal
        except (CannotTake, OSError) as refusal:
            raise CommandError(str(refusal)) from refusal
        for name, outcome in taken.items():
            self.stdout.write(f"{name}: {outcome.sentence}")
