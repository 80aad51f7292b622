"""Orders documents of a track to be annotated whole by people, after showing what it costs at
most.
"""

from __future__ import annotations

from decimal import Decimal, InvalidOperation
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from annotation.questions.order import CannotOrder, order_documents, plan_documents
from kbpo.money.spend import OverBudget
from kbpo.tracks.models import Track

CENTS = Decimal(100)


class Command(BaseCommand):
    help = __doc__

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("track", help="Slug of the track")
        parser.add_argument("documents", type=int, help="How many")
        parser.add_argument(
            "--token",
            type=_cents,
            default=Decimal("0.75"),
            help="Cents for one word, to each reader",
        )
        parser.add_argument(
            "--pair", type=_cents, default=Decimal(5), help="Cents for one pair, to each reader"
        )
        parser.add_argument(
            "--yes",
            action="store_true",
            help="Order; without it the price is shown and nothing done",
        )

    def handle(self, *args: Any, **options: Any) -> None:
        track = Track.objects.select_related("corpus").filter(slug=options["track"]).first()
        if track is None:
            raise CommandError(f"There is no track {options['track']}.")
        terms = {"per_token": options["token"] / CENTS, "per_pair": options["pair"] / CENTS}
        try:
            plan = plan_documents(track, options["documents"], **terms)
            self.stdout.write(
                f"{plan.documents:,} documents with {plan.tokens:,} words, {plan.workers} readers"
                f" each: names ${plan.entities}, relations at most ${plan.relations}, together at"
                f" most ${plan.at_most}."
            )
            if options["yes"]:
                order_documents(track, options["documents"], plan.at_most, **terms)
                self.stdout.write("They are ordered.")
            else:
                self.stdout.write("Nothing is ordered yet; say --yes.")
        except (CannotOrder, OverBudget) as refusal:
            raise CommandError(str(refusal)) from refusal


def _cents(text: str) -> Decimal:
    try:
        value = Decimal(text)
    except InvalidOperation as error:
        raise ValueError(text) from error
    if not value.is_finite() or not 0 < value <= 10_000 or value.as_tuple().exponent < -2:  # type: ignore[operator]
        raise ValueError(text)
    return value
