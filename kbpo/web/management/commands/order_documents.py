"""Draws documents of a track to be annotated whole: uniformly, or in two stages."""

from __future__ import annotations

from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from kbpo.sampling.documents.draw import (
    UNIFORM_SHARE,
    CannotDraw,
    order_documents,
    what_was_drawn,
)
from kbpo.sampling.models import DocumentBatch
from kbpo.tracks.models import Track


class Command(BaseCommand):
    help = __doc__

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("track", help="Slug of the track")
        parser.add_argument("size", type=int, help="Documents; of two stages both together")
        parser.add_argument(
            "--design",
            default="uniform",
            choices=DocumentBatch.Design.values,
            help=(
                "uniform: every document has the same chance. two_stage: a fifth so; then, once"
                " that is annotated, those that name its entities are drawn more often, each with"
                " its recorded probability"
            ),
        )
        parser.add_argument(
            "--seed", type=int, help="Seed of the draw (default: a random one, which is stored)"
        )

        parser.add_argument(
            "--uniform-share",
            type=float,
            default=UNIFORM_SHARE,
            help=(
                "Of two stages: share of the second's probabilities that is uniform (default: 0.5)"
            ),
        )

    def handle(self, *args: Any, **options: Any) -> None:
        track = Track.objects.select_related("corpus").filter(slug=options["track"]).first()
        if track is None:
            raise CommandError(f"There is no track {options['track']}.")
        try:
            batch = order_documents(
                track,
                options["size"],
                options["design"],
                seed=options["seed"],
                uniform_share=options["uniform_share"],
            )
        except CannotDraw as problem:
            raise CommandError(str(problem)) from problem
        self.stdout.write(what_was_drawn(batch))
