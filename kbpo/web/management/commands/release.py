"""Writes the release of a closed track into a directory: all that its board rests on."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from kbpo.releases.parquet import WITHOUT
from kbpo.releases.write import CannotRelease, write_release
from kbpo.tracks.models import Track


class Command(BaseCommand):
    help = __doc__

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("track", help="Slug of the track")
        parser.add_argument("directory", type=Path, help="Where it goes: a new directory")

    def handle(self, *args: Any, **options: Any) -> None:
        track = Track.objects.filter(slug=options["track"]).first()
        if track is None:
            raise CommandError(f"There is no track {options['track']}.")
        try:
            manifest = write_release(track, options["directory"])
        except CannotRelease as problem:
            raise CommandError(str(problem)) from problem
        counts = manifest["rows"]
        without = "" if manifest["versions"]["pyarrow"] else f" {WITHOUT}"
        self.stdout.write(
            f"{options['directory']}: {counts['estimates']:,} numbers, {counts['labels']:,} labels,"
            f" {counts['answers']:,} answers. It rescores to the last digit.{without}"
        )
