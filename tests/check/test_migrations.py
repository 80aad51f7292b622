"""Each application has one row of migrations, which makes the tables of its models."""

from __future__ import annotations

import pytest
from django.apps import apps
from django.core.management import CommandError, call_command
from django.db import connection
from django.db.migrations.autodetector import MigrationAutodetector
from django.db.migrations.loader import MigrationLoader
from django.db.migrations.recorder import MigrationRecorder
from django.db.migrations.state import ProjectState


@pytest.fixture(scope="module")
def loader() -> MigrationLoader:
    return MigrationLoader(None)


def test_no_two_migrations_come_last(loader: MigrationLoader) -> None:
    assert loader.detect_conflicts() == {}


def test_no_model_waits_for_a_migration(loader: MigrationLoader) -> None:
    written, described = loader.project_state(), ProjectState.from_apps(apps)
    changes = MigrationAutodetector(written, described).changes(graph=loader.graph)
    assert {app: [str(each.operations) for each in some] for app, some in changes.items()} == {}


@pytest.mark.django_db
def test_a_database_of_an_earlier_version_is_refused() -> None:
    MigrationRecorder(connection).record_applied("accounts", "0002_note_since_when")
    with pytest.raises(CommandError, match="An earlier version made this database"):
        call_command("migrate", verbosity=0)
