"""Prints what systems of a track would lose under pooling if their team had not been in the
pool.
"""

from __future__ import annotations

import math
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from kbpo.evaluation.studies.pooling import HEAD, study
from kbpo.tracks.models import Track
from kbpo.web.csv import lines


class Command(BaseCommand):
    help = __doc__

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("track", help="Slug of the track")
        parser.add_argument(
            "--csv", action="store_true", help="Every system, as CSV, instead of the summary"
        )

    def handle(self, *args: Any, **options: Any) -> None:
        track = Track.objects.select_related("corpus").filter(slug=options["track"]).first()
        if track is None:
            raise CommandError(f"There is no track {options['track']}.")
        outcome = study(track)
        if outcome is None:
            raise CommandError(
                f"{track.name} has no judged predictions of two teams yet: there is"
                " nothing to pool."
            )
        if options["csv"]:
            for line in lines(HEAD, outcome.rows()):
                self.stdout.write(line, ending="")
            return
        self.stdout.write(
            f"{track.name}: {len(outcome.systems)} systems of {outcome.n_teams} teams,"
            f" {outcome.n_instances:,} judged instances, {outcome.n_human:,} true ones found by"
            " people.\n"
        )
        self.stdout.write(
            f"{'metric':10}{'quantity':12}"
            f"{'median bias':>12}{'largest bias':>14}{'largest gap':>13}"
        )
        for row in outcome.summary():
            shown = [_points(row[name]) for name in ("median", "largest", "gap")]
            self.stdout.write(
                f"{row['metric']:10}{row['quantity']:12}{shown[0]:>12}{shown[1]:>14}{shown[2]:>13}"
            )


def _points(share: Any) -> str:
    return "–" if math.isnan(share) else f"{100 * share:.2f}"
