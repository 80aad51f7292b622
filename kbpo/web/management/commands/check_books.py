"""Holds ledger, payments, assignments and payouts against each other, and says where they
disagree.
"""

from __future__ import annotations

from typing import Any

from django.core.management.base import BaseCommand, CommandError

from annotation.budget.check_books import check_books


class Command(BaseCommand):
    help = __doc__

    def handle(self, *args: Any, **options: Any) -> None:
        found = check_books()
        for one in found:
            self.stdout.write(f"{one.check}: {one.sentence}")
        if found:
            raise CommandError(f"{len(found)} disagreement{'' if len(found) == 1 else 's'}.")
        self.stdout.write("The books agree.")
