"""Declares a form: what people are asked of texts, in YAML, without code."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from kbpo.tracks.generation.declared import CannotDeclare, declare
from kbpo.tracks.registry import FORM


class Command(BaseCommand):
    help = __doc__

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("file", type=Path, help="The form: YAML (docs/formats.md)")

    def handle(self, *args: Any, **options: Any) -> None:
        try:
            text = options["file"].read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as problem:
            raise CommandError(f"{options['file']} cannot be read: {problem}.") from problem
        try:
            row = declare(text)
        except CannotDeclare as problem:
            raise CommandError("\n".join(["Nothing was stored.", *problem.sentences])) from problem
        self.stdout.write(f"Declared {row.title}. A track asks by it with --kind {FORM}{row.name}.")
