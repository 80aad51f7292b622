"""Migrates the database, unless it is at a state that no migration of this version begins at."""

from __future__ import annotations

from typing import Any

from django.core.management.base import CommandError
from django.core.management.commands import migrate
from django.db import connections
from django.db.migrations.loader import MigrationLoader
from django.db.migrations.recorder import MigrationRecorder

LAST_WITH_ALL = "b0f466a"
"""The commit that has what the baselines stand for, step by step"""


class Command(migrate.Command):
    def handle(self, *args: Any, **options: Any) -> None:
        _refuse_half(MigrationRecorder(connections[options["database"]]))
        super().handle(*args, **options)


def _refuse_half(recorder: MigrationRecorder) -> None:
    """Nothing; an error where some, not all, of what a baseline stands for was migrated."""
    done = set(recorder.applied_migrations())
    baselines = MigrationLoader(None).disk_migrations
    for (app, baseline), migration in sorted(baselines.items()):
        missing = [name for name in migration.replaces if name not in done]
        if missing and len(missing) < len(migration.replaces):
            raise CommandError(
                f"This database has part of what {app}.{baseline} stands for, but not"
                f" {missing[0][1]}: install the former version (commit {LAST_WITH_ALL}) and run its"
                " migrate, then this one's."
            )
