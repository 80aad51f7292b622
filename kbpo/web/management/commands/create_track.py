"""Makes a track on a corpus, with its guarantee, its budget and its price; a draft unless --open is
given.
"""

from __future__ import annotations

from decimal import Decimal, InvalidOperation
from typing import Any

from django.core.exceptions import ValidationError
from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.db import transaction

from annotation.platforms import registry
from kbpo.accounts.models import Team
from kbpo.corpus.models import Corpus
from kbpo.sampling.open_track import Money, create_track, open_track
from kbpo.tracks.models import Track
from kbpo.tracks.registry import KINDS


def dollars(text: str) -> Decimal:
    """Return the amount, to the cent."""
    try:
        amount = Decimal(text)
    except InvalidOperation as problem:
        raise CommandError(f"{text} is no number.") from problem
    if not amount.is_finite() or amount < 0:
        raise CommandError(f"{text} is no amount.")
    return amount


class Command(BaseCommand):
    help = __doc__

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("name", help="Name of the track")
        parser.add_argument("--corpus", required=True, help="Slug of the corpus")
        parser.add_argument(
            "--kind", default="kbp", help=f"{', '.join(KINDS)}, or form-NAME of a declared form"
        )
        parser.add_argument("--description", default="")
        parser.add_argument("--distribution", default="", help="Guaranteed; else the kind's last")
        parser.add_argument("--criterion", default="", help="Guaranteed; else the kind's first")
        parser.add_argument(
            "--half-width", type=dollars, default=Decimal("0.030"), help="Target of the guarantee"
        )
        parser.add_argument(
            "--design",
            default="poisson",
            choices=Track.Design.values,
            help="poisson asks least; iid draws with replacement, exactly as published",
        )
        parser.add_argument(
            "--scope", default="sentence", choices=Track.Scope.values, help="What recall asks for"
        )
        parser.add_argument(
            "--workers", type=int, help="Workers a question; of 3, the third only where two differ"
        )
        parser.add_argument(
            "--platform", default="pool", choices=registry.names(), help="Where people judge"
        )
        parser.add_argument("--budget", type=dollars, default=Decimal("500"), help="Dollars in all")
        parser.add_argument("--day-cap", type=dollars, help="Dollars a day")
        parser.add_argument("--submission-cap", type=dollars, help="Dollars for one submission")
        parser.add_argument("--team-cap", type=dollars, help="Dollars of one team")
        parser.add_argument("--reward", type=dollars, help="Dollars for one answer")
        parser.add_argument(
            "--extra", type=dollars, help="Dollars besides, for an answer that took more work"
        )
        parser.add_argument("--seconds", type=int, help="Expected seconds for one answer")
        parser.add_argument(
            "--study",
            metavar="TEAM",
            help="Slug of the team whose study this is: only it uploads and sees the track",
        )
        parser.add_argument("--open", action="store_true", help="Open it at once")

    def handle(self, *args: Any, **options: Any) -> None:
        corpus = Corpus.objects.filter(slug=options["corpus"]).first()
        if corpus is None:
            raise CommandError(
                f"There is no corpus {options['corpus']}. Load one with load_corpus."
            )
        money = Money(
            budget=options["budget"],
            day=options["day_cap"],
            submission=options["submission_cap"],
            team=options["team_cap"],
            reward=options["reward"],
            extra=options["extra"],
            seconds=options["seconds"],
            fee_rate=registry.fee_rate_of(options["platform"]),
        )
        names = "kind description distribution criterion design scope platform"
        fields: dict[str, Any] = {name: options[name] for name in names.split()}
        if options["study"]:
            fields["owner"] = Team.objects.filter(slug=options["study"]).first()
            if fields["owner"] is None:
                raise CommandError(f"There is no team {options['study']}.")
        try:
            with transaction.atomic():
                track = create_track(
                    corpus,
                    options["name"],
                    money=money,
                    target_half_width=options["half_width"],
                    workers_per_question=options["workers"],
                    **fields,
                )
                if options["open"]:
                    track = open_track(track)
        except ValidationError as problem:
            sentences = [
                f"{name}: {' '.join(texts)}" for name, texts in problem.message_dict.items()
            ]
            raise CommandError(" ".join(sentences)) from problem
        self.stdout.write(f"The track {track.name} ({track.slug}) is {track.status}.")
