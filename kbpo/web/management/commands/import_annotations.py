"""Imports exhaustive annotation (gold.tsv, mentions.tsv) of documents of a track as labels."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from kbpo.corpus.load import CannotLoad
from kbpo.corpus.models import Document
from kbpo.sampling.documents.draw import (
    CannotDraw,
    draw_documents,
    named_documents,
    waiting_documents,
)
from kbpo.sampling.documents.import_annotations import import_annotations
from kbpo.tracks.models import Track
from kbpo.tracks.recall import kind_with_recall_or_none


class Command(BaseCommand):
    help = __doc__

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("track", help="Slug of the track")
        parser.add_argument("gold", type=Path, help="Relations that hold (TSV, may be gzipped)")
        parser.add_argument(
            "mentions",
            type=Path,
            help="Mentions with their canonical mentions (TSV, may be gzipped)",
        )
        which = parser.add_mutually_exclusive_group(required=True)
        which.add_argument("--sample", type=int, metavar="N", help="N documents, drawn uniformly")
        which.add_argument("--all", action="store_true", help="Every document of the corpus")
        which.add_argument(
            "--documents",
            type=Path,
            help="A file that names one a line; they must be a uniform random sample",
        )
        which.add_argument(
            "--drawn",
            action="store_true",
            help="The documents that were drawn (order_documents) and are not annotated",
        )
        parser.add_argument("--seed", type=int, default=0, help="Seed of the draw (default 0)")
        parser.add_argument(
            "--closed", action="store_true", help="What is not marked is false, not only missing"
        )
        visibility = parser.add_mutually_exclusive_group()
        visibility.add_argument(
            "--public",
            action="store_true",
            default=None,
            help="Everybody may see them, as they were published (default for a study)",
        )
        visibility.add_argument(
            "--private",
            action="store_false",
            dest="public",
            default=None,
            help="Nobody sees them before the track closes (default for a shared track)",
        )

    def handle(self, *args: Any, **options: Any) -> None:
        track = Track.objects.select_related("corpus").filter(slug=options["track"]).first()
        if track is None:
            raise CommandError(f"There is no track {options['track']}.")
        if kind_with_recall_or_none(track) is None:
            raise CommandError(f"On {track.name} no documents are read in full.")
        seed = options["seed"] if options["sample"] else None
        try:
            done = import_annotations(
                track,
                options["gold"],
                options["mentions"],
                _annotated_documents(track, options),
                closed=options["closed"],
                seed=seed,
                is_public=track.is_study if options["public"] is None else options["public"],
            )
        except (CannotLoad, CannotDraw) as problem:
            raise CommandError(str(problem)) from problem
        labels = " and ".join(f"{n:,} {what}" for what, n in done.labels.items())
        self.stdout.write(
            f"Imported {labels} of {done.documents:,} documents; {done.annotated:,} of"
            f" {track.corpus.n_documents:,} documents of {track.name} are annotated now."
        )
        if done.unmarked:
            self.stdout.write(
                f"{done.unmarked:,} of these documents have no marks and count as read in full."
            )
        if done.lacking:
            mentions, they = f"{done.lacking:,} mentions", "they refer"
            if done.lacking == 1:
                mentions, they = "1 mention", "it refers"
            self.stdout.write(
                f"{options['mentions']} lacks {mentions} that relations name, the first in line"
                f" {done.first_lacking:,} of {options['gold']}: what {they} to is"
                " unknown."
            )


def _annotated_documents(track: Track, options: dict[str, Any]) -> list[int]:
    if options["sample"]:
        return draw_documents(track, options["sample"], options["seed"])
    if options["drawn"]:
        if not (waiting := waiting_documents(track)):
            raise CommandError(
                f"No document of {track.name} was drawn and waits. Draw some with order_documents."
            )
        return waiting
    if options["all"]:
        return list(
            Document.objects.filter(corpus=track.corpus).order_by("pk").values_list("pk", flat=True)
        )
    try:
        lines = options["documents"].read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as problem:
        raise CommandError(f"{options['documents']} cannot be read: {problem}.") from problem
    return named_documents(track, [line.strip() for line in lines if line.strip()])
