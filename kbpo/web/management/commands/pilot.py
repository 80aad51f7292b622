"""Launches a pilot batch, or tells what a pilot (or a track's answers) says of how hard its
questions are.
"""

from __future__ import annotations

from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from annotation.interfaces.registry import interface_of
from annotation.models import Pilot
from annotation.quality.agreement import Measured
from annotation.quality.fewer import OfSoMany
from annotation.questions.pilot import (
    DOCUMENTS,
    ITEMS,
    WORKERS,
    CannotPilot,
    is_of_documents,
    launch_pilot,
    pilot_of,
    pilot_report,
    pilotable,
)
from kbpo.money.spend import OverBudget
from kbpo.tracks.models import Track


class Command(BaseCommand):
    """k workers on n items; prints agreement of 2 … k of them, and how much of an expert's spans 1
    … k find.
    """

    help = "Launch a pilot batch on a track, or report on one."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("track", help="slug of the track")
        parser.add_argument(
            "--workers", type=int, default=WORKERS, help=f"workers on each item ({WORKERS})"
        )
        parser.add_argument("--items", type=int, help=f"items ({ITEMS}, or {DOCUMENTS} documents)")
        parser.add_argument(
            "--documents", action="store_true", help="items are documents, whose names are marked"
        )
        parser.add_argument(
            "--report", nargs="?", const="track", help="report on this pilot, or on the whole track"
        )

    def handle(self, *args: Any, **options: Any) -> None:
        track = Track.objects.filter(slug=options["track"]).first()
        if track is None:
            raise CommandError(f"There is no track {options['track']}.")
        if options["report"]:
            self._report(track, options["report"])
            return
        alone, *of_names = pilotable(track)
        interface = of_names[0] if options["documents"] else alone
        try:
            pilot = launch_pilot(
                track, None, workers=options["workers"], items=options["items"], interface=interface
            )
        except (CannotPilot, OverBudget) as refusal:
            raise CommandError(str(refusal)) from refusal
        self.stdout.write(
            f"Pilot {pilot.pk}: {pilot.workers} workers on {pilot.items} {_words(pilot)}."
        )

    def _report(self, track: Track, which: str) -> None:
        pilot = pilot_of(track, int(which)) if which.isdecimal() else None
        if which != "track" and pilot is None:
            raise CommandError(f"The track {track.slug} has no pilot {which}.")
        report = pilot_report(track, pilot)
        for measured in report.agreement:
            self.stdout.write(_line(measured))
        if not report.agreement:
            self.stdout.write("No question has two answers yet.")
        for few in report.fewer:
            self.stdout.write(_of_so_many(few))
        for line in report.recall:
            published = f"  (published {line.published:.2f})" if line.published else ""
            self.stdout.write(
                f"spans found by {line.workers} of them together  {line.union:.3f}{published}"
            )
            if line.majority is not None:
                beside = line.published_majority
                published = f"  (published {beside:.2f})" if beside else ""
                self.stdout.write(
                    f"spans of the majority of {line.workers} of them  {line.majority:.3f}"
                    f"{published}"
                )
        if report.recall:
            self.stdout.write(
                f"Held against {report.reference}. Mean over {report.recall[0].documents}"
                " documents."
            )


def _words(pilot: Pilot) -> str:
    return "documents" if is_of_documents(pilot.interface) else "items"


def _of_so_many(few: OfSoMany) -> str:
    kappa = "–" if few.kappa is None else f"{few.kappa:.3f}"
    ends = "" if few.low80 is None else f" [{few.low80:.3f}, {few.high80:.3f}]"
    return (
        f"{few.interface} {few.what}  with {few.workers} of them  κ {kappa}{ends}  {few.questions}"
        " questions"
    )


def _line(measured: Measured) -> str:
    published = interface_of(measured.interface).published.get(measured.what)
    beside = f"  (published κ {published[1]:.2f} with 3)" if published else ""
    kappa = "–" if measured.kappa is None else f"{measured.kappa:.3f}"
    alpha = "–" if measured.alpha is None else f"{measured.alpha:.3f}"
    ends = "" if measured.low80 is None else f" [{measured.low80:.3f}, {measured.high80:.3f}]"
    extent = f"{measured.questions} questions, {measured.workers} people"
    return f"{measured.interface} {measured.what}  κ {kappa}{beside}  α {alpha}{ends}  {extent}"
