"""Has people asked about all that systems predict in read documents and nobody marked; first it
shows the price.
"""

from __future__ import annotations

from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from annotation.questions.follow_up import order_follow_up, plan_follow_up
from annotation.questions.order import CannotOrder
from kbpo.money.spend import OverBudget
from kbpo.tracks.models import Track


class Command(BaseCommand):
    help = __doc__

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("track", help="Slug of the track")
        parser.add_argument(
            "--yes",
            action="store_true",
            help="Order; without it the price is shown and nothing done",
        )

    def handle(self, *args: Any, **options: Any) -> None:
        track = Track.objects.select_related("corpus").filter(slug=options["track"]).first()
        if track is None:
            raise CommandError(f"There is no track {options['track']}.")
        try:
            plan = plan_follow_up(track)
            self.stdout.write(
                f"In the {len(plan.documents):,} documents that count, systems predict"
                f" {plan.predictions:,} relations that nobody marked or judged:"
                f" {len(plan.targets):,} questions to {plan.workers}"
                f" {'person' if plan.workers == 1 else 'people'} each, at most ${plan.at_most},"
                f" {plan.work_seconds / 3600:.1f} hours of work in all."
            )
            if options["yes"]:
                order_follow_up(track, plan.at_most)
                self.stdout.write("They are ordered.")
            else:
                self.stdout.write("Nothing is ordered yet; say --yes.")
        except (CannotOrder, OverBudget) as refusal:
            raise CommandError(str(refusal)) from refusal
