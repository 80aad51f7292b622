"""Loads what systems that write are run on, as a corpus: whole, or not at all."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from kbpo.corpus.load import DEV_SHARE, CannotLoad
from kbpo.tracks.texts.load import load_inputs


class Command(BaseCommand):
    help = __doc__

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("name", help="Name of the corpus")
        parser.add_argument("file", type=Path, help="The inputs: JSON Lines, may be gzipped")
        parser.add_argument(
            "--dev-share",
            type=float,
            default=DEV_SHARE,
            help="Share of the inputs that becomes the development part, where the file names no"
            f" parts (default {DEV_SHARE})",
        )

    def handle(self, *args: Any, **options: Any) -> None:
        notes: list[str] = []
        try:
            corpus = load_inputs(
                options["name"], options["file"], notes, dev_share=options["dev_share"]
            )
        except CannotLoad as problem:
            raise CommandError(str(problem)) from problem
        for note in notes:
            self.stderr.write(note)
        n = corpus.inputs.count()
        self.stdout.write(
            f"Loaded {n:,} inputs as {corpus.name} ({corpus.slug}); {corpus.n_dev:,} of them are"
            " the development part. Once a track is public, everybody may download them, without"
            " what people wrote for them; an admin may forbid that on the track’s Edit page."
        )
