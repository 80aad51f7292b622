"""Loads the titles that are suggested for the links of entities: a file with one title a line,
gzipped or not.
"""

from __future__ import annotations

import gzip
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from annotation.questions.titles import load_titles

GZIP = b"\x1f\x8b"


class Command(BaseCommand):
    help = __doc__

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument(
            "file", type=Path, help="One title a line, as in Wikipedia's list of all titles"
        )

    def handle(self, *args: Any, **options: Any) -> None:
        path: Path = options["file"]
        try:
            with path.open("rb") as raw:
                packed = raw.read(2) == GZIP
            with (
                gzip.open(path, "rt", encoding="utf-8")
                if packed
                else path.open(encoding="utf-8") as lines
            ):
                number = load_titles(lines)
        except (OSError, EOFError, UnicodeDecodeError) as error:
            raise CommandError(
                f"{path} cannot be read, and nothing was changed: {error}."
            ) from error
        self.stdout.write(f"{number:,} titles are suggested from now on.")
