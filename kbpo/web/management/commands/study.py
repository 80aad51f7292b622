"""Write a study of a track as CSV and SVG files: pooling bias, or what its samples reach."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from kbpo.evaluation.studies.write import write_pooling, write_reach
from kbpo.tracks.models import Track
from kbpo.tracks.recall import recall_of

STUDIES = {
    "pooling": (write_pooling, "It has no judged predictions of two teams yet."),
    "reach": (write_reach, "No entity of its corpus is known yet."),
}


class Command(BaseCommand):
    help = __doc__

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("track", help="Slug of the track")
        parser.add_argument("study", choices=STUDIES)
        parser.add_argument("directory", type=Path, help="Where the files are written")

    def handle(self, *args: Any, **options: Any) -> None:
        track = Track.objects.select_related("corpus").filter(slug=options["track"]).first()
        if track is None:
            raise CommandError(f"There is no track {options['track']}.")
        if recall_of(track) is None:
            raise CommandError(f"{track.name} has no documents to read; studies need them.")
        directory: Path = options["directory"]
        directory.mkdir(parents=True, exist_ok=True)
        write, empty = STUDIES[options["study"]]
        files = write(track, directory)
        if not files:
            raise CommandError(f"{track.name}: nothing to study. {empty}")
        for file in files:
            self.stdout.write(str(file))
