"""Compares ledger, payments, assignments and payouts, and reports differences."""

from __future__ import annotations

from typing import Any

from django.core.management.base import BaseCommand, CommandError

from annotation.budget.check_books import check_books
from kbpo.web.components.figures import plural


class Command(BaseCommand):
    help = __doc__

    def handle(self, *args: Any, **options: Any) -> None:
        disagreements = check_books()
        for disagreement in disagreements:
            self.stdout.write(f"{disagreement.check}: {disagreement.sentence}")
        if disagreements:
            raise CommandError(f"{plural(len(disagreements), 'disagreement')}.")
        self.stdout.write("The books agree.")
