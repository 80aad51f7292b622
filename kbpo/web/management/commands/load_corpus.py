"""Loads a corpus: documents with a schema, or inputs for systems that write text. All
or nothing.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from formats.messages import FormatError
from kbpo.corpus.load import DEV_SHARE, CannotLoad, find_schema, load_corpus
from kbpo.tracks.texts.store import load_inputs


class Command(BaseCommand):
    help = __doc__

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("name", help="Name of the corpus")
        parser.add_argument("file", type=Path, help="JSON Lines, may be gzipped")
        parser.add_argument(
            "--schema",
            help="A schema file, tac_kbp or docred. Without it the file has inputs of systems",
        )
        parser.add_argument("--mentions", type=Path, help="Mentions in the documents (TSV)")
        parser.add_argument(
            "--dev-share",
            type=float,
            default=DEV_SHARE,
            help=f"Share of the development part, if the file names no parts (default {DEV_SHARE})",
        )

    def handle(self, *args: Any, **options: Any) -> None:
        notes: list[str] = []
        name, file, share = options["name"], options["file"], options["dev_share"]
        try:
            if options["schema"]:
                schema, mentions = find_schema(options["schema"]), options["mentions"]
                corpus = load_corpus(
                    name, file, schema, mentions=mentions, dev_share=share, notes=notes
                )
                loaded = f"{corpus.n_documents:,} documents"
            else:
                corpus = load_inputs(name, file, notes, dev_share=share)
                loaded = f"{corpus.inputs.count():,} inputs"
        except (CannotLoad, FormatError) as problem:
            raise CommandError(str(problem)) from problem
        for note in notes:
            self.stderr.write(note)
        self.stdout.write(
            f"Loaded {loaded} as {corpus.name} ({corpus.slug}); {corpus.n_dev:,} of them are its"
            " development part."
        )
