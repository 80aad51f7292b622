"""Writes all single judgments of a track's texts, as import_judgments reads them."""

from __future__ import annotations

from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from kbpo.tracks.content.judgments import CannotImport
from kbpo.tracks.models import Track
from kbpo.web.desk.judgments import judgment_lines


class Command(BaseCommand):
    help = __doc__

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("track", help="Slug of the track")

    def handle(self, *args: Any, **options: Any) -> None:
        track = Track.objects.select_related("corpus").filter(slug=options["track"]).first()
        if track is None:
            raise CommandError(f"There is no track {options['track']}.")
        try:
            for line in judgment_lines(track):
                self.stdout.write(line, ending="")
        except CannotImport as problem:
            raise CommandError(str(problem)) from problem
