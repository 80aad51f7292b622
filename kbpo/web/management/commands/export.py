"""Writes answers, labels or agreement of a track to standard output, as CSV or JSON Lines."""

from __future__ import annotations

from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from annotation.labels.export import EXPORTS
from kbpo.tracks.models import Track
from kbpo.web.table import json_lines, lines


class Command(BaseCommand):
    help = __doc__

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("track", help="Slug of the track")
        parser.add_argument("what", choices=list(EXPORTS))
        parser.add_argument("--json-lines", action="store_true", help="Instead of CSV")

    def handle(self, *args: Any, **options: Any) -> None:
        track = Track.objects.filter(slug=options["track"]).first()
        if track is None:
            raise CommandError(f"There is no track {options['track']}.")
        header, rows_of = EXPORTS[options["what"]]
        write = json_lines if options["json_lines"] else lines
        for line in write(header, rows_of(track)):
            self.stdout.write(line, ending="")
