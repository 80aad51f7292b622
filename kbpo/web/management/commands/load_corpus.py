"""Loads a corpus of documents with its schema: whole, or not at all."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from formats.messages import FormatError
from kbpo.corpus.load import DEV_SHARE, CannotLoad, find_schema, load_corpus


class Command(BaseCommand):
    help = __doc__

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("name", help="Name of the corpus")
        parser.add_argument("file", type=Path, help="The documents: JSON Lines, may be gzipped")
        parser.add_argument(
            "--schema",
            required=True,
            help="A schema file, or tac_kbp or docred, which ship with us",
        )
        parser.add_argument(
            "--mentions", type=Path, help="Mentions that come with the corpus (TSV)"
        )
        parser.add_argument(
            "--dev-share",
            type=float,
            default=DEV_SHARE,
            help="Share of the documents that becomes the development part, where the file names no"
            f" parts (default {DEV_SHARE})",
        )
        parser.add_argument(
            "--replace", action="store_true", help="Replace a corpus of that name that nothing uses"
        )

    def handle(self, *args: Any, **options: Any) -> None:
        notes: list[str] = []
        try:
            corpus = load_corpus(
                options["name"],
                options["file"],
                find_schema(options["schema"]),
                mentions=options["mentions"],
                replace=options["replace"],
                dev_share=options["dev_share"],
                notes=notes,
            )
        except (CannotLoad, FormatError) as problem:
            raise CommandError(str(problem)) from problem
        for note in notes:
            self.stderr.write(note)
        self.stdout.write(
            f"Loaded {corpus.n_documents:,} documents as {corpus.name} ({corpus.slug});"
            f" {corpus.n_dev:,} of them are its development part."
        )
