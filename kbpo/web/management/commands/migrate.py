"""Migrates the database, unless an earlier version of the service created it."""

from __future__ import annotations

from typing import Any

from django.core.management.base import CommandError
from django.core.management.commands import migrate
from django.db import connections
from django.db.migrations.loader import MigrationLoader
from django.db.migrations.recorder import MigrationRecorder


class Command(migrate.Command):
    def handle(self, *args: Any, **options: Any) -> None:
        applied = set(MigrationRecorder(connections[options["database"]]).applied_migrations())
        known = MigrationLoader(None, ignore_no_migrations=True).disk_migrations.keys()
        apps = {app for app, _ in known}
        unknown = sorted(key for key in applied - set(known) if key[0] in apps)
        if unknown:
            app, name = unknown[0]
            raise CommandError(
                f"An earlier version made this database ({app}.{name}). Use a new one."
            )
        super().handle(*args, **options)
