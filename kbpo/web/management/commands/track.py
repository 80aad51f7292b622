"""Opens, freezes or closes a track."""

from __future__ import annotations

from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from kbpo.sampling.open_track import CannotMove, close_track, freeze_track, open_track
from kbpo.tracks.models import Track

VERBS = {"open": open_track, "freeze": freeze_track, "close": close_track}


class Command(BaseCommand):
    help = __doc__

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("track", help="Slug of the track")
        parser.add_argument("verb", choices=list(VERBS))

    def handle(self, *args: Any, **options: Any) -> None:
        track = Track.objects.filter(slug=options["track"]).first()
        if track is None:
            raise CommandError(f"There is no track {options['track']}.")
        try:
            track = VERBS[options["verb"]](track)
        except CannotMove as problem:
            raise CommandError(str(problem)) from problem
        self.stdout.write(f"The track {track.name} is {track.status}.")
