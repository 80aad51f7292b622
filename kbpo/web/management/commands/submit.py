"""Uploads a file as a submission of a team, as the page does; a step of the clock reads it. In a
terminal it waits for that.
"""

from __future__ import annotations

import time
from argparse import BooleanOptionalAction
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from kbpo.accounts.models import User
from kbpo.submissions.models import Submission
from kbpo.submissions.receive import CannotChange, CannotReceive, one_line, set_role
from kbpo.tracks.models import Track
from kbpo.web.research.upload import receive_run

PATIENCE = 10.0
"""Seconds after which it says that nobody may be reading files"""


class Command(BaseCommand):
    help = __doc__

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("track", help="Slug of the track")
        parser.add_argument(
            "file",
            type=Path,
            help="What the system predicts or wrote (docs/formats.md); may be gzipped",
        )
        parser.add_argument("--user", required=True, help="Who submits")
        parser.add_argument("--team", help="Slug of the team (default: the user's first one)")
        parser.add_argument("--name", help="Name of the submission (default: the file's name)")
        parser.add_argument("--description", default="")
        parser.add_argument(
            "--role",
            default="system",
            choices=Submission.Role.values,
            help="A baseline is marked as one on the board; the reference has no rank",
        )
        parser.add_argument("--again", action="store_true", help="Yes, the same file once more")
        parser.add_argument(
            "--wait",
            action=BooleanOptionalAction,
            help="Wait until the file is read and planned; in a terminal that is the default",
        )

    def handle(self, *args: Any, **options: Any) -> None:
        track = Track.objects.select_related("corpus").filter(slug=options["track"]).first()
        user = User.objects.filter(username=options["user"]).first()
        if track is None or user is None:
            missing = f"track {options['track']}" if track is None else f"user {options['user']}"
            raise CommandError(f"There is no {missing}.")
        team = user.team(options["team"] or "")
        if team is None:
            raise CommandError(f"{user} is in no such team.")
        path: Path = options["file"]
        asked = options["name"] or path.name.split(".")[0]
        try:
            with path.open("rb") as file:
                submission = receive_run(
                    track,
                    team,
                    user,
                    file,
                    name=asked,
                    description=options["description"],
                    file_name=path.name,
                    refuse_same=not options["again"],
                    refuse_taken=bool(options["name"]),
                )
            set_role(submission, options["role"])
        except (OSError, CannotReceive, CannotChange) as problem:
            raise CommandError(str(problem)) from problem
        why = f": {team} has a “{asked}” already" if one_line(asked) != submission.name else ""
        self.stdout.write(f"Submission {submission.pk} ({submission.name}) was received{why}.")
        if self.stdout.isatty() if options["wait"] is None else options["wait"]:
            try:
                self._wait(submission)
            except KeyboardInterrupt:
                self.stderr.write("Stopped watching. The service goes on.", str)

    def _wait(self, submission: Submission) -> None:
        """Show how far a submission is until it is planned, refused or given up, and then why."""
        began, shown, warned = time.monotonic(), "", False
        while submission.status in ("received", "read"):
            line = submission.get_status_display()
            if submission.status == "received":
                line += f", {100 * submission.progress:.0f} % read"
            if line != shown:
                shown = line
                self.stderr.write(line, str)  # no error: not in red
            elif not warned and time.monotonic() - began > PATIENCE and not submission.progress:
                warned = True
                self.stderr.write(
                    "No process reads it yet. Where no worker runs: manage.py tick --until-idle",
                    str,
                )
            time.sleep(1)
            submission.refresh_from_db()
        self.stdout.write(submission.reason or f"{submission.get_status_display()}.")
