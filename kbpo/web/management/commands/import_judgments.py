"""Imports single judgments of a track's texts: input_id, system, worker, prompt, value, seconds."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from formats.messages import Report
from kbpo.tracks.models import Track
from kbpo.tracks.texts.judgments import CannotImport
from kbpo.web.desk.judgments import import_file
from kbpo.web.management.visibility import add_visibility

TOLD = 20
"""Messages that are printed"""


class Command(BaseCommand):
    help = __doc__

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("track", help="Slug of the track")
        parser.add_argument("file", type=Path, help="TSV, CSV or JSON Lines; may be gzipped")
        parser.add_argument(
            "--partly", action="store_true", help="Take the good lines, although others are wrong"
        )
        add_visibility(parser)

    def handle(self, *args: Any, **options: Any) -> None:
        track = Track.objects.select_related("corpus").filter(slug=options["track"]).first()
        if track is None:
            raise CommandError(f"There is no track {options['track']}.")
        report = Report()
        try:
            done = import_file(
                track,
                options["file"],
                report,
                None,
                partly=options["partly"],
                is_public=options["public"],
            )
        except OSError as problem:
            raise CommandError(
                f"{options['file']} cannot be read: {problem.strerror}."
            ) from problem
        except CannotImport as problem:
            self._tell(report)
            raise CommandError(str(problem)) from problem
        self._tell(report)
        self.stdout.write(done.sentence)

    def _tell(self, report: Report) -> None:
        for message in list(report)[:TOLD]:
            where = f", line {message.line}" if message.line else ""
            self.stderr.write(f"{message.severity}{where}: {message.text}")
